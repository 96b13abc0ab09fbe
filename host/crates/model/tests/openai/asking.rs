//! Helpers for tests that ask one adapter directly.

use std::time::Duration;

use sallyport_contract::Secret;
use sallyport_model::{
    Adapter, ChatModel, Delta, Endpoint, Message, ModelError, Protocol, Reply, Request,
    ToolDefinition,
};

/// A timeout far above what these tests need, so that a hanging test still ends.
const PATIENCE: Duration = Duration::from_secs(60);

/// The key in these tests.
pub(crate) const KEY: &str = "sk-test-0123456789";

pub(crate) fn endpoint(protocol: Protocol, base_url: String, stream: bool) -> Endpoint {
    Endpoint {
        key: Some(Secret::new(KEY)),
        stream,
        time_max: PATIENCE,
        ..Endpoint::new(protocol, base_url, "test-model")
    }
}

/// Asks and returns the reply with all deltas.
pub(crate) async fn ask(
    endpoint: Endpoint,
    messages: &[Message],
    tools: &[ToolDefinition],
) -> Result<(Reply, Vec<Delta>), ModelError> {
    let model = Adapter::new(endpoint).unwrap();
    let mut deltas = Vec::new();
    let mut on_delta = |delta| deltas.push(delta);
    let reply =
        model.generate(Request { messages, tools, ..Request::default() }, &mut on_delta).await?;
    Ok((reply, deltas))
}

pub(crate) fn hello() -> Vec<Message> {
    vec![Message::user("hello")]
}
