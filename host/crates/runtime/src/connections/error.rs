//! Why an account cannot be used, with what mends it.

use sallyport_connections::{CipherError, oauth::OAuthError};
use sallyport_contract::{CallFailure, FailureKind, LOCAL_USER, PluginName};
use sallyport_store::StoreError;

use crate::secrets::SecretProblem;

/// How a user connects a plugin's account: by a command at the terminal, in the console elsewhere.
pub fn connect_advice(plugin: &PluginName, user: &str) -> String {
    match user == LOCAL_USER {
        true => format!("sallyport connection add {plugin}"),
        false => format!("connect {plugin} on the page Connections of the console"),
    }
}

/// Why an account cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// The user has not connected one.
    #[error("{plugin} is not connected to an account")]
    NotConnected {
        /// The plugin.
        plugin: PluginName,
    },
    /// The service refused it.
    #[error("the connection of {plugin} has expired")]
    Expired {
        /// The plugin.
        plugin: PluginName,
    },
    /// The tokens cannot be refreshed now. The account stays connected.
    #[error("the connection of {plugin} cannot be refreshed now: {reason}")]
    NotNow {
        /// The plugin.
        plugin: PluginName,
        /// The reason.
        reason: String,
    },
    /// A stored token cannot be read.
    #[error("the connection of {plugin} cannot be read: {source}")]
    Sealed {
        /// The plugin.
        plugin: PluginName,
        /// The reason.
        source: CipherError,
    },
    /// The key that seals the tokens cannot be had.
    #[error("the key {path} that seals the tokens cannot be used: {problem}")]
    Key {
        /// Its file.
        path: String,
        /// The problem.
        problem: SecretProblem,
    },
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The sign-in failed.
    #[error(transparent)]
    Login(#[from] OAuthError),
}

impl AccountError {
    /// Returns what the user of the terminal can do.
    pub fn hint(&self) -> Option<String> {
        self.hint_for(LOCAL_USER)
    }

    fn hint_for(&self, user: &str) -> Option<String> {
        match self {
            Self::NotConnected { plugin } => {
                Some(format!("to connect it: {}", connect_advice(plugin, user)))
            }
            Self::Expired { plugin } | Self::Sealed { plugin, .. } => {
                Some(format!("to connect it again: {}", connect_advice(plugin, user)))
            }
            Self::NotNow { .. } | Self::Login(OAuthError::Unavailable(_)) => {
                Some("try again in a moment".to_owned())
            }
            Self::Key { .. } => Some("restore the file, or remove it and connect again".to_owned()),
            Self::Store(error) => error.hint(),
            Self::Login(OAuthError::Application(_)) => {
                Some("check client_id, client_secret and redirect_uri at the service".to_owned())
            }
            Self::Login(_) => None,
        }
    }

    /// Whether a new sign-in mends it.
    pub(crate) fn needs_sign_in(&self) -> bool {
        matches!(self, Self::NotConnected { .. } | Self::Expired { .. } | Self::Sealed { .. })
    }

    /// The failure of a call that needs the account. The model reads what mends it.
    pub(crate) fn into_call_failure(self, user: &str) -> CallFailure {
        let kind = match self.needs_sign_in() {
            true => FailureKind::AuthRequired,
            false => FailureKind::Unavailable,
        };
        let message = match (&self, self.hint_for(user)) {
            // Paths of the host are for the user.
            (Self::Key { .. } | Self::Store(_), _) => "the account cannot be read now".to_owned(),
            (_, Some(hint)) => format!("{self}; {hint}"),
            (_, None) => self.to_string(),
        };
        CallFailure::new(kind, message).with_detail(self.to_string())
    }
}
