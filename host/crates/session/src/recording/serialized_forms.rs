//! Serialization of options, outcomes, deltas and errors.
//!
//! These types have no serialized form outside the process. The forms here mirror them: a field
//! that is added to the type does not compile here until it is on the tape too.

use std::time::Duration;

use sallyport_contract::{
    CallFailure, CallReport, Denial, Effect, FailureKind, LogLevel, Outcome, ToolOutput,
};
use sallyport_model::{
    AssistantMessage, FinishReason, ModelError, ModelReply, OmittedContent, ReplyDelta, TokenCost,
    TokenUsage,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{MemoryMode, SessionLimits, SessionOptions, TurnLimits};

#[derive(Serialize, Deserialize)]
#[serde(remote = "SessionOptions")]
pub(super) struct OptionsForm {
    session_id: String,
    /// A replay runs as the user who plays the tape.
    #[serde(skip)]
    user_id: Option<String>,
    system_prompt: Option<String>,
    memories: Vec<String>,
    memory: MemoryMode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    tool_tokens_max: Option<u64>,
    spoken: bool,
    #[serde(with = "LimitsForm")]
    limits: TurnLimits,
    #[serde(with = "SessionLimitsForm")]
    session_limits: SessionLimits,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "TurnLimits")]
struct LimitsForm {
    turns_max: u32,
    calls_max: u32,
    repeats_max: u32,
    tokens_max: Option<u64>,
    cost_max: Option<TokenCost>,
    time_max: Option<Duration>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "SessionLimits")]
struct SessionLimitsForm {
    tokens_max: Option<u64>,
    cost_max: Option<TokenCost>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "CallReport")]
pub(super) struct ReportForm {
    #[serde(with = "OutcomeForm")]
    outcome: Outcome,
    #[serde(default, skip_serializing_if = "Vec::is_empty", with = "effects")]
    effects: Vec<Effect>,
    elapsed: Duration,
    memory_bytes_peak: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Outcome", rename_all = "kebab-case")]
enum OutcomeForm {
    Completed(ToolOutput),
    Failed(#[serde(with = "FailureForm")] CallFailure),
    Denied(#[serde(with = "DenialForm")] Denial),
    InvalidArguments(#[serde(with = "FailureForm")] CallFailure),
    TimedOut { limit: Duration },
    Cancelled,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "CallFailure")]
struct FailureForm {
    kind: FailureKind,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    panic: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Denial")]
struct DenialForm {
    what: String,
    why: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
    nobody_to_ask: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Effect", rename_all = "kebab-case")]
enum EffectForm {
    Logged { level: LogLevel, text: String },
    Requested { what: String, status: Option<u16>, sent_bytes: u64, received_bytes: u64 },
    Changed { path: String },
    SecretUsed { name: String, to: Option<String> },
    Asked { what: String, answer: String },
    Used { capability: String, what: String },
    Refused(#[serde(with = "DenialForm")] Denial),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ReplyDelta", rename_all = "kebab-case")]
enum DeltaForm {
    Text(String),
    Reasoning(String),
    CallBegun { name: String },
    Retry { attempt: u32, wait: Duration, reason: String },
    LeftOut(OmittedContent),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ModelReply")]
pub(super) struct ReplyForm {
    message: AssistantMessage,
    #[serde(with = "FinishForm")]
    finish: FinishReason,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<TokenUsage>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "FinishReason", rename_all = "kebab-case")]
enum FinishForm {
    Stop,
    ToolCalls,
    Length,
    ContentFilter,
    Other(String),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ModelError", rename_all = "kebab-case")]
pub(super) enum ModelErrorForm {
    Credentials { provider: String, message: String },
    Unreachable { provider: String, message: String },
    TimedOut { provider: String, time: Duration },
    TooLong { provider: String, message: String },
    Spent { provider: String, message: String },
    RateLimited { provider: String, message: String, retry_after: Option<Duration> },
    Refused { provider: String, status: u16, message: String, retry_after: Option<Duration> },
    Broken { provider: String, message: String },
    Declined { provider: String, message: String },
    Stopped { provider: String, message: String },
    Denied { provider: String, message: String, fix: Option<String>, nobody_to_ask: bool },
}

/// Defines a module that serializes a list of a mirrored type.
macro_rules! list {
    ($module:ident, $type:ty, $form:literal) => {
        pub(super) mod $module {
            use super::*;

            #[derive(Serialize, Deserialize)]
            struct Item(#[serde(with = $form)] $type);

            pub(in crate::recording) fn serialize<S: Serializer>(
                items: &[$type],
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                serializer.collect_seq(items.iter().cloned().map(Item))
            }

            pub(in crate::recording) fn deserialize<'de, D: Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Vec<$type>, D::Error> {
                let items = Vec::<Item>::deserialize(deserializer)?;
                Ok(items.into_iter().map(|Item(item)| item).collect())
            }
        }
    };
}

list!(effects, Effect, "EffectForm");
list!(deltas, ReplyDelta, "DeltaForm");
