//! Additions to a plugin's table, as policy text.

mod canonical;
mod grant_text;

use std::{borrow::Cow, fmt};

use sallyport_contract::{Decision, FixGrant};

use crate::{
    capability::{Capability, CapabilityAddition, CapabilityPart},
    folder::FsAccess,
    source::SourceError,
    toml_text::{
        toml_inline_table, toml_key, toml_limit_value, toml_list, toml_setting_value, toml_string,
    },
};

pub(crate) use self::canonical::{canonical_values, makes_question_idle, plain_item};
pub use self::grant_text::GrantTextError;

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
    /// A capability, or one item of it.
    Capability(CapabilityAddition),
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

/// The keys of a table with their values, as TOML.
type Pairs = Vec<(String, String)>;

impl GrantAddition {
    /// The key of the plugin's table for such additions.
    pub(crate) fn table_key(&self) -> &'static str {
        match self {
            Self::Net(_) => "net",
            Self::Fs(_) => "fs",
            Self::Env(_) => "env",
            Self::Secret(_) => "secrets",
            Self::Capability(addition) => addition.capability.as_str(),
            Self::Limit { .. } => "limits",
        }
    }

    /// The value of that key if it contains nothing else.
    pub(crate) fn value_alone(&self) -> String {
        match self {
            Self::Limit { key, value } => {
                toml_inline_table(&[(&toml_key(key), toml_limit_value(value))])
            }
            Self::Capability(addition) => addition.value_alone(),
            Self::Net(_) | Self::Fs(_) | Self::Env(_) | Self::Secret(_) => {
                format!("[{}]", self.entry_toml())
            }
        }
    }

    /// The entry of the list, or the value of the limit.
    pub(crate) fn entry_toml(&self) -> String {
        match self {
            Self::Net(net) if net.is_plain_text() => toml_string(&net.pattern),
            Self::Capability(addition) => addition.entry_toml(),
            Self::Env(text) => toml_string(text),
            Self::Limit { value, .. } => toml_limit_value(value),
            Self::Net(_) | Self::Fs(_) | Self::Secret(_) => toml_inline_table(&self.entry_pairs()),
        }
    }

    /// The keys of the entry as a table; empty for an entry that is plain text.
    pub(crate) fn entry_pairs(&self) -> Pairs {
        match self {
            Self::Net(net) => net.entry_pairs(),
            Self::Fs(fs) => fs.entry_pairs(),
            Self::Secret(secret) => secret.entry_pairs(),
            Self::Capability(addition) => addition.entry_pairs(),
            Self::Env(_) | Self::Limit { .. } => Vec::new(),
        }
    }

    /// Returns the addition in canonical form: equal additions have equal forms.
    ///
    /// # Errors
    ///
    /// The addition is not valid in a policy.
    pub(crate) fn canonical_entries(&self) -> Result<Vec<String>, SourceError> {
        canonical_values(self.table_key(), &self.value_alone())
    }
}

impl NetAddition {
    fn is_plain_text(&self) -> bool {
        self.decision.is_none() && self.reach == NetReachText::Public
    }

    fn entry_pairs(&self) -> Pairs {
        let mut pairs = vec![("allow".to_owned(), toml_string(&self.pattern))];
        if self.reach != NetReachText::Public {
            pairs.push(("to-private".to_owned(), "true".to_owned()));
        }
        if let NetReachText::Ranges(ranges) = &self.reach {
            let range = match ranges.as_slice() {
                [range] => toml_string(range),
                _ => toml_list(ranges.iter().map(|range| toml_string(range))),
            };
            pairs.push(("range".to_owned(), range));
        }
        pairs.extend(
            self.decision.map(|decision| ("decision".to_owned(), toml_string(decision.as_str()))),
        );
        pairs
    }
}

impl FsAddition {
    fn entry_pairs(&self) -> Pairs {
        let mut pairs = vec![("path".to_owned(), toml_string(&self.path))];
        pairs.extend(self.mount.as_ref().map(|mount| ("mount".to_owned(), toml_string(mount))));
        pairs.push(("access".to_owned(), toml_string(self.access.as_str())));
        if !self.deny.is_empty() {
            pairs.push((
                "deny".to_owned(),
                toml_list(self.deny.iter().map(|glob| toml_string(glob))),
            ));
        }
        pairs.extend(self.quota.as_ref().map(|quota| ("quota".to_owned(), toml_string(quota))));
        pairs.extend(self.sensitive.then(|| ("sensitive".to_owned(), "true".to_owned())));
        pairs
    }
}

impl SecretAddition {
    fn entry_pairs(&self) -> Pairs {
        let mut pairs = vec![("name".to_owned(), toml_string(&self.name))];
        match &self.usage {
            SecretUseText::Reveal => pairs.push(("reveal".to_owned(), "true".to_owned())),
            SecretUseText::Inject { to, header, format } => {
                pairs.push(("to".to_owned(), toml_string(to)));
                pairs.push(("header".to_owned(), toml_string(header)));
                pairs.extend(
                    format.as_ref().map(|format| ("format".to_owned(), toml_string(format))),
                );
            }
        }
        pairs
    }
}

impl GrantAddition {
    /// Switches a capability on.
    pub fn capability(capability: Capability) -> Self {
        Self::Capability(CapabilityAddition::whole(capability))
    }

    /// Switches a capability on, and states a setting of it.
    pub fn capability_setting(
        capability: Capability,
        key: impl Into<String>,
        value: impl Into<String>,
    ) -> Self {
        Self::Capability(CapabilityAddition::setting(capability, key, value))
    }

    /// Grants one entry of a capability's list that is plain text: a page, a package, an address.
    pub fn capability_item(capability: Capability, item: &str) -> Self {
        Self::Capability(CapabilityAddition::item(capability, item))
    }

    /// Grants one entry of a capability's list, written as TOML.
    pub fn capability_entry(capability: Capability, toml: String) -> Self {
        Self::Capability(CapabilityAddition::entry(capability, toml))
    }

    /// Grants one entry of a capability's list that is a table. Values are written as for a limit.
    pub fn capability_table(capability: Capability, pairs: &[(&str, &str)]) -> Self {
        let pairs: Vec<_> =
            pairs.iter().map(|(key, value)| (*key, toml_setting_value(value))).collect();
        Self::capability_entry(capability, toml_inline_table(&pairs))
    }

    /// The addition in the notation of a policy, with the arguments of `policy grant` that make it.
    pub fn to_fix_grant(&self) -> FixGrant {
        let (key, entry) = match self.setting() {
            Some((key, value)) => (format!("{}.{key}", self.table_key()), value.to_owned()),
            None => (self.table_key().to_owned(), self.entry_toml()),
        };
        let flags = self.flags().into_iter().map(|word| word.into_owned()).collect();
        FixGrant { key, entry, flags }
    }

    /// The key and the value of a limit, or of a capability's setting.
    fn setting(&self) -> Option<(&str, &str)> {
        match self {
            Self::Limit { key, value } => Some((key, value)),
            Self::Capability(CapabilityAddition {
                part: CapabilityPart::Setting { key, value },
                ..
            }) => Some((key, value)),
            Self::Net(_) | Self::Fs(_) | Self::Env(_) | Self::Secret(_) | Self::Capability(_) => {
                None
            }
        }
    }

    /// The arguments of `policy grant` that make the addition; none if only `--grant` makes it.
    fn flags(&self) -> Vec<Cow<'_, str>> {
        let mut words: Vec<Cow<'_, str>> = Vec::new();
        let mut add = |flag: &'static str, value: Option<&'_ str>| {
            words.push(flag.into());
            words.extend(value.map(|value| Cow::Owned(value.to_owned())));
        };
        match self {
            Self::Net(NetAddition { reach: NetReachText::Ranges(_), .. }) | Self::Limit { .. } => {}
            Self::Net(NetAddition { pattern, decision, reach }) => {
                add("--net", Some(pattern));
                if *decision == Some(Decision::Ask) {
                    add("--ask", None);
                }
                if *reach == NetReachText::HostAddresses {
                    add("--to-private", None);
                }
            }
            Self::Fs(fs) if fs.deny.is_empty() && fs.quota.is_none() => {
                let is_read = fs.access == FsAccess::Read;
                add(if is_read { "--read" } else { "--write" }, Some(&fs.path));
                // The command mounts a path that the manifest names at that path by itself.
                let mount = fs.mount.as_ref().filter(|mount| **mount != fs.path);
                mount.iter().for_each(|mount| add("--mount", Some(mount)));
                if fs.sensitive {
                    add("--sensitive", None);
                }
            }
            Self::Fs(_) => {}
            Self::Env(name) => add("--env", Some(name)),
            Self::Secret(SecretAddition { name, usage }) => {
                add("--secret", Some(name));
                match usage {
                    SecretUseText::Reveal => add("--reveal", None),
                    SecretUseText::Inject { to, header, format } => {
                        add("--to", Some(to));
                        add("--header", Some(header));
                        format.iter().for_each(|format| add("--format", Some(format)));
                    }
                }
            }
            Self::Capability(CapabilityAddition { capability, part: CapabilityPart::Whole }) => {
                add("--capability", Some(capability.as_str()));
            }
            Self::Capability(addition) => {
                let text = addition.item_name().map(|name| format!("{}={name}", self.table_key()));
                // A table has more than a name, and a name such as `true` needs quotes.
                let text = text.filter(|text| text.parse().as_ref() == Ok(self));
                text.iter().for_each(|text| add("--grant", Some(text)));
            }
        }
        words
    }
}

impl fmt::Display for GrantAddition {
    /// The addition in a few words, for records.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Net(net) => f.write_str(&net.pattern),
            Self::Fs(fs) => write!(f, "{} {}", fs.access.as_str(), fs.path),
            Self::Env(name) => write!(f, "the variable {name}"),
            Self::Secret(secret) => write!(f, "the secret {}", secret.name),
            Self::Limit { key, value } => write!(f, "the limit {key} = {value}"),
            Self::Capability(addition @ CapabilityAddition { capability, part }) => match part {
                CapabilityPart::Whole => write!(f, "{capability}"),
                CapabilityPart::Setting { key, value } => {
                    write!(f, "{capability} with {key} = {value}")
                }
                CapabilityPart::Entry(toml) => {
                    let name = addition.item_name().unwrap_or_else(|| toml.clone());
                    f.write_str(&capability.kind().item_phrase(&name))
                }
            },
        }
    }
}
