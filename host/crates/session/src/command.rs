//! The commands that a front end sends to a session.

use std::sync::Arc;

use sallyport_contract::{
    ApprovalAnswer, TraceParent,
    services::{self, CallProgress},
};
use sallyport_model::{ChatModel, UserInputMessage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::{journal::JournalError, results::ResultLookup, snapshot::SessionSnapshot};

/// A request of a front end to a session.
///
/// Commands that start something new, from [`SubmitInput`](Self::SubmitInput) to
/// [`PluginPin`](Self::Pin), wait for the current turn to end; the others take effect immediately.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum FrontEndCommand {
    /// Starts a turn.
    SubmitInput {
        /// The input of the user, or of the origin that it names.
        input: UserInputMessage,
    },
    /// Undoes the last turn with all its messages. The effects of its calls remain.
    Undo,
    /// Undoes the last turn and submits its input again.
    Retry,
    /// Has the model summarize the conversation so far and continues from the summary.
    Summarize,
    /// Keeps the last turn in the model's view, whatever else drops out of memory.
    Pin,
    /// Answers [`SessionEvent::ApprovalNeeded`](crate::SessionEvent::ApprovalNeeded).
    ProvideConfirmation {
        /// The question.
        id: u64,
        /// The answer.
        #[serde(flatten)]
        answer: ApprovalAnswer,
    },
    /// Replaces the arguments that a question is about. The question is withdrawn, and the call is
    /// checked and decided again, with a new question if needed.
    EditArguments {
        /// The question.
        id: u64,
        /// The arguments as JSON text.
        arguments: String,
    },
    /// Shows a plugin's message to the user immediately, and to the model with the next input. It
    /// does not belong to a turn and is not undone with one.
    Notice(services::PluginNotice),
    /// Reports the progress of a call. It is ignored unless the call is running.
    Progress {
        /// The call.
        call_id: String,
        /// Its progress.
        #[serde(flatten)]
        progress: CallProgress,
    },
    /// Ends the current turn, whatever it is doing. The session continues.
    Cancel,
    /// Ends the current turn and the session.
    Close,
}

/// What a session's handle asks of the session.
pub(super) enum SessionRequest {
    Command(FrontEndCommand),
    /// Starts a turn that belongs to the trace of its caller.
    TracedInput(UserInputMessage, TraceParent),
    UseModel(Arc<dyn ChatModel>),
    Snapshot(oneshot::Sender<Result<SessionSnapshot, JournalError>>),
    /// Looks up a kept result by its number.
    FindResult(u64, oneshot::Sender<Result<ResultLookup, JournalError>>),
    /// Writes again what a failing journal missed.
    RetryJournal,
}
