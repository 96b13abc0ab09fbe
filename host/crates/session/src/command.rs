//! What a front end may tell a session.

use std::{fmt, sync::Arc};

use sallyport_contract::{
    Answer,
    services::{self, Progress},
};
use sallyport_model::{ChatModel, UserMessage};

/// What a front end may ask of a session.
///
/// What starts something new, from [`SubmitInput`](Self::SubmitInput) to [`Pin`](Self::Pin), waits
/// for the present turn to end; the rest is done at once.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Starts a turn.
    SubmitInput {
        /// What the person said, or whoever is named as its origin.
        input: UserMessage,
    },
    /// Takes the last turn back, with all that was said in it. What its calls did stays done.
    Undo,
    /// Takes the last turn back and asks its input again.
    Retry,
    /// Lets another model answer from here on.
    UseModel(Speaker),
    /// Has the model sum up what was said so far and goes on from the summary.
    Summarize,
    /// Keeps the last turn in the model's sight, whatever else falls out of memory.
    Pin,
    /// Answers [`Event::ApprovalNeeded`](crate::Event::ApprovalNeeded).
    ProvideConfirmation {
        /// The question.
        id: u64,
        /// The answer.
        answer: Answer,
    },
    /// Puts other arguments in place of those that a question is about. It is withdrawn, and the
    /// call is checked, decided and, where need be, asked about anew.
    EditArguments {
        /// The question.
        id: u64,
        /// The arguments as JSON text.
        arguments: String,
    },
    /// Tells the person something that a plugin says, at once, and the model with the next input. It
    /// is no turn and is not taken back with one.
    Notice(services::Notice),
    /// Tells how far a call has come. Only one that runs comes any further.
    Progress {
        /// The call.
        call_id: String,
        /// How far.
        progress: Progress,
    },
    /// Ends the present turn, whatever it is doing. The session goes on.
    Cancel,
    /// Ends the present turn and the session.
    Close,
}

/// A model, as a command carries it.
#[derive(Clone)]
pub struct Speaker(pub Arc<dyn ChatModel>);

impl fmt::Debug for Speaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Speaker").field(&self.0.name()).finish()
    }
}

impl PartialEq for Speaker {
    /// The same model, not only one of the same name.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Speaker {}
