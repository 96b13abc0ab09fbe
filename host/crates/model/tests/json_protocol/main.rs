//! The JSON protocol around a scripted model.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod answers;
mod prompts;
mod scripted;

use std::sync::Arc;

use sallyport_model::{
    CallRequest, ChatModel, Delta, JsonProtocol, Message, ModelError, Reply, Request,
    ToolDefinition,
};
use serde_json::json;

use crate::scripted::{Said, Scripted};

/// The result of a question: the reply, the text that the user saw, and the requests to the model.
struct Outcome {
    reply: Reply,
    deltas: Vec<Delta>,
    asked: Vec<Vec<Message>>,
}

async fn ask(
    script: Vec<Said>,
    messages: &[Message],
    tools: &[ToolDefinition],
) -> Result<Outcome, ModelError> {
    let model = Arc::new(Scripted::new(script));
    let protocol = JsonProtocol::new(Arc::clone(&model) as Arc<dyn ChatModel>);
    let mut deltas = Vec::new();
    let mut on_delta = |delta| deltas.push(delta);
    let reply =
        protocol.generate(Request { messages, tools, ..Request::default() }, &mut on_delta).await?;
    Ok(Outcome { reply, deltas, asked: model.asked() })
}

/// A question about the time, with the tool for it.
async fn answer(script: Vec<Said>) -> Outcome {
    ask(script, &[Message::user("What time is it?")], &[get_time()]).await.unwrap()
}

fn get_time() -> ToolDefinition {
    ToolDefinition {
        name: "get_time".to_owned(),
        description: "Tells the time".to_owned(),
        parameters: json!({ "type": "object", "properties": { "zone": { "type": "string" } } }),
    }
}

fn call(id: &str, name: &str, arguments: &str) -> CallRequest {
    CallRequest { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
}

/// The text that the user has read, joined.
fn read_aloud(deltas: &[Delta]) -> String {
    let text = |delta: &Delta| match delta {
        Delta::Text(text) => Some(text.clone()),
        _ => None,
    };
    deltas.iter().filter_map(text).collect()
}
