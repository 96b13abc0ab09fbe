//! One record of the audit: who did what through which plugin, why it was allowed, and the result.
//!
//! A record is stored as one line of JSON. Keys are in the order of the fields, and unknown values
//! are left out. Characters that a terminal would interpret or a reader could not see are escaped,
//! so a record stays one record regardless of the foreign text in it.

use std::{borrow::Cow, cell::OnceCell};

use sallyport_contract::{
    CallReport, Decision, Outcome, ToolCallContext, ToolId, UserAnswer, text,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer, de};

use super::{effect::AuditEffect, size_limits};

/// The version of the records that this code writes.
const VERSION: u32 = 1;

/// The subject of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AuditKind {
    /// A call was allowed, asked about or denied.
    Decision,
    /// A call ended.
    Call,
    /// The policy changed: a rule was written, a changed plugin accepted, a file reloaded.
    Policy,
    /// Something is wrong with the host, its files or this log.
    Trouble,
    /// Old records were removed. Only the store writes this kind.
    Checkpoint,
}

/// The user for whom the host runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostUser {
    /// The login name, if it is known.
    pub name: String,
    /// The user id of the process.
    pub uid: u32,
}

/// The BLAKE3 hash of a call's arguments. Arguments may contain anything, so no record contains
/// them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ArgumentsHash(String);

/// The version of a record. Records of an unknown version are not read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordVersion;

/// A record that waits to be written. It becomes a line on the thread that writes, so that no call
/// waits for that.
pub(super) struct QueuedRecord {
    record: Box<AuditRecord>,
    line: OnceCell<String>,
}

/// One record. Unknown values are left empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AuditRecord {
    /// The version of this record.
    pub v: RecordVersion,
    /// When, in milliseconds since 1970 (UTC).
    pub at_ms: u64,
    /// The subject of the record.
    pub kind: AuditKind,
    /// The user for whom the host runs.
    pub who: HostUser,
    /// The host's user on whose behalf the call runs, as rules see it in `context.user_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The call within the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The plugin's name. A plain string: a call can name a plugin that cannot exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    /// Digest of the component that ran or would run, in hexadecimal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The tool's name within its plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The hash of the arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<ArgumentsHash>,
    /// The decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// The user's answer, if the decision is theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<UserAnswer>,
    /// The reason: the rule and its place, or the default and its reason, and the user's answer.
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
    /// Peak memory of the guest, in bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub memory_bytes_peak: u64,
    /// The word for how the call ended, from [`Outcome::as_str`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// A message in human-readable form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl AuditKind {
    /// The word for the kind in records: `decision`, `call`, `policy`, `trouble` or `checkpoint`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Decision => "decision",
            Self::Call => "call",
            Self::Policy => "policy",
            Self::Trouble => "trouble",
            Self::Checkpoint => "checkpoint",
        }
    }
}

impl HostUser {
    /// The user of this process, with the given name.
    pub fn from_process(name: impl Into<String>) -> Self {
        Self { name: name.into(), uid: rustix::process::geteuid().as_raw() }
    }
}

impl ArgumentsHash {
    /// Hashes arguments; `arguments` is the text that was checked.
    pub fn from_arguments(arguments: &str) -> Self {
        Self(blake3::hash(arguments.as_bytes()).to_hex().to_string())
    }

    /// The hash in hexadecimal.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AuditRecord {
    /// Creates a record with every other field empty.
    pub fn new(kind: AuditKind, at_ms: u64, who: HostUser) -> Self {
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
            answer: None,
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

    /// Adds the call that the record is about. `arguments` is the text that was checked; only its
    /// hash is stored.
    pub fn with_call(self, context: &ToolCallContext, tool: &ToolId, arguments: &str) -> Self {
        Self {
            user: context.user_id.clone(),
            conversation: context.conversation_id.clone(),
            session: Some(context.session_id.clone()),
            call: Some(context.call_id.clone()),
            plugin: Some(tool.plugin.to_string()),
            tool: Some(tool.tool.to_string()),
            arguments: Some(ArgumentsHash::from_arguments(arguments)),
            ..self
        }
    }

    /// Adds the contents of a report: effects, bytes, time, memory and outcome. The plugin's log
    /// messages, which may contain anything, are left out.
    pub fn with_report(self, report: &CallReport) -> Self {
        let effects: Vec<_> = report.effects.iter().filter_map(AuditEffect::from_effect).collect();
        let (sent_bytes, received_bytes) = AuditEffect::traffic_bytes(&effects);
        Self {
            effects,
            sent_bytes,
            received_bytes,
            elapsed_ms: u64::try_from(report.elapsed.as_millis()).unwrap_or(u64::MAX),
            memory_bytes_peak: report.memory_bytes_peak,
            outcome: Some(report.outcome.as_str().to_owned()),
            message: outcome_message(&report.outcome),
            ..self
        }
    }

    /// Whether a call ran on behalf of this user, or the host runs for this user.
    pub fn is_about_user(&self, name: &str) -> bool {
        self.user.as_deref() == Some(name) || self.who.name == name
    }

    /// Whether the record is about a denied call, or a call that was refused something while it
    /// ran.
    pub fn is_about_denial(&self) -> bool {
        let is_refusal = |effect: &AuditEffect| matches!(effect, AuditEffect::Refused { .. });
        self.decision == Some(Decision::Deny)
            || self.outcome.as_deref() == Some("denied")
            || self.effects.iter().any(is_refusal)
    }

    /// Renders the record as the line that is stored, cut to its size limits.
    #[cfg(test)]
    pub(crate) fn into_line(self) -> String {
        QueuedRecord::from(self).line().to_owned()
    }
}

impl From<AuditRecord> for QueuedRecord {
    /// Cuts the record to its size limits, so that what waits has a limit too.
    fn from(mut record: AuditRecord) -> Self {
        size_limits::limit_record_size(&mut record);
        Self { record: Box::new(record), line: OnceCell::new() }
    }
}

impl QueuedRecord {
    /// The line that is stored.
    pub(super) fn line(&self) -> &str {
        self.line.get_or_init(|| render_line(&self.record))
    }
}

/// Renders a value as one line of JSON without hidden characters or terminal control codes.
pub(crate) fn render_line(value: &impl Serialize) -> String {
    let json = serde_json::to_string(value).expect("records hold texts and whole numbers only");
    text::escape_json(&json)
}

fn outcome_message(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Completed(_) | Outcome::Cancelled => None,
        Outcome::Failed(failure) | Outcome::InvalidArguments(failure) => {
            Some(failure.message.clone())
        }
        Outcome::Denied(denial) => Some(denial.to_string()),
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

impl JsonSchema for RecordVersion {
    fn schema_name() -> Cow<'static, str> {
        "RecordVersion".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "const": VERSION })
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
