//! A plugin as the user's side of a session.

use std::sync::Arc;

use sallyport_contract::{AdmittedCall, CallReport, Outcome, ToolOutput, services::UiSession};

use super::RoleLinks;
use crate::{Plugin, run};

/// An event for a UI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UiEvent {
    /// A message is complete.
    NewMessage(UiMessage),
    /// A piece of the answer, while it arrives.
    Delta(String),
    /// A call needs a confirmation.
    ToolCallRequested(ToolCallRequest),
    /// A question no longer needs an answer.
    ConfirmationClosed(u64),
    /// A call has ended.
    ToolCallFinished(ToolCallResult),
    /// The session accepts input.
    ReadyForInput,
    /// The session's activity has changed.
    StateChanged(Activity),
    /// A line that the user typed where the host reads a terminal or standard input.
    Line(String),
}

/// A complete message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UiMessage {
    /// The author.
    pub author: Author,
    /// The text.
    pub content: String,
    /// The format of the text.
    pub format: Format,
    /// The origin, if the message did not come from this UI.
    pub origin: Option<String>,
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    /// The user.
    User,
    /// The model.
    Assistant,
    /// The host or a plugin, outside the conversation.
    Notice,
}

/// The format of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Plain text.
    Text,
    /// Markdown.
    Markdown,
}

/// A call that needs a confirmation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCallRequest {
    /// The ID of the question, which is answered once.
    pub confirmation_id: u64,
    /// The ID of the call.
    pub call_id: String,
    /// The tool, as `plugin.tool`.
    pub tool: String,
    /// The arguments, a JSON text.
    pub arguments: String,
    /// What the plugin could do, or why the question is asked.
    pub security_warning: Option<String>,
    /// A JSON object for programs. `request` contains everything that would be sent.
    pub extra: Option<String>,
}

/// A call that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCallResult {
    /// The ID of the call.
    pub call_id: String,
    /// The tool, as `plugin.tool`.
    pub tool: String,
    /// The keyword of the outcome.
    pub outcome: String,
    /// The result as the model reads it, a JSON text.
    pub data: String,
}

/// The activity of a session.
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

/// A plugin with a seat at a session.
pub struct Ui {
    plugin: Arc<Plugin>,
    call: Arc<AdmittedCall>,
    seat: Arc<dyn UiSession>,
}

impl Plugin {
    /// Gives the plugin a seat at a session. `call` has passed the gate.
    pub fn ui(self: &Arc<Self>, call: AdmittedCall, seat: Arc<dyn UiSession>) -> Ui {
        Ui { plugin: Arc::clone(self), call: Arc::new(call), seat }
    }
}

impl Ui {
    /// Passes an event to the plugin. Dropping the future stops the instance.
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
