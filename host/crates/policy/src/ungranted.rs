//! Ungranted requests: the reason why an allowed call is refused something while it runs.
//!
//! The result is computed here for all its users: the explanation of a call, the check of a policy,
//! and the plugin lists.

use std::{fmt, path::PathBuf};

use sallyport_contract::text::escape_line;

use crate::{
    capability::{Capability, Wish},
    folder::Access,
    grant::Grant,
    net::NetPattern,
    secret::SecretName,
    source::Place,
    table::PluginTable,
};

/// A request of a manifest of which the policy grants nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UngrantedRequest {
    /// The requested thing.
    pub kind: UngrantedKind,
    /// The place where the policy denies it explicitly, if it does.
    pub denied_at: Option<Place>,
}

/// The requested thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UngrantedKind {
    /// Network requests.
    Net(NetPattern),
    /// A folder or file.
    Fs {
        /// The requested path; `None` for any folder of the operator's choice.
        path: Option<PathBuf>,
        /// The requested access.
        access: Access,
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
    Capability(Wish),
}

impl Grant {
    /// Returns the requests of the manifest of which the policy grants nothing, in the manifest's
    /// order.
    ///
    /// A native program requests any folder implicitly, so its folder requests are not counted.
    pub fn ungranted(&self) -> Vec<UngrantedRequest> {
        let (table, request) = (self.table(), self.request());
        let is_program = request.asks_for(Capability::Process);
        let granted = |kind| UngrantedRequest { kind, denied_at: None };
        let fs = request.fs.iter().filter(|request| !is_program && !self.opens(table, request));
        let fs = fs.map(|request| {
            granted(UngrantedKind::Fs { path: request.path.clone(), access: request.access })
        });
        let env = request.env.iter().filter(|request| !self.env().contains(&request.name));
        let env = env.map(|request| granted(UngrantedKind::Env(request.name.clone())));
        let is_held = |name: &SecretName| self.secrets().iter().any(|held| held.name == *name);
        let secrets = request.secrets.iter().filter(|request| !is_held(&request.name));
        let secrets = secrets.map(|request| {
            let (name, reveal) = (request.name.clone(), request.reveal);
            granted(UngrantedKind::Secret { name, reveal })
        });
        let wishes = request.capabilities.iter().map(|request| &request.wish);
        let wishes = wishes.filter(|wish| !self.fulfils(wish)).map(|wish| UngrantedRequest {
            denied_at: table.capabilities.denied_at(wish.capability()).cloned(),
            kind: UngrantedKind::Capability(wish.clone()),
        });
        self.ungranted_net().chain(fs).chain(env).chain(secrets).chain(wishes).collect()
    }

    /// Whether the plugin lacks a request that it needs.
    pub fn lacks_something_needed(&self) -> bool {
        self.ungranted().iter().any(UngrantedRequest::is_needed)
    }

    fn ungranted_net(&self) -> impl Iterator<Item = UngrantedRequest> {
        let net = &self.table().net;
        self.net().requests().iter().filter_map(|request| {
            let denying = net.denies.iter().find(|deny| deny.pattern.covers(request));
            let is_allowed = net.allows.iter().any(|allow| allow.pattern.meet(request).is_some());
            (denying.is_some() || !is_allowed).then(|| UngrantedRequest {
                kind: UngrantedKind::Net(request.clone()),
                denied_at: denying.map(|deny| deny.place.clone()),
            })
        })
    }

    fn opens(&self, table: &PluginTable, request: &crate::request::FsRequest) -> bool {
        table.fs.iter().any(|entry| request.covers(entry))
    }

    fn fulfils(&self, wish: &Wish) -> bool {
        match wish {
            Wish::Scratch(name) => self.scratch().iter().any(|scratch| scratch.name == *name),
            Wish::Listen(kind) => self.listen().iter().any(|entry| entry.kind == *kind),
            Wish::Ui { confirm } => self.ui().is_some_and(|ui| ui.confirm || !confirm),
            Wish::State
            | Wish::Schedule
            | Wish::Notify
            | Wish::Progress
            | Wish::OpenUrl
            | Wish::Packages
            | Wish::Process => self.holds(wish.capability()),
        }
    }
}

impl UngrantedRequest {
    /// Whether a call that uses it is refused. A variable may be unset and progress may not be
    /// shown, so a plugin must work without them.
    pub fn is_needed(&self) -> bool {
        match &self.kind {
            UngrantedKind::Env(_) | UngrantedKind::Capability(Wish::Progress) => false,
            UngrantedKind::Net(_)
            | UngrantedKind::Fs { .. }
            | UngrantedKind::Secret { .. }
            | UngrantedKind::Capability(_) => true,
        }
    }

    /// The flags of `policy grant` that grant it, with capital words for the values that only the
    /// operator knows. `None` if the policy denies it explicitly: a further grant would have no
    /// effect.
    pub fn flags(&self) -> Option<String> {
        if self.denied_at.is_some() {
            return None;
        }
        Some(match &self.kind {
            UngrantedKind::Net(pattern) => {
                let private = if pattern.host().is_private() { " --to-private" } else { "" };
                format!("--net {}{private}", shell_quoted(&pattern.to_string()))
            }
            UngrantedKind::Fs { path, access } => {
                let path = path.as_ref().map(|path| shell_quoted(&path.to_string_lossy()));
                let flag = if *access == Access::Read { "--read" } else { "--write" };
                format!("{flag} {}", path.unwrap_or_else(|| "FOLDER".to_owned()))
            }
            UngrantedKind::Env(name) => format!("--env {name}"),
            UngrantedKind::Secret { name, reveal: true } => format!("--secret {name} --reveal"),
            UngrantedKind::Secret { name, reveal: false } => {
                format!("--secret {name} --to ORIGIN --header NAME")
            }
            UngrantedKind::Capability(wish) => flags_of(wish),
        })
    }
}

fn flags_of(wish: &Wish) -> String {
    match wish {
        Wish::Packages => "--package NAME".to_owned(),
        Wish::Scratch(name) => format!("--scratch {}", shell_quoted(name)),
        Wish::Listen(_) => "--listen ADDRESS".to_owned(),
        Wish::Ui { confirm: true } => "--capability ui --set confirm=true".to_owned(),
        Wish::State
        | Wish::Schedule
        | Wish::Notify
        | Wish::Progress
        | Wish::OpenUrl
        | Wish::Ui { confirm: false }
        | Wish::Process => format!("--capability {}", wish.capability()),
    }
}

/// A word of a command line, quoted for a shell.
pub(crate) fn shell_quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", escape_line(word).replace('\'', r"'\''")),
    }
}

impl fmt::Display for UngrantedRequest {
    /// The requested thing, in a few words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            UngrantedKind::Net(pattern) => write!(f, "{pattern}"),
            UngrantedKind::Fs { path: None, access } => write!(f, "{} a folder", access.word()),
            UngrantedKind::Fs { path: Some(path), access } => {
                write!(f, "{} {}", access.word(), escape_line(&path.to_string_lossy()))
            }
            UngrantedKind::Env(name) => write!(f, "the variable {name}"),
            UngrantedKind::Secret { name, reveal: true } => {
                write!(f, "the value of the secret {name}")
            }
            UngrantedKind::Secret { name, reveal: false } => {
                write!(f, "the secret {name}")
            }
            UngrantedKind::Capability(wish) => write!(f, "{wish}"),
        }?;
        match &self.denied_at {
            Some(place) => write!(f, " (denied by {place})"),
            None => Ok(()),
        }
    }
}
