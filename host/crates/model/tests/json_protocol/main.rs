//! The JSON protocol around a scripted model.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod answers;
mod prompts;
mod scripted;

use std::sync::Arc;

use sallyport_model::{
    ChatMessage, ChatModel, JsonProtocolModel, ModelCallRequest, ModelError, ModelReply,
    ModelRequest, ModelToolDefinition, ReplyDelta,
};
use serde_json::json;

use crate::scripted::{Said, Scripted};

/// The result of a question: the reply, the text that the user saw, and the requests to the model.
struct Outcome {
    reply: ModelReply,
    deltas: Vec<ReplyDelta>,
    asked: Vec<Vec<ChatMessage>>,
}

async fn ask(
    script: Vec<Said>,
    messages: &[ChatMessage],
    tools: &[ModelToolDefinition],
) -> Result<Outcome, ModelError> {
    let model = Arc::new(Scripted::new(script));
    let protocol = JsonProtocolModel::new(Arc::clone(&model) as Arc<dyn ChatModel>);
    let mut deltas = Vec::new();
    let mut on_delta = |delta| deltas.push(delta);
    let reply = protocol
        .generate(ModelRequest { messages, tools, ..ModelRequest::default() }, &mut on_delta)
        .await?;
    Ok(Outcome { reply, deltas, asked: model.asked() })
}

/// A question about the time, with the tool for it.
async fn answer(script: Vec<Said>) -> Outcome {
    ask(script, &[ChatMessage::user("What time is it?")], &[get_time()]).await.unwrap()
}

fn get_time() -> ModelToolDefinition {
    ModelToolDefinition {
        name: "get_time".to_owned(),
        description: "Tells the time".to_owned(),
        parameters: json!({ "type": "object", "properties": { "zone": { "type": "string" } } }),
    }
}

fn call(id: &str, name: &str, arguments: &str) -> ModelCallRequest {
    ModelCallRequest { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
}

/// The text that the user has read, joined.
fn read_aloud(deltas: &[ReplyDelta]) -> String {
    let text = |delta: &ReplyDelta| match delta {
        ReplyDelta::Text { text } => Some(text.clone()),
        _ => None,
    };
    deltas.iter().filter_map(text).collect()
}
