//! What a session tells its front ends, and what they may tell it.
//!
//! Both enums are closed: a new kind of event makes the compiler ask every front end what it shows
//! for it. Texts in them come from models, plugins and servers; whoever puts one on a terminal
//! sends it through [`sallyport_contract::text`] first.

use std::fmt;

use sallyport_contract::{Answer, ApprovalRequest, CallReport};
use sallyport_model::{Delta, ModelError, Usage};

use super::{budget::Budget, naming::ToolRef};

/// Something that happened in a session.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The session now does something else.
    State(State),
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
    /// The person has to decide. Answered with [`Command::ProvideConfirmation`].
    ApprovalNeeded {
        /// Names the question in the answer; used once.
        confirmation_id: u64,
        /// What the person is to be shown.
        request: ApprovalRequest,
    },
    /// A question needs no answer any more: it was answered, cancelled, or its call ended.
    ApprovalClosed {
        /// The question.
        confirmation_id: u64,
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
    /// The turn is over. Every input that was not dropped comes to this exactly once, unless the
    /// session closes first.
    TurnEnded {
        /// How.
        reason: TurnEnd,
    },
    /// Something that the person should know and that changes nothing.
    Notice(Notice),
}

/// What a front end may ask of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Starts a turn, or waits for the present one to end and then starts one.
    SubmitInput {
        /// What the person said.
        text: String,
    },
    /// Answers [`Event::ApprovalNeeded`].
    ProvideConfirmation {
        /// The question.
        id: u64,
        /// The answer.
        answer: Answer,
    },
    /// Ends the present turn, whatever it is doing. The session goes on.
    Cancel,
    /// Ends the present turn and the session.
    Close,
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
    /// A limit of the turn was reached.
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

/// Why an input was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// There are no words in it.
    #[error("the input is empty")]
    Empty,
    /// It is longer than a session takes.
    #[error("the input has {bytes} bytes, at most {bytes_max} are accepted")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The most that is accepted.
        bytes_max: usize,
    },
}

/// Something worth telling the person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// An answer came for a question that is not open: it never was, or it has been closed.
    NoSuchQuestion {
        /// The id that came with the answer.
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
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchQuestion { confirmation_id } => {
                write!(f, "question {confirmation_id} is not open, the answer changes nothing")
            }
            Self::InputDropped => f.write_str("too many inputs are waiting, this one was dropped"),
            Self::AnswerCut => f.write_str("the answer was cut at the model's length limit"),
            Self::AnswerWithheld => f.write_str("the provider withheld the answer"),
            Self::AnswerEmpty => f.write_str("the model gave no answer"),
        }
    }
}
