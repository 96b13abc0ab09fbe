//! Ungranted requests: the reason why an allowed call is refused something while it runs.
//!
//! The result is computed here for all its users: the explanation of a call, the check of a policy,
//! and the plugin lists.

mod requested;

use std::{fmt, path::PathBuf};

use sallyport_contract::text::{escape_line, shell_word};

use crate::{
    capability::{Capability, RequestedCapability},
    folder::FsAccess,
    grant::Grant,
    net::NetPattern,
    secret::SecretName,
    source::SourceLocation,
    table::PluginTable,
};

pub use self::requested::RequestedGrants;

/// A request of a manifest of which the policy grants nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UngrantedRequest {
    /// The requested thing.
    pub kind: UngrantedRequestKind,
    /// The place where the policy denies it explicitly, if it does.
    pub denied_at: Option<SourceLocation>,
}

/// The requested thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UngrantedRequestKind {
    /// Network requests.
    Net(NetPattern),
    /// A folder or file.
    Fs {
        /// The requested path; `None` for any folder of the operator's choice.
        path: Option<PathBuf>,
        /// The requested access.
        access: FsAccess,
    },
    /// An environment variable.
    Env(String),
    /// A secret.
    Secret {
        /// Its name.
        name: SecretName,
        /// Whether the plugin wants to read it.
        reveal: bool,
    },
    /// An action that requires a capability.
    Capability(RequestedCapability),
}

impl Grant {
    /// Returns the requests of the manifest of which the policy grants nothing, in the manifest's
    /// order.
    ///
    /// A native program requests any folder implicitly, so its folder requests are not counted.
    pub fn ungranted_requests(&self) -> Vec<UngrantedRequest> {
        let (table, request) = (self.table(), self.manifest_requests());
        let is_program = request.requests_capability(Capability::Process);
        let granted = |kind| UngrantedRequest { kind, denied_at: None };
        let fs =
            request.fs.iter().filter(|request| !is_program && !self.grants_folder(table, request));
        let fs = fs.map(|request| {
            granted(UngrantedRequestKind::Fs { path: request.path.clone(), access: request.access })
        });
        let env = request.env.iter().filter(|request| !self.env().contains(&request.name));
        let env = env.map(|request| granted(UngrantedRequestKind::Env(request.name.clone())));
        let is_held = |name: &SecretName| self.secrets().iter().any(|held| held.name == *name);
        let secrets = request.secrets.iter().filter(|request| !is_held(&request.name));
        let secrets = secrets.map(|request| {
            let (name, reveal) = (request.name.clone(), request.reveal);
            granted(UngrantedRequestKind::Secret { name, reveal })
        });
        let requested_capabilities = request.capabilities.iter().map(|request| &request.requested);
        let requested_capabilities = requested_capabilities
            .filter(|requested| !self.grants_requested(requested))
            .map(|requested| UngrantedRequest {
                denied_at: table.capabilities.denied_at(requested.capability()).cloned(),
                kind: UngrantedRequestKind::Capability(requested.clone()),
            });
        self.ungranted_net()
            .chain(fs)
            .chain(env)
            .chain(secrets)
            .chain(requested_capabilities)
            .collect()
    }

    /// Whether the plugin lacks a request that it needs.
    pub fn lacks_needed_request(&self) -> bool {
        self.ungranted_requests().iter().any(UngrantedRequest::is_needed)
    }

    fn ungranted_net(&self) -> impl Iterator<Item = UngrantedRequest> {
        let net = &self.table().net;
        self.net().requests().iter().filter_map(|request| {
            let denying = net.denies.iter().find(|deny| deny.pattern.covers(request));
            let is_allowed =
                net.allows.iter().any(|allow| allow.pattern.intersect_with(request).is_some());
            (denying.is_some() || !is_allowed).then(|| UngrantedRequest {
                kind: UngrantedRequestKind::Net(request.clone()),
                denied_at: denying.map(|deny| deny.place.clone()),
            })
        })
    }

    fn grants_folder(&self, table: &PluginTable, request: &crate::request::FsRequest) -> bool {
        table.fs.iter().any(|entry| request.covers_entry(entry))
    }

    fn grants_requested(&self, requested: &RequestedCapability) -> bool {
        let held = self.effective_capabilities().find_held(requested.capability);
        let kind = requested.capability.kind();
        held.is_some_and(|held| kind.satisfies(held, requested.detail.as_deref()))
    }
}

impl UngrantedRequest {
    /// Whether a call that uses it is refused. A variable may be unset and progress may not be
    /// shown, so a plugin must work without them.
    pub fn is_needed(&self) -> bool {
        match &self.kind {
            UngrantedRequestKind::Env(_) => false,
            UngrantedRequestKind::Capability(requested) => requested.capability.kind().is_needed(),
            UngrantedRequestKind::Net(_)
            | UngrantedRequestKind::Fs { .. }
            | UngrantedRequestKind::Secret { .. } => true,
        }
    }

    /// The flags of `policy grant` that grant it, with capital words for the values that only the
    /// operator knows. `None` if the policy denies it explicitly: a further grant would have no
    /// effect.
    pub fn grant_flags(&self) -> Option<String> {
        if self.denied_at.is_some() {
            return None;
        }
        Some(match &self.kind {
            UngrantedRequestKind::Net(pattern) => {
                let private = if pattern.host().is_private() { " --to-private" } else { "" };
                format!("--net {}{private}", shell_word(&pattern.to_string()))
            }
            UngrantedRequestKind::Fs { path, access } => {
                let path = path.as_ref().map(|path| shell_word(&path.to_string_lossy()));
                let flag = if *access == FsAccess::Read { "--read" } else { "--write" };
                format!("{flag} {}", path.unwrap_or_else(|| "FOLDER".to_owned()))
            }
            UngrantedRequestKind::Env(name) => format!("--env {name}"),
            UngrantedRequestKind::Secret { name, reveal: true } => {
                format!("--secret {name} --reveal")
            }
            UngrantedRequestKind::Secret { name, reveal: false } => {
                format!("--secret {name} --to ORIGIN --header NAME")
            }
            UngrantedRequestKind::Capability(requested) => {
                requested.capability.kind().grant_flags(requested.detail.as_deref())
            }
        })
    }
}

impl fmt::Display for UngrantedRequest {
    /// The requested thing, in a few words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            UngrantedRequestKind::Net(pattern) => write!(f, "{pattern}"),
            UngrantedRequestKind::Fs { path: None, access } => {
                write!(f, "{} a folder", access.as_str())
            }
            UngrantedRequestKind::Fs { path: Some(path), access } => {
                write!(f, "{} {}", access.as_str(), escape_line(&path.to_string_lossy()))
            }
            UngrantedRequestKind::Env(name) => write!(f, "the variable {name}"),
            UngrantedRequestKind::Secret { name, reveal: true } => {
                write!(f, "the value of the secret {name}")
            }
            UngrantedRequestKind::Secret { name, reveal: false } => {
                write!(f, "the secret {name}")
            }
            UngrantedRequestKind::Capability(requested) => write!(f, "{requested}"),
        }?;
        match &self.denied_at {
            Some(place) => write!(f, " (denied by {place})"),
            None => Ok(()),
        }
    }
}
