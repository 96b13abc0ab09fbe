//! Converts a finished answer into a [`Reply`].
//!
//! Its items are kept and sent back with the next request. Only the ids and arguments of calls are
//! repaired in them, because they would make the next request fail.

use serde_json::{Value, json};

use crate::{
    chat::{
        AssistantMessage, CallRequest, Delta, Finish, Message, ModelError, Opaque, Reply, Usage,
    },
    wire::{
        Provider,
        answer::{other_reason, text, tokens},
        conversation::arguments_text,
        unique_ids,
    },
};

/// Most calls in one answer. No session runs more.
const CALLS_MAX: usize = 4096;

/// An answer that violates the protocol.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Flaw {
    /// The answer has no items.
    #[error("there is no output in the answer")]
    NoOutput,
    /// An item is not a JSON object.
    #[error("an item of the answer is not an object")]
    NotAnObject,
    /// The answer is neither completed nor incomplete.
    #[error("the answer is not complete: it is {status}")]
    Unfinished {
        /// The status of the answer.
        status: String,
    },
    /// There are more than [`CALLS_MAX`] calls.
    #[error("more than {CALLS_MAX} calls")]
    TooManyCalls,
}

impl Flaw {
    /// Returns it as an error of the provider.
    pub(super) fn of(&self, provider: &Provider) -> ModelError {
        provider.broken(&self.to_string())
    }
}

/// Converts a finished answer. `conversation` contains the call ids that are already used; `origin`
/// marks the provider's own form.
pub(super) fn reply(
    mut answer: Value,
    conversation: &[Message],
    origin: &str,
) -> Result<Reply, Flaw> {
    let text = text_of(&answer);
    let usage = usage(&answer);
    let Some(Value::Array(mut items)) = answer.get_mut("output").map(Value::take) else {
        return Err(Flaw::NoOutput);
    };
    let calls = calls(&mut items, conversation)?;
    let finish = finish(&answer, !calls.is_empty())?;
    let opaque = Opaque { origin: origin.to_owned(), body: Value::Array(items) };
    let message = AssistantMessage { text, calls, opaque: Some(opaque) };
    Ok(Reply { message, finish, usage })
}

/// Returns the deltas of a whole answer, in the order of a stream.
pub(super) fn deltas(answer: &Value) -> Vec<Delta> {
    let thoughts = joined(items(answer, "reasoning").map(|item| {
        joined(["summary", "content"].iter().flat_map(|key| parts(item, key)).map(words))
    }));
    let thoughts = Some(thoughts).filter(|said| !said.is_empty()).map(Delta::Reasoning);
    let text = Some(text_of(answer)).filter(|said| !said.is_empty()).map(Delta::Text);
    let calls = items(answer, "function_call").flat_map(begun);
    thoughts.into_iter().chain(text).chain(calls).collect()
}

/// Returns the delta that an item begins with, if it is a call.
pub(super) fn begun(item: &Value) -> impl Iterator<Item = Delta> + use<> {
    let name = (text(item, "type") == "function_call").then(|| text(item, "name").to_owned());
    name.filter(|name| !name.is_empty()).map(|name| Delta::CallBegun { name }).into_iter()
}

/// Returns the text of an answer. A refusal counts as text.
pub(super) fn text_of(answer: &Value) -> String {
    joined(items(answer, "message").map(|item| parts(item, "content").map(words).collect()))
}

fn items<'a>(answer: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    parts(answer, "output").filter(move |item| text(item, "type") == kind)
}

fn parts<'a>(item: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    item.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn words(part: &Value) -> String {
    match text(part, "type") {
        "output_text" | "summary_text" | "reasoning_text" => text(part, "text").to_owned(),
        "refusal" => text(part, "refusal").to_owned(),
        _ => String::new(),
    }
}

fn joined(pieces: impl Iterator<Item = String>) -> String {
    pieces.filter(|piece| !piece.is_empty()).collect::<Vec<_>>().join("\n\n")
}

fn calls(items: &mut [Value], conversation: &[Message]) -> Result<Vec<CallRequest>, Flaw> {
    if items.iter().any(|item| !item.is_object()) {
        return Err(Flaw::NotAnObject);
    }
    let calls = items.iter_mut().filter(|item| text(item, "type") == "function_call");
    let calls: Vec<&mut Value> = calls.collect();
    if calls.len() > CALLS_MAX {
        return Err(Flaw::TooManyCalls);
    }
    let given: Vec<Option<&str>> = calls.iter().map(|call| Some(text(call, "call_id"))).collect();
    let ids = unique_ids(&given, conversation);
    Ok(calls.into_iter().zip(ids).map(|(call, id)| read_call(call, id)).collect())
}

/// Converts one call, and writes the values that were missing into the provider's form too.
fn read_call(call: &mut Value, id: String) -> CallRequest {
    let arguments = arguments_text(call.get("arguments"));
    call["call_id"] = json!(id);
    call["arguments"] = json!(arguments);
    CallRequest { id, name: text(call, "name").to_owned(), arguments }
}

fn usage(answer: &Value) -> Option<Usage> {
    let usage = answer.get("usage").filter(|usage| usage.is_object())?;
    Some(Usage {
        input_tokens: tokens(usage, "/input_tokens"),
        output_tokens: tokens(usage, "/output_tokens"),
        cached_input_tokens: tokens(usage, "/input_tokens_details/cached_tokens"),
        cache_write_tokens: tokens(usage, "/input_tokens_details/cache_write_tokens"),
        reasoning_tokens: tokens(usage, "/output_tokens_details/reasoning_tokens"),
    })
}

fn finish(answer: &Value, has_calls: bool) -> Result<Finish, Flaw> {
    let why = answer.pointer("/incomplete_details/reason").and_then(Value::as_str);
    match (text(answer, "status"), why) {
        ("incomplete", Some("max_output_tokens")) => Ok(Finish::Length),
        ("incomplete", Some("content_filter")) => Ok(Finish::ContentFilter),
        ("incomplete", why) => Ok(other_reason(why.unwrap_or("incomplete"))),
        ("completed" | "", _) if has_calls => Ok(Finish::ToolCalls),
        ("completed" | "", _) => Ok(Finish::Stop),
        (status, _) => {
            Err(Flaw::Unfinished { status: sallyport_contract::text::escape_excerpt(status, 40) })
        }
    }
}
