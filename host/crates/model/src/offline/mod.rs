//! A stand-in for a language model: no network, no weights, no surprise.
//!
//! It compares what a person says with the names and descriptions of the tools, cuts the arguments
//! out of the sentence and puts results into plain words. It does so the same way every time, which
//! makes it good for a first try without a key, for demonstrations and for tests. It says so itself
//! when asked for more.
//!
//! Suggested reading order: `tokens`, `profile`, `score`, `fill`, `decide`, `phrase`.

mod about;
mod decide;
mod fill;
mod phrase;
mod profile;
mod score;
mod stem;
mod synonyms;
mod tokens;

use sallyport_contract::BoxFuture;
use serde_json::Value;

use self::decide::{Decision, Planned, decide};
use self::score::Catalogue;
use crate::chat::{
    AssistantMessage, CallRequest, ChatModel, Delta, Finish, Message, ModelError, Reply, Request,
    ToolResult,
};

/// Longest sentence that is read. Cutting a longer one would write half of what somebody pasted.
const SENTENCE_BYTES_MAX: usize = 64 << 10;

/// The stand-in that is always there.
#[derive(Debug, Clone, Copy, Default)]
pub struct Offline;

impl ChatModel for Offline {
    fn name(&self) -> &str {
        "offline"
    }

    fn generate<'a>(
        &'a self,
        request: Request<'a>,
        on_delta: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            let message = answer(request);
            if !message.text.is_empty() {
                on_delta(Delta::Text(message.text.clone()));
            }
            let finish = if message.calls.is_empty() { Finish::Stop } else { Finish::ToolCalls };
            Ok(Reply { message, finish, usage: None })
        })
    }
}

fn answer(request: Request<'_>) -> AssistantMessage {
    let results = last_results(request.messages);
    if !results.is_empty() {
        return say(phrase::results(&results));
    }
    let Some(Message::User(said)) = request.messages.last() else {
        return say(about::help(request.tools));
    };
    let text = &said.text;
    if text.len() > SENTENCE_BYTES_MAX {
        return say(about::too_long(SENTENCE_BYTES_MAX));
    }
    let catalogue = Catalogue::new(request.tools);
    let decision = match decide(&catalogue, text) {
        Decision::Nothing => go_on(&catalogue, request.messages, text),
        decision => decision,
    };
    match decision {
        Decision::Call(calls) => call(&calls, request.messages),
        Decision::Ask { tool, missing } => say(about::question(tool, &missing)),
        Decision::Nothing => say(about::help(request.tools)),
    }
}

/// Takes a sentence that means nothing by itself as the answer to a question just asked.
fn go_on<'a>(catalogue: &Catalogue<'a>, messages: &[Message], answer: &str) -> Decision<'a> {
    let [.., Message::User(said), Message::Assistant(asked), _] = messages else {
        return Decision::Nothing;
    };
    let text = &said.text;
    let fits = asked.calls.is_empty() && text.len() + answer.len() < SENTENCE_BYTES_MAX;
    match decide(catalogue, text) {
        Decision::Ask { tool, missing }
            if fits && asked.text == about::question(tool, &missing) =>
        {
            decide(catalogue, &format!("{text} {answer}"))
        }
        _ => Decision::Nothing,
    }
}

fn last_results(messages: &[Message]) -> Vec<&ToolResult> {
    let mut results: Vec<&ToolResult> = messages
        .iter()
        .rev()
        .map_while(|message| match message {
            Message::Tool(result) => Some(result),
            _ => None,
        })
        .collect();
    results.reverse();
    results
}

fn say(text: String) -> AssistantMessage {
    AssistantMessage { text, ..AssistantMessage::default() }
}

/// Ids go on counting through the conversation, so that no two calls share one.
fn call(calls: &[Planned<'_>], messages: &[Message]) -> AssistantMessage {
    let made: usize = messages
        .iter()
        .map(|message| match message {
            Message::Assistant(said) => said.calls.len(),
            _ => 0,
        })
        .sum();
    let request = |(n, planned): (usize, &Planned<'_>)| CallRequest {
        id: format!("offline_{}", made + n + 1),
        name: planned.tool.name.clone(),
        arguments: Value::Object(planned.arguments.clone()).to_string(),
    };
    let calls = calls.iter().enumerate().map(request).collect();
    AssistantMessage { calls, ..AssistantMessage::default() }
}
