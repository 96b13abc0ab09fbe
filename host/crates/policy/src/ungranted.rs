//! What a plugin requests and is not granted: the reason why a call that may be made is refused
//! something a moment later.
//!
//! It is computed here once, for everything that tells it: the explanation of a call, the check of a
//! policy, the lists of plugins.

use std::{fmt, path::PathBuf};

use sallyport_contract::text::one_line;

use crate::{
    capability::{Capability, Wish},
    folder::Access,
    grant::Grant,
    net::NetPattern,
    secret::SecretName,
    source::Place,
    table::PluginTable,
};

/// A request of a manifest of which the policy grants no part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UngrantedRequest {
    /// What is requested.
    pub kind: UngrantedKind,
    /// Where the policy takes it away on purpose, if it does.
    pub denied_at: Option<Place>,
}

/// What is requested and not granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UngrantedKind {
    /// Requests to the network.
    Net(NetPattern),
    /// A folder or file.
    Fs {
        /// Which one; without a path, any that the operator chooses.
        path: Option<PathBuf>,
        /// What the plugin wants to do with it.
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
    /// Something that only a capability lets it do.
    Capability(Wish),
}

impl Grant {
    /// Returns what the manifest requests and the policy grants no part of, in the manifest's order.
    ///
    /// A program of this machine requests any folder by being there, so that is not counted.
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

    /// Whether the plugin requests something that it cannot do without, and is not granted it.
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
    /// Whether a call that needs it is refused. A variable may be unset, and progress is shown or
    /// not: a plugin has to do without either.
    pub fn is_needed(&self) -> bool {
        match &self.kind {
            UngrantedKind::Env(_) | UngrantedKind::Capability(Wish::Progress) => false,
            UngrantedKind::Net(_)
            | UngrantedKind::Fs { .. }
            | UngrantedKind::Secret { .. }
            | UngrantedKind::Capability(_) => true,
        }
    }

    /// The flags of `policy grant` that grant it, with words in capitals for what only the operator
    /// knows. `None` where the policy takes it away on purpose, because more of it would not help.
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

/// A word of a command line, as shells read it.
pub(crate) fn shell_quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", one_line(word).replace('\'', r"'\''")),
    }
}

impl fmt::Display for UngrantedRequest {
    /// What is requested, in a few words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            UngrantedKind::Net(pattern) => write!(f, "{pattern}"),
            UngrantedKind::Fs { path: None, access } => write!(f, "{} a folder", access.word()),
            UngrantedKind::Fs { path: Some(path), access } => {
                write!(f, "{} {}", access.word(), one_line(&path.to_string_lossy()))
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
