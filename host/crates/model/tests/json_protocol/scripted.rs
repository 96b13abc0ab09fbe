//! A model with scripted answers in pieces, which records its requests.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use sallyport_contract::BoxFuture;
use sallyport_model::{
    AssistantMessage, ChatMessage, ChatModel, FinishReason, ModelCallRequest, ModelError,
    ModelReply, ModelRequest, OpaqueMessage, ReplyDelta, TokenPrice, TokenUsage,
};
use serde_json::json;

/// One answer.
#[derive(Clone)]
pub(crate) struct Said {
    pub(crate) pieces: Vec<ReplyDelta>,
    pub(crate) calls: Vec<ModelCallRequest>,
    pub(crate) finish: FinishReason,
}

impl Said {
    /// A text in one piece.
    pub(crate) fn text(text: &str) -> Self {
        Self::pieces(&[text])
    }

    /// A text in pieces.
    pub(crate) fn pieces(pieces: &[&str]) -> Self {
        let pieces =
            pieces.iter().map(|piece| ReplyDelta::Text { text: (*piece).to_owned() }).collect();
        Self { pieces, calls: Vec::new(), finish: FinishReason::Stop }
    }

    /// The same text, cut at a limit.
    pub(crate) fn cut(self, finish: FinishReason) -> Self {
        Self { finish, ..self }
    }
}

pub(crate) struct Scripted {
    script: Mutex<VecDeque<Said>>,
    asked: Mutex<Vec<Vec<ChatMessage>>>,
}

impl Scripted {
    pub(crate) fn new(script: Vec<Said>) -> Self {
        Self { script: Mutex::new(script.into()), asked: Mutex::default() }
    }

    pub(crate) fn asked(&self) -> Vec<Vec<ChatMessage>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn next(&self, request: ModelRequest<'_>) -> Option<Said> {
        assert!(request.tools.is_empty(), "the model knows no tools");
        self.asked.lock().unwrap().push(request.messages.to_vec());
        self.script.lock().unwrap().pop_front()
    }
}

/// The usage of each answer in the script.
pub(crate) const USAGE: TokenUsage = TokenUsage {
    input_tokens: 10,
    output_tokens: 5,
    cached_input_tokens: 4,
    cache_write_tokens: 3,
    reasoning_tokens: 2,
};

/// The price of its tokens.
pub(crate) const PRICE: TokenPrice =
    TokenPrice { input: 1.0, output: 2.0, cached_input: 0.5, cache_write: 1.5 };

impl ChatModel for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }

    fn price(&self) -> Option<TokenPrice> {
        Some(PRICE)
    }

    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(ReplyDelta) + Send),
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        let said = self.next(request);
        Box::pin(async move {
            let said = said.ok_or_else(|| ModelError::Unreachable {
                provider: "scripted".to_owned(),
                message: "the script is over".to_owned(),
            })?;
            // Deltas before a retry are not part of the answer.
            let is_retry = |delta: &ReplyDelta| matches!(delta, ReplyDelta::Retry { .. });
            let begun = said.pieces.iter().rposition(is_retry).unwrap_or(0);
            let text = crate::read_aloud(&said.pieces[begun..]);
            said.pieces.into_iter().for_each(on_delta);
            let opaque =
                Some(OpaqueMessage { origin: "scripted".to_owned(), body: json!("opaque") });
            let message = AssistantMessage { text, calls: said.calls, opaque };
            Ok(ModelReply { message, finish: said.finish, usage: Some(USAGE) })
        })
    }
}
