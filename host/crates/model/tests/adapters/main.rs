//! The adapters of Anthropic, Gemini and Ollama, and all embedders, against a scripted server on
//! the loopback interface.
//!
//! Common requirements are written once and checked for each adapter. Those of a single adapter
//! have a file of their own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod anthropic;
#[path = "../openai/asking.rs"]
mod asking;
mod embed;
mod failures;
mod gemini;
mod ollama;
#[path = "../openai/server.rs"]
mod server;
mod stopped;
mod streams;
mod wires;
mod wishes;

use std::sync::Arc;

use sallyport_model::{
    AssistantMessage, ChatMessage, ChatModel, FileAttachment, ModelAdapter, ModelCallRequest,
    ModelEndpoint, ModelError, ModelReply, ModelToolDefinition, OpaqueMessage, ProviderProtocol,
    ReplyDelta, ToolResultMessage,
};
use serde_json::{Value, json};

use crate::{
    asking::{KEY, ask, hello},
    server::{Server, Step, plain},
};

const PROTOCOLS: [ProviderProtocol; 3] =
    [ProviderProtocol::Anthropic, ProviderProtocol::Gemini, ProviderProtocol::Ollama];

fn settings(protocol: ProviderProtocol, server: &Server, stream: bool) -> ModelEndpoint {
    asking::endpoint(protocol, server.base_url.clone(), stream)
}

fn connect(endpoint: ModelEndpoint) -> Arc<dyn ChatModel> {
    Arc::new(ModelAdapter::new(endpoint).unwrap())
}

/// Sends a script to one adapter.
async fn play(
    protocol: ProviderProtocol,
    script: Vec<Step>,
    stream: bool,
) -> Result<(ModelReply, Vec<ReplyDelta>), ModelError> {
    let server = Server::start(script).await;
    ask(settings(protocol, &server, stream), &hello(), &[]).await
}

/// Returns the request of an adapter, head and body.
async fn sent(
    protocol: ProviderProtocol,
    change: impl FnOnce(ModelEndpoint) -> ModelEndpoint,
    messages: &[ChatMessage],
    tools: &[ModelToolDefinition],
) -> (String, Value) {
    let server = Server::start(plain(500, "", "")).await;
    let endpoint = change(settings(protocol, &server, true));
    ask(endpoint, messages, tools).await.unwrap_err();
    let seen = server.seen().remove(0);
    (seen.head, seen.body)
}

fn system(text: &str) -> ChatMessage {
    ChatMessage::System { text: text.to_owned() }
}

fn call(id: &str, name: &str, arguments: &str) -> ModelCallRequest {
    ModelCallRequest { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
}

fn said(text: &str, calls: &[ModelCallRequest]) -> ChatMessage {
    let (text, calls) = (text.to_owned(), calls.to_vec());
    ChatMessage::Assistant(AssistantMessage { text, calls, opaque: None })
}

fn said_before(text: &str, calls: &[ModelCallRequest], origin: &str, body: Value) -> ChatMessage {
    let opaque = Some(OpaqueMessage { origin: origin.to_owned(), body });
    let (text, calls) = (text.to_owned(), calls.to_vec());
    ChatMessage::Assistant(AssistantMessage { text, calls, opaque })
}

fn result(call_id: &str, name: &str, content: &str, failed: bool) -> ChatMessage {
    let [call_id, name, content] = [call_id, name, content].map(str::to_owned);
    ChatMessage::Tool(ToolResultMessage { call_id, name, content, failed })
}

fn file(name: &str, media_type: &str, data: &[u8]) -> FileAttachment {
    FileAttachment { name: name.to_owned(), media_type: media_type.to_owned(), data: data.into() }
}

fn tools() -> Vec<ModelToolDefinition> {
    let tool = |name: &str| ModelToolDefinition {
        name: name.to_owned(),
        description: format!("Does {name}."),
        parameters: json!({ "type": "object", "properties": {} }),
    };
    vec![tool("x"), tool("y")]
}
