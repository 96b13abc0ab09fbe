//! The OpenAI adapter against a server on the loopback that says exactly what a test wants.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod door;
mod failures;
mod requests;
mod server;
mod streams;

use std::time::Duration;

use sallyport_contract::Secret;
use sallyport_model::{
    Adapter, ChatModel, Delta, Endpoint, Message, ModelError, Protocol, Reply, Request,
    ToolDefinition,
};

/// Far more than any of these tests needs; a hanging test still ends.
const PATIENCE: Duration = Duration::from_secs(60);

/// What stands for a key in these tests.
const KEY: &str = "sk-test-0123456789";

fn settings(base_url: String, stream: bool) -> Endpoint {
    Endpoint {
        key: Some(Secret::new(KEY)),
        stream,
        time_max: PATIENCE,
        ..Endpoint::new(Protocol::OpenAiChat, base_url, "test-model")
    }
}

/// Asks and returns the reply with all deltas.
async fn ask(
    settings: Endpoint,
    messages: &[Message],
    tools: &[ToolDefinition],
) -> Result<(Reply, Vec<Delta>), ModelError> {
    let model = Adapter::new(settings).unwrap();
    let mut deltas = Vec::new();
    let mut on_delta = |delta| deltas.push(delta);
    let reply = model.generate(Request { messages, tools }, &mut on_delta).await?;
    Ok((reply, deltas))
}

fn hello() -> Vec<Message> {
    vec![Message::user("hello")]
}
