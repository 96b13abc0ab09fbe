//! Parts of events.

use std::time::Duration;

use sallyport_contract::{CallReport, Denial, Effect, Outcome};
use sallyport_model::TokenUsage;
use sallyport_session::{SessionActivity, TurnUsage};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::super::call_display;

/// A call that has ended.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(in super::super) struct JsonFinishedCall {
    /// Unique within the session.
    call_id: String,
    /// The tool.
    tool: String,
    /// `completed`, `failed`, `denied`, `invalid-arguments`, `timed-out` or `cancelled`.
    outcome: String,
    /// What the model is told.
    result: Value,
    /// Why it did not complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The refusal, when there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    denial: Option<JsonDenial>,
    /// What it did or tried to do outside of its own memory, in order.
    effects: Vec<JsonEffect>,
    /// How long it took.
    elapsed_ms: u64,
    /// Most memory that the plugin held.
    memory_bytes_peak: u64,
}

/// What went wrong, and what to do about it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(in super::super) struct JsonProblem {
    /// What went wrong.
    pub(super) message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hint: Option<String>,
}

/// What a session does.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(in super::super) enum JsonSessionState {
    /// It waits for input.
    Ready,
    /// It waits for the model.
    Thinking,
    /// It is deciding about calls or making them.
    Executing,
    /// It waits for a person.
    WaitingForApproval,
}

/// Tokens of one or more exchanges.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub(in super::super) struct JsonTokenCounts {
    /// Tokens read, those from and into a cache included.
    input: u64,
    /// Tokens written, those of thinking included.
    output: u64,
    /// Of the tokens read: from the provider's cache.
    cached_input: u64,
    /// Of the tokens read: written into the provider's cache.
    cache_write: u64,
    /// Of the tokens written: of thinking.
    reasoning: u64,
}

/// What a turn used.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub(in super::super) struct JsonTurnUsage {
    /// How often the model was asked.
    answers: u32,
    /// Calls made.
    calls: u32,
    /// Tokens, estimated where the provider does not say.
    tokens: JsonTokenCounts,
    /// What they cost, in millionths of a US dollar, when the price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_micro_usd: Option<u64>,
    /// Time from the input to the end.
    elapsed_ms: u64,
}

/// A refusal, with the way to lift it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(in super::super) struct JsonDenial {
    /// What was refused.
    what: String,
    /// Why.
    why: String,
    /// The policy text that would allow it, when policy can.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
    /// A person could have said yes, but nobody was there to ask.
    nobody_to_ask: bool,
}

/// Something that a call did or tried to do outside of its own memory.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(in super::super) enum JsonEffect {
    /// The plugin logged a line.
    Logged {
        /// `trace`, `debug`, `info`, `warn` or `error`.
        level: String,
        /// The line.
        text: String,
    },
    /// A request left the host.
    Requested {
        /// Method and URL without its query.
        what: String,
        /// The status that came back; absent when the exchange failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        /// Bytes of the body that was sent.
        sent_bytes: u64,
        /// Bytes of the body that came back.
        received_bytes: u64,
    },
    /// A file or folder was created, opened for writing, renamed or removed.
    Changed {
        /// Its path as the plugin sees it.
        path: String,
    },
    /// A secret was used.
    SecretUsed {
        /// Its name.
        name: String,
        /// The origin that it was sent to; absent when the plugin itself was given it.
        #[serde(skip_serializing_if = "Option::is_none")]
        to: Option<String>,
    },
    /// Something was done through a capability of the host.
    Used {
        /// The capability, as policies name it.
        capability: String,
        /// What was done.
        what: String,
    },
    /// A person was asked while the call ran.
    Asked {
        /// What about.
        what: String,
        /// What came of it.
        answer: String,
    },
    /// The gate refused something.
    Refused(JsonDenial),
}

pub(super) fn to_milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl JsonFinishedCall {
    pub(super) fn new(call_id: String, tool: String, report: &CallReport) -> Self {
        Self {
            call_id,
            tool,
            outcome: report.outcome.as_str().to_owned(),
            result: report.outcome.to_model_value(),
            error: call_display::failure_reason(&report.outcome),
            denial: match &report.outcome {
                Outcome::Denied(denial) => Some(denial.into()),
                _ => None,
            },
            effects: report.effects.iter().map(JsonEffect::from).collect(),
            elapsed_ms: to_milliseconds(report.elapsed),
            memory_bytes_peak: report.memory_bytes_peak,
        }
    }
}

impl From<SessionActivity> for JsonSessionState {
    fn from(state: SessionActivity) -> Self {
        match state {
            SessionActivity::Ready => Self::Ready,
            SessionActivity::Thinking => Self::Thinking,
            SessionActivity::Executing => Self::Executing,
            SessionActivity::WaitingForApproval => Self::WaitingForApproval,
        }
    }
}

impl From<TokenUsage> for JsonTokenCounts {
    fn from(usage: TokenUsage) -> Self {
        Self {
            input: usage.input_tokens,
            output: usage.output_tokens,
            cached_input: usage.cached_input_tokens,
            cache_write: usage.cache_write_tokens,
            reasoning: usage.reasoning_tokens,
        }
    }
}

impl From<&TurnUsage> for JsonTurnUsage {
    fn from(usage: &TurnUsage) -> Self {
        Self {
            answers: usage.answers,
            calls: usage.calls,
            tokens: usage.tokens.into(),
            cost_micro_usd: usage.cost.map(|cost| cost.micro_usd),
            elapsed_ms: to_milliseconds(usage.elapsed),
        }
    }
}

impl From<&Denial> for JsonDenial {
    fn from(denial: &Denial) -> Self {
        let Denial { what, why, fix, nobody_to_ask } = denial.clone();
        Self { what, why, fix, nobody_to_ask }
    }
}

impl From<&Effect> for JsonEffect {
    fn from(effect: &Effect) -> Self {
        match effect.clone() {
            Effect::Logged { level, text } => {
                Self::Logged { level: format!("{level:?}").to_lowercase(), text }
            }
            Effect::Requested { what, status, sent_bytes, received_bytes } => {
                Self::Requested { what, status, sent_bytes, received_bytes }
            }
            Effect::Changed { path } => Self::Changed { path },
            Effect::SecretUsed { name, to } => Self::SecretUsed { name, to },
            Effect::Asked { what, answer } => Self::Asked { what, answer },
            Effect::Used { capability, what } => Self::Used { capability, what },
            Effect::Refused(denial) => Self::Refused(JsonDenial::from(&denial)),
        }
    }
}
