//! How a tool call ended.
//!
//! A denial, a timeout, a trap or bad arguments are values that the model reads and acts on, never
//! errors that end a session. Text for the model is separate from text for the user and the log:
//! host paths, backtraces and secrets belong only to the latter.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Denial, FixGrant, ResourceContents, ResourceData, UserAnswer, milliseconds};

/// How a tool call ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// The tool did its work.
    Completed(ToolOutput),
    /// The tool reported an error, or broke.
    Failed(CallFailure),
    /// Policy or the user refused the call itself, or something that the tool needed.
    Denied(Denial),
    /// The arguments do not fit; the model can correct them and try again.
    InvalidArguments(CallFailure),
    /// The call exceeded its time limit.
    TimedOut {
        /// The limit that ended it.
        #[serde(rename = "limit_ms", with = "milliseconds")]
        #[schemars(with = "u64")]
        limit: Duration,
    },
    /// The call was stopped.
    Cancelled,
}

/// The output of a tool.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolOutput {
    /// The result for the model, as JSON.
    pub data: Value,
    /// Further parts, for models and front ends that can show them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<ContentPart>,
    /// A sentence to speak to the user verbatim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speech: Option<String>,
}

/// One part of a tool's output in addition to its data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ContentPart {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image {
        /// Media type, such as `image/png`.
        media_type: String,
        /// The bytes of the file.
        data: Vec<u8>,
    },
    /// A sound.
    Audio {
        /// Media type, such as `audio/wav`.
        media_type: String,
        /// The bytes of the file.
        data: Vec<u8>,
    },
    /// A reference to a resource elsewhere. It is shown, never fetched.
    Resource {
        /// Its URI.
        uri: String,
        /// Media type, when known.
        media_type: Option<String>,
        /// A display name.
        title: Option<String>,
    },
    /// A resource with what it contains.
    Embedded(ResourceContents),
}

/// Why a call failed, with a separate text for each audience.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallFailure {
    /// What kind of failure it is.
    pub kind: FailureKind,
    /// The message for the model.
    pub message: String,
    /// Details for the user at the terminal and the log; never sent to a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What is wrong with the arguments, one sentence for each mistake, where they are known one by
    /// one. The message has all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// Where and why the plugin's own code panicked, verbatim; for the user, who may be its author.
    /// Untrusted, and never sent to a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panic: Option<String>,
}

/// The kinds of failure that the plugin contract and the sandbox distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The arguments do not fit the tool's schema, or the tool itself refused them.
    InvalidArguments,
    /// The tool does not exist, or did not find what it was asked for.
    NotFound,
    /// The user has to sign in somewhere first.
    AuthRequired,
    /// A service, a setting or the whole plugin is currently unavailable.
    Unavailable,
    /// The tool's own error.
    Failed,
    /// The component trapped: a bug in the plugin, or an attempt at something impossible.
    Trapped,
    /// A limit other than time was reached, such as memory or output.
    LimitReached,
    /// The tool's answer does not have the form that it promised.
    BadOutput,
    /// A bug in the host. The call is lost, the session is not.
    Internal,
}

/// Something that a call did or tried to do outside its own memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Effect {
    /// A line that the plugin logged, or wrote to its standard output or error.
    Logged {
        /// Its importance, as the plugin rates it.
        level: LogLevel,
        /// The text; untrusted.
        text: String,
    },
    /// A request that left the host.
    Requested {
        /// Method and URL without its query: `GET https://api.open-meteo.com/v1/forecast`.
        what: String,
        /// The status that came back; `None` when the exchange failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        /// Bytes of the body that was sent.
        sent_bytes: u64,
        /// Bytes of the body that came back, as far as the guest read it.
        received_bytes: u64,
    },
    /// A file or folder that was created, opened for writing, renamed or removed.
    Changed {
        /// Its path as the guest sees it; untrusted.
        path: String,
    },
    /// A secret that the host used for the plugin, or passed to it.
    SecretUsed {
        /// Its name, never its value.
        name: String,
        /// The origin that received it; `None` when the guest itself received it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        to: Option<String>,
    },
    /// The user was asked while the call ran.
    Asked {
        /// The subject of the question: `GET https://api.open-meteo.com/v1/forecast`.
        what: String,
        /// The answer: `allowed once`, `refused: not today`.
        answer: String,
    },
    /// The user was asked for a grant that the call lacked.
    GrantAnswered {
        /// The refused action: `notes may not keep something`.
        what: String,
        /// The answer.
        answer: UserAnswer,
        /// The grants that the user gave; none after a no.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        grants: Vec<FixGrant>,
    },
    /// A use of a host capability.
    Used {
        /// The name of the capability in policies: `state`, `schedule`, `notify`.
        capability: String,
        /// The action: `set "best-score" (12 bytes)`; parts of it are untrusted.
        what: String,
    },
    /// A host call that the gate refused.
    Refused(Denial),
}

/// The importance of a log line, as the plugin rates it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum LogLevel {
    /// Very fine detail.
    Trace,
    /// For the plugin's author.
    Debug,
    /// Worth knowing.
    Info,
    /// Something is off.
    Warn,
    /// Something failed.
    Error,
}

/// The report of a finished call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallReport {
    /// How it ended.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// What it did, in order. Bounded: a marker shows where the list was cut.
    #[serde(default)]
    pub effects: Vec<Effect>,
    /// Wall time from admission to outcome.
    #[serde(rename = "elapsed_ms", with = "milliseconds")]
    #[schemars(with = "u64")]
    pub elapsed: Duration,
    /// Peak memory of the guest, in bytes; 0 when no guest ran.
    pub memory_bytes_peak: u64,
}

impl From<Outcome> for CallReport {
    /// Reports a call that never reached a guest.
    fn from(outcome: Outcome) -> Self {
        Self { outcome, effects: Vec::new(), elapsed: Duration::ZERO, memory_bytes_peak: 0 }
    }
}

impl CallFailure {
    /// Creates a failure with a message for the model only.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), detail: None, errors: Vec::new(), panic: None }
    }

    /// Adds the panic message of the plugin's code.
    pub fn with_panic(self, panic: Option<String>) -> Self {
        Self { panic, ..self }
    }

    /// Adds what is wrong with the arguments, one sentence for each mistake.
    pub fn with_errors(self, errors: Vec<String>) -> Self {
        Self { errors, ..self }
    }

    /// What is wrong, one sentence for each mistake: the message where they are not known one by one.
    pub fn sentences(&self) -> Vec<String> {
        match self.errors.is_empty() {
            true => vec![self.message.clone()],
            false => self.errors.clone(),
        }
    }

    /// Adds details for the user and the log only.
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }
}

impl Outcome {
    /// The names of all outcomes.
    pub const NAMES: [&'static str; 6] =
        ["completed", "failed", "denied", "invalid-arguments", "timed-out", "cancelled"];

    /// Returns the name of this outcome, one of [`NAMES`](Self::NAMES).
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Completed(_) => "completed",
            Self::Failed(_) => "failed",
            Self::Denied(_) => "denied",
            Self::InvalidArguments(_) => "invalid-arguments",
            Self::TimedOut { .. } => "timed-out",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns the value for the model: the tool's data, or an object `{outcome, error, hint}`.
    pub fn to_model_value(&self) -> Value {
        let error = |text: &str| json!({ "outcome": self.as_str(), "error": text });
        match self {
            Self::Completed(output) => output.to_model_value(),
            Self::Failed(failure) | Self::InvalidArguments(failure) => error(&failure.message),
            Self::Denied(denial) => {
                let mut value = error(&denial.to_string());
                if denial.fix.is_some() {
                    value["hint"] = "only the user can allow this, and has been shown how".into();
                }
                value
            }
            Self::TimedOut { limit } => error(&format!("stopped after {limit:?}, its time limit")),
            Self::Cancelled => error("cancelled by the user"),
        }
    }
}

impl ToolOutput {
    /// Returns the value for the model. Text parts are included; binary parts are reduced to their
    /// type and size.
    fn to_model_value(&self) -> Value {
        if self.content.is_empty() {
            return self.data.clone();
        }
        let parts: Vec<Value> = self.content.iter().map(ContentPart::to_model_value).collect();
        json!({ "data": self.data, "content": parts })
    }
}

impl ContentPart {
    fn to_model_value(&self) -> Value {
        let binary = |kind: &str, media_type: &str, data: &[u8]| json!({ "type": kind, "media_type": media_type, "bytes": data.len() });
        match self {
            Self::Text { text } => json!({ "type": "text", "text": text }),
            Self::Image { media_type, data } => binary("image", media_type, data),
            Self::Audio { media_type, data } => binary("audio", media_type, data),
            Self::Resource { uri, media_type, title } => {
                json!({ "type": "resource", "uri": uri, "media_type": media_type, "title": title })
            }
            Self::Embedded(ResourceContents { uri, media_type, data }) => {
                let mut value = json!({ "type": "resource", "uri": uri, "media_type": media_type });
                match data {
                    ResourceData::Text(text) => value["text"] = text.as_str().into(),
                    ResourceData::Binary(data) => value["bytes"] = data.len().into(),
                }
                value
            }
        }
    }
}
