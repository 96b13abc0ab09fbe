//! Chat models: the only crate that knows the wire formats of providers.
//!
//! A *model* takes a conversation and a list of tools and answers with text or with calls. Adapters
//! convert between a provider's wire format and the types of [`chat`]. No provider's JSON leaves
//! this crate, except as an opaque part that is sent back unchanged.
//!
//! [`connect_model`] is the entry point. It wraps the adapter of the endpoint's protocol in the
//! JSON protocol if the model has no function calling, then in retries. [`wrap_model`] wraps models
//! from elsewhere, and [`connect_embedder`] connects to embedding models.

mod adapter;
mod anthropic;
pub mod catalog;
pub mod chat;
mod chat_model;
mod embed;
mod endpoint;
mod fit;
mod gemini;
pub mod json_protocol;
mod kept_messages;
mod offline;
mod ollama;
pub mod openai;
pub mod prices;
mod protocol;
#[cfg(feature = "bench")]
pub mod raw;
mod responses;
mod retry;
mod tool_index;
mod wire;

use std::{sync::Arc, time::Duration};

pub use adapter::ModelAdapter;
pub use chat::{
    AssistantMessage, ChatMessage, FileAttachment, FinishReason, ModelCallRequest, ModelError,
    ModelReply, ModelToolDefinition, OmittedContent, OpaqueMessage, ReplyDelta, TokenCost,
    TokenPrice, TokenUsage, ToolResultMessage, UserInputMessage,
};
pub use chat_model::{ChatModel, ModelRequest};
pub use embed::{Embedder, EmbeddingEndpoint, connect_embedder};
pub use endpoint::{EndpointSettingsError, ModelEndpoint, ReasoningEffort, ToolCallingMode};
pub use fit::FittedTools;
pub use json_protocol::JsonProtocolModel;
pub use kept_messages::KeptMessages;
pub use offline::{OfflineMatcher, ReachOf, ToolReach};
pub use protocol::ProviderProtocol;
use retry::RetryingModel;
pub use tool_index::ToolIndex;

/// Returns the model behind an endpoint. It does not connect before the first request.
///
/// # Errors
///
/// Returns an error with a hint if the settings cannot work.
pub fn connect_model(endpoint: ModelEndpoint) -> Result<Arc<dyn ChatModel>, EndpointSettingsError> {
    let time_max = endpoint.time_max;
    Ok(Arc::new(RetryingModel::new(connect_without_retries(endpoint)?, time_max)))
}

/// Wraps a model from elsewhere in the form of tool calling that it needs and in retries, which end
/// after `time_max`.
pub fn wrap_model(
    model: Arc<dyn ChatModel>,
    tool_calling: ToolCallingMode,
    time_max: Duration,
) -> Arc<dyn ChatModel> {
    Arc::new(RetryingModel::new(with_tool_calling(model, tool_calling), time_max))
}

fn with_tool_calling(
    model: Arc<dyn ChatModel>,
    tool_calling: ToolCallingMode,
) -> Arc<dyn ChatModel> {
    match tool_calling {
        ToolCallingMode::Native => model,
        ToolCallingMode::Json => Arc::new(JsonProtocolModel::new(model)),
    }
}

fn connect_without_retries(
    endpoint: ModelEndpoint,
) -> Result<Arc<dyn ChatModel>, EndpointSettingsError> {
    let tool_calling = endpoint.tool_calling;
    Ok(with_tool_calling(Arc::new(ModelAdapter::new(endpoint)?), tool_calling))
}
