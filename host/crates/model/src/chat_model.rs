//! The interface of every model.

use sallyport_contract::BoxFuture;

use crate::{
    chat::{ChatMessage, ModelError, ModelReply, ModelToolDefinition, ReplyDelta, TokenPrice},
    kept_messages::KeptMessages,
    protocol::ProviderProtocol,
};

/// A request to a model. The default has no messages and no tools.
#[derive(Debug, Clone, Copy, Default)]
pub struct ModelRequest<'a> {
    /// The conversation so far; ends with a user message or with tool results.
    pub messages: &'a [ChatMessage],
    /// The tools that the model may call, in a stable order.
    pub tools: &'a [ModelToolDefinition],
    /// The sampling temperature, from 0 up; overrides the endpoint's. It is a wish: a model that
    /// takes none answers as usual.
    pub temperature: Option<f64>,
    /// The messages of this conversation as they were last written. Without it, every message is
    /// written for this request alone.
    pub kept: Option<&'a KeptMessages>,
}

/// A language model, or anything that serves as one.
pub trait ChatModel: Send + Sync {
    /// Returns a display name: `offline`, `gpt-5-mini at https://api.openai.com/v1`.
    fn name(&self) -> &str;

    /// Returns the name without the address: `gpt-5-mini`.
    fn short_name(&self) -> &str {
        self.name().split(" at ").next().unwrap_or_default()
    }

    /// Returns the protocol of the provider. `None` for a model that is not at one.
    fn protocol(&self) -> Option<ProviderProtocol> {
        None
    }

    /// Returns the price of the model's tokens, if it is known.
    fn price(&self) -> Option<TokenPrice> {
        None
    }

    /// Asks for the next message.
    ///
    /// `on_delta` receives pieces of the answer while they arrive; the reply contains all of it.
    /// Dropping the future cancels the request.
    ///
    /// # Errors
    ///
    /// Returns a [`ModelError`] if the provider gives no complete answer. Nonsense from the model
    /// is not an error here: the gate checks the arguments.
    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(ReplyDelta) + Send),
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>>;
}
