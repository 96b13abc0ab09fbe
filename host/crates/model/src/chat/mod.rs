//! A conversation as every model adapter takes and gives it.

mod attachment;
mod error;
mod input;
mod left_out;
mod price;

use std::time::Duration;

use sallyport_contract::{BoxFuture, ToolSpec, mangle::mangle};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use attachment::{Attachment, Kind};
pub use error::ModelError;
pub use input::{QUOTE_MARK, UserMessage, lines, quoted};
pub use left_out::LeftOut;
pub use price::{Cost, Price};

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
    User(UserMessage),
    /// What the model answered.
    Assistant(AssistantMessage),
    /// What a tool gave back.
    Tool(ToolResult),
}

impl Message {
    /// What a person said, words alone.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User(text.into().into())
    }
}

/// A model's answer: text, calls, or both.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AssistantMessage {
    /// Text for the person; may be empty.
    pub text: String,
    /// Calls that the model wants made, in its order.
    pub calls: Vec<CallRequest>,
    /// The provider's own form of this message, to be replayed as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Opaque>,
}

/// A message in the form that one provider gave it. Only the adapter that made it reads it, and only
/// for the model that wrote it: signatures of one model mean nothing to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Opaque {
    /// Protocol and model: `anthropic/claude-sonnet-4-5`.
    pub origin: String,
    /// What came.
    pub body: Value,
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

/// What a model is asked. The default asks nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Request<'a> {
    /// The conversation so far; ends with a user message or with tool results.
    pub messages: &'a [Message],
    /// The tools that it may call, in a stable order.
    pub tools: &'a [ToolDefinition],
    /// How freely it should answer, from 0 up, in place of what its endpoint says. It is a wish: a
    /// model that takes none answers as it does.
    pub temperature: Option<f64>,
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
    /// Tokens read, those from a cache and into a cache included.
    pub input_tokens: u64,
    /// Tokens written, those of its thinking included.
    pub output_tokens: u64,
    /// Of the tokens read: those that came from the provider's cache.
    #[serde(default)]
    pub cached_input_tokens: u64,
    /// Of the tokens read: those that were written into the provider's cache.
    #[serde(default)]
    pub cache_write_tokens: u64,
    /// Of the tokens written: those of its thinking.
    #[serde(default)]
    pub reasoning_tokens: u64,
}

/// A piece of an answer, while it arrives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// Text for the person.
    Text(String),
    /// The model thinking aloud.
    Reasoning(String),
    /// The model has begun to write a call.
    CallBegun {
        /// The function name, as it wrote it.
        name: String,
    },
    /// The provider could not answer; it is asked again after a wait.
    Retry {
        /// Which attempt comes next, from 2.
        attempt: u32,
        /// How long until then.
        wait: Duration,
        /// Why, for the person.
        reason: String,
    },
    /// The model is asked without something that its provider cannot be sent.
    LeftOut(LeftOut),
}

/// A language model, or what stands in for one.
pub trait ChatModel: Send + Sync {
    /// A name for people: `offline`, `gpt-5-mini at https://api.openai.com/v1`.
    fn name(&self) -> &str;

    /// What its tokens cost, when that is known.
    fn price(&self) -> Option<Price> {
        None
    }

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
