//! Chat models: the only crate that knows a provider's wire format.
//!
//! A *model* takes a conversation and a list of tools and answers with text or with calls. What a
//! provider sends over the wire is turned into [`chat`]'s types at its door, and back; nothing of
//! its JSON is seen elsewhere, except as an opaque part that is replayed untouched.
//!
//! [`connect`] is the one door: the adapter of the endpoint's protocol, inside the JSON protocol
//! where the model knows no function calling, inside what gives up a refused wish, inside retries.
//! [`adopt`] is for models that others bring, and [`connect_embedder`] is its neighbour, for models that make vectors of texts.

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

/// Returns the model behind an endpoint. Nothing is opened or sent before the first request.
///
/// # Errors
///
/// Settings that cannot work, with a hint.
pub fn connect(endpoint: Endpoint) -> Result<Arc<dyn ChatModel>, SettingsError> {
    let time_max = endpoint.time_max;
    let wishing = Arc::new(Wishing::new(without_retries(endpoint)?));
    Ok(Arc::new(Retrying::new(wishing, time_max)))
}

/// Returns a model from elsewhere as [`connect`] would: told of tools as it takes them, and asked
/// again when that is worth it, until `time_max` is over.
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
