//! A provider's finished message, read into ours.
//!
//! Both ways of answering end here: a whole answer brings its message, a streamed one has been put
//! together in the same form. That form is kept and goes back with the next request; only what
//! would make the next request impossible is repaired in it, namely ids and empty arguments.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::calls::FragmentError;
use super::request::NO_ARGUMENTS;
use crate::chat::{AssistantMessage, CallRequest, Delta, Finish, Message, Opaque, Reply, Usage};

/// Longest unknown finish reason that is passed on; the known ones have about ten characters.
const REASON_CHARS_MAX: usize = 40;

/// A message in the provider's own form, with what was said about it.
#[derive(Debug, Default)]
pub(super) struct Finished {
    pub(super) message: Map<String, Value>,
    pub(super) finish: Option<String>,
    pub(super) usage: Option<Usage>,
}

/// Reads a finished message. `taken` holds the call ids that the conversation already uses.
/// `origin` marks the provider's own form.
pub(super) fn reply(
    finished: Finished,
    taken: HashSet<&str>,
    origin: &str,
) -> Result<Reply, FragmentError> {
    let Finished { mut message, finish, usage } = finished;
    let calls = match message.get_mut("tool_calls") {
        Some(Value::Array(calls)) => read_calls(calls, taken)?,
        _ => Vec::new(),
    };
    message.insert("role".to_owned(), json!("assistant"));
    let text = text_of(&message);
    let finish = reason(finish.as_deref(), !calls.is_empty());
    let opaque = Opaque { origin: origin.to_owned(), body: Value::Object(message) };
    let message = AssistantMessage { text, calls, opaque: Some(opaque) };
    Ok(Reply { message, finish, usage })
}

/// Returns every call id in a conversation.
pub(super) fn ids(messages: &[Message]) -> HashSet<&str> {
    let said = messages.iter().filter_map(|message| match message {
        Message::Assistant(said) => Some(&said.calls),
        _ => None,
    });
    said.flatten().map(|call| call.id.as_str()).collect()
}

/// Returns what a message, or a fragment of one, says: text, and thinking before it.
pub(super) fn deltas(message: &Map<String, Value>) -> impl Iterator<Item = Delta> {
    let reasoning = ["reasoning_content", "reasoning"]
        .iter()
        .find_map(|key| message.get(*key).and_then(Value::as_str).filter(|text| !text.is_empty()))
        .map(|text| Delta::Reasoning(text.to_owned()));
    let text = Some(text_of(message)).filter(|text| !text.is_empty()).map(Delta::Text);
    reasoning.into_iter().chain(text)
}

/// Returns the usage that a chunk or an answer tells of.
pub(super) fn usage(answer: &Value) -> Option<Usage> {
    let usage = answer.get("usage").filter(|usage| usage.is_object())?;
    let tokens = |key: &str| usage.get(key).and_then(Value::as_u64).unwrap_or(0);
    Some(Usage {
        input_tokens: tokens("prompt_tokens"),
        output_tokens: tokens("completion_tokens"),
        ..Usage::default()
    })
}

/// Content is text or a list of parts. A refusal is what the person is to read in its place.
fn text_of(message: &Map<String, Value>) -> String {
    let part = |part: &Value| match part.get("type").and_then(Value::as_str) {
        Some("text") => part.get("text").and_then(Value::as_str).unwrap_or("").to_owned(),
        _ => String::new(),
    };
    let content = match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts.iter().map(part).collect(),
        _ => String::new(),
    };
    match message.get("refusal") {
        Some(Value::String(refusal)) if content.is_empty() => refusal.clone(),
        _ => content,
    }
}

fn read_calls(
    calls: &mut [Value],
    taken: HashSet<&str>,
) -> Result<Vec<CallRequest>, FragmentError> {
    let mut taken: HashSet<String> = taken.into_iter().map(str::to_owned).collect();
    let given: HashSet<String> = calls.iter().filter_map(id_of).map(str::to_owned).collect();
    let mut made_up = (1_u64..).map(|n| format!("call_{n}"));
    let mut read = Vec::with_capacity(calls.len());
    for call in calls {
        let own = id_of(call).filter(|id| !taken.contains(*id)).map(str::to_owned);
        let id = own.or_else(|| made_up.find(|id| !taken.contains(id) && !given.contains(id)));
        let id = id.unwrap_or_default();
        read.push(read_call(call, &id)?);
        taken.insert(id);
    }
    Ok(read)
}

fn id_of(call: &Value) -> Option<&str> {
    call.get("id")?.as_str().filter(|id| !id.is_empty())
}

/// Reads one call and writes into the provider's form what had to be made up.
fn read_call(call: &mut Value, id: &str) -> Result<CallRequest, FragmentError> {
    let call = call.as_object_mut().ok_or(FragmentError::NotAnObject)?;
    call.insert("id".to_owned(), json!(id));
    let function = call.entry("function").or_insert_with(|| json!({}));
    let function = function.as_object_mut().ok_or(FragmentError::NotAnObject)?;
    let name = function.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let arguments = match function.get("arguments") {
        Some(Value::String(text)) if !text.trim().is_empty() => text.clone(),
        Some(object @ Value::Object(_)) => object.to_string(),
        _ => {
            function.insert("arguments".to_owned(), json!(NO_ARGUMENTS));
            NO_ARGUMENTS.to_owned()
        }
    };
    Ok(CallRequest { id: id.to_owned(), name, arguments })
}

/// Some servers say `stop` although they want tools called.
fn reason(finish: Option<&str>, has_calls: bool) -> Finish {
    match finish {
        None | Some("stop" | "tool_calls" | "function_call") if has_calls => Finish::ToolCalls,
        None | Some("stop") => Finish::Stop,
        Some("tool_calls" | "function_call") => Finish::ToolCalls,
        Some("length") => Finish::Length,
        Some("content_filter") => Finish::ContentFilter,
        Some(other) => Finish::Other(sallyport_contract::text::excerpt(other, REASON_CHARS_MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(message: Value, taken: &[&str]) -> Result<Reply, FragmentError> {
        let message = message.as_object().unwrap().clone();
        let finished = Finished { message, ..Finished::default() };
        reply(finished, taken.iter().copied().collect(), "openai/m")
    }

    #[test]
    fn ids_are_unique_in_the_conversation_and_the_form_agrees() {
        let call = |id: Value| json!({ "id": id, "function": { "name": "n" } });
        let rows: [(&[Value], &[&str], &[&str]); 5] = [
            (&[json!("a"), json!("b")], &[], &["a", "b"]),
            (&[json!("a"), json!("a")], &[], &["a", "call_1"]),
            (&[json!(""), json!(null), json!(3)], &[], &["call_1", "call_2", "call_3"]),
            (&[json!(""), json!("call_1")], &["call_2"], &["call_3", "call_1"]),
            (&[json!("a")], &["a"], &["call_1"]),
        ];
        for (given, taken, want) in rows {
            let calls: Vec<Value> = given.iter().cloned().map(call).collect();
            let message = read(json!({ "tool_calls": calls }), taken).unwrap().message;
            let ids: Vec<&str> = message.calls.iter().map(|c| c.id.as_str()).collect();
            assert_eq!(ids, want);
            let own = message.opaque.unwrap().body;
            for (own, want) in own["tool_calls"].as_array().unwrap().iter().zip(want) {
                assert_eq!(own["id"], json!(want));
                assert_eq!(own["function"]["arguments"], json!("{}"));
            }
        }
    }

    #[test]
    fn text_is_found_in_every_form() {
        let rows = [
            (json!({ "content": "a" }), "a"),
            (json!({ "content": null }), ""),
            (json!({}), ""),
            (json!({ "content": null, "refusal": "no" }), "no"),
            (json!({ "content": [{ "type": "thinking" }, { "type": "text", "text": "b" }] }), "b"),
        ];
        for (message, want) in rows {
            assert_eq!(read(message, &[]).unwrap().message.text, want);
        }
    }

    #[test]
    fn calls_that_are_no_calls_break_the_answer() {
        for calls in [json!(["x"]), json!([null]), json!([{ "function": "x" }])] {
            assert!(read(json!({ "tool_calls": calls }), &[]).is_err(), "{calls}");
        }
        for calls in [json!(null), json!([]), json!("x")] {
            assert_eq!(read(json!({ "tool_calls": calls }), &[]).unwrap().message.calls, []);
        }
    }

    #[test]
    fn finish_reasons_are_told_apart() {
        let rows = [
            (None, false, Finish::Stop),
            (None, true, Finish::ToolCalls),
            (Some("stop"), true, Finish::ToolCalls),
            (Some("tool_calls"), true, Finish::ToolCalls),
            (Some("length"), true, Finish::Length),
            (Some("content_filter"), false, Finish::ContentFilter),
            (Some("er\x1bror"), false, Finish::Other("er\\u{1b}ror".to_owned())),
        ];
        for (given, has_calls, want) in rows {
            assert_eq!(reason(given, has_calls), want);
        }
    }
}
