//! Additions to a plugin's table, as policy text.

use sallyport_contract::Decision;

use super::{entry::canonical_values, error::EditError};
use crate::{
    capability::Capability,
    fix::{toml_list, toml_string},
    folder::FsAccess,
};

/// Something to grant to a plugin, in the notation of a policy file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum GrantAddition {
    /// An entry that allows network access.
    Net(NetAddition),
    /// A folder or file.
    Fs(FsAddition),
    /// An environment variable.
    Env(String),
    /// A secret.
    Secret(SecretAddition),
    /// A capability that is switched on.
    Capability(CapabilityAddition),
    /// A page that the plugin may open in the browser, as a pattern.
    OpenUrl(String),
    /// A package that the plugin may fetch: `six`, `six==1.17.0`, or `*` for all.
    Package(String),
    /// A scratch.
    Scratch(ScratchAddition),
    /// Something to listen on.
    Listen(ListenAddition),
    /// A limit, which replaces the current one.
    Limit {
        /// Its key.
        key: String,
        /// Its value: a number, or text such as `10s`.
        value: String,
    },
}

/// An entry of a `net` list that allows requests.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NetAddition {
    /// The pattern.
    pub pattern: String,
    /// Whether the user is asked about each such request; `None` leaves it at `allow`.
    pub decision: Option<Decision>,
    /// The addresses that it reaches.
    pub reach: NetReachText,
}

/// The addresses that an entry of a `net` list reaches.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum NetReachText {
    /// Public addresses.
    Public,
    /// Also the addresses that the pattern's host determines: its own, or the loopback.
    HostAddresses,
    /// Also the addresses in these ranges.
    Ranges(Vec<String>),
}

/// An entry of a `fs` list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FsAddition {
    /// The path on the host; a leading `~` is the home folder.
    pub path: String,
    /// The path at which the plugin sees it; `None` is its name under `/`.
    pub mount: Option<String>,
    /// The access to it.
    pub access: FsAccess,
    /// Patterns of the files that are left out.
    pub deny: Vec<String>,
    /// The most that the plugin may store in it, such as `100MiB`.
    pub quota: Option<String>,
    /// Whether the folder may be a guarded one.
    pub sensitive: bool,
}

/// An entry of a `secrets` list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretAddition {
    /// The secret's name.
    pub name: String,
    /// How the plugin uses it.
    pub usage: SecretUseText,
}

/// How a plugin uses a secret.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum SecretUseText {
    /// The plugin may read it.
    Reveal,
    /// The host adds it to requests.
    Inject {
        /// The origin that it is sent to.
        to: String,
        /// The header that it is sent in.
        header: String,
        /// The value of the header, with `{}` for the secret; `None` is the secret alone.
        format: Option<String>,
    },
}

/// A capability that is switched on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CapabilityAddition {
    /// The capability.
    pub capability: Capability,
    /// A setting to state, replacing the current one: its key, and its value as for a limit.
    pub setting: Option<(String, String)>,
}

/// An entry of a `scratch` list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScratchAddition {
    /// The scratch's name.
    pub name: String,
    /// The path at which the plugin sees it; `None` is its name under `/`.
    pub mount: Option<String>,
    /// The most that it may store, such as `64MiB`.
    pub quota: Option<String>,
}

/// An entry of a `listen` list.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListenAddition {
    /// An address such as `http://127.0.0.1:8077/hooks`, or `stdin`.
    pub address: String,
    /// Whether other machines may reach it.
    pub public: bool,
}

/// The keys of a table with their values, as TOML.
type Pairs = Vec<(&'static str, String)>;

impl GrantAddition {
    /// The key of the plugin's table for such additions.
    pub(super) fn table_key(&self) -> &'static str {
        match self {
            Self::Net(_) => "net",
            Self::Fs(_) => "fs",
            Self::Env(_) => "env",
            Self::Secret(_) => "secrets",
            Self::Capability(addition) => addition.capability.as_str(),
            Self::OpenUrl(_) => Capability::OpenUrl.as_str(),
            Self::Package(_) => Capability::Packages.as_str(),
            Self::Scratch(_) => Capability::Scratch.as_str(),
            Self::Listen(_) => Capability::Listen.as_str(),
            Self::Limit { .. } => "limits",
        }
    }

    /// The value of that key if it contains nothing else.
    pub(super) fn value_alone(&self) -> String {
        match self {
            Self::Limit { key, value } => {
                toml_inline_table(&[(&toml_key(key), toml_limit_value(value))])
            }
            Self::Capability(_) => self.entry_toml(),
            Self::OpenUrl(_) => toml_inline_table(&[("allow", format!("[{}]", self.entry_toml()))]),
            Self::Net(_)
            | Self::Fs(_)
            | Self::Env(_)
            | Self::Secret(_)
            | Self::Package(_)
            | Self::Scratch(_)
            | Self::Listen(_) => {
                format!("[{}]", self.entry_toml())
            }
        }
    }

    /// The entry of the list, or the value of the limit.
    pub(super) fn entry_toml(&self) -> String {
        match self {
            Self::Net(net) if net.is_plain_text() => toml_string(&net.pattern),
            Self::Capability(addition) => addition.toml_value(),
            Self::Listen(listen) if !listen.public => toml_string(&listen.address),
            Self::Env(text) | Self::OpenUrl(text) | Self::Package(text) => toml_string(text),
            Self::Limit { value, .. } => toml_limit_value(value),
            Self::Net(_) | Self::Fs(_) | Self::Secret(_) | Self::Scratch(_) | Self::Listen(_) => {
                toml_inline_table(&self.entry_pairs())
            }
        }
    }

    /// The keys of the entry as a table; empty for an entry that is plain text.
    pub(super) fn entry_pairs(&self) -> Pairs {
        match self {
            Self::Net(net) => net.entry_pairs(),
            Self::Fs(fs) => fs.entry_pairs(),
            Self::Secret(secret) => secret.entry_pairs(),
            Self::Scratch(scratch) => scratch.entry_pairs(),
            Self::Listen(listen) => listen.entry_pairs(),
            Self::Env(_)
            | Self::Capability(_)
            | Self::OpenUrl(_)
            | Self::Package(_)
            | Self::Limit { .. } => Vec::new(),
        }
    }

    /// Returns the addition in canonical form: equal additions have equal forms.
    ///
    /// # Errors
    ///
    /// The addition is not valid in a policy.
    pub(super) fn canonical_entries(&self) -> Result<Vec<String>, EditError> {
        Ok(canonical_values(self.table_key(), &self.value_alone())?)
    }
}

impl NetAddition {
    fn is_plain_text(&self) -> bool {
        self.decision.is_none() && self.reach == NetReachText::Public
    }

    fn entry_pairs(&self) -> Pairs {
        let mut pairs = vec![("allow", toml_string(&self.pattern))];
        if self.reach != NetReachText::Public {
            pairs.push(("to-private", "true".to_owned()));
        }
        if let NetReachText::Ranges(ranges) = &self.reach {
            let range = match ranges.as_slice() {
                [range] => toml_string(range),
                _ => toml_list(ranges.iter().map(|range| toml_string(range))),
            };
            pairs.push(("range", range));
        }
        pairs.extend(self.decision.map(|decision| ("decision", toml_string(decision.as_str()))));
        pairs
    }
}

impl FsAddition {
    fn entry_pairs(&self) -> Pairs {
        let mut pairs = vec![("path", toml_string(&self.path))];
        pairs.extend(self.mount.as_ref().map(|mount| ("mount", toml_string(mount))));
        pairs.push(("access", toml_string(self.access.as_str())));
        if !self.deny.is_empty() {
            pairs.push(("deny", toml_list(self.deny.iter().map(|glob| toml_string(glob)))));
        }
        pairs.extend(self.quota.as_ref().map(|quota| ("quota", toml_string(quota))));
        pairs.extend(self.sensitive.then(|| ("sensitive", "true".to_owned())));
        pairs
    }
}

impl SecretAddition {
    fn entry_pairs(&self) -> Pairs {
        let mut pairs = vec![("name", toml_string(&self.name))];
        match &self.usage {
            SecretUseText::Reveal => pairs.push(("reveal", "true".to_owned())),
            SecretUseText::Inject { to, header, format } => {
                pairs.push(("to", toml_string(to)));
                pairs.push(("header", toml_string(header)));
                pairs.extend(format.as_ref().map(|format| ("format", toml_string(format))));
            }
        }
        pairs
    }
}

impl CapabilityAddition {
    fn toml_value(&self) -> String {
        match &self.setting {
            None => "true".to_owned(),
            Some((key, value)) => toml_inline_table(&[(&toml_key(key), toml_setting_value(value))]),
        }
    }
}

impl ScratchAddition {
    fn entry_pairs(&self) -> Pairs {
        let mut pairs = vec![("name", toml_string(&self.name))];
        pairs.extend(self.mount.as_ref().map(|mount| ("mount", toml_string(mount))));
        pairs.extend(self.quota.as_ref().map(|quota| ("quota", toml_string(quota))));
        pairs
    }
}

impl ListenAddition {
    fn entry_pairs(&self) -> Pairs {
        let public = self.public.then(|| ("public", "true".to_owned()));
        [("at", toml_string(&self.address))].into_iter().chain(public).collect()
    }
}

/// Returns a boolean or a number as TOML, and anything else as a string.
pub(super) fn toml_setting_value(value: &str) -> String {
    match value {
        "true" | "false" => value.to_owned(),
        _ => toml_limit_value(value),
    }
}

/// Returns a number as TOML, and anything else as a string.
fn toml_limit_value(value: &str) -> String {
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { value.to_owned() } else { toml_string(value) }
}

/// Returns a key as TOML.
pub(super) fn toml_key(key: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let bare = !key.is_empty() && key.bytes().all(is_bare);
    if bare { key.to_owned() } else { toml_string(key) }
}

/// Returns keys and values as a table in braces.
pub(super) fn toml_inline_table(pairs: &[(&str, String)]) -> String {
    let pairs: Vec<_> = pairs.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    format!("{{ {} }}", pairs.join(", "))
}
