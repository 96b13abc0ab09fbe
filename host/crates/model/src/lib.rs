//! Chat models: the only crate that knows a provider's wire format.
//!
//! A *model* takes a conversation and a list of tools and answers with text or with calls. What a
//! provider sends over the wire is turned into [`chat`]'s types at its door, and back; nothing of
//! its JSON is seen elsewhere, except as an opaque part that is replayed untouched.
//!
//! [`connect`] is the one door: the adapter of the endpoint's protocol, inside the JSON protocol
//! where the model knows no function calling, inside retries.

mod anthropic;
pub mod catalog;
pub mod chat;
mod endpoint;
mod gemini;
pub mod json_protocol;
pub mod offline;
mod ollama;
pub mod openai;
pub mod prices;
#[cfg(feature = "bench")]
pub mod raw;
mod responses;
mod retry;
mod wire;

use std::sync::Arc;

pub use chat::{
    AssistantMessage, Attachment, CallRequest, ChatModel, Cost, Delta, Finish, Message, ModelError,
    Opaque, Price, Reply, Request, ToolDefinition, ToolResult, Usage, UserMessage,
};
pub use endpoint::{Effort, Endpoint, Protocol, SettingsError, ToolCalling};
pub use json_protocol::JsonProtocol;
pub use offline::Offline;
use retry::Retrying;
pub use wire::Adapter;

/// Returns the model behind an endpoint. Nothing is opened or sent before the first request.
///
/// # Errors
///
/// Settings that cannot work, with a hint.
pub fn connect(endpoint: Endpoint) -> Result<Arc<dyn ChatModel>, SettingsError> {
    let time_max = endpoint.time_max;
    Ok(Arc::new(Retrying::new(without_retries(endpoint)?, time_max)))
}

fn without_retries(endpoint: Endpoint) -> Result<Arc<dyn ChatModel>, SettingsError> {
    let tool_calling = endpoint.tool_calling;
    let adapter = Arc::new(Adapter::new(endpoint)?);
    Ok(match tool_calling {
        ToolCalling::Native => adapter,
        ToolCalling::Json => Arc::new(JsonProtocol::new(adapter)),
    })
}
