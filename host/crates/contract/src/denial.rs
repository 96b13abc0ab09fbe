//! Why something was refused, as data.
//!
//! Code that reacts to a refusal looks at its subject and its reason. The words for a reader are
//! made here, once, by `Display`. Nothing parses these words.

use std::{fmt, net::IpAddr, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{PluginName, PolicyFix, SpentBudget, ToolId, fix, milliseconds, text};

/// Most characters of a refused action in a sentence: the guest chooses its path or address.
const ACTION_CHARS_MAX: usize = 300;

/// Most bytes of a subject that is kept as data: the length of the longest URL that is accepted. A
/// guest can be refused often, and each refusal stays in memory.
const SUBJECT_BYTES_MAX: usize = 16 << 10;

/// Most characters of a name or pattern that a sentence quotes.
const QUOTE_CHARS_MAX: usize = 80;

/// A refusal, with the way to lift it where policy can.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Denial {
    /// The refused action. Boxed, because results carry refusals.
    #[serde(alias = "what")]
    pub subject: Box<DenialSubject>,
    /// The reason.
    #[serde(alias = "why")]
    pub reason: DenialReason,
    /// The change to the policy that would allow it, when policy can. For the user only: it may name
    /// host paths. Boxed, because results carry refusals.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "fix::read_fix")]
    pub fix: Option<Box<PolicyFix>>,
    /// True when the user could have allowed it but no user was connected.
    pub nobody_to_ask: bool,
}

/// The action that was refused. Its texts are untrusted: a guest may have chosen them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DenialSubject {
    /// A call of a tool, or a run in a role.
    Call {
        /// The tool.
        #[schemars(with = "String")]
        tool: ToolId,
    },
    /// A network request.
    Request {
        /// The plugin that would have sent it.
        #[schemars(with = "String")]
        plugin: PluginName,
        /// Its method.
        method: String,
        /// Its URL, without query, fragment and user name.
        url: String,
    },
    /// An access to a file or folder.
    Path {
        /// The plugin that needed it.
        #[schemars(with = "String")]
        plugin: PluginName,
        /// The path as the guest sees it.
        path: String,
        /// Whether it would have changed the file.
        write: bool,
    },
    /// An environment variable.
    Variable {
        /// The plugin that needed it.
        #[schemars(with = "String")]
        plugin: PluginName,
        /// Its name.
        name: String,
    },
    /// The value of a secret.
    Secret {
        /// The plugin that needed it.
        #[schemars(with = "String")]
        plugin: PluginName,
        /// Its name.
        name: String,
    },
    /// An action that requires a capability of the host.
    Capability {
        /// The plugin that needed it.
        #[schemars(with = "String")]
        plugin: PluginName,
        /// The capability, as policies name it.
        capability: String,
        /// The action as a verb phrase: `set a timer`, or `open` with an item.
        action: String,
        /// What the action was about, where a grant can name it: a page, a package.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        item: Option<String>,
    },
    /// A sentence of a plugin or script, or a refusal that no grant can lift.
    #[serde(untagged)]
    Text(String),
}

/// Why an action was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DenialReason {
    /// The manifest does not request it.
    NotRequested {
        /// The capability, if it is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        capability: Option<String>,
    },
    /// The manifest requests less than the action needs.
    RequestedLess(RequestedScope),
    /// The policy does not grant it.
    NotGranted {
        /// The capability, if it is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        capability: Option<String>,
    },
    /// The policy grants less than the action needs.
    GrantedLess(GrantedScope),
    /// An entry of the policy denies it.
    DeniedByEntry {
        /// The pattern that denies it, if the entry has several.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pattern: Option<String>,
        /// The entry.
        place: PolicyPlace,
    },
    /// The policy takes the capability away.
    CapabilityDenied {
        /// The capability.
        capability: String,
        /// The entry that takes it away.
        place: PolicyPlace,
    },
    /// The address is not public.
    PrivateAddress {
        /// The address.
        address: IpAddr,
        /// The host name that resolved to it, unless the host is the address.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<String>,
        /// Whether only an entry with a range of the operator's choice reaches it.
        needs_range: bool,
    },
    /// A rule of the policy denies it, or would ask.
    Rule {
        /// The rule.
        place: PolicyPlace,
        /// The rule's message and place, with notes on its condition.
        text: String,
        /// The group of the policy whose rule it is; `None` for a rule about every user.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        group: Option<String>,
    },
    /// A budget of the user is used up.
    BudgetSpent(SpentBudget),
    /// What the user has used of a budget cannot be read now.
    BudgetUnreadable,
    /// No rule is about it, and the default decided.
    NoRule {
        /// The default and its cause.
        text: String,
    },
    /// It needs an approval that could not be had.
    NotApproved {
        /// What went wrong.
        cause: ApprovalObstacle,
        /// Why it needs an approval.
        reason: Box<DenialReason>,
    },
    /// The user said no.
    RefusedByUser {
        /// The user's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<String>,
    },
    /// It would carry a secret.
    CarriesSecret {
        /// The secret's name.
        name: String,
        /// The origin that would receive it, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<String>,
    },
    /// A reason that nothing but a reader can act on.
    #[serde(untagged)]
    Text(String),
}

/// What a manifest requests when it requests too little.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RequestedScope {
    /// To read the folder, not to change it.
    Reading,
    /// The root path of an origin alone, with this pattern.
    RootPath(String),
    /// To have the secret sent with requests, not to read it.
    SendingSecret,
    /// To watch a session, not to answer its questions.
    Watching,
}

/// What a policy grants when it grants too little.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GrantedScope {
    /// No request at all.
    NoNetwork,
    /// No folder at all.
    NoFolder,
    /// Something of the kind, but not this.
    NotThis,
    /// The root path of an origin alone, since the entry here has no path.
    RootPath(PolicyPlace),
    /// Reading of the folder, by the entry here.
    Reading(PolicyPlace),
    /// That the secret is sent with requests.
    SendingSecret,
    /// Watching a session, without answers to its questions.
    Watching,
    /// To run behind walls, which the kernel cannot raise.
    Sandboxed,
    /// All that can be granted, which does not include this.
    Everything,
}

/// Why an approval could not be had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalObstacle {
    /// No user is connected.
    NoUser,
    /// The user did not answer in time.
    TimedOut {
        /// How long the question waited.
        #[serde(rename = "waited_ms", with = "milliseconds")]
        #[schemars(with = "u64")]
        waited: Duration,
    },
    /// The request cannot be shown whole.
    NotShown {
        /// Why not.
        error: String,
    },
}

/// A line of a policy file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyPlace {
    /// The file, as the host names it.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
}

impl Denial {
    /// Creates a refusal that no policy text lifts. A subject that is too long to keep becomes a
    /// sentence, which is cut, because a part of a path or of an address would be another one. A
    /// text of the reason that is too long is cut.
    pub fn new(subject: impl Into<DenialSubject>, reason: impl Into<DenialReason>) -> Self {
        let (mut subject, mut reason) = (subject.into(), reason.into());
        if subject.texts_mut().iter().map(|text| text.len()).sum::<usize>() > SUBJECT_BYTES_MAX {
            let sentence = text::escape_excerpt(&subject.to_string(), ACTION_CHARS_MAX);
            subject = DenialSubject::Text(sentence);
        }
        for long in reason.texts_mut().into_iter().filter(|text| text.len() > SUBJECT_BYTES_MAX) {
            *long = text::escape_excerpt(long, ACTION_CHARS_MAX);
        }
        Self { subject: Box::new(subject), reason, fix: None, nobody_to_ask: false }
    }

    /// Sets the change to the policy that would lift it.
    pub fn with_fix(self, fix: Option<PolicyFix>) -> Self {
        Self { fix: fix.map(Box::new), ..self }
    }

    /// The change that would lift it as policy text, if there is one.
    pub fn fix_toml(&self) -> Option<&str> {
        self.fix.as_ref().map(|fix| fix.toml.as_str())
    }

    /// The texts that may contain secrets.
    pub(crate) fn texts_mut(&mut self) -> Vec<&mut String> {
        let mut texts = self.subject.texts_mut();
        texts.extend(self.reason.texts_mut());
        texts.extend(self.fix.iter_mut().flat_map(|fix| fix.texts_mut()));
        texts
    }
}

impl DenialSubject {
    fn texts_mut(&mut self) -> Vec<&mut String> {
        match self {
            Self::Call { .. } => Vec::new(),
            Self::Request { method, url, .. } => vec![method, url],
            Self::Path { path: text, .. }
            | Self::Variable { name: text, .. }
            | Self::Secret { name: text, .. }
            | Self::Text(text) => vec![text],
            Self::Capability { capability, action, item, .. } => {
                [capability, action].into_iter().chain(item).collect()
            }
        }
    }
}

impl DenialReason {
    fn texts_mut(&mut self) -> Vec<&mut String> {
        match self {
            Self::NotRequested { capability } | Self::NotGranted { capability } => {
                capability.iter_mut().collect()
            }
            Self::RequestedLess(RequestedScope::RootPath(text))
            | Self::NoRule { text }
            | Self::Text(text) => vec![text],
            Self::RequestedLess(_) | Self::BudgetUnreadable => Vec::new(),
            Self::GrantedLess(GrantedScope::RootPath(place) | GrantedScope::Reading(place)) => {
                vec![&mut place.file]
            }
            Self::GrantedLess(_) => Vec::new(),
            Self::DeniedByEntry { pattern, place } => {
                pattern.iter_mut().chain([&mut place.file]).collect()
            }
            Self::CapabilityDenied { capability: text, place } => vec![text, &mut place.file],
            Self::Rule { place, text, group } => {
                [text, &mut place.file].into_iter().chain(group).collect()
            }
            Self::BudgetSpent(spent) => vec![&mut spent.budget.group],
            Self::PrivateAddress { host, .. } => host.iter_mut().collect(),
            Self::NotApproved { cause, reason } => {
                let mut texts = reason.texts_mut();
                if let ApprovalObstacle::NotShown { error } = cause {
                    texts.push(error);
                }
                texts
            }
            Self::RefusedByUser { answer } => answer.iter_mut().collect(),
            Self::CarriesSecret { name, to } => [name].into_iter().chain(to).collect(),
        }
    }
}

impl fmt::Display for Denial {
    /// The refusal without its fix, for the model and the user.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject, self.reason)
    }
}

impl fmt::Display for DenialSubject {
    /// A sentence: `weather may not GET https://api.open-meteo.com/v1/forecast`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (plugin, action) = match self {
            Self::Call { tool } => return write!(f, "{tool} may not be called"),
            Self::Text(text) => return f.write_str(&text::escape_multiline(text)),
            Self::Request { plugin, method, url } => (plugin, format!("{method} {url}")),
            Self::Path { plugin, path, write: false } => (plugin, format!("read {path}")),
            Self::Path { plugin, path, write: true } => (plugin, format!("change {path}")),
            Self::Variable { plugin, name } => {
                (plugin, format!("see the environment variable {}", quoted(name)))
            }
            Self::Secret { plugin, name } => (plugin, format!("read the secret {}", quoted(name))),
            Self::Capability { plugin, action, item: None, .. } => (plugin, action.clone()),
            Self::Capability { plugin, action, item: Some(item), .. } => {
                (plugin, format!("{action} {item}"))
            }
        };
        write!(f, "{plugin} may not {}", text::escape_excerpt(&action, ACTION_CHARS_MAX))
    }
}

impl fmt::Display for DenialReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRequested { capability: None } => {
                f.write_str("its manifest does not request it")
            }
            Self::NotRequested { capability: Some(name) } => {
                write!(f, "its manifest does not request \"{name}\"")
            }
            Self::NotGranted { capability: None } => f.write_str("its policy does not grant it"),
            Self::NotGranted { capability: Some(name) } => {
                write!(f, "its policy does not grant \"{name}\"")
            }
            Self::RequestedLess(scope) => write!(f, "{scope}"),
            Self::GrantedLess(scope) => write!(f, "{scope}"),
            Self::DeniedByEntry { pattern: None, place } => write!(f, "denied by {place}"),
            Self::DeniedByEntry { pattern: Some(pattern), place } => {
                write!(f, "denied by {} at {place}", quoted(pattern))
            }
            Self::CapabilityDenied { capability, place } => {
                write!(f, "the policy takes \"{capability}\" away at {place}")
            }
            Self::PrivateAddress { address, host, needs_range } => {
                match host {
                    Some(host) => {
                        write!(f, "{host} is at {address}, which is not a public address")
                    }
                    None => write!(f, "{address} is not a public address"),
                }?;
                match host.is_some() && *needs_range {
                    true => f.write_str(
                        "; only an entry with to-private and a range of your choice reaches it",
                    ),
                    false => Ok(()),
                }
            }
            Self::Rule { text, .. } | Self::NoRule { text } => f.write_str(text),
            Self::BudgetSpent(spent) => write!(f, "{spent}"),
            Self::BudgetUnreadable => f.write_str("what the user has used cannot be read now"),
            Self::Text(text) => f.write_str(&text::escape_multiline(text)),
            Self::NotApproved { cause, reason } => write!(f, "{cause} ({reason})"),
            Self::RefusedByUser { answer: None } => f.write_str("the user said no"),
            Self::RefusedByUser { answer: Some(answer) } => {
                write!(f, "the user said no: {answer}")
            }
            Self::CarriesSecret { name, to: None } => write!(f, "it would carry the secret {name}"),
            Self::CarriesSecret { name, to: Some(to) } => {
                write!(f, "it would carry the secret {name} to {to}")
            }
        }
    }
}

impl fmt::Display for RequestedScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reading => f.write_str("its manifest requests to read it only"),
            Self::RootPath(pattern) => write!(
                f,
                "its manifest requests {pattern} only, and without a path that is the path / alone"
            ),
            Self::SendingSecret => f.write_str("its manifest requests it for use in requests only"),
            Self::Watching => f.write_str("its manifest does not request to answer questions"),
        }
    }
}

impl fmt::Display for GrantedScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoNetwork => f.write_str("its policy grants no network access"),
            Self::NoFolder => f.write_str("its policy grants no folder"),
            Self::NotThis => f.write_str("no grant covers it"),
            Self::RootPath(place) => write!(
                f,
                "no grant covers it: the entry at {place} has no path and so means / alone; \
                 /** would be every path"
            ),
            Self::Reading(place) => write!(f, "the grant at {place} is for reading only"),
            Self::SendingSecret => f.write_str("its policy has it sent with requests only"),
            Self::Watching => f.write_str("its policy lets it watch, but not answer questions"),
            Self::Sandboxed => f.write_str(
                "the kernel cannot wall it in, and its policy does not let it run without",
            ),
            Self::Everything => f.write_str("its policy grants no such thing"),
        }
    }
}

impl fmt::Display for ApprovalObstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoUser => f.write_str("it needs approval and no user is connected"),
            Self::TimedOut { waited } => write!(f, "no answer within {waited:?}"),
            Self::NotShown { error } => write!(f, "it needs an approval, but {error}"),
        }
    }
}

impl fmt::Display for PolicyPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", text::escape_line(&self.file), self.line)
    }
}

impl<T: Into<String>> From<T> for DenialSubject {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}

impl<T: Into<String>> From<T> for DenialReason {
    fn from(text: T) -> Self {
        Self::Text(text.into())
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", text::escape_excerpt(name, QUOTE_CHARS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FixRule;

    #[test]
    fn a_refusal_in_words_of_an_earlier_version_is_still_read() {
        let json = r#"{"what":"mail may not be called","why":"policy.toml:3","fix":"[plugin.mail]","nobody_to_ask":true}"#;
        let denial: Denial = serde_json::from_str(json).unwrap();
        assert_eq!(*denial.subject, DenialSubject::Text("mail may not be called".to_owned()));
        assert_eq!(denial.to_string(), "mail may not be called: policy.toml:3");
        assert!(denial.nobody_to_ask && denial.fix.is_none());
    }

    /// A sentence was kept whole although it was to be cut, and so was every reason.
    #[test]
    fn a_text_that_is_too_long_to_keep_is_cut_in_every_part_of_a_refusal() {
        let long = "x".repeat(SUBJECT_BYTES_MAX + 1);
        let path = DenialSubject::Path {
            plugin: "mail".parse().unwrap(),
            path: long.clone(),
            write: true,
        };
        let place = PolicyPlace { file: "policy.toml".to_owned(), line: 3 };
        let rule = DenialReason::Rule { place, text: long.clone(), group: None };
        let cause = ApprovalObstacle::NotShown { error: long.clone() };
        let nested = DenialReason::NotApproved { cause, reason: Box::new(long.clone().into()) };
        let rows = [
            Denial::new(long.clone(), "why"),
            Denial::new(path, "why"),
            Denial::new("what", long.clone()),
            Denial::new("what", rule),
            Denial::new("what", nested),
        ];
        for denial in rows {
            let json = serde_json::to_string(&denial).unwrap();
            assert!(json.len() < 1500 && json.contains('…'), "{json}");
        }
        let longest = Denial::new("x".repeat(SUBJECT_BYTES_MAX), "why");
        assert_eq!(longest.subject.to_string().len(), SUBJECT_BYTES_MAX);
    }

    #[test]
    fn a_sentence_shows_what_a_terminal_would_obey() {
        let denial = Denial::new("mail\u{1b}[2J may\nnot", "\u{202e}no");
        assert_eq!(denial.to_string(), "mail\\u{1b}[2J may\nnot: \\u{202e}no");
    }

    #[test]
    fn a_refusal_survives_its_serialized_form() {
        let plugin: PluginName = "mail".parse().unwrap();
        let place = PolicyPlace { file: "policy.toml".to_owned(), line: 3 };
        let needs =
            DenialReason::Rule { place, text: "rule at policy.toml:3".to_owned(), group: None };
        let cause = ApprovalObstacle::TimedOut { waited: Duration::from_secs(3) };
        let reason = DenialReason::NotApproved { cause, reason: Box::new(needs) };
        let url = "https://a.example/".to_owned();
        let subject = DenialSubject::Request { plugin, method: "GET".to_owned(), url };
        let plugin = "mail".parse().unwrap();
        let rule = FixRule { tool: "*".to_owned(), net: None, page: None };
        let fix = PolicyFix::from_rule(plugin, rule, "net = []");
        let denial = Denial::new(subject, reason).with_fix(Some(fix));
        let json = serde_json::to_string(&denial).unwrap();
        assert_eq!(serde_json::from_str::<Denial>(&json).unwrap(), denial, "{json}");
        assert!(json.contains(r#""timed-out":{"waited_ms":3000}"#), "{json}");
        assert_eq!(
            denial.to_string(),
            "mail may not GET https://a.example/: no answer within 3s (rule at policy.toml:3)"
        );
    }
}
