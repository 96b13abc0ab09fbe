//! Conversations in one form, regardless of their protocol.

use std::collections::HashMap;

use sallyport_model::{AssistantMessage, ChatMessage, ModelCallRequest, ToolResultMessage};
use serde_json::{Value, json};

use crate::wires::Wire;

/// Reads a request's conversation. Ids are added if the protocol has none, arguments are
/// normalized, and results have the name of their tool.
pub(crate) fn conversation(
    wire: &dyn Wire,
    request: &Value,
) -> Result<Vec<ChatMessage>, &'static str> {
    let mut messages = joined(wire.conversation(request)?);
    let mut open: Vec<(String, String)> = Vec::new();
    let mut count = 0;
    for message in &mut messages {
        match message {
            ChatMessage::Assistant(said) => {
                for call in &mut said.calls {
                    count += 1;
                    settle_call(call, count);
                    open.push((call.id.clone(), call.name.clone()));
                }
            }
            ChatMessage::Tool(result) => settle_result(result, &mut open),
            ChatMessage::System { .. } | ChatMessage::User(_) => {}
        }
    }
    Ok(messages)
}

/// Some protocols write one answer as several items; these become one message.
fn joined(messages: Vec<ChatMessage>) -> Vec<ChatMessage> {
    let mut joined: Vec<ChatMessage> = Vec::new();
    for message in messages {
        match (joined.last_mut(), message) {
            (Some(ChatMessage::Assistant(last)), ChatMessage::Assistant(more)) => {
                last.text.push_str(&more.text);
                last.calls.extend(more.calls);
            }
            (_, message) => joined.push(message),
        }
    }
    joined
}

fn settle_call(call: &mut ModelCallRequest, count: usize) {
    if call.id.is_empty() {
        call.id = format!("n{count}");
    }
    call.arguments = canonical(&call.arguments);
}

/// A result without an id belongs to the first open call of its tool.
fn settle_result(result: &mut ToolResultMessage, open: &mut Vec<(String, String)>) {
    let is_its = |(id, name): &(String, String)| match result.call_id.as_str() {
        "" => *name == result.name,
        own => own == id,
    };
    if let Some(at) = open.iter().position(is_its) {
        (result.call_id, result.name) = open.remove(at);
    }
    result.failed = false;
}

/// Returns arguments in normalized form if they are JSON.
pub(crate) fn canonical(arguments: &str) -> String {
    match arguments.trim() {
        "" => "{}".to_owned(),
        text => {
            serde_json::from_str(text).map_or_else(|_| text.to_owned(), |v: Value| v.to_string())
        }
    }
}

/// Replaces answers in a recorded request by our own reading of them, with its opaque part and its
/// ids. Returns the number of replaced answers.
pub(crate) fn put_own_answers(messages: &mut [ChatMessage], said: Vec<&AssistantMessage>) -> usize {
    let mut ids: HashMap<String, String> = HashMap::new();
    let mut found = 0;
    for message in messages {
        match message {
            ChatMessage::Assistant(theirs) => {
                let Some(ours) = said.iter().find(|ours| is_same(ours, theirs)) else { continue };
                let pairs = theirs.calls.iter().zip(&ours.calls);
                ids.extend(pairs.map(|(theirs, ours)| (theirs.id.clone(), ours.id.clone())));
                *theirs = (*ours).clone();
                found += 1;
            }
            ChatMessage::Tool(result) => {
                if let Some(id) = ids.get(&result.call_id) {
                    result.call_id.clone_from(id);
                }
            }
            ChatMessage::System { .. } | ChatMessage::User(_) => {}
        }
    }
    found
}

/// Clients trim the messages that they repeat.
fn is_same(ours: &AssistantMessage, theirs: &AssistantMessage) -> bool {
    let calls = |message: &AssistantMessage| -> Vec<Value> {
        let call = |call: &ModelCallRequest| json!([call.name, canonical(&call.arguments)]);
        message.calls.iter().map(call).collect()
    };
    ours.text.trim() == theirs.text.trim() && calls(ours) == calls(theirs)
}
