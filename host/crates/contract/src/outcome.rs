//! How a tool call ended.
//!
//! A denial, a time-out, a trap or bad arguments are values that the model reads and acts on, never
//! errors that end a session. What the model may read is kept apart from what only the person and
//! the log see: host paths, backtraces and secrets belong to the second kind.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// How a tool call ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// The tool did its work.
    Completed(ToolOutput),
    /// The tool tried and could not, or broke.
    Failed(Failure),
    /// Policy or person said no: to the call itself, or to something that the tool needed.
    Denied(Denial),
    /// The arguments do not fit; the model can correct them and try again.
    InvalidArguments(Failure),
    /// The call used up its time.
    TimedOut {
        /// The limit that ended it.
        limit: Duration,
    },
    /// Somebody stopped the call.
    Cancelled,
}

/// What a tool gives back.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolOutput {
    /// The result for the model, as JSON.
    pub data: Value,
    /// Further parts, for models and front ends that can show them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<Content>,
    /// A sentence to be said to the user as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speech: Option<String>,
}

/// One part of a tool's output beside its data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Content {
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
    /// A reference to something elsewhere. It is shown, never fetched.
    Resource {
        /// Where it is.
        uri: String,
        /// Media type, when known.
        media_type: Option<String>,
        /// A name to show.
        title: Option<String>,
    },
}

/// Why a call failed, with the words for each audience apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What kind of failure it is.
    pub kind: FailureKind,
    /// What the model may read.
    pub message: String,
    /// More for the person at the terminal and the log; never sent to a model.
    pub detail: Option<String>,
    /// Where and why the plugin's own code panicked, in its own words; for the person, who may be its
    /// author. Untrusted, and never sent to a model.
    pub panic: Option<String>,
}

/// The kinds of failure, as the plugin contract and the sandbox tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureKind {
    /// The arguments do not fit the tool's schema, or the tool itself refused them.
    InvalidArguments,
    /// There is no such tool, or the tool did not find what it was asked for.
    NotFound,
    /// The user has to sign in somewhere first.
    AuthRequired,
    /// A service, a setting or the whole plugin is not available just now.
    Unavailable,
    /// The tool's own error.
    Failed,
    /// The component trapped: a bug in the plugin, or an attempt at something impossible.
    Trapped,
    /// A limit other than time was reached, such as memory or output.
    LimitReached,
    /// The tool answered with something that is not what it promised.
    BadOutput,
    /// A bug in the host. The call is lost, the session is not.
    Internal,
}

/// A refusal, always with the way to lift it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// What was refused, as a sentence: `weather may not GET https://api.open-meteo.com/v1/forecast`.
    pub what: String,
    /// Why: no grant, a rule with its place, the person's own words.
    pub why: String,
    /// The exact policy text that would allow it, when policy can. For the person only: it may name
    /// paths of the host.
    pub fix: Option<String>,
    /// True when a person could have said yes but nobody was there to ask.
    pub nobody_to_ask: bool,
}

/// Something that a call did or tried to do outside its own memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// A line that the plugin logged, or wrote to its standard output or error.
    Logged {
        /// How important the plugin says it is.
        level: LogLevel,
        /// The text; untrusted.
        text: String,
    },
    /// A request that left the host.
    Requested {
        /// Method and URL without its query: `GET https://api.open-meteo.com/v1/forecast`.
        what: String,
        /// The status that came back; `None` when the exchange failed.
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
    /// A secret that the host used for the plugin, or handed to it.
    SecretUsed {
        /// Its name, never its value.
        name: String,
        /// The origin that it was sent to; `None` when the guest itself was given it.
        to: Option<String>,
    },
    /// A person was asked while the call ran.
    Asked {
        /// What about: `GET https://api.open-meteo.com/v1/forecast`.
        what: String,
        /// What came of it, in words: `allowed once`, `refused: not today`.
        answer: String,
    },
    /// Something that was done through a capability of the host.
    Used {
        /// The capability, as policies name it: `state`, `schedule`, `notify`, `open-url`.
        capability: String,
        /// What: `set "best-score" (12 bytes)`; untrusted in its parts.
        what: String,
    },
    /// A host call that the gate refused.
    Refused(Denial),
}

/// How important a plugin says that a log line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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

/// A finished call with all that is known about it.
#[derive(Debug, Clone, PartialEq)]
pub struct CallReport {
    /// How it ended.
    pub outcome: Outcome,
    /// What it did, in order. Bounded: a marker says where the list was cut.
    pub effects: Vec<Effect>,
    /// Wall time from admission to outcome.
    pub elapsed: Duration,
    /// Most memory that the guest held, in bytes; 0 when no guest ran.
    pub memory_bytes_peak: u64,
}

impl From<Outcome> for CallReport {
    /// A report of a call that never reached a guest.
    fn from(outcome: Outcome) -> Self {
        Self { outcome, effects: Vec::new(), elapsed: Duration::ZERO, memory_bytes_peak: 0 }
    }
}

impl Failure {
    /// A failure with words for the model only.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), detail: None, panic: None }
    }

    /// Adds what the plugin's code said as it panicked.
    pub fn with_panic(self, panic: Option<String>) -> Self {
        Self { panic, ..self }
    }

    /// Adds what only the person and the log may see.
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }
}

impl Outcome {
    /// The word for this ending: `completed`, `failed`, `denied`, `invalid-arguments`,
    /// `timed-out` or `cancelled`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Completed(_) => "completed",
            Self::Failed(_) => "failed",
            Self::Denied(_) => "denied",
            Self::InvalidArguments(_) => "invalid-arguments",
            Self::TimedOut { .. } => "timed-out",
            Self::Cancelled => "cancelled",
        }
    }

    /// What the model reads: the tool's data, or an object `{outcome, error, hint}`.
    pub fn to_model(&self) -> Value {
        let error = |text: &str| json!({ "outcome": self.word(), "error": text });
        match self {
            Self::Completed(output) => output.to_model(),
            Self::Failed(failure) | Self::InvalidArguments(failure) => error(&failure.message),
            Self::Denied(denial) => {
                let mut value = error(&format!("{}: {}", denial.what, denial.why));
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
    /// What the model reads. Text parts are data like the rest; binary parts are only named.
    fn to_model(&self) -> Value {
        if self.content.is_empty() {
            return self.data.clone();
        }
        let parts: Vec<Value> = self.content.iter().map(Content::to_model).collect();
        json!({ "data": self.data, "content": parts })
    }
}

impl Content {
    fn to_model(&self) -> Value {
        let binary = |kind: &str, media_type: &str, data: &[u8]| json!({ "type": kind, "media_type": media_type, "bytes": data.len() });
        match self {
            Self::Text { text } => json!({ "type": "text", "text": text }),
            Self::Image { media_type, data } => binary("image", media_type, data),
            Self::Audio { media_type, data } => binary("audio", media_type, data),
            Self::Resource { uri, media_type, title } => {
                json!({ "type": "resource", "uri": uri, "media_type": media_type, "title": title })
            }
        }
    }
}
