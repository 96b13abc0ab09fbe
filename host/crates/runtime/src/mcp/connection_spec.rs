//! What a server is, and how it is started or reached under a grant.

use std::{net::IpAddr, path::Path, sync::Arc};

use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
use sallyport_connections::{AccountService, definition::is_safe_for_tokens};
use sallyport_contract::{
    Decision, Denial, DenialReason, Effect, PluginName, Secret, text::shell_word,
};
use sallyport_policy::{
    Capability, FsAccess, Grant, MCP_METHODS, Manifest, ReachableAddresses, url_without_secrets,
};
use sallyport_process::{ProcessLimits, ProcessSpec, ScriptProgram};
use url::Url;

use super::{
    ServerPolicy,
    running::{McpStartError, SERVICE_TIME},
    sign_in::read_account_service,
};
use crate::{
    config::{McpAddress, McpEndpoint, McpProgram, McpServerError},
    environment::Env,
    script::{
        native_run_denial,
        spec::{granted_network, granted_paths, missing_wall_policy},
    },
};

/// Why a server that is a program needs no sign-in.
pub(super) const IS_PROGRAM: &str = "it is a program of this machine";

/// A server as it is configured, checked.
pub(super) enum ServerEndpoint {
    /// A program of this machine.
    Program { settings: McpProgram, program: ScriptProgram },
    /// A server at an address.
    Address { settings: McpAddress, url: Url, headers: HeaderMap },
}

/// How a server is started or reached. With another one, it has to be started anew.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ConnectionSpec {
    /// As a process.
    Process(ProcessSpec),
    /// At an address.
    Address(AddressSpec),
}

/// How a server at an address is reached.
#[derive(Clone, PartialEq)]
pub(super) struct AddressSpec {
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    /// What each method may reach.
    reaches: Vec<ReachableAddresses>,
}

impl AddressSpec {
    /// Whether the server may be reached at this address.
    pub(super) fn allows_address(&self, address: IpAddr) -> bool {
        self.reaches.iter().all(|reach| reach.allows_address(address))
    }
}

impl std::fmt::Debug for AddressSpec {
    /// Leaves out the query and the headers, which have keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AddressSpec").field("host", &self.url.host_str()).finish_non_exhaustive()
    }
}

impl ServerEndpoint {
    /// Reads the program, or checks the address. Nothing is started or sent.
    ///
    /// # Errors
    ///
    /// The server cannot be used as it is configured.
    pub(super) fn read(endpoint: &McpEndpoint, env: &Env) -> Result<Self, McpServerError> {
        Ok(match endpoint {
            McpEndpoint::Program(settings) => {
                let program = settings.read_program(env)?;
                Self::Program { settings: settings.clone(), program }
            }
            McpEndpoint::Address(settings) => {
                let (url, headers) = settings.parse()?;
                Self::Address { settings: settings.clone(), url, headers }
            }
        })
    }

    pub(super) fn digest(&self) -> String {
        match self {
            Self::Program { settings, program } => command_digest(settings, program),
            Self::Address { settings, .. } => address_digest(settings),
        }
    }

    pub(super) fn program(&self) -> Option<&Path> {
        match self {
            Self::Program { program, .. } => Some(&program.path),
            Self::Address { .. } => None,
        }
    }

    pub(super) fn manifest(&self, name: PluginName) -> Result<Manifest, McpServerError> {
        match self {
            Self::Program { .. } => Ok(Manifest::for_mcp_server(name)),
            Self::Address { settings, .. } => settings.manifest(name),
        }
    }

    /// Why no call of the server can run under this grant.
    pub(super) fn find_denial(&self, grant: &Grant) -> Option<Denial> {
        match self {
            Self::Program { .. } => grant.process().is_none().then(|| native_run_denial(grant)),
            Self::Address { url, .. } => {
                MCP_METHODS.iter().find_map(|method| grant.check_request(method, url).err())
            }
        }
    }

    /// Says why the server may not be used, and which command allows it.
    pub(super) fn describe_missing_grant(&self, name: &PluginName, denial: &Denial) -> String {
        let (what, grant) = match self {
            Self::Program { .. } => {
                ("run as a program of this machine", "--grant process=true".to_owned())
            }
            Self::Address { url, .. } => ("be reached at its address", address_grant(url, denial)),
        };
        format!("it may not {what}; to allow it: sallyport policy grant {name} {grant}")
    }

    /// How the server is started or reached. `credential` signs in to a server at an address.
    ///
    /// # Errors
    ///
    /// The grant does not allow it.
    pub(super) fn connection_spec(
        &self,
        policy: ServerPolicy<'_>,
        env: &Env,
        credential: Option<&Secret>,
    ) -> Result<ConnectionSpec, McpStartError> {
        let ServerPolicy { grant, proxies } = policy;
        match self {
            Self::Program { settings, program } => {
                let spec = process_spec(settings, program, grant, env)?;
                Ok(ConnectionSpec::Process(spec))
            }
            Self::Address { url, headers, .. } => {
                let spec = address_spec(url, signed_in(headers, credential), grant)?;
                let proxy = proxies.and_then(|proxies| proxies.address_for_url(url));
                // A client that uses a proxy does not resolve names, so their addresses are not
                // known.
                proxy.map_or(Ok(ConnectionSpec::Address(spec)), |_| Err(McpStartError::Proxy))
            }
        }
    }

    /// Why users do not sign in to the server; `None` if they can.
    pub(super) fn sign_in_obstacle(&self) -> Option<&'static str> {
        match self {
            Self::Program { .. } => Some(IS_PROGRAM),
            Self::Address { headers, .. } if headers.contains_key(AUTHORIZATION) => {
                Some("its headers sign it in")
            }
            Self::Address { url, .. } if !is_safe_for_tokens(url) => {
                Some("a token would be sent unencrypted to its address")
            }
            Self::Address { .. } => None,
        }
    }

    /// The service at which users sign in to the server, if a sign-in has found it out.
    pub(super) fn account_service(
        &self,
        state: &Path,
        name: &PluginName,
    ) -> Option<Arc<AccountService>> {
        match self {
            Self::Address { url, .. } if self.sign_in_obstacle().is_none() => {
                read_account_service(state, name, url)
            }
            Self::Address { .. } | Self::Program { .. } => None,
        }
    }

    /// What the audit has about a call of the server.
    pub(super) fn call_effect(&self) -> Effect {
        match self {
            Self::Program { program, .. } => Effect::Used {
                capability: Capability::Process.as_str().to_owned(),
                what: format!("{}: asked over MCP", program.path.display()),
            },
            Self::Address { url, .. } => Effect::Used {
                capability: "net".to_owned(),
                what: format!("{}: asked over MCP", url_without_secrets(url)),
            },
        }
    }
}

/// The digest of what is run: the command, its folder, the names of its variables and the program.
/// Values of variables are left out, because a key that is renewed does not make another server.
fn command_digest(settings: &McpProgram, program: &ScriptProgram) -> String {
    let mut hasher = blake3::Hasher::new();
    let folder = settings.folder.as_ref().map(|folder| folder.to_string_lossy().into_owned());
    let parts =
        [&settings.command, &Vec::from_iter(folder), &Vec::from_iter(settings.env.keys().cloned())];
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        for text in part {
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
    }
    hasher.update(program.path.as_os_str().as_encoded_bytes());
    hasher.update(program.digest.as_str().as_bytes());
    hasher.finalize().to_hex().to_string()
}

/// The digest of a server at an address: the address and the names of its headers. What the server
/// runs is not known, so its tools alone tell whether it has changed.
fn address_digest(address: &McpAddress) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"url\0").update(address.url.as_bytes());
    for name in address.headers.keys() {
        hasher.update(b"\0").update(name.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

/// The arguments of `policy grant` that allow an address which the policy refuses.
fn address_grant(url: &Url, denial: &Denial) -> String {
    match denial.reason {
        // An entry that names the address already grants all that the server requests.
        DenialReason::PrivateAddress { .. } => {
            let pattern = format!("{} {}", MCP_METHODS.join(","), url_without_secrets(url));
            format!("--net {} --to-private", shell_word(&pattern))
        }
        _ => "--requested".to_owned(),
    }
}

/// The process of a server that is a program.
fn process_spec(
    settings: &McpProgram,
    program: &ScriptProgram,
    grant: &Grant,
    env: &Env,
) -> Result<ProcessSpec, McpStartError> {
    let Some(process) = grant.process() else {
        return Err(McpStartError::Denied(Box::new(native_run_denial(grant))));
    };
    if let Some(folder) = &settings.folder
        && !grant.fs().iter().any(|mount| folder.starts_with(&mount.host))
    {
        return Err(McpStartError::Folder(folder.display().to_string()));
    }
    let limits = grant.limits();
    let granted = grant.env().iter().filter_map(|name| Some((name.clone(), env.get(name)?)));
    let granted = granted.map(|(name, value)| (name, value.to_owned()));
    Ok(ProcessSpec {
        program: program.path.clone(),
        digest: program.digest.clone(),
        arguments: settings.command[1..].to_vec(),
        folder: settings.folder.clone(),
        reads: granted_paths(grant, FsAccess::Read),
        writes: granted_paths(grant, FsAccess::ReadWrite),
        network: granted_network(process),
        walls: missing_wall_policy(process),
        limits: ProcessLimits {
            time: SERVICE_TIME,
            cpu_time: SERVICE_TIME,
            memory_bytes: limits.memory_bytes,
            open_files: limits.handles,
            errors_bytes: limits.log_bytes,
            ..ProcessLimits::STANDARD
        },
        env: settings.env.clone().into_iter().chain(granted).collect(),
    })
}

/// How a server at an address is reached. No method may ask: a connection serves many calls, and nobody could say for which one it asks.
fn address_spec(
    url: &Url,
    headers: HeaderMap,
    grant: &Grant,
) -> Result<AddressSpec, McpStartError> {
    let mut reaches = Vec::new();
    for method in MCP_METHODS {
        let permit = grant.check_request(method, url);
        let permit = permit.map_err(|denial| McpStartError::Denied(Box::new(denial)))?;
        if permit.decision() != Decision::Allow {
            return Err(McpStartError::Asks(permit.place().to_string()));
        }
        reaches.push(permit.reachable_addresses());
    }
    Ok(AddressSpec { url: url.clone(), headers, reaches })
}

/// The headers with the credential of an account.
fn signed_in(headers: &HeaderMap, credential: Option<&Secret>) -> HeaderMap {
    let mut headers = headers.clone();
    let value = credential.and_then(|secret| HeaderValue::try_from(secret.expose()).ok());
    if let Some(mut value) = value {
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    headers
}
