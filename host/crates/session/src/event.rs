//! The events that a session sends to its front ends.
//!
//! Events are the same for every front end, and serialize: programs read them as JSON. The enum is
//! closed, but a new kind of event breaks only `roles/ui/event_conversion.rs` of the host, which
//! matches without a wildcard. The others ignore events that they do not know. Event texts come from models, plugins and servers; a front end passes
//! them through [`sallyport_contract::text`] before it prints them to a terminal.

use std::fmt;

use sallyport_contract::{
    ApprovalRequest, CallReport,
    services::{self, CallProgress, InputOrigin},
    text,
};
use sallyport_model::{ModelError, ReplyDelta, TokenUsage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    budget::{BudgetLimit, TurnUsage},
    journal::JournalError,
    results::KeptResult,
    tool_names::ToolRef,
};

/// Something that happened in a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum SessionEvent {
    /// The session's state has changed.
    State {
        /// Its activity.
        state: SessionActivity,
    },
    /// A turn begins.
    #[serde(rename = "turn-started")]
    InputAccepted {
        /// Its number, from 1. Undone turns are not counted.
        turn: usize,
        /// The text of the input.
        text: String,
        /// Where it came from, when the user did not type it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<InputOrigin>,
    },
    /// The model has finished one answer, of which a turn may have several. The text is complete
    /// and includes the deltas; it is empty when the model only called tools.
    #[serde(rename = "message")]
    MessageComplete {
        /// The model's text.
        text: String,
        /// Tokens used, when the provider reports them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<TokenUsage>,
    },
    /// The model requests a call. Nothing about it has been checked.
    CallRequested {
        /// Unique within the session.
        call_id: String,
        /// The requested tool.
        tool: ToolRef,
        /// The arguments as the model wrote them; `{}` when it wrote none.
        arguments: String,
    },
    /// The user has to decide. Answered with
    /// [`FrontEndCommand::ProvideConfirmation`](crate::FrontEndCommand::ProvideConfirmation).
    ApprovalNeeded {
        /// Identifies the question in the answer; never reused.
        confirmation_id: u64,
        /// The position of the call that it is about.
        #[serde(flatten)]
        position: CallPosition,
        /// The details to show to the user.
        #[serde(flatten)]
        request: ApprovalRequest,
    },
    /// A question no longer needs an answer: it was answered, withdrawn or cancelled, or its call
    /// ended.
    ApprovalClosed {
        /// The question.
        confirmation_id: u64,
    },
    /// The user replaced the model's arguments.
    ArgumentsEdited {
        /// Unique within the session.
        call_id: String,
        /// The arguments that apply from here on.
        arguments: String,
    },
    /// A running call has made progress. Of many reports in quick succession, only the last is
    /// sent.
    Progress {
        /// Unique within the session.
        call_id: String,
        /// The progress so far.
        #[serde(flatten)]
        progress: CallProgress,
    },
    /// A call has ended, with any outcome. Calls of one answer are reported in the order of their
    /// requests.
    CallFinished {
        /// Unique within the session.
        call_id: String,
        /// The requested tool.
        tool: ToolRef,
        /// How it ended and what it did.
        #[serde(flatten)]
        report: CallReport,
    },
    /// The result of a call was too long for the model and is kept whole. It follows the end of
    /// that call.
    ResultKept {
        /// Unique within the session.
        call_id: String,
        /// The number and the size of the result.
        #[serde(flatten)]
        kept: KeptResult,
    },
    /// The turn is over. Every input that was not dropped, and every retry of one, leads to exactly
    /// one such event, unless the session closes first.
    TurnEnded {
        /// Why it is over.
        #[serde(flatten)]
        reason: TurnEnd,
        /// Its usage.
        usage: TurnUsage,
    },
    /// The last turn was undone.
    Undone {
        /// The text of its input.
        text: String,
    },
    /// Another model answers from here on.
    ModelChanged {
        /// Its display name.
        name: String,
    },
    /// A summary replaced the beginning of the conversation, for the model only.
    Summarized {
        /// How many messages it replaces.
        messages: usize,
        /// The summary.
        text: String,
    },
    /// A turn was pinned: the model keeps seeing it.
    Pinned {
        /// Its number, from 1.
        turn: usize,
    },
    /// A plugin sent the user a message, during a turn or between two.
    #[serde(rename = "notified")]
    Noticed {
        /// The message and its sender.
        #[serde(flatten)]
        notice: services::PluginNotice,
    },
    /// Information for the user that changes nothing.
    Notice(SessionNotice),
    /// A piece of the model's answer, while it arrives.
    #[serde(untagged)]
    Delta(ReplyDelta),
}

/// The activity of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SessionActivity {
    /// Waiting for input.
    Ready,
    /// Waiting for the model.
    Thinking,
    /// Deciding about calls or running them.
    Executing,
    /// Waiting for the user's answer to at least one question.
    WaitingForApproval,
}

/// The position of a call within one answer: "2 of 5".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallPosition {
    /// Its position, from 1.
    pub index: usize,
    /// The number of calls.
    pub count: usize,
}

/// Why a turn is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "end", rename_all = "kebab-case")]
pub enum TurnEnd {
    /// The model requested no more calls.
    Answered {
        /// Its last text.
        text: String,
    },
    /// The tools returned sentences to speak, which replace another answer of the model.
    Spoken {
        /// The sentences.
        text: String,
    },
    /// A limit of the turn or of the session was reached.
    BudgetReached {
        /// The limit.
        limit: BudgetLimit,
    },
    /// The model returned no answer.
    ModelFailed(ModelError),
    /// The user stopped it.
    Cancelled,
    /// The input was rejected; no request was sent to the model.
    InputRefused(InputError),
}

impl TurnEnd {
    /// Returns the name of this ending: `answered`, `spoken`, `budget-reached`, `model-failed`,
    /// `cancelled` or `input-refused`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Answered { .. } => "answered",
            Self::Spoken { .. } => "spoken",
            Self::BudgetReached { .. } => "budget-reached",
            Self::ModelFailed(_) => "model-failed",
            Self::Cancelled => "cancelled",
            Self::InputRefused(_) => "input-refused",
        }
    }
}

/// Why an input was rejected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, thiserror::Error)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum InputError {
    /// It contains neither text nor files.
    #[error("the input is empty")]
    Empty,
    /// Its text is too long.
    #[error("the input has {bytes} bytes, at most {bytes_max} are accepted")]
    TooLong {
        /// Its length, in bytes.
        bytes: usize,
        /// The limit, in bytes.
        bytes_max: usize,
    },
    /// It has too many attached files.
    #[error("{count} files are attached, at most {count_max} are accepted")]
    TooManyFiles {
        /// The number of files.
        count: usize,
        /// The limit.
        count_max: usize,
    },
    /// Its attached files are too large.
    #[error("the attached files have {bytes} bytes, at most {bytes_max} are accepted")]
    FilesTooBig {
        /// Their total size, in bytes.
        bytes: usize,
        /// The limit, in bytes.
        bytes_max: usize,
    },
    /// The cost is limited, but the model's price is unknown.
    #[error("the cost is limited, but the price of {model} is not known")]
    PriceUnknown {
        /// The model's name.
        model: String,
    },
}

impl InputError {
    /// Returns how the user can fix it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Empty => "say what you want to know or to have done",
            Self::TooLong { .. } => "send less at once, or have a tool read it",
            Self::TooManyFiles { .. } | Self::FilesTooBig { .. } => {
                "send fewer files at once, or smaller ones"
            }
            Self::PriceUnknown { .. } => {
                "set its price in [price.\"…\"], or limit tokens instead of cost"
            }
        }
    }
}

/// Information for the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum SessionNotice {
    /// An answer arrived for a question that is not open: it never was, or it has been closed.
    NoSuchQuestion {
        /// The id in the answer.
        confirmation_id: u64,
    },
    /// New arguments arrived for a call that already runs.
    TooLateToEdit {
        /// The id that came with the arguments.
        confirmation_id: u64,
    },
    /// Too many inputs wait for the current turn to end; this one was dropped.
    InputDropped,
    /// The model's answer was cut at the provider's limit.
    AnswerCut,
    /// The provider withheld the model's answer.
    AnswerWithheld,
    /// The model returned neither text nor a call.
    AnswerEmpty,
    /// The answer ended for a provider-specific reason, such as a call that it could not read.
    AnswerEnded {
        /// The provider's name for the reason.
        reason: String,
        /// Whether the answer had neither text nor calls until then.
        is_empty: bool,
    },
    /// No turn exists that could be undone, retried or pinned.
    NoTurn,
    /// Too few messages exist to summarize.
    NothingToSummarize,
    /// No summary was made; the model sees only the newest part of the conversation.
    SummaryFailed {
        /// Why.
        why: String,
    },
    /// Earlier turns are not recalled by meaning; the model sees the newest ones.
    RecallFailed {
        /// Why.
        why: String,
    },
    /// The result of a call was too long for the model and could not be kept.
    ResultNotKept {
        /// Why.
        error: JournalError,
    },
    /// The session is not being saved. It continues, and everything is written as soon as possible.
    JournalFailed {
        /// Why.
        error: JournalError,
    },
}

impl fmt::Display for SessionNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchQuestion { confirmation_id } => {
                write!(f, "question {confirmation_id} is not open, the answer changes nothing")
            }
            Self::TooLateToEdit { confirmation_id } => {
                write!(f, "the call of question {confirmation_id} is already running as approved")
            }
            Self::InputDropped => f.write_str("too many inputs are waiting, this one was dropped"),
            Self::AnswerCut => f.write_str("the answer was cut at the model's length limit"),
            Self::AnswerWithheld => f.write_str("the provider withheld the answer"),
            Self::AnswerEmpty => f.write_str("the model gave no answer"),
            Self::AnswerEnded { reason, .. } => {
                write!(
                    f,
                    "the provider ended the answer for a reason of its own: {}",
                    text::escape_line(reason)
                )
            }
            Self::NoTurn => f.write_str("nothing has been said yet"),
            Self::NothingToSummarize => f.write_str("there is nothing to sum up"),
            Self::SummaryFailed { why } => write!(f, "no summary was made: {why}"),
            Self::RecallFailed { why } => {
                write!(f, "earlier turns are not recalled: {why}")
            }
            Self::ResultNotKept { error } => {
                write!(f, "a long result is not kept, the model sees only a part of it: {error}")
            }
            Self::JournalFailed { error } => write!(f, "this session is not being saved: {error}"),
        }
    }
}
