//! Signing in to servers at an address.
//!
//! The first sign-in finds out which service gives the tokens, and registers this program there. The
//! result is kept in a file, and is from then on a service like that of any other plugin: users
//! connect accounts to it, and each call carries the token of its user.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use sallyport_connections::{
    AccountService, AuthConfig, AuthType,
    definition::is_safe_for_tokens,
    oauth::{CallbackListener, may_reach_service},
};
use sallyport_contract::{PluginName, Secret};
use sallyport_mcp_client::{
    AuthorizationError, EarlierPermissions, RegisteredApplication, ServerAddress,
    ServerAuthorization, discover_authorization,
};
use sallyport_policy::{is_public_address, is_this_machine, literal_addresses};
use serde::{Deserialize, Serialize};
use serde_json::Map;
use url::Url;

use super::{
    McpServerPlugin, ServerPolicy,
    connection_spec::{AddressSpec, ConnectionSpec, IS_PROGRAM},
    running::{McpStartError, server_address},
};
use crate::{
    atomic_file,
    config::{HostSettings, McpServerError},
    connections::login::{LoginError, PendingBrowserLogin},
    gate::{PolicyLoadError, PolicyStore},
    secrets::read_secret_file,
};

/// The folder of these files, in the state folder.
const FOLDER: &str = "mcp-sign-ins";

/// The service of a server, as it is kept.
#[derive(Clone, Serialize, Deserialize)]
struct SignInFile {
    /// The address of the server. For another one, the file does not count.
    server: Url,
    auth_url: Url,
    token_url: Url,
    client_id: String,
    client_secret: Option<String>,
    redirect_uri: String,
    scopes: Vec<String>,
    resource: Option<String>,
    issuer: Option<String>,
    #[serde(default)]
    requires_issuer: bool,
    #[serde(default)]
    has_secret_in_form: bool,
}

/// What a sign-in to a server begins with.
#[derive(Debug, Default)]
pub struct ServerSignIn {
    /// The application that the user has registered at the service.
    pub application: Option<RegisteredApplication>,
    /// The permissions that the user's account has. They are asked for again, because the new
    /// tokens replace the old ones.
    pub held_scopes: Vec<String>,
}

/// A sign-in to a server that waits for its user.
pub struct PendingServerSignIn {
    /// The service, as it was found out.
    pub service: Arc<AccountService>,
    /// The sign-in in the browser.
    pub login: PendingBrowserLogin,
    /// What is to be kept when the account is connected.
    pub registration: ServerRegistration,
}

/// The service of a server and this program's registration there.
pub struct ServerRegistration {
    file: SignInFile,
    path: PathBuf,
}

impl ServerRegistration {
    /// Keeps it. Until then, the account that the user had works as before.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn keep(&self) -> Result<(), ServerSignInError> {
        self.file.write(&self.path)
    }
}

/// Why a sign-in to a server does not begin.
#[derive(Debug, thiserror::Error)]
pub enum ServerSignInError {
    /// There is no such server.
    #[error("there is no MCP server {0}")]
    Unknown(PluginName),
    /// It is a program, or has a token in its headers.
    #[error("{0} needs no sign-in: {1}")]
    NotNeeded(PluginName, &'static str),
    /// It cannot be used as it is configured.
    #[error(transparent)]
    Server(#[from] McpServerError),
    /// It may not be reached.
    #[error("{0}")]
    NotAllowed(String),
    /// It offers no sign-in that can be used.
    #[error(transparent)]
    Authorization(#[from] AuthorizationError),
    /// Tokens would cross the network unencrypted.
    #[error("its tokens would be sent unencrypted to {0}")]
    Unsafe(String),
    /// The service is at an address of this machine or of the private network.
    #[error("its sign-in leads to {0}, which is not a public address")]
    NotPublic(String),
    /// The sign-in cannot begin.
    #[error(transparent)]
    Login(#[from] LoginError),
    /// The policy cannot be read.
    #[error(transparent)]
    Policy(#[from] PolicyLoadError),
    /// What was found out cannot be kept.
    #[error("{path} cannot be written: {source}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl ServerSignInError {
    /// Returns what the user can do.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown(_) => Some("`sallyport mcp list` lists them".to_owned()),
            Self::Server(error) => Some(error.hint()),
            Self::Authorization(AuthorizationError::NotOffered) => {
                Some("if it takes a token, write it into `headers` of its table".to_owned())
            }
            Self::Authorization(AuthorizationError::NotRegistered(_)) => Some(
                "register an application at the service yourself, and name it: --client-id ID"
                    .to_owned(),
            ),
            Self::Policy(_)
            | Self::NotNeeded(..)
            | Self::NotAllowed(_)
            | Self::Authorization(AuthorizationError::Unusable(_))
            | Self::Unsafe(_)
            | Self::NotPublic(_)
            | Self::Login(_)
            | Self::File { .. } => None,
        }
    }
}

/// The file about the service of a server.
fn sign_in_file(state: &Path, name: &PluginName) -> PathBuf {
    state.join(FOLDER).join(format!("{name}.json"))
}

/// The file with the permissions that a call lacked.
fn missing_scopes_file(state: &Path, name: &PluginName) -> PathBuf {
    state.join(FOLDER).join(format!("{name}.missing-scopes"))
}

/// The service of a server, if a sign-in has found it out.
pub(super) fn read_account_service(
    state: &Path,
    name: &PluginName,
    server: &Url,
) -> Option<Arc<AccountService>> {
    let file = SignInFile::read(state, name, server)?;
    Some(Arc::new(file.into_service(name)))
}

/// Removes what is kept of the sign-ins to a server: its service, and this program's registration
/// with its password. Returns whether there was any.
///
/// # Errors
///
/// A file cannot be removed.
pub fn forget_sign_in(settings: &HostSettings, name: &PluginName) -> io::Result<bool> {
    let state = &settings.paths.state;
    let mut was_there = false;
    for path in [sign_in_file(state, name), missing_scopes_file(state, name)] {
        match fs::remove_file(path) {
            Ok(()) => was_there = true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(was_there)
}

/// Lets the next sign-in to a server ask for the permissions that a call lacked.
pub(super) fn note_missing_scopes(state: &Path, name: &PluginName, scopes: &str) {
    // Without the file, the next sign-in asks for what the server names at that moment.
    let _ = atomic_file::replace_user_file(&missing_scopes_file(state, name), scopes);
}

/// Returns the permissions that a call lacked. They count for one sign-in, because a service that
/// refuses them would otherwise refuse each one.
fn take_missing_scopes(state: &Path, name: &PluginName) -> Vec<String> {
    let path = missing_scopes_file(state, name);
    let Ok(text) = read_secret_file(&path) else { return Vec::new() };
    // If it stays, they are asked for again.
    let _ = fs::remove_file(&path);
    text.expose().split_whitespace().map(str::to_owned).collect()
}

/// Begins a sign-in to a server: finds out its service, and registers this program there unless the
/// user has registered an application.
///
/// # Errors
///
/// The server offers no sign-in, or may not be reached.
pub async fn begin_server_sign_in(
    settings: &HostSettings,
    name: &PluginName,
    sign_in: ServerSignIn,
) -> Result<PendingServerSignIn, ServerSignInError> {
    let server = settings.mcp_servers.get(name);
    let server = server.ok_or_else(|| ServerSignInError::Unknown(name.clone()))?;
    let server = McpServerPlugin::new(name, server, &settings.env, &settings.paths)?;
    let address = reachable_address(settings, &server)?;
    let listener = CallbackListener::open(name.as_str(), None).await.map_err(LoginError::from)?;
    let server = sign_in_address(&address).map_err(ServerSignInError::NotAllowed)?;
    let own = address.url.clone();
    let may_ask = Box::new(move |url: &Url| may_be_asked(&own, url));
    let ServerSignIn { application, held_scopes } = sign_in;
    let state = &settings.paths.state;
    let known = SignInFile::read(state, name, &address.url);
    let scopes = held_scopes.into_iter().chain(take_missing_scopes(state, name)).collect();
    let earlier = EarlierPermissions { issuer: known.and_then(|file| file.issuer), scopes };
    let redirect = listener.redirect();
    let found = discover_authorization(server, may_ask, redirect, application, earlier).await?;
    for url in [&found.auth_url, &found.token_url] {
        let host = || url.host_str().unwrap_or_default().to_owned();
        if !is_safe_for_tokens(url) {
            return Err(ServerSignInError::Unsafe(host()));
        }
        if !may_be_asked(&address.url, url) {
            return Err(ServerSignInError::NotPublic(host()));
        }
    }
    let file = SignInFile::new(address.url, redirect, found);
    let service = Arc::new(file.clone().into_service(name));
    let login = PendingBrowserLogin::on_listener(listener, &service)?;
    let registration = ServerRegistration { file, path: sign_in_file(state, name) };
    Ok(PendingServerSignIn { service, login, registration })
}

/// The address of a server that needs a sign-in, under the policy.
fn reachable_address(
    settings: &HostSettings,
    server: &McpServerPlugin,
) -> Result<AddressSpec, ServerSignInError> {
    let name = || server.name.clone();
    if let Some(reason) = server.endpoint.sign_in_obstacle() {
        return Err(ServerSignInError::NotNeeded(name(), reason));
    }
    let policy = PolicyStore::open(settings.policy.clone(), Box::new(|_| {}))?.current().policy;
    let grant = policy.effective_grant(&server.manifest()?, &Map::new());
    let policy = ServerPolicy { grant: &grant, proxies: policy.proxy() };
    match server.endpoint.connection_spec(policy, &settings.env, None) {
        Ok(ConnectionSpec::Address(address)) => Ok(address),
        Ok(ConnectionSpec::Process(_)) => Err(ServerSignInError::NotNeeded(name(), IS_PROGRAM)),
        Err(McpStartError::Denied(denial)) => {
            let why = server.endpoint.describe_missing_grant(&name(), &denial);
            Err(ServerSignInError::NotAllowed(why))
        }
        Err(error) => Err(ServerSignInError::NotAllowed(error.to_string())),
    }
}

/// Whether a sign-in to `server` may send requests to an address: to the server itself, and to public
/// ones. Only a server of this machine may name this machine, because another one could make us ask
/// what only this machine can reach.
fn may_be_asked(server: &Url, url: &Url) -> bool {
    if url.host() == server.host() {
        return true;
    }
    if is_this_machine(url) {
        return is_this_machine(server);
    }
    // What any other name leads to is checked when it is resolved.
    url.has_host() && literal_addresses(url).into_iter().all(is_public_address)
}

/// The server with a client that reaches it where the policy allows it, and services of public
/// addresses.
fn sign_in_address(server: &AddressSpec) -> Result<ServerAddress, String> {
    let allowed = server.clone();
    let own_name = server.url.host_str().unwrap_or_default().to_owned();
    server_address(server, true, move |name, address| match name == own_name {
        true => allowed.allows_address(address),
        false => may_reach_service(name, address),
    })
}

impl SignInFile {
    /// Reads the file about the service of the server at this address.
    fn read(state: &Path, name: &PluginName, server: &Url) -> Option<Self> {
        // A file that cannot be read is written again by the next sign-in.
        let text = read_secret_file(&sign_in_file(state, name)).ok()?;
        let file: Self = serde_json::from_str(text.expose()).ok()?;
        (file.server == *server).then_some(file)
    }

    fn new(server: Url, redirect: &str, found: ServerAuthorization) -> Self {
        let RegisteredApplication { client_id, client_secret } = found.application;
        Self {
            server,
            auth_url: found.auth_url,
            token_url: found.token_url,
            client_id,
            client_secret: client_secret.map(|secret| secret.expose().to_owned()),
            redirect_uri: redirect.to_owned(),
            scopes: found.scopes,
            resource: found.resource,
            issuer: found.issuer,
            requires_issuer: found.requires_issuer,
            has_secret_in_form: found.has_secret_in_form,
        }
    }

    fn write(&self, path: &Path) -> Result<(), ServerSignInError> {
        let failed = |source| ServerSignInError::File { path: path.to_owned(), source };
        let text = serde_json::to_string_pretty(self).map_err(io::Error::from).map_err(failed)?;
        atomic_file::replace_user_file(path, &text).map_err(failed)
    }

    fn into_service(self, name: &PluginName) -> AccountService {
        let host = self.server.host_str().unwrap_or_default();
        AccountService {
            plugin: name.clone(),
            shown_name: format!("{name} ({host})"),
            is_system: false,
            auth: AuthConfig {
                auth_type: AuthType::OAuth2,
                client_id: self.client_id,
                client_secret: self.client_secret.map(Secret::new),
                redirect_uri: Some(self.redirect_uri),
                auth_url: Some(self.auth_url),
                token_url: Some(self.token_url),
                refresh_url: None,
                profile_url: None,
                device_url: None,
                requires_pkce: true,
                required_scopes: self.scopes,
                resource: self.resource,
                issuer: self.issuer,
                requires_issuer: self.requires_issuer,
                has_secret_in_form: self.has_secret_in_form,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_names_no_service_that_only_this_machine_can_reach() {
        let far = "https://mcp.example.com/mcp";
        let here = "http://127.0.0.1:4000/mcp";
        let rows = [
            (far, "https://login.example.com/token", true),
            (far, "https://9.9.9.9/token", true),
            (far, "https://127.0.0.1/token", false),
            (far, "http://localhost:8080/token", false),
            (far, "http://[::1]/token", false),
            (far, "https://10.0.0.7/token", false),
            (far, "https://169.254.169.254/latest", false),
            (far, "https://[fd00::1]/token", false),
            (far, "https://[::ffff:10.0.0.7]/token", false),
            ("https://10.0.0.7/mcp", "https://10.0.0.7:8443/token", true),
            ("https://10.0.0.7/mcp", "https://10.0.0.8/token", false),
            (here, "http://localhost:8080/token", true),
            (here, "https://10.0.0.7/token", false),
        ];
        for (server, url, want) in rows {
            let parsed = [server, url].map(|text| Url::parse(text).unwrap());
            assert_eq!(may_be_asked(&parsed[0], &parsed[1]), want, "{server} {url}");
        }
    }
}
