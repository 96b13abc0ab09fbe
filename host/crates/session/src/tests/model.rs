//! A model that follows a script.

use std::{
    future,
    sync::{Arc, Mutex},
    time::Duration,
};

use sallyport_contract::BoxFuture;
use sallyport_model::{
    AssistantMessage, ChatMessage, ChatModel, FinishReason, ModelCallRequest, ModelError,
    ModelReply, ModelRequest, OpaqueMessage, ReplyDelta, TokenPrice, TokenUsage,
};
use serde_json::json;

use super::{
    toolbox::{Presence, Probe},
    transcript,
};

/// The model's behaviour for one request.
#[derive(Clone)]
pub(super) enum Line {
    Answers(ModelReply),
    Streams(Vec<ReplyDelta>, ModelReply),
    Fails(ModelError),
    /// Streams the word "hm" and then hangs.
    Hangs,
    /// Streams the word "hm" forever.
    Talks,
}

type Script = Box<dyn Fn(usize) -> Line + Send + Sync>;

pub(super) struct Model {
    script: Script,
    requests: Arc<Mutex<Vec<Vec<ChatMessage>>>>,
    probe: Arc<Probe>,
    name: &'static str,
    price: Option<TokenPrice>,
}

impl Model {
    pub(super) fn new(
        script: impl Fn(usize) -> Line + Send + Sync + 'static,
        requests: Arc<Mutex<Vec<Vec<ChatMessage>>>>,
        probe: Arc<Probe>,
    ) -> Self {
        Self { script: Box::new(script), requests, probe, name: "scripted", price: None }
    }

    /// Returns the same model with a price.
    pub(super) fn priced(self, price: TokenPrice) -> Self {
        Self { price: Some(price), ..self }
    }

    /// Returns the same model under another name.
    pub(super) fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    pub(super) fn requests(&self) -> &Arc<Mutex<Vec<Vec<ChatMessage>>>> {
        &self.requests
    }

    fn next_line(&self, request: ModelRequest<'_>) -> Line {
        assert_eq!(transcript::check_messages(request.messages), Ok(()));
        let tools = request.tools.iter().map(|tool| tool.name.clone()).collect();
        self.probe.listed_tools.lock().unwrap().push(tools);
        let mut requests = self.requests.lock().unwrap();
        requests.push(request.messages.to_vec());
        (self.script)(requests.len() - 1)
    }
}

impl ChatModel for Model {
    fn name(&self) -> &str {
        self.name
    }

    fn price(&self) -> Option<TokenPrice> {
        self.price
    }

    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(ReplyDelta) + Send),
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(async move {
            match self.next_line(request) {
                Line::Answers(reply) => Ok(reply),
                Line::Fails(error) => Err(error),
                Line::Streams(deltas, reply) => {
                    for (index, delta) in deltas.into_iter().enumerate() {
                        on_delta(delta);
                        if index % 3 == 0 {
                            tokio::task::yield_now().await;
                        }
                    }
                    Ok(reply)
                }
                Line::Talks => loop {
                    on_delta(ReplyDelta::Text { text: "hm".into() });
                    tokio::time::sleep(Duration::from_millis(1)).await;
                },
                Line::Hangs => {
                    let _present = Presence::new(&self.probe);
                    on_delta(ReplyDelta::Text { text: "hm".into() });
                    future::pending().await
                }
            }
        })
    }
}

/// A model that receives no request.
pub(super) fn silent() -> Model {
    Model::new(|_| unreachable!(), Arc::default(), Arc::default()).named("silent")
}

/// Answers with the lines one after another; after the last, the model fails.
pub(super) fn script(lines: Vec<Line>) -> impl Fn(usize) -> Line + Send + Sync {
    move |index| lines.get(index).cloned().unwrap_or_else(|| Line::Fails(broken("end of script")))
}

pub(super) fn broken(message: &str) -> ModelError {
    ModelError::Broken { provider: "scripted".into(), message: message.into() }
}

pub(super) fn refused(status: u16) -> ModelError {
    ModelError::Refused {
        provider: "scripted".into(),
        status,
        message: "no".into(),
        retry_after: None,
    }
}

/// A text answer.
pub(super) fn says(text: &str) -> Line {
    finishes(text, FinishReason::Stop)
}

pub(super) fn finishes(text: &str, finish: FinishReason) -> Line {
    let message = AssistantMessage { text: text.into(), ..AssistantMessage::default() };
    Line::Answers(ModelReply { message, finish, usage: None })
}

/// The same line, with the usage that the provider reports.
pub(super) fn using(line: Line, input_tokens: u64, output_tokens: u64) -> Line {
    let usage = Some(TokenUsage { input_tokens, output_tokens, ..TokenUsage::default() });
    match line {
        Line::Answers(reply) => Line::Answers(ModelReply { usage, ..reply }),
        other => other,
    }
}

/// An answer with calls, each as id, name and arguments.
pub(super) fn calls(wanted: &[(&str, &str, &str)]) -> Line {
    Line::Answers(calling(wanted, FinishReason::ToolCalls))
}

pub(super) fn calling(wanted: &[(&str, &str, &str)], finish: FinishReason) -> ModelReply {
    let calls = wanted.iter().map(|(id, name, arguments)| ModelCallRequest {
        id: (*id).into(),
        name: (*name).into(),
        arguments: (*arguments).into(),
    });
    let body = json!({ "signature": "x" });
    let opaque = Some(OpaqueMessage { origin: "test".to_owned(), body });
    let message = AssistantMessage { text: String::new(), calls: calls.collect(), opaque };
    ModelReply { message, finish, usage: None }
}
