//! Keeps the connections of all users, and their tokens fresh.
//!
//! A refresh token is often valid once, so two refreshes at a time would lose the account. Whoever
//! refreshes claims it in the store first, and everybody else waits for the new tokens. The claim is
//! a write: a store that is locked or full is noticed before the service rotates the token. New
//! tokens are stored before they are used.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use sallyport_connections::{
    AccountService, CipherError, TokenCipher,
    oauth::{self, OAuthError, ServiceHttp, TokenSet},
};
use sallyport_contract::{PluginName, Secret};
use sallyport_store::{
    ConnectionStatus, ConnectionStore, NewConnection, SealedTokens, StoreError, StoredConnection,
};
use tokio::time::{Instant, sleep};

use super::{AccountError, KEY_FILE, SignInPresenter, key};
use crate::{clock::now_ms, session_id::new_session_id};

/// How long a claim lasts: longer than a request to the service and the retries of the store.
const CLAIM_MS: u64 = 120_000;

/// Longest wait for the refresh of another process.
const OTHERS_TIME_MAX: Duration = Duration::from_secs(60);

/// How often the store is asked whether another process is done.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How long storing new tokens is tried again, since they cannot be had a second time.
const KEEP_TIME_MAX: Duration = Duration::from_secs(60);

/// The connections of all users.
pub struct ConnectionDesk {
    store: Arc<dyn ConnectionStore>,
    key_file: PathBuf,
    cipher: OnceLock<TokenCipher>,
    /// The client for https, and the one for this machine.
    clients: [OnceLock<ServiceHttp>; 2],
    /// Shows sign-ins that calls wait for, if a front end can.
    presenter: OnceLock<Arc<dyn SignInPresenter>>,
    /// New tokens that could not be stored yet, by user and plugin.
    unsaved: Mutex<HashMap<(String, String), (StoredConnection, SealedTokens)>>,
}

/// The facts about a connection that may be shown.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ConnectionFacts {
    /// Its id.
    pub id: String,
    /// The user.
    pub user_id: String,
    /// The plugin, by its name.
    pub plugin_key: String,
    /// The plugin as people call it.
    pub plugin_name: String,
    /// Its state.
    pub status: ConnectionStatus,
    /// When the access token ends, in milliseconds since 1970.
    pub expires_at: Option<u64>,
    /// Whether it is refreshed by itself.
    pub has_refresh_token: bool,
    /// The permissions that it has.
    pub scope: String,
    /// What the service reports about the user.
    pub profile_data: serde_json::Value,
}

impl ConnectionFacts {
    /// Who the account belongs to, according to the service. It is foreign text.
    pub fn account(&self) -> &str {
        let keys = ["email", "mail", "userPrincipalName", "login", "display_name", "name", "id"];
        let found = keys.iter().find_map(|key| self.profile_data[key].as_str());
        found.unwrap_or_default()
    }
}

impl ConnectionDesk {
    /// A desk over a store. The key is a file in the state folder.
    pub fn new(store: Arc<dyn ConnectionStore>, state_folder: &Path) -> Arc<Self> {
        Arc::new(Self {
            store,
            key_file: state_folder.join(KEY_FILE),
            cipher: OnceLock::new(),
            clients: [OnceLock::new(), OnceLock::new()],
            presenter: OnceLock::new(),
            unsaved: Mutex::default(),
        })
    }

    /// Lets calls that lack an account ask the user to connect one, and shows the page with
    /// `presenter`. The first one counts.
    pub fn offer_sign_ins(&self, presenter: Arc<dyn SignInPresenter>) {
        let _ = self.presenter.set(presenter);
    }

    pub(crate) fn sign_in_presenter(&self) -> Option<Arc<dyn SignInPresenter>> {
        self.presenter.get().cloned()
    }

    /// The connections of a user, also those that have ended. Nothing is refreshed.
    ///
    /// # Errors
    ///
    /// The store cannot be used.
    pub async fn list(&self, user: &str) -> Result<Vec<ConnectionFacts>, AccountError> {
        let all = self.store.list_connections(user).await?;
        Ok(all.into_iter().map(connection_facts).collect())
    }

    /// The connection of a user to a plugin, also if it has ended. Nothing is refreshed.
    ///
    /// # Errors
    ///
    /// The store cannot be used.
    pub async fn find(
        &self,
        user: &str,
        plugin: &PluginName,
    ) -> Result<Option<ConnectionFacts>, AccountError> {
        let found = self.store.find_connection(user, plugin.as_str()).await?;
        Ok(found.map(connection_facts))
    }

    /// Removes the connection of a user to a plugin. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// The store cannot be used.
    pub async fn remove(&self, user: &str, plugin: &PluginName) -> Result<bool, AccountError> {
        Ok(self.store.remove_connection(user, plugin.as_str()).await?)
    }

    /// Ends the connection of a user to a plugin and removes its tokens. That there was one stays
    /// known. Returns whether there is one.
    ///
    /// # Errors
    ///
    /// The store cannot be used.
    pub async fn disconnect(&self, user: &str, plugin: &PluginName) -> Result<bool, AccountError> {
        let key = (user.to_owned(), plugin.to_string());
        self.unsaved.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
        // A refresh that ends meanwhile changes the connection; then the newer one is ended.
        while let Some(stored) = self.store.find_connection(user, plugin.as_str()).await? {
            if self.store.end_connection(&stored, ConnectionStatus::Disconnected).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The access token of a user for a plugin, refreshed if it is due.
    ///
    /// # Errors
    ///
    /// The user has no account that can be used now.
    pub async fn usable_token(
        self: &Arc<Self>,
        service: &Arc<AccountService>,
        user: &str,
    ) -> Result<Secret, AccountError> {
        self.token_unless(service, user, |tokens| !tokens.is_due(now_ms())).await
    }

    /// Refreshes the account after a service refused a token, unless it was refreshed meanwhile.
    ///
    /// # Errors
    ///
    /// The account cannot be refreshed. If the service refuses it, it has expired.
    pub async fn replace_token(
        self: &Arc<Self>,
        service: &Arc<AccountService>,
        user: &str,
        refused: &Secret,
    ) -> Result<Secret, AccountError> {
        self.token_unless(service, user, |tokens| tokens.access_token != *refused).await
    }

    /// Marks an account as expired, because a service refuses even its fresh token.
    ///
    /// # Errors
    ///
    /// The store cannot be used.
    pub async fn expire(&self, user: &str, plugin: &PluginName) -> Result<(), AccountError> {
        if let Some(stored) = self.store.find_connection(user, plugin.as_str()).await? {
            self.store.end_connection(&stored, ConnectionStatus::Expired).await?;
        }
        Ok(())
    }

    /// Returns the token once it passes, and refreshes it until then.
    async fn token_unless(
        self: &Arc<Self>,
        service: &Arc<AccountService>,
        user: &str,
        passes: impl Fn(&TokenSet) -> bool,
    ) -> Result<Secret, AccountError> {
        let deadline = Instant::now() + OTHERS_TIME_MAX;
        loop {
            let stored = self.find_active(service, user).await?;
            let tokens = self.open_tokens(&stored)?;
            if passes(&tokens) {
                return Ok(tokens.access_token);
            }
            let (now, plugin) = (now_ms(), &service.plugin);
            if self.store.claim_refresh(&stored, now, now + CLAIM_MS).await? {
                let fresh = self.refresh_in_task(service, stored, tokens.clone()).await;
                return match fresh {
                    // It is still good for some minutes.
                    Err(AccountError::NotNow { .. })
                        if tokens.is_due(now) && !tokens.has_ended(now_ms()) =>
                    {
                        Ok(tokens.access_token)
                    }
                    fresh => fresh,
                };
            }
            if Instant::now() >= deadline {
                let reason = "another process has been refreshing it for too long".to_owned();
                return Err(AccountError::NotNow { plugin: plugin.clone(), reason });
            }
            sleep(POLL_INTERVAL).await;
        }
    }

    async fn find_active(
        &self,
        service: &AccountService,
        user: &str,
    ) -> Result<StoredConnection, AccountError> {
        let plugin = &service.plugin;
        self.keep_unsaved(user, plugin).await?;
        let found = self.store.find_connection(user, plugin.as_str()).await?;
        match found {
            Some(stored) if stored.status == ConnectionStatus::Active => Ok(stored),
            Some(stored) if stored.status == ConnectionStatus::Expired => {
                Err(AccountError::Expired { plugin: plugin.clone() })
            }
            Some(_) | None => Err(AccountError::NotConnected { plugin: plugin.clone() }),
        }
    }

    /// Refreshes in a task of its own: a call that is cancelled must not lose a rotated token.
    async fn refresh_in_task(
        self: &Arc<Self>,
        service: &Arc<AccountService>,
        stored: StoredConnection,
        tokens: TokenSet,
    ) -> Result<Secret, AccountError> {
        let (desk, owned) = (Arc::clone(self), Arc::clone(service));
        let task = tokio::spawn(async move { desk.refresh(&owned, &stored, &tokens).await });
        task.await.unwrap_or_else(|error| {
            let plugin = service.plugin.clone();
            Err(AccountError::NotNow { plugin, reason: error.to_string() })
        })
    }

    async fn refresh(
        &self,
        service: &AccountService,
        stored: &StoredConnection,
        tokens: &TokenSet,
    ) -> Result<Secret, AccountError> {
        let plugin = service.plugin.clone();
        let fresh = match self.http(service) {
            Ok(http) => oauth::refresh(&service.auth, http, tokens, now_ms()).await,
            Err(error) => Err(error),
        };
        match fresh {
            Ok(fresh) => {
                self.keep_tokens(stored, self.seal_tokens(&stored.connection, &fresh)?).await?;
                Ok(fresh.access_token)
            }
            Err(OAuthError::Refused(_)) => {
                self.store.end_connection(stored, ConnectionStatus::Expired).await?;
                Err(AccountError::Expired { plugin })
            }
            Err(error) => {
                self.store.release_refresh(stored).await?;
                Err(AccountError::NotNow { plugin, reason: error.to_string() })
            }
        }
    }

    /// Stores new tokens, again and again while the store is locked or full. If that fails, this
    /// process keeps them, and stores them at the next use.
    async fn keep_tokens(
        &self,
        of: &StoredConnection,
        tokens: SealedTokens,
    ) -> Result<(), StoreError> {
        let deadline = Instant::now() + KEEP_TIME_MAX;
        loop {
            match self.store.replace_tokens(of, tokens.clone()).await {
                Ok(_) => return Ok(()),
                Err(error) if Instant::now() >= deadline => {
                    let NewConnection { user_id, plugin_key, .. } = of.connection.clone();
                    let mut unsaved = self.unsaved.lock().unwrap_or_else(PoisonError::into_inner);
                    unsaved.insert((user_id, plugin_key), (of.clone(), tokens));
                    return Err(error);
                }
                Err(_) => sleep(POLL_INTERVAL * 4).await,
            }
        }
    }

    /// Stores tokens that could not be stored earlier.
    async fn keep_unsaved(&self, user: &str, plugin: &PluginName) -> Result<(), StoreError> {
        let key = (user.to_owned(), plugin.to_string());
        let lock = || self.unsaved.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = lock().get(&key).cloned();
        if let Some((of, tokens)) = waiting {
            self.store.replace_tokens(&of, tokens).await?;
            lock().remove(&key);
        }
        Ok(())
    }

    /// Stores a new connection.
    pub(super) async fn save(
        &self,
        service: &AccountService,
        user: &str,
        tokens: &TokenSet,
        profile_data: String,
    ) -> Result<(), AccountError> {
        let mut new = NewConnection {
            id: new_session_id(),
            user_id: user.to_owned(),
            plugin_key: service.plugin.to_string(),
            plugin_name: service.shown_name.clone(),
            tokens: SealedTokens {
                access_token: Vec::new(),
                refresh_token: None,
                issued_at_ms: 0,
                expires_at_ms: None,
                scope: String::new(),
            },
            profile_data,
            created_at_ms: now_ms(),
        };
        new.tokens = self.seal_tokens(&new, tokens)?;
        Ok(self.store.save_connection(new).await?)
    }

    fn seal_tokens(
        &self,
        of: &NewConnection,
        tokens: &TokenSet,
    ) -> Result<SealedTokens, AccountError> {
        let (cipher, owner) = (self.cipher()?, owner_text(of));
        let failed = |source| sealed_error(of, source);
        let refresh_token = tokens.refresh_token.as_ref();
        let refresh_token = refresh_token.map(|token| cipher.seal(&owner, token)).transpose();
        Ok(SealedTokens {
            access_token: cipher.seal(&owner, &tokens.access_token).map_err(failed)?,
            refresh_token: refresh_token.map_err(failed)?,
            issued_at_ms: tokens.issued_at_ms,
            expires_at_ms: tokens.expires_at_ms,
            scope: tokens.scope.clone(),
        })
    }

    fn open_tokens(&self, stored: &StoredConnection) -> Result<TokenSet, AccountError> {
        let (cipher, owner) = (self.cipher()?, owner_text(&stored.connection));
        let failed = |source| sealed_error(&stored.connection, source);
        let sealed = &stored.connection.tokens;
        let refresh_token = sealed.refresh_token.as_ref();
        let refresh_token = refresh_token.map(|token| cipher.open(&owner, token)).transpose();
        Ok(TokenSet {
            access_token: cipher.open(&owner, &sealed.access_token).map_err(failed)?,
            refresh_token: refresh_token.map_err(failed)?,
            issued_at_ms: sealed.issued_at_ms,
            expires_at_ms: sealed.expires_at_ms,
            scope: sealed.scope.clone(),
        })
    }

    fn cipher(&self) -> Result<&TokenCipher, AccountError> {
        if let Some(cipher) = self.cipher.get() {
            return Ok(cipher);
        }
        let path = self.key_file.display().to_string();
        let cipher = key::open_cipher(&self.key_file)
            .map_err(|problem| AccountError::Key { path, problem })?;
        Ok(self.cipher.get_or_init(|| cipher))
    }

    /// The client for the addresses of a service.
    pub(super) fn http(&self, service: &AccountService) -> Result<&ServiceHttp, OAuthError> {
        let auth = &service.auth;
        let urls = [&auth.token_url, &auth.refresh_url, &auth.profile_url, &auth.device_url];
        let needs_tls = urls.into_iter().flatten().any(|url| url.scheme() == "https");
        let slot = &self.clients[usize::from(needs_tls)];
        if let Some(client) = slot.get() {
            return Ok(client);
        }
        let client = ServiceHttp::new(needs_tls)
            .map_err(|error| OAuthError::Unavailable(error.to_string()))?;
        Ok(slot.get_or_init(|| client))
    }
}

/// What is authenticated with each token.
fn owner_text(of: &NewConnection) -> String {
    format!("{}\n{}", of.plugin_key, of.user_id)
}

fn sealed_error(of: &NewConnection, source: CipherError) -> AccountError {
    match of.plugin_key.parse() {
        Ok(plugin) => AccountError::Sealed { plugin, source },
        Err(_) => AccountError::Login(OAuthError::Definition(source.to_string())),
    }
}

fn connection_facts(stored: StoredConnection) -> ConnectionFacts {
    let StoredConnection { connection, status, .. } = stored;
    ConnectionFacts {
        id: connection.id,
        user_id: connection.user_id,
        plugin_key: connection.plugin_key,
        plugin_name: connection.plugin_name,
        status,
        expires_at: connection.tokens.expires_at_ms,
        has_refresh_token: connection.tokens.refresh_token.is_some(),
        scope: connection.tokens.scope,
        profile_data: serde_json::from_str(&connection.profile_data).unwrap_or_default(),
    }
}
