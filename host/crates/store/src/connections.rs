//! Connections: the accounts that users have connected at outside services.
//!
//! A user has at most one connection of a plugin. Tokens are sealed before they get here, so the
//! database and its backups contain none that can be read. Each change of the tokens counts up the
//! version, and only the holder of a claim refreshes, so that of many processes one asks the
//! service. Every query names the user whose connections it is about.

use sallyport_contract::async_trait;

use crate::error::{StoreError, check_length};

/// Longest texts, in bytes: longer than any of a real service.
const KEY_BYTES_MAX: usize = 256;
const SCOPE_BYTES_MAX: usize = 16 * 1024;
const PROFILE_BYTES_MAX: usize = 64 * 1024;

/// The state of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConnectionStatus {
    /// It can be used.
    Active,
    /// The user has disconnected it.
    Disconnected,
    /// The service refused it, so the user has to connect again.
    Expired,
}

impl ConnectionStatus {
    const WORDS: [(&str, Self); 3] = [
        ("active", Self::Active),
        ("disconnected", Self::Disconnected),
        ("expired", Self::Expired),
    ];

    /// The word that is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Disconnected => "disconnected",
            Self::Expired => "expired",
        }
    }

    /// The state with this word. Another word counts as expired, which grants nothing.
    pub(crate) fn from_word(word: &str) -> Self {
        let known = Self::WORDS.iter().find(|(own, _)| *own == word);
        known.map_or(Self::Expired, |(_, status)| *status)
    }
}

/// Sealed tokens with what the service reports about them. Times are in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedTokens {
    /// The access token.
    pub access_token: Vec<u8>,
    /// The refresh token, if there is one.
    pub refresh_token: Option<Vec<u8>>,
    /// When the access token was received.
    pub issued_at_ms: u64,
    /// When it expires; `None` if the service does not say so.
    pub expires_at_ms: Option<u64>,
    /// The permissions that it has.
    pub scope: String,
}

/// A connection to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewConnection {
    /// Its id.
    pub id: String,
    /// The user.
    pub user_id: String,
    /// The plugin, by its name.
    pub plugin_key: String,
    /// The plugin as people call it.
    pub plugin_name: String,
    /// The tokens.
    pub tokens: SealedTokens,
    /// What the service reports about the user, as JSON.
    pub profile_data: String,
    /// When it was made, in milliseconds since 1970.
    pub created_at_ms: u64,
}

/// A stored connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredConnection {
    /// The connection as it was made, with its current tokens.
    pub connection: NewConnection,
    /// Its state.
    pub status: ConnectionStatus,
    /// Counts the changes.
    pub version: u64,
}

impl NewConnection {
    /// # Errors
    ///
    /// A text is too long.
    pub(crate) fn check_lengths(&self) -> Result<(), StoreError> {
        check_length("the name of a user", &self.user_id, KEY_BYTES_MAX)?;
        check_length("the name of a plugin", &self.plugin_name, KEY_BYTES_MAX)?;
        check_length("a scope", &self.tokens.scope, SCOPE_BYTES_MAX)?;
        check_length("a profile", &self.profile_data, PROFILE_BYTES_MAX)
    }
}

/// The connections of all users. Every method fails if the database cannot be used.
#[async_trait]
pub trait ConnectionStore: Send + Sync {
    /// Stores a connection, which is active, in place of an earlier one of the user to the plugin.
    ///
    /// # Errors
    ///
    /// A text is too long.
    async fn save_connection(&self, new: NewConnection) -> Result<(), StoreError>;

    /// Returns the connection of a user to a plugin.
    async fn find_connection(
        &self,
        user_id: &str,
        plugin_key: &str,
    ) -> Result<Option<StoredConnection>, StoreError>;

    /// Lists the connections of a user, by the plugins' names.
    async fn list_connections(&self, user_id: &str) -> Result<Vec<StoredConnection>, StoreError>;

    /// Claims the refresh of a connection of this version until a time. Returns false if another
    /// process has the claim at `now_ms`, or if the connection has changed.
    async fn claim_refresh(
        &self,
        of: &StoredConnection,
        now_ms: u64,
        until_ms: u64,
    ) -> Result<bool, StoreError>;

    /// Gives a claim back without new tokens.
    async fn release_refresh(&self, of: &StoredConnection) -> Result<(), StoreError>;

    /// Replaces the tokens of a connection of this version, which is active then. Returns false if
    /// the connection has changed or is gone.
    async fn replace_tokens(
        &self,
        of: &StoredConnection,
        tokens: SealedTokens,
    ) -> Result<bool, StoreError>;

    /// Marks a connection of this version as expired or disconnected, and removes its tokens.
    /// Returns false if the connection has changed or is gone.
    async fn end_connection(
        &self,
        of: &StoredConnection,
        status: ConnectionStatus,
    ) -> Result<bool, StoreError>;

    /// Removes the connection of a user to a plugin. Returns whether there was one.
    async fn remove_connection(&self, user_id: &str, plugin_key: &str) -> Result<bool, StoreError>;
}
