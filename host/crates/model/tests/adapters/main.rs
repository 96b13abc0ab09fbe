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
mod streams;
mod wires;
mod wishes;

use std::sync::Arc;

use sallyport_model::{
    Adapter, AssistantMessage, Attachment, CallRequest, ChatModel, Delta, Endpoint, Message,
    ModelError, Opaque, Protocol, Reply, ToolDefinition, ToolResult,
};
use serde_json::{Value, json};

use crate::{
    asking::{KEY, ask, hello},
    server::{Server, Step, plain},
};

const PROTOCOLS: [Protocol; 3] = [Protocol::Anthropic, Protocol::Gemini, Protocol::Ollama];

fn settings(protocol: Protocol, server: &Server, stream: bool) -> Endpoint {
    asking::endpoint(protocol, server.base_url.clone(), stream)
}

fn connect(endpoint: Endpoint) -> Arc<dyn ChatModel> {
    Arc::new(Adapter::new(endpoint).unwrap())
}

/// Sends a script to one adapter.
async fn play(
    protocol: Protocol,
    script: Vec<Step>,
    stream: bool,
) -> Result<(Reply, Vec<Delta>), ModelError> {
    let server = Server::start(script).await;
    ask(settings(protocol, &server, stream), &hello(), &[]).await
}

/// Returns the request of an adapter, head and body.
async fn sent(
    protocol: Protocol,
    change: impl FnOnce(Endpoint) -> Endpoint,
    messages: &[Message],
    tools: &[ToolDefinition],
) -> (String, Value) {
    let server = Server::start(plain(500, "", "")).await;
    let endpoint = change(settings(protocol, &server, true));
    ask(endpoint, messages, tools).await.unwrap_err();
    let seen = server.seen().remove(0);
    (seen.head, seen.body)
}

fn system(text: &str) -> Message {
    Message::System { text: text.to_owned() }
}

fn call(id: &str, name: &str, arguments: &str) -> CallRequest {
    CallRequest { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
}

fn said(text: &str, calls: &[CallRequest]) -> Message {
    let (text, calls) = (text.to_owned(), calls.to_vec());
    Message::Assistant(AssistantMessage { text, calls, opaque: None })
}

fn said_before(text: &str, calls: &[CallRequest], origin: &str, body: Value) -> Message {
    let opaque = Some(Opaque { origin: origin.to_owned(), body });
    let (text, calls) = (text.to_owned(), calls.to_vec());
    Message::Assistant(AssistantMessage { text, calls, opaque })
}

fn result(call_id: &str, name: &str, content: &str, failed: bool) -> Message {
    let [call_id, name, content] = [call_id, name, content].map(str::to_owned);
    Message::Tool(ToolResult { call_id, name, content, failed })
}

fn file(name: &str, media_type: &str, data: &[u8]) -> Attachment {
    Attachment { name: name.to_owned(), media_type: media_type.to_owned(), data: data.into() }
}

fn tools() -> Vec<ToolDefinition> {
    let tool = |name: &str| ToolDefinition {
        name: name.to_owned(),
        description: format!("Does {name}."),
        parameters: json!({ "type": "object", "properties": {} }),
    };
    vec![tool("x"), tool("y")]
}
