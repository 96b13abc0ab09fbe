//! The conversation: its messages, and what a model replies.

mod attachment;
mod error;
mod input;
mod omitted_content;
mod price;

use std::time::Duration;

use sallyport_contract::{ToolDescriptor, mangle::model_tool_name, milliseconds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use attachment::{AttachmentKind, FileAttachment};
pub use error::ModelError;
pub use input::{QUOTE_MARK, UserInputMessage, quote_text, split_lines};
pub use omitted_content::OmittedContent;
pub use price::{TokenCost, TokenPrice};

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "role", rename_all = "kebab-case")]
pub enum ChatMessage {
    /// The instructions to the model.
    System {
        /// The text of the instructions.
        text: String,
    },
    /// An input of the user.
    User(UserInputMessage),
    /// An answer of the model.
    Assistant(AssistantMessage),
    /// The result of a tool call.
    Tool(ToolResultMessage),
}

impl ChatMessage {
    /// Creates a user message of text alone.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User(text.into().into())
    }
}

/// A model's answer: text, calls, or both.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AssistantMessage {
    /// Text for the user; may be empty.
    pub text: String,
    /// The calls that the model requests, in its order.
    pub calls: Vec<ModelCallRequest>,
    /// The provider's own form of this message, sent back unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<OpaqueMessage>,
}

/// A message in the form of one provider. Only the adapter that made it reads it, and only for the
/// model that wrote it, because one model's signatures mean nothing to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpaqueMessage {
    /// The protocol and the model: `anthropic/claude-sonnet-4-5`.
    pub origin: String,
    /// The message as the provider sent it.
    pub body: Value,
}

/// One call as the model wrote it. Nothing in it has been checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelCallRequest {
    /// The provider's id of the call; made up by the adapter if the provider gives none.
    pub id: String,
    /// The function name that the model wrote.
    pub name: String,
    /// The arguments as text; empty if the model gave none.
    pub arguments: String,
}

/// The result of one call, as the model receives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolResultMessage {
    /// Id of the [`ModelCallRequest`] that this answers.
    pub call_id: String,
    /// The function name that the model wrote.
    pub name: String,
    /// The result as JSON text.
    pub content: String,
    /// True unless the call completed. Some providers have a flag for it.
    pub failed: bool,
}

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelToolDefinition {
    /// A name that every provider accepts: `[A-Za-z_][A-Za-z0-9_-]{0,63}`.
    pub name: String,
    /// What the tool does and when to use it.
    pub description: String,
    /// JSON Schema of the arguments; an object schema.
    pub parameters: Value,
}

impl From<&ToolDescriptor> for ModelToolDefinition {
    /// Defines a tool under the name that a model sees.
    fn from(tool: &ToolDescriptor) -> Self {
        Self {
            name: model_tool_name(&tool.id),
            description: tool.description.clone(),
            parameters: tool.parameters.clone(),
        }
    }
}

/// A model's reply to a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelReply {
    /// The message to append to the conversation.
    pub message: AssistantMessage,
    /// Why the model stopped.
    pub finish: FinishReason,
    /// Tokens used, if the provider reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FinishReason {
    /// The answer is complete.
    Stop,
    /// The model requests tool calls.
    ToolCalls,
    /// The answer was cut at the token limit.
    Length,
    /// The provider withheld the answer.
    ContentFilter,
    /// A reason that this adapter does not know.
    Other(String),
}

/// Tokens of one exchange.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TokenUsage {
    /// Tokens read, including those read from and written to a cache.
    pub input_tokens: u64,
    /// Tokens written, including those of the model's thinking.
    pub output_tokens: u64,
    /// Of the tokens read: those that came from the provider's cache.
    #[serde(default)]
    pub cached_input_tokens: u64,
    /// Of the tokens read: those that were written to the provider's cache.
    #[serde(default)]
    pub cache_write_tokens: u64,
    /// Of the tokens written: those of the model's thinking.
    #[serde(default)]
    pub reasoning_tokens: u64,
}

/// A piece of an answer while it arrives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum ReplyDelta {
    /// Text for the user.
    #[serde(rename = "text-delta")]
    Text {
        /// The piece.
        text: String,
    },
    /// The model's thinking.
    #[serde(rename = "reasoning-delta")]
    Reasoning {
        /// The piece.
        text: String,
    },
    /// The model has begun to write a call.
    CallBegun {
        /// The function name, as the model wrote it.
        name: String,
    },
    /// The provider could not answer; the request is repeated after a wait.
    Retry {
        /// The number of the next attempt, from 2.
        attempt: u32,
        /// How long until the next attempt.
        #[serde(rename = "wait_ms", with = "milliseconds")]
        #[schemars(with = "u64")]
        wait: Duration,
        /// The reason, for the user.
        reason: String,
    },
    /// The model is asked without something that its provider does not accept.
    LeftOut(OmittedContent),
}

impl ReplyDelta {
    /// Creates a piece of text for the user.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// Creates a piece of the model's thinking.
    pub fn reasoning(text: impl Into<String>) -> Self {
        Self::Reasoning { text: text.into() }
    }
}
