//! Tool calls as plain JSON, for models without function calling.
//!
//! The instructions ask the model for `{"reply": …}` or `{"tool": …, "args": …, "reply": …}`. The
//! model never sees a tool in the provider's own form, and the user sees only the reply, while it
//! is written. If an answer cannot be read, the model is asked once more, with the error. If the
//! second answer cannot be read either, it becomes a plain reply.
//!
//! Suggested reading order: `prompt` (the instructions), `answer` (the whole answer), `scanner`
//! (the answer while it arrives), `stage` (the text that the user sees).

mod answer;
mod prompt;
mod scanner;
mod stage;
mod unescape;

use std::sync::Arc;

use sallyport_contract::BoxFuture;

use self::{
    answer::{Answer, Flaw, Wanted},
    stage::Stage,
};
use crate::{
    chat::{
        AssistantMessage, CallRequest, ChatModel, Delta, Finish, Message, ModelError, Price, Reply,
        Request, Usage,
    },
    wire,
};

/// A model that calls tools with plain JSON.
pub struct JsonProtocol {
    inner: Arc<dyn ChatModel>,
}

impl JsonProtocol {
    /// Wraps a model in the protocol.
    pub fn new(inner: Arc<dyn ChatModel>) -> Self {
        Self { inner }
    }

    async fn exchange(
        &self,
        request: Request<'_>,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, ModelError> {
        let mut plain = prompt::plain(request.messages, request.tools);
        let asked = Request { tools: &[], ..request };
        let mut stage = Stage::new(on_delta);
        let mut reply = self.ask(Request { messages: &plain, ..asked }, &mut stage).await?;
        let mut answer = read(&reply);
        if let Err(flaw) = &answer
            && !is_cut(&reply)
        {
            let said = answer::without_thinking(&reply.message.text);
            prompt::ask_again(&mut plain, said, flaw);
            stage.begin_again();
            let usage = reply.usage;
            reply = self.ask(Request { messages: &plain, ..asked }, &mut stage).await?;
            reply.usage = sum(usage, reply.usage);
            answer = read(&reply);
        }
        let answer = answer.unwrap_or_else(|flaw| as_it_is(&reply, &flaw, stage.seen()));
        let text = stage.settle(&answer.reply, &answer.calls);
        Ok(finished(reply, text, answer.calls, request.messages))
    }

    async fn ask(&self, request: Request<'_>, stage: &mut Stage<'_>) -> Result<Reply, ModelError> {
        let mut pass = |delta| stage.pass(delta);
        self.inner.generate(request, &mut pass).await
    }
}

impl ChatModel for JsonProtocol {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn price(&self) -> Option<Price> {
        self.inner.price()
    }

    fn generate<'a>(
        &'a self,
        request: Request<'a>,
        on_delta: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(self.exchange(request, on_delta))
    }
}

/// Reads a reply. Calls in the provider's own form are accepted too.
fn read(reply: &Reply) -> Result<Answer, Flaw> {
    let AssistantMessage { text, calls, .. } = &reply.message;
    let answer = answer::read(text);
    if calls.is_empty() {
        return answer;
    }
    let reply = answer.map_or_else(|_| text.clone(), |answer| answer.reply);
    let wanted =
        |call: &CallRequest| Wanted { name: call.name.clone(), arguments: call.arguments.clone() };
    Ok(Answer { reply, calls: calls.iter().map(wanted).collect() })
}

/// Returns true if the answer hit a limit that a second attempt would hit again.
fn is_cut(reply: &Reply) -> bool {
    matches!(reply.finish, Finish::Length | Finish::ContentFilter)
}

/// Turns an unreadable answer into a plain reply. If the user has seen a part of it, that part is
/// the reply, so that nothing is repeated. Of an object that was cut off, only that part makes
/// sense.
fn as_it_is(reply: &Reply, flaw: &Flaw, seen: &str) -> Answer {
    let text = match flaw {
        Flaw::Unclosed if is_cut(reply) => seen,
        _ if !seen.is_empty() => seen,
        _ => answer::without_thinking(&reply.message.text).trim(),
    };
    Answer { reply: text.to_owned(), calls: Vec::new() }
}

/// Gives calls new ids. The inner model sees no earlier calls, so its own ids may repeat.
fn finished(reply: Reply, text: String, calls: Vec<Wanted>, messages: &[Message]) -> Reply {
    let finish = match reply.finish {
        Finish::Stop | Finish::ToolCalls if calls.is_empty() => Finish::Stop,
        Finish::Stop => Finish::ToolCalls,
        other => other,
    };
    let ids = wire::unique_ids(&vec![None; calls.len()], messages);
    let request = |(Wanted { name, arguments }, id)| CallRequest { id, name, arguments };
    let calls = calls.into_iter().zip(ids).map(request).collect();
    let message = AssistantMessage { text, calls, opaque: None };
    Reply { message, finish, usage: reply.usage }
}

/// Returns the total usage of two exchanges, as far as it is known.
fn sum(one: Option<Usage>, other: Option<Usage>) -> Option<Usage> {
    let (Some(a), Some(b)) = (one, other) else { return one.or(other) };
    Some(Usage {
        input_tokens: a.input_tokens.saturating_add(b.input_tokens),
        output_tokens: a.output_tokens.saturating_add(b.output_tokens),
        cached_input_tokens: a.cached_input_tokens.saturating_add(b.cached_input_tokens),
        cache_write_tokens: a.cache_write_tokens.saturating_add(b.cache_write_tokens),
        reasoning_tokens: a.reasoning_tokens.saturating_add(b.reasoning_tokens),
    })
}
