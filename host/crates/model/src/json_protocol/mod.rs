//! Tool calls as plain JSON, for models without function calling.
//!
//! The instructions ask the model for `{"reply": …}` or `{"tool": …, "args": …, "reply": …}`. The
//! model never sees a tool in the provider's own form, and the user sees only the reply, while it
//! is written. If an answer cannot be read, the model is asked once more, with the error. If the
//! second answer cannot be read either, it becomes a plain reply.
//!
//! Suggested reading order: `prompt` (the instructions), `answer` (the whole answer), `scanner`
//! (the answer while it arrives), `visible_reply` (the text that the user sees).

mod answer;
mod prompt;
mod scanner;
mod visible_reply;

use std::sync::Arc;

use sallyport_contract::BoxFuture;

use self::{
    answer::{AnswerParseError, JsonAnswer, ParsedToolCall},
    visible_reply::VisibleReply,
};
use crate::{
    chat::{
        AssistantMessage, ChatMessage, FinishReason, ModelCallRequest, ModelError, ModelReply,
        ReplyDelta, TokenPrice, TokenUsage,
    },
    chat_model::{ChatModel, ModelRequest},
    protocol::ProviderProtocol,
    wire,
};

/// A model that calls tools with plain JSON.
pub struct JsonProtocolModel {
    inner: Arc<dyn ChatModel>,
}

impl JsonProtocolModel {
    /// Wraps a model in the protocol.
    pub fn new(inner: Arc<dyn ChatModel>) -> Self {
        Self { inner }
    }

    async fn request_reply(
        &self,
        request: ModelRequest<'_>,
        on_delta: &mut (dyn FnMut(ReplyDelta) + Send),
    ) -> Result<ModelReply, ModelError> {
        let mut plain = prompt::plain_messages(request.messages, request.tools);
        let plain_request = ModelRequest { tools: &[], ..request };
        let mut visible_reply = VisibleReply::new(on_delta);
        let mut reply = self
            .send_request(ModelRequest { messages: &plain, ..plain_request }, &mut visible_reply)
            .await?;
        let mut answer = read_reply(&reply);
        if let Err(parse_error) = &answer
            && !is_truncated(&reply)
        {
            let answer_text = answer::without_thinking(&reply.message.text);
            prompt::push_retry_request(&mut plain, answer_text, parse_error);
            visible_reply.restart_attempt();
            let usage = reply.usage;
            reply = self
                .send_request(
                    ModelRequest { messages: &plain, ..plain_request },
                    &mut visible_reply,
                )
                .await?;
            reply.usage = total_usage(usage, reply.usage);
            answer = read_reply(&reply);
        }
        let answer = answer.unwrap_or_else(|parse_error| {
            plain_answer(&reply, &parse_error, visible_reply.visible_text())
        });
        let text = visible_reply.finish_reply(&answer.reply, &answer.calls);
        Ok(finish_reply(reply, text, answer.calls, request.messages))
    }

    async fn send_request(
        &self,
        request: ModelRequest<'_>,
        visible_reply: &mut VisibleReply<'_>,
    ) -> Result<ModelReply, ModelError> {
        let mut pass = |delta| visible_reply.forward_delta(delta);
        self.inner.generate(request, &mut pass).await
    }
}

impl ChatModel for JsonProtocolModel {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn price(&self) -> Option<TokenPrice> {
        self.inner.price()
    }

    fn protocol(&self) -> Option<ProviderProtocol> {
        self.inner.protocol()
    }

    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(ReplyDelta) + Send),
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(self.request_reply(request, on_delta))
    }
}

/// Reads a reply. Calls in the provider's own form are accepted too.
fn read_reply(reply: &ModelReply) -> Result<JsonAnswer, AnswerParseError> {
    let AssistantMessage { text, calls, .. } = &reply.message;
    let answer = answer::parse_answer(text);
    if calls.is_empty() {
        return answer;
    }
    let reply = answer.map_or_else(|_| text.clone(), |answer| answer.reply);
    let to_parsed_call = |call: &ModelCallRequest| ParsedToolCall {
        name: call.name.clone(),
        arguments: call.arguments.clone(),
    };
    Ok(JsonAnswer { reply, calls: calls.iter().map(to_parsed_call).collect() })
}

/// Returns true if the answer hit a limit that a second attempt would hit again.
fn is_truncated(reply: &ModelReply) -> bool {
    matches!(reply.finish, FinishReason::Length | FinishReason::ContentFilter)
}

/// Turns an unreadable answer into a plain reply. If the user has seen a part of it, that part is
/// the reply, so that nothing is repeated. Of an object that was cut off, only that part makes
/// sense.
fn plain_answer(reply: &ModelReply, parse_error: &AnswerParseError, seen: &str) -> JsonAnswer {
    let text = match parse_error {
        AnswerParseError::Unclosed if is_truncated(reply) => seen,
        _ if !seen.is_empty() => seen,
        _ => answer::without_thinking(&reply.message.text).trim(),
    };
    JsonAnswer { reply: text.to_owned(), calls: Vec::new() }
}

/// Gives calls new ids. The inner model sees no earlier calls, so its own ids may repeat.
fn finish_reply(
    reply: ModelReply,
    text: String,
    calls: Vec<ParsedToolCall>,
    messages: &[ChatMessage],
) -> ModelReply {
    let finish = match reply.finish {
        FinishReason::Stop | FinishReason::ToolCalls if calls.is_empty() => FinishReason::Stop,
        FinishReason::Stop => FinishReason::ToolCalls,
        other => other,
    };
    let ids = wire::unique_ids(&vec![None; calls.len()], messages);
    let request =
        |(ParsedToolCall { name, arguments }, id)| ModelCallRequest { id, name, arguments };
    let calls = calls.into_iter().zip(ids).map(request).collect();
    let message = AssistantMessage { text, calls, opaque: None };
    ModelReply { message, finish, usage: reply.usage }
}

/// Returns the total usage of two exchanges, as far as it is known.
fn total_usage(one: Option<TokenUsage>, other: Option<TokenUsage>) -> Option<TokenUsage> {
    let (Some(a), Some(b)) = (one, other) else { return one.or(other) };
    Some(TokenUsage {
        input_tokens: a.input_tokens.saturating_add(b.input_tokens),
        output_tokens: a.output_tokens.saturating_add(b.output_tokens),
        cached_input_tokens: a.cached_input_tokens.saturating_add(b.cached_input_tokens),
        cache_write_tokens: a.cache_write_tokens.saturating_add(b.cache_write_tokens),
        reasoning_tokens: a.reasoning_tokens.saturating_add(b.reasoning_tokens),
    })
}
