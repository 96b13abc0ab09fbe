//! What a session tells its front ends.
//!
//! The enum is closed, but a new kind of event makes the compiler ask only those front ends that
//! match without a wildcard: `cli/events`, `cli/chat/hearing.rs` and `roles/ui/told.rs` of the host.
//! The others ignore what they do not know. Texts in it come from models, plugins and servers; whoever
//! puts one on a terminal sends it through [`sallyport_contract::text`] first.

use std::{fmt, time::Duration};

use sallyport_contract::{
    ApprovalRequest, CallReport,
    services::{self, Origin, Progress},
    text,
};
use sallyport_model::{Cost, Delta, ModelError, Usage};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{budget::Budget, journal::JournalError, naming::ToolRef};

/// Something that happened in a session.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The session now does something else.
    State(State),
    /// A turn begins.
    InputAccepted {
        /// Which, from 1. Turns that the person took back are not counted.
        turn: usize,
        /// The words of the input.
        text: String,
        /// Where they came from, when the person did not type them.
        origin: Option<Origin>,
    },
    /// A piece of the model's answer, while it arrives.
    Delta(Delta),
    /// The model has finished one answer, of which a turn may have several. The text is all of it,
    /// the deltas included; it is empty when the model only called tools.
    MessageComplete {
        /// What the model said.
        text: String,
        /// Tokens used, when the provider says so.
        usage: Option<Usage>,
    },
    /// The model wants a call made. Nothing about it has been checked.
    CallRequested {
        /// Unique within the session.
        call_id: String,
        /// The tool it asked for.
        tool: ToolRef,
        /// The arguments as it wrote them; `{}` when it wrote none.
        arguments: String,
    },
    /// The person has to decide. Answered with
    /// [`Command::ProvideConfirmation`](crate::Command::ProvideConfirmation).
    ApprovalNeeded {
        /// Names the question in the answer; used once.
        confirmation_id: u64,
        /// Which call it is about.
        position: Position,
        /// What the person is to be shown.
        request: ApprovalRequest,
    },
    /// A question needs no answer any more: it was answered, withdrawn, cancelled, or its call
    /// ended.
    ApprovalClosed {
        /// The question.
        confirmation_id: u64,
    },
    /// The person put other arguments in place of the model's.
    ArgumentsEdited {
        /// Unique within the session.
        call_id: String,
        /// The arguments that count from here on.
        arguments: String,
    },
    /// A call that runs has come further. Of many such words in a moment, the last is told.
    Progress {
        /// Unique within the session.
        call_id: String,
        /// How far it has come.
        progress: Progress,
    },
    /// A call has ended, one way or another. Of several, the first that was asked for comes first.
    CallFinished {
        /// Unique within the session.
        call_id: String,
        /// The tool that was asked for.
        tool: ToolRef,
        /// How it ended and what it did.
        report: CallReport,
    },
    /// The turn is over. Every input that was not dropped, and every retry of one, comes to this
    /// exactly once, unless the session closes first.
    TurnEnded {
        /// How.
        reason: TurnEnd,
        /// What it used.
        usage: TurnUsage,
    },
    /// The last turn was taken back.
    Undone {
        /// The words of its input.
        text: String,
    },
    /// Another model answers from here on.
    ModelChanged {
        /// Its name for people.
        name: String,
    },
    /// The beginning of the conversation was replaced by a summary, for the model alone.
    Summarized {
        /// How many messages it stands for.
        messages: usize,
        /// The summary.
        text: String,
    },
    /// A turn stays in the model's sight.
    Pinned {
        /// Which, from 1.
        turn: usize,
    },
    /// A plugin tells the person something, in the middle of a turn or between two.
    Noticed {
        /// What, and who says it.
        notice: services::Notice,
    },
    /// Something that the person should know and that changes nothing.
    Notice(Notice),
}

/// What a session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It waits for input.
    Ready,
    /// It waits for the model.
    Thinking,
    /// It is deciding about calls or making them.
    Executing,
    /// It waits for the person's answer to at least one question.
    WaitingForApproval,
}

/// The place of a call among those of one answer: "2 of 5".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Its place, from 1.
    pub index: usize,
    /// How many there are.
    pub count: usize,
}

/// Why a turn is over.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnEnd {
    /// The model had nothing more to ask for.
    Answered {
        /// Its last words.
        text: String,
    },
    /// The tools gave sentences of their own to be said, in place of another answer of the model.
    Spoken {
        /// The sentences.
        text: String,
    },
    /// A limit of the turn or of the session was reached.
    BudgetReached {
        /// Which.
        what: Budget,
    },
    /// There was no answer from the model.
    ModelFailed(ModelError),
    /// The person stopped it.
    Cancelled,
    /// The input was not accepted; the model was not asked.
    InputRefused(InputError),
}

impl TurnEnd {
    /// The word for this ending: `answered`, `spoken`, `budget-reached`, `model-failed`,
    /// `cancelled` or `input-refused`.
    pub fn word(&self) -> &'static str {
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

/// What a turn used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnUsage {
    /// How often the model was asked for an answer.
    pub answers: u32,
    /// Calls made.
    pub calls: u32,
    /// Tokens, those of summaries included; estimated where the provider does not say.
    pub tokens: Usage,
    /// What they cost, when the price is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// Time from the input to the end, waiting for the person included.
    #[serde(
        rename = "elapsed_ms",
        serialize_with = "to_milliseconds",
        deserialize_with = "from_milliseconds"
    )]
    pub elapsed: Duration,
}

fn to_milliseconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

fn from_milliseconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(Duration::from_millis)
}

/// Why an input was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// There are neither words nor files in it.
    #[error("the input is empty")]
    Empty,
    /// Its words are longer than a session takes.
    #[error("the input has {bytes} bytes, at most {bytes_max} are accepted")]
    TooLong {
        /// Their length.
        bytes: usize,
        /// The most that is accepted.
        bytes_max: usize,
    },
    /// More files come with it than a session takes.
    #[error("{count} files are attached, at most {count_max} are accepted")]
    TooManyFiles {
        /// How many.
        count: usize,
        /// The most that are accepted.
        count_max: usize,
    },
    /// The files that come with it are more than a session takes.
    #[error("the attached files have {bytes} bytes, at most {bytes_max} are accepted")]
    FilesTooBig {
        /// Their length together.
        bytes: usize,
        /// The most that is accepted.
        bytes_max: usize,
    },
    /// What may be spent is limited, and what the model costs is not known.
    #[error("the cost is limited, but the price of {model} is not known")]
    PriceUnknown {
        /// The model's name.
        model: String,
    },
}

impl InputError {
    /// What the person can do about it.
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

/// Something worth telling the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// An answer came for a question that is not open: it never was, or it has been closed.
    NoSuchQuestion {
        /// The id that came with the answer.
        confirmation_id: u64,
    },
    /// Other arguments came for a call that already runs.
    TooLateToEdit {
        /// The id that came with the arguments.
        confirmation_id: u64,
    },
    /// Too many inputs wait for the present turn to end; this one was dropped.
    InputDropped,
    /// The model's answer was cut at the provider's limit.
    AnswerCut,
    /// The provider withheld the model's answer.
    AnswerWithheld,
    /// The model neither said anything nor called a tool.
    AnswerEmpty,
    /// The answer ended for a reason of the provider's own, such as a call that it could not read.
    AnswerEnded {
        /// The provider's word for it.
        reason: String,
        /// Whether nothing was said and no tool called until then.
        is_empty: bool,
    },
    /// There is no turn that could be taken back, retried or pinned.
    NoTurn,
    /// There is nothing that a summary could stand for, or not enough.
    NothingToSummarize,
    /// No summary came; the model is shown the newest part of the conversation only.
    SummaryFailed {
        /// Why.
        why: String,
    },
    /// Earlier turns are not recalled by what they mean; the model is shown the newest ones.
    RecallFailed {
        /// Why.
        why: String,
    },
    /// The session is not being kept. It goes on, and all of it is written as soon as it can be.
    JournalFailed(JournalError),
}

impl fmt::Display for Notice {
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
                    text::one_line(reason)
                )
            }
            Self::NoTurn => f.write_str("nothing has been said yet"),
            Self::NothingToSummarize => f.write_str("there is nothing to sum up"),
            Self::SummaryFailed { why } => write!(f, "no summary was made: {why}"),
            Self::RecallFailed { why } => {
                write!(f, "earlier turns are not recalled: {why}")
            }
            Self::JournalFailed(error) => write!(f, "this session is not being saved: {error}"),
        }
    }
}
