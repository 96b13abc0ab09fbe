//! A plugin as the user's side of a session.

use std::sync::Arc;

use sallyport_contract::{Admitted, CallReport, Outcome, ToolOutput, services::Seat};

use super::RoleLinks;
use crate::{Plugin, run};

/// Something that a UI is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UiEvent {
    /// A message is whole.
    NewMessage(UiMessage),
    /// A piece of the answer, while it arrives.
    Delta(String),
    /// A call needs a confirmation.
    ToolCallRequested(ToolCallRequest),
    /// A question needs no answer any more.
    ConfirmationClosed(u64),
    /// A call has ended.
    ToolCallFinished(ToolCallResult),
    /// The session takes input.
    ReadyForInput,
    /// The session now does something else.
    StateChanged(Activity),
    /// A line that the person typed where the host reads a terminal or standard input.
    Line(String),
}

/// A message that is whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UiMessage {
    /// Whose words.
    pub author: Author,
    /// What they say.
    pub content: String,
    /// How it is written.
    pub format: Format,
    /// Where it came from, when it did not come from this UI.
    pub origin: Option<String>,
}

/// Whose words a message holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    /// The person's.
    User,
    /// The model's.
    Assistant,
    /// The host's or a plugin's, beside the conversation.
    Notice,
}

/// How a text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// As it is.
    Text,
    /// Markdown.
    Markdown,
}

/// A call that somebody has to agree to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCallRequest {
    /// Names the question; it is answered once.
    pub confirmation_id: u64,
    /// The call.
    pub call_id: String,
    /// The tool, as `plugin.tool`.
    pub tool: String,
    /// Its arguments, a JSON text.
    pub arguments: String,
    /// What the plugin could do, or why somebody is asked.
    pub security_warning: Option<String>,
    /// A JSON object for programs: under `request`, all that would leave.
    pub extra: Option<String>,
}

/// A call that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCallResult {
    /// The call.
    pub call_id: String,
    /// The tool, as `plugin.tool`.
    pub tool: String,
    /// The word of its outcome.
    pub outcome: String,
    /// What the model reads of it, a JSON text.
    pub data: String,
}

/// What a session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// Waiting for input.
    Ready,
    /// Waiting for the model.
    Thinking,
    /// Deciding about calls or making them.
    Executing,
    /// Waiting for a confirmation.
    WaitingForApproval,
}

/// A plugin that has a seat at a session.
pub struct Ui {
    plugin: Arc<Plugin>,
    call: Arc<Admitted>,
    seat: Arc<dyn Seat>,
}

impl Plugin {
    /// Gives it a seat at a session: `call` is what the gate has let through.
    pub fn ui(self: &Arc<Self>, call: Admitted, seat: Arc<dyn Seat>) -> Ui {
        Ui { plugin: Arc::clone(self), call: Arc::new(call), seat }
    }
}

impl Ui {
    /// Tells it of an event. Dropping the future ends the instance.
    pub async fn on_event(&self, event: UiEvent) -> CallReport {
        let abi = self.plugin.abi();
        let body = run::body(move |store, instance| {
            Box::pin(async move { abi.on_event(store, instance, event).await })
        });
        let links = RoleLinks { seat: Some(Arc::clone(&self.seat)), ..RoleLinks::default() };
        let ran = self.plugin.run_for(Arc::clone(&self.call), links, body).await;
        self.plugin.report(ran, |(), _| Outcome::Completed(ToolOutput::default()))
    }
}
