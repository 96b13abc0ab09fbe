//! The stand-in model, asked as people would ask it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod definitions;
mod everyday;
mod hostile;
mod phrasing;
mod reminders;
mod sentences;

use futures::FutureExt;
use sallyport_model::{
    AssistantMessage, ChatModel, Delta, Message, Offline, Reply, Request, ToolDefinition,
};

fn generate(messages: &[Message], tools: &[ToolDefinition]) -> Reply {
    let mut deltas = Vec::new();
    let mut on_delta = |delta| deltas.push(delta);
    // It waits for nothing.
    let reply = Offline
        .generate(Request { messages, tools, ..Request::default() }, &mut on_delta)
        .now_or_never();
    let reply = reply.unwrap().unwrap();
    let text = reply.message.text.clone();
    let want = if text.is_empty() { Vec::new() } else { vec![Delta::Text(text)] };
    assert_eq!(deltas, want);
    assert_eq!((&reply.usage, &reply.message.opaque), (&None, &None));
    reply
}

/// Says one sentence and returns the answer.
fn say(sentence: &str, tools: &[ToolDefinition]) -> AssistantMessage {
    generate(&[Message::user(sentence)], tools).message
}
