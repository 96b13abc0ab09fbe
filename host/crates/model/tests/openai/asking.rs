//! Helpers for tests that ask one adapter directly.

use std::time::Duration;

use sallyport_contract::Secret;
use sallyport_model::{
    ChatMessage, ChatModel, ModelAdapter, ModelEndpoint, ModelError, ModelReply, ModelRequest,
    ModelToolDefinition, ProviderProtocol, ReplyDelta,
};

/// A timeout far above what these tests need, so that a hanging test still ends.
const PATIENCE: Duration = Duration::from_secs(60);

/// The key in these tests.
pub(crate) const KEY: &str = "sk-test-0123456789";

pub(crate) fn endpoint(
    protocol: ProviderProtocol,
    base_url: String,
    stream: bool,
) -> ModelEndpoint {
    ModelEndpoint {
        key: Some(Secret::new(KEY)),
        stream,
        time_max: PATIENCE,
        ..ModelEndpoint::new(protocol, base_url, "test-model")
    }
}

/// Asks and returns the reply with all deltas.
pub(crate) async fn ask(
    endpoint: ModelEndpoint,
    messages: &[ChatMessage],
    tools: &[ModelToolDefinition],
) -> Result<(ModelReply, Vec<ReplyDelta>), ModelError> {
    let model = ModelAdapter::new(endpoint).unwrap();
    let mut deltas = Vec::new();
    let mut on_delta = |delta| deltas.push(delta);
    let reply = model
        .generate(ModelRequest { messages, tools, ..ModelRequest::default() }, &mut on_delta)
        .await?;
    Ok((reply, deltas))
}

pub(crate) fn hello() -> Vec<ChatMessage> {
    vec![ChatMessage::user("hello")]
}
