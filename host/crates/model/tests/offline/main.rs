//! The offline model, with the sentences of users.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod definitions;
mod everyday;
mod hostile;
mod phrasing;
mod refused;
mod shared;
mod understood;

use std::sync::Arc;

use futures::FutureExt;
use sallyport_model::{
    AssistantMessage, ChatMessage, ChatModel, ModelReply, ModelRequest, ModelToolDefinition,
    OfflineMatcher, ReplyDelta, ToolReach,
};
use serde_json::Value;

/// Plugins that can neither change nor leak anything in an ordinary installation.
const HARMLESS: [&str; 2] = ["clock__", "system-info__"];

fn generate(messages: &[ChatMessage], tools: &[ModelToolDefinition]) -> ModelReply {
    let reach = |name: &str| match HARMLESS.iter().any(|plugin| name.starts_with(plugin)) {
        true => ToolReach::Nothing,
        false => ToolReach::ChangesOrLeaks,
    };
    let mut deltas = Vec::new();
    let mut on_delta = |delta| deltas.push(delta);
    // The future is ready immediately.
    let reply = OfflineMatcher::new(Arc::new(reach))
        .generate(ModelRequest { messages, tools, ..ModelRequest::default() }, &mut on_delta)
        .now_or_never();
    let reply = reply.unwrap().unwrap();
    let text = reply.message.text.clone();
    let want = if text.is_empty() { Vec::new() } else { vec![ReplyDelta::Text { text }] };
    assert_eq!(deltas, want);
    assert_eq!((&reply.usage, &reply.message.opaque), (&None, &None));
    reply
}

/// Sends one sentence and returns the answer.
fn say(sentence: &str, tools: &[ModelToolDefinition]) -> AssistantMessage {
    generate(&[ChatMessage::user(sentence)], tools).message
}

/// Writes an answer as text: calls as `tool name=value`, a question as `? tool: what`, help as an
/// empty text.
fn told(message: &AssistantMessage) -> String {
    if let Some(question) = message.text.strip_prefix("To use ") {
        let (tool, wanted) = question.split_once(" I need: ").unwrap();
        let wanted = wanted.split([' ', ',', '.']).next().unwrap();
        return format!("? {tool}: {wanted}");
    }
    let call = |call: &sallyport_model::ModelCallRequest| {
        let arguments: serde_json::Map<String, Value> =
            serde_json::from_str(&call.arguments).unwrap();
        let value = |value: &Value| value.as_str().map_or(value.to_string(), str::to_owned);
        let arguments = arguments.iter().map(|(name, given)| format!(" {name}={}", value(given)));
        format!("{}{}", call.name.replacen("__", ".", 1), arguments.collect::<String>())
    };
    message.calls.iter().map(call).collect::<Vec<_>>().join(" + ")
}

/// Sends each sentence to the tools of an ordinary installation and compares the answer.
#[track_caller]
fn check(rows: &[(&str, &str)]) {
    let tools = everyday::tools();
    let wrong: Vec<String> = rows
        .iter()
        .map(|(sentence, want)| (sentence, want, told(&say(sentence, &tools))))
        .filter(|(_, want, got)| *want != got)
        .map(|(sentence, want, got)| format!("{sentence:?}\n   want {want}\n    got {got}"))
        .collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}
