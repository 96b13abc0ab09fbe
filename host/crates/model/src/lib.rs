//! Chat models: the only crate that knows the wire formats of providers.
//!
//! A *model* takes a conversation and a list of tools and answers with text or with calls. Adapters
//! convert between a provider's wire format and the types of [`chat`]. No provider's JSON leaves
//! this crate, except as an opaque part that is sent back unchanged.
//!
//! [`connect`] is the entry point. It wraps the adapter of the endpoint's protocol in the JSON
//! protocol if the model has no function calling, then in a layer that drops refused wishes, then
//! in retries. [`adopt`] wraps models from elsewhere, and [`connect_embedder`] connects to
//! embedding models.

mod anthropic;
pub mod catalog;
pub mod chat;
mod embed;
mod endpoint;
mod fit;
mod gemini;
pub mod json_protocol;
mod offline;
mod ollama;
pub mod openai;
pub mod prices;
#[cfg(feature = "bench")]
pub mod raw;
mod responses;
mod retry;
mod tool_index;
mod wire;
mod wish;

use std::{sync::Arc, time::Duration};

pub use chat::{
    AssistantMessage, Attachment, CallRequest, ChatModel, Cost, Delta, Finish, LeftOut, Message,
    ModelError, Opaque, Price, Reply, Request, ToolDefinition, ToolResult, Usage, UserMessage,
};
pub use embed::{EmbedEndpoint, Embedder, connect_embedder};
pub use endpoint::{Effort, Endpoint, Protocol, SettingsError, ToolCalling};
pub use fit::Fit;
pub use json_protocol::JsonProtocol;
pub use offline::{Offline, Reach, ReachOf};
use retry::Retrying;
pub use tool_index::ToolIndex;
pub use wire::Adapter;
use wish::Wishing;

/// Returns the model behind an endpoint. It does not connect before the first request.
///
/// # Errors
///
/// Returns an error with a hint if the settings cannot work.
pub fn connect(endpoint: Endpoint) -> Result<Arc<dyn ChatModel>, SettingsError> {
    let time_max = endpoint.time_max;
    let wishing = Arc::new(Wishing::new(without_retries(endpoint)?));
    Ok(Arc::new(Retrying::new(wishing, time_max)))
}

/// Wraps a model from elsewhere in the form of tool calling that it needs and in retries, which end
/// after `time_max`.
pub fn adopt(
    model: Arc<dyn ChatModel>,
    tool_calling: ToolCalling,
    time_max: Duration,
) -> Arc<dyn ChatModel> {
    Arc::new(Retrying::new(taught(model, tool_calling), time_max))
}

fn taught(model: Arc<dyn ChatModel>, tool_calling: ToolCalling) -> Arc<dyn ChatModel> {
    match tool_calling {
        ToolCalling::Native => model,
        ToolCalling::Json => Arc::new(JsonProtocol::new(model)),
    }
}

fn without_retries(endpoint: Endpoint) -> Result<Arc<dyn ChatModel>, SettingsError> {
    let tool_calling = endpoint.tool_calling;
    Ok(taught(Arc::new(Adapter::new(endpoint)?), tool_calling))
}
