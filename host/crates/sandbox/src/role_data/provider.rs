//! A conversation as a provider receives it, and its answer.

use std::time::Duration;

use sallyport_contract::Denial;
use tokio::sync::mpsc::UnboundedSender;

/// A request to a provider.
#[derive(Debug, Clone, PartialEq)]
pub struct GenerationRequest {
    /// The conversation. The provider answers its last message.
    pub history: Vec<ProviderMessage>,
    /// The tools that may be called.
    pub tools: Vec<ProviderToolDefinition>,
    /// Settings for the answer.
    pub settings: GenerationSettings,
}

/// Settings for an answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GenerationSettings {
    /// The model, if the provider has several.
    pub model: Option<String>,
    /// How much the answers may vary, from 0.
    pub temperature: Option<f64>,
    /// Longest answer, in tokens.
    pub tokens_max: Option<u64>,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum ProviderMessage {
    /// The instructions for the model.
    System(String),
    /// A message of the user.
    User(ProviderUserMessage),
    /// An answer of the model.
    Assistant(ProviderAnswerMessage),
    /// The result of a tool.
    Tool(ProviderToolResult),
}

/// A message of the user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderUserMessage {
    /// The text.
    pub text: String,
    /// Attached files.
    pub attachments: Vec<MediaBlob>,
}

/// Bytes with a media type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaBlob {
    /// Such as `image/png`.
    pub media_type: String,
    /// The bytes of the file.
    pub data: Vec<u8>,
    /// The name of the file, without folders, if it has one.
    pub name: Option<String>,
}

/// An answer of the model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderAnswerMessage {
    /// Text for the user; may be empty.
    pub text: String,
    /// The calls that it requests.
    pub calls: Vec<ProviderToolCall>,
    /// The provider's own form of this message, a JSON text. It is returned unchanged, and only to
    /// the same plugin.
    pub opaque: Option<String>,
}

/// A call that a model requests. Nothing in it has been checked: IDs may repeat, the tool may not
/// exist, the arguments may not be JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderToolCall {
    /// The ID of the call within the answer.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments, as the model wrote them.
    pub arguments: String,
}

/// The result of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderToolResult {
    /// The ID of the call.
    pub call_id: String,
    /// The tool's name.
    pub name: String,
    /// The result, a JSON text.
    pub content: String,
    /// True unless the call completed.
    pub failed: bool,
}

/// A tool that a model may call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderToolDefinition {
    /// Letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// What the tool does and when to use it.
    pub description: String,
    /// JSON Schema of the arguments, a JSON text.
    pub parameters: String,
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderAnswer {
    /// The message, including all text that was pushed before.
    pub message: ProviderAnswerMessage,
    /// True if the answer is complete; never with calls.
    pub is_final: bool,
    /// The reason why the model stopped.
    pub finish: ProviderFinishReason,
    /// The tokens used, if known.
    pub usage: Option<ProviderUsage>,
}

/// The reason why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderFinishReason {
    /// The answer is complete.
    Stop,
    /// The model requests tool calls.
    ToolCalls,
    /// The answer was cut at a limit.
    Length,
    /// The answer was withheld.
    Withheld,
    /// Another reason, in the provider's words.
    Other(String),
}

/// The tokens of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProviderUsage {
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
}

/// The reason for a missing answer, in human-readable form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderFailure {
    /// The service did not accept the key.
    #[error("the service did not accept the key: {0}")]
    Credentials(String),
    /// The service cannot be reached.
    #[error("the service cannot be reached: {0}")]
    Unreachable(String),
    /// The service is busy and should be asked later.
    #[error("the service is busy: {message}")]
    Busy {
        /// The service's message.
        message: String,
        /// The time to wait, if the service states one.
        retry_after: Option<Duration>,
    },
    /// The service refused this request, or its response cannot be understood.
    #[error("the service refused the request: {0}")]
    Refused(String),
    /// The gate denied the plugin something that it needed.
    #[error("{0}")]
    Denied(Denial),
    /// The plugin was stopped, failed, or returned an invalid answer.
    #[error("{0}")]
    Broken(String),
}

/// A piece of an answer while it is generated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderDelta {
    /// Text for the user.
    Text(String),
    /// The model's reasoning.
    Reasoning(String),
}

/// Receives the pieces of an answer. The size of one run's pieces is limited, so the channel cannot
/// grow without bound.
pub type DeltaSender = UnboundedSender<ProviderDelta>;
