//! Tools for models that know no function calling: plain JSON in place of calls.
//!
//! The model is told to answer `{"reply": …}` or `{"tool": …, "args": …, "reply": …}` and never sees
//! a tool in the provider's own way. Only the reply reaches the person, while it is being written.
//! An answer that is not understood is asked for once more, with what was wrong; after that it
//! stands as it is, as a plain reply.
//!
//! Suggested reading order: `prompt` (what the model is told), `answer` (what it wrote), `scanner`
//! (the same, while it arrives), `stage` (what the person sees).

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

/// A model that is asked for calls in plain JSON.
pub struct JsonProtocol {
    inner: Arc<dyn ChatModel>,
}

impl JsonProtocol {
    /// Puts the protocol around a model.
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

/// Reads a reply. A model that makes calls in its provider's way after all is taken at its word.
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

/// True when asking again would meet the same limit.
fn is_cut(reply: &Reply) -> bool {
    matches!(reply.finish, Finish::Length | Finish::ContentFilter)
}

/// Takes an answer that is not understood for a plain reply. Of an object that was cut, only what
/// it said to the person makes sense; and what they have seen of it is not told twice.
fn as_it_is(reply: &Reply, flaw: &Flaw, seen: &str) -> Answer {
    let text = match flaw {
        Flaw::Unclosed if is_cut(reply) => seen,
        _ if !seen.is_empty() => seen,
        _ => answer::without_thinking(&reply.message.text).trim(),
    };
    Answer { reply: text.to_owned(), calls: Vec::new() }
}

/// Calls get ids of our own; those that the inner model gave know nothing of the conversation.
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

/// Returns the tokens of two exchanges together, as far as they are known.
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
