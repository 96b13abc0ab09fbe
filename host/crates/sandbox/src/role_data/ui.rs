//! What a UI learns of its session.

/// An event for a UI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UiEvent {
    /// A message is complete.
    NewMessage(UiMessage),
    /// A piece of the answer, while it arrives.
    Delta(String),
    /// A call needs a confirmation.
    ToolCallRequested(UiToolCallRequest),
    /// A question no longer needs an answer.
    ConfirmationClosed(u64),
    /// A call has ended.
    ToolCallFinished(UiToolCallResult),
    /// The session accepts input.
    ReadyForInput,
    /// The session's activity has changed.
    StateChanged(UiActivity),
    /// A line that the user typed where the host reads a terminal or standard input.
    Line(String),
    /// Something that the contract has no case for: a JSON object with a `type`.
    Other(String),
}

/// A complete message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UiMessage {
    /// The author.
    pub author: UiMessageAuthor,
    /// The text.
    pub content: String,
    /// The format of the text.
    pub format: UiTextFormat,
    /// The origin, if the message did not come from this UI.
    pub origin: Option<String>,
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UiMessageAuthor {
    /// The user.
    User,
    /// The model.
    Assistant,
    /// The host or a plugin, outside the conversation.
    Notice,
}

/// The format of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UiTextFormat {
    /// Plain text.
    Text,
    /// Markdown.
    Markdown,
}

/// A call that needs a confirmation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UiToolCallRequest {
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
    /// A JSON object with the parts of the warning, for UIs that lay them out.
    pub extra: Option<String>,
}

/// A call that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UiToolCallResult {
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
pub enum UiActivity {
    /// Waiting for input.
    Ready,
    /// Waiting for the model.
    Thinking,
    /// Deciding about calls or making them.
    Executing,
    /// Waiting for a confirmation.
    WaitingForApproval,
}
