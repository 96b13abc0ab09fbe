//! One record of the audit: who did what through which plugin, why it was let through, and what
//! came of it.
//!
//! A record is stored as one line of JSON. Keys stand in the order of the fields, what is not known
//! is left out, and whatever a terminal could obey or a reader could not see is written as an
//! escape, so a record stays one record whatever foreign text is in it.

use sallyport_contract::{CallContext, CallReport, Decision, Outcome, ToolId, text};
use serde::{Deserialize, Serialize, Serializer, de};

use super::{bound, effect::AuditEffect};

/// The form of records that is written here.
const VERSION: u32 = 1;

/// What a record is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AuditKind {
    /// A call was let through, asked about or refused.
    Decision,
    /// A call ended.
    Call,
    /// What is allowed has changed: a rule was written, a changed plugin accepted, a file reloaded.
    Policy,
    /// Something is wrong with the host, its files or this log.
    Trouble,
    /// Old records were removed; written by the store alone.
    Checkpoint,
}

/// The person for whom the host runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Who {
    /// The name under which they logged in, as far as it is known.
    pub name: String,
    /// The user of the process.
    pub uid: u32,
}

/// The BLAKE3 hash of a call's arguments, which stands in their place. Arguments may hold anything,
/// so no record holds arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ArgumentsHash(String);

/// The form of a record; records of a form that is not known here are not read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordVersion;

/// One record. Everything that is not known stays empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    /// The form of this record.
    pub v: RecordVersion,
    /// When, in milliseconds since 1970 (UTC).
    pub at_ms: u64,
    /// What it is about.
    pub kind: AuditKind,
    /// On whose behalf.
    pub who: Who,
    /// The user of the host on whose behalf, as rules see them in `context.user_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The conversation that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The call within the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The plugin's name. Text, since a call can name a plugin that cannot exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    /// Digest of the component that ran or would run, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The tool's name within its plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// What stands for the arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<ArgumentsHash>,
    /// The decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// Why: the rule with its place, or the default and its reason, and a person's answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grounds: Option<String>,
    /// What the call did outside its own memory, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<AuditEffect>,
    /// Bytes of the bodies that were sent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sent_bytes: u64,
    /// Bytes of the bodies that were received.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub received_bytes: u64,
    /// Wall time of the call.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub elapsed_ms: u64,
    /// Most memory that the guest held.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub memory_bytes_peak: u64,
    /// The word for how the call ended, as [`Outcome::word`] says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// What there is to say in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl AuditKind {
    /// The word for it in records: `decision`, `call`, `policy`, `trouble` or `checkpoint`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Decision => "decision",
            Self::Call => "call",
            Self::Policy => "policy",
            Self::Trouble => "trouble",
            Self::Checkpoint => "checkpoint",
        }
    }
}

impl Who {
    /// The user of this process, called `name`.
    pub fn of_process(name: impl Into<String>) -> Self {
        Self { name: name.into(), uid: rustix::process::geteuid().as_raw() }
    }
}

impl ArgumentsHash {
    /// Hashes arguments, as the text that was checked.
    pub fn of(arguments: &str) -> Self {
        Self(blake3::hash(arguments.as_bytes()).to_hex().to_string())
    }

    /// The hash in hexadecimal.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AuditRecord {
    /// Begins a record of which nothing else is known.
    pub fn new(kind: AuditKind, at_ms: u64, who: Who) -> Self {
        Self {
            v: RecordVersion,
            at_ms,
            kind,
            who,
            user: None,
            conversation: None,
            session: None,
            call: None,
            plugin: None,
            digest: None,
            tool: None,
            arguments: None,
            decision: None,
            grounds: None,
            effects: Vec::new(),
            sent_bytes: 0,
            received_bytes: 0,
            elapsed_ms: 0,
            memory_bytes_peak: 0,
            outcome: None,
            message: None,
        }
    }

    /// Adds which call it is about. Of the arguments, as the text that was checked, only the hash
    /// is kept.
    pub fn with_call(self, context: &CallContext, tool: &ToolId, arguments: &str) -> Self {
        Self {
            user: context.user_id.clone(),
            conversation: context.conversation_id.clone(),
            session: Some(context.session_id.clone()),
            call: Some(context.call_id.clone()),
            plugin: Some(tool.plugin.to_string()),
            tool: Some(tool.tool.to_string()),
            arguments: Some(ArgumentsHash::of(arguments)),
            ..self
        }
    }

    /// Adds what a report says: effects, bytes, time, memory and outcome. What the plugin logged is
    /// left out, since it is the plugin's own words about anything.
    pub fn with_report(self, report: &CallReport) -> Self {
        let effects: Vec<_> = report.effects.iter().filter_map(AuditEffect::of).collect();
        let (sent_bytes, received_bytes) = AuditEffect::traffic_bytes(&effects);
        Self {
            effects,
            sent_bytes,
            received_bytes,
            elapsed_ms: u64::try_from(report.elapsed.as_millis()).unwrap_or(u64::MAX),
            memory_bytes_peak: report.memory_bytes_peak,
            outcome: Some(report.outcome.word().to_owned()),
            message: message(&report.outcome),
            ..self
        }
    }

    /// Writes the record as the one line that is stored, cut to its bounds.
    pub(crate) fn into_line(mut self) -> String {
        bound::record(&mut self);
        line(&self)
    }
}

/// Writes a value as one line of JSON in which nothing is hidden and nothing obeyed.
pub(super) fn line(value: &impl Serialize) -> String {
    let json = serde_json::to_string(value).expect("records hold texts and whole numbers only");
    text::visible_json(&json)
}

fn message(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Completed(_) | Outcome::Cancelled => None,
        Outcome::Failed(failure) | Outcome::InvalidArguments(failure) => {
            Some(failure.message.clone())
        }
        Outcome::Denied(denial) => Some(format!("{}: {}", denial.what, denial.why)),
        Outcome::TimedOut { limit } => Some(format!("stopped after {limit:?}, its time limit")),
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Serialize for RecordVersion {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        writer.serialize_u32(VERSION)
    }
}

impl<'de> Deserialize<'de> for RecordVersion {
    fn deserialize<D: de::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        match u32::deserialize(reader)? {
            VERSION => Ok(Self),
            other => Err(de::Error::custom(format_args!("form {other} of records is not known"))),
        }
    }
}
