//! A conversation as every model adapter takes and gives it.

use std::time::Duration;

use sallyport_contract::{BoxFuture, ToolSpec, mangle::mangle};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "kebab-case")]
pub enum Message {
    /// What the model should be and do.
    System {
        /// The instructions.
        text: String,
    },
    /// What the person said.
    User {
        /// Their words.
        text: String,
    },
    /// What the model answered.
    Assistant(AssistantMessage),
    /// What a tool gave back.
    Tool(ToolResult),
}

/// A model's answer: text, calls, or both.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AssistantMessage {
    /// Text for the person; may be empty.
    pub text: String,
    /// Calls that the model wants made, in its order.
    pub calls: Vec<CallRequest>,
    /// The provider's own form of this message, to be replayed byte for byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Value>,
}

/// One call as the model wrote it. Nothing about it has been checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRequest {
    /// The provider's id of the call; made up by the adapter where the provider gives none.
    pub id: String,
    /// The function name that the model wrote.
    pub name: String,
    /// The arguments as text; empty means none were given.
    pub arguments: String,
}

/// The result of one call, on its way back to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// Id of the [`CallRequest`] that this answers.
    pub call_id: String,
    /// The function name that the model wrote.
    pub name: String,
    /// The result as JSON text.
    pub content: String,
    /// True unless the call completed; some providers have a flag for it.
    pub failed: bool,
}

/// A tool as a model is told of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    /// Safe for every provider: `[A-Za-z_][A-Za-z0-9_-]{0,63}`.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of the arguments: an object schema.
    pub parameters: Value,
}

impl From<&ToolSpec> for ToolDefinition {
    /// A tool under the name that a model sees.
    fn from(tool: &ToolSpec) -> Self {
        Self {
            name: mangle(&tool.id),
            description: tool.description.clone(),
            parameters: tool.parameters.clone(),
        }
    }
}

/// What a model is asked.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The conversation so far; ends with a user message or with tool results.
    pub messages: &'a [Message],
    /// The tools that it may call, in a stable order.
    pub tools: &'a [ToolDefinition],
}

/// What a model answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The message to append to the conversation.
    pub message: AssistantMessage,
    /// Why the model stopped.
    pub finish: Finish,
    /// Tokens used, when the provider says so.
    pub usage: Option<Usage>,
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finish {
    /// It had said all.
    Stop,
    /// It wants tools called.
    ToolCalls,
    /// The answer was cut at the provider's limit.
    Length,
    /// The provider withheld the answer.
    ContentFilter,
    /// Something that this adapter does not know.
    Other(String),
}

/// Tokens of one exchange.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
}

/// A piece of an answer, while it arrives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// Text for the person.
    Text(String),
    /// The model thinking aloud.
    Reasoning(String),
}

/// A language model, or what stands in for one.
pub trait ChatModel: Send + Sync {
    /// A name for people: `offline`, `gpt-5-mini at https://api.openai.com/v1`.
    fn name(&self) -> &str;

    /// Asks for the next message. `on_delta` sees text while it arrives; the reply holds all of it.
    /// Dropping the future cancels the request.
    ///
    /// # Errors
    ///
    /// Every way in which a provider can be lost, see [`ModelError`]. A model that answers nonsense
    /// is not an error here: broken arguments are the gate's business.
    fn generate<'a>(
        &'a self,
        request: Request<'a>,
        on_delta: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxFuture<'a, Result<Reply, ModelError>>;
}

/// Why there is no answer. The texts are for the person; no key ever stands in one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The provider did not accept the key, or there is none.
    #[error("{provider} refused the credentials: {message}")]
    Credentials {
        /// Who refused.
        provider: String,
        /// What it said.
        message: String,
    },
    /// No connection, or none in time.
    #[error("cannot reach {provider}: {message}")]
    Unreachable {
        /// Who could not be reached.
        provider: String,
        /// What went wrong.
        message: String,
    },
    /// Too many requests; `retry_after` when the provider said how long to wait.
    #[error("{provider} is limiting requests: {message}")]
    RateLimited {
        /// Who limits.
        provider: String,
        /// What it said.
        message: String,
        /// How long to wait.
        retry_after: Option<Duration>,
    },
    /// The provider answered with an error.
    #[error("{provider} answered with status {status}: {message}")]
    Refused {
        /// Who answered.
        provider: String,
        /// HTTP status.
        status: u16,
        /// What it said.
        message: String,
    },
    /// The answer ended before its end, or is not what the protocol says.
    #[error("the answer of {provider} is broken: {message}")]
    Broken {
        /// Who answered.
        provider: String,
        /// What is wrong with it.
        message: String,
    },
}

impl ModelError {
    /// What the person can do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Credentials { .. } => "check the key, for example OPENAI_API_KEY",
            Self::Unreachable { .. } => {
                "check the address, for example OPENAI_BASE_URL, and the network"
            }
            Self::RateLimited { .. } => "wait a little, then ask again",
            Self::Refused { .. } => "check the model's name and the provider's message",
            Self::Broken { .. } => {
                "ask again; if it stays, the server does not speak this protocol"
            }
        }
    }
}
