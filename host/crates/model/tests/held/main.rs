//! Every protocol against a server that sends each piece of its answer only on demand.
//!
//! One answer, a text and two calls, is written in each protocol. It is cancelled between any two
//! events, broken off at every byte, split in two at every byte, begun late and refused at first.
//! Each time it must end as a whole answer or as an error, never as a partial answer that passes
//! for whole.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod cancelled;
mod cuts;
mod refused;
mod scripts;
mod server;
mod slow;
mod taken_back;

use std::{sync::Arc, time::Duration};

use sallyport_contract::Secret;
use sallyport_model::{
    ChatMessage, ChatModel, ModelEndpoint, ModelError, ModelReply, ModelRequest,
    ModelToolDefinition, ReplyDelta, connect_model,
};
use serde_json::json;

use crate::{scripts::Script, server::Server};

/// A timeout far above what these tests need, so that a hanging test still ends.
const PATIENCE: Duration = Duration::from_secs(60);

/// The key in these tests.
const KEY: &str = "sk-test-0123456789";

fn endpoint(script: &Script, server: &Server) -> ModelEndpoint {
    ModelEndpoint {
        key: Some(Secret::new(KEY)),
        time_max: PATIENCE,
        tool_calling: script.tool_calling,
        ..ModelEndpoint::new(script.protocol, server.base_url.clone(), "test-model")
    }
}

fn model(script: &Script, server: &Server) -> Arc<dyn ChatModel> {
    connect_model(endpoint(script, server)).unwrap()
}

/// Asks for the answer of a script. `on_delta` receives it while it arrives.
async fn ask(
    model: &dyn ChatModel,
    on_delta: &mut (dyn FnMut(ReplyDelta) + Send),
) -> Result<ModelReply, ModelError> {
    let tool = |name: &str| ModelToolDefinition {
        name: name.to_owned(),
        description: String::new(),
        parameters: json!({ "type": "object", "properties": {} }),
    };
    let (messages, tools) = ([ChatMessage::user("hello")], [tool("x"), tool("y")]);
    model
        .generate(
            ModelRequest { messages: &messages, tools: &tools, ..ModelRequest::default() },
            on_delta,
        )
        .await
}

/// Asks, answers with the given pieces, then closes the connection.
async fn play(
    model: &dyn ChatModel,
    server: &Server,
    pieces: &[&[u8]],
) -> (Result<ModelReply, ModelError>, Vec<ReplyDelta>) {
    let mut deltas = Vec::new();
    let mut on_delta = |delta| deltas.push(delta);
    let serve = async {
        let mut caller = server.accept().await;
        for piece in pieces {
            caller.send(piece).await;
        }
        caller.hang_up().await;
    };
    let (reply, ()) = tokio::join!(ask(model, &mut on_delta), serve);
    (reply, deltas)
}

/// The text in deltas, and the calls that began.
fn shown(deltas: &[ReplyDelta]) -> (String, Vec<String>) {
    let (mut text, mut calls) = (String::new(), Vec::new());
    for delta in deltas {
        match delta {
            ReplyDelta::Text { text: piece } => text.push_str(piece),
            ReplyDelta::CallBegun { name } => calls.push(name.clone()),
            ReplyDelta::Reasoning { .. } | ReplyDelta::LeftOut(_) | ReplyDelta::Retry { .. } => {}
        }
    }
    (text, calls)
}
