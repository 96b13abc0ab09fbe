//! A model and tools that follow a script.

use std::{
    collections::VecDeque,
    future,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use sallyport_contract::{
    Admission, AdmittedCall, BoxFuture, CallFailure, CallReport, Denial, Effect, FailureKind,
    FixRule, LogLevel, Outcome, PolicyFix, RequestedCall, ToolDescriptor, ToolHints, ToolOutput,
    Toolbox,
};
use sallyport_model::{
    AssistantMessage, ChatModel, FinishReason, ModelCallRequest, ModelError, ModelReply,
    ModelRequest, OpaqueMessage, ReplyDelta, TokenPrice, TokenUsage,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

/// The model's behaviour for one request.
pub(super) enum Line {
    Says(&'static str),
    /// Calls of tools with arguments; the ids consist of the request's number and the call's.
    Calls(&'static [(&'static str, &'static str)]),
    Fails(ModelError),
    /// Streams two words and then hangs.
    Hangs,
}

/// A model that follows a script.
pub(super) struct Actor {
    script: Mutex<VecDeque<Line>>,
    asked: AtomicUsize,
    /// Notified when the model hangs.
    pub(super) cues: Arc<Notify>,
}

impl Actor {
    pub(super) fn new(script: impl IntoIterator<Item = Line>) -> Self {
        let script = Mutex::new(script.into_iter().collect());
        Self { script, asked: AtomicUsize::new(0), cues: Arc::default() }
    }
}

impl ChatModel for Actor {
    fn name(&self) -> &str {
        "actor"
    }

    fn price(&self) -> Option<TokenPrice> {
        Some(TokenPrice { input: 1.0, output: 2.0, cached_input: 0.5, cache_write: 1.25 })
    }

    fn generate<'a>(
        &'a self,
        _request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(ReplyDelta) + Send),
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(async move {
            let line = self.script.lock().unwrap().pop_front().expect("the script has ended");
            let asked = self.asked.fetch_add(1, Ordering::SeqCst);
            match line {
                Line::Says(text) => {
                    for word in text.split_inclusive(' ') {
                        on_delta(ReplyDelta::Text { text: word.to_owned() });
                        tokio::task::yield_now().await;
                    }
                    Ok(reply(text, &[], asked))
                }
                Line::Calls(calls) => {
                    on_delta(ReplyDelta::Reasoning { text: "hm".into() });
                    Ok(reply("", calls, asked))
                }
                Line::Fails(error) => Err(error),
                Line::Hangs => {
                    on_delta(ReplyDelta::Text { text: "well ".into() });
                    on_delta(ReplyDelta::Text { text: "then".into() });
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    self.cues.notify_one();
                    future::pending().await
                }
            }
        })
    }
}

fn reply(text: &str, calls: &[(&str, &str)], asked: usize) -> ModelReply {
    let call = |(index, (name, arguments)): (usize, &(&str, &str))| ModelCallRequest {
        id: format!("c{asked}{index}"),
        name: (*name).to_owned(),
        arguments: (*arguments).to_owned(),
    };
    let calls: Vec<ModelCallRequest> = calls.iter().enumerate().map(call).collect();
    let opaque = Some(OpaqueMessage { origin: "actor/1".into(), body: json!({ "signed": text }) });
    let finish = if calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls };
    let usage = TokenUsage { input_tokens: 100, output_tokens: 10, ..TokenUsage::default() };
    let message = AssistantMessage { text: text.to_owned(), calls, opaque };
    ModelReply { message, finish, usage: Some(usage) }
}

/// Tools, one for each way to end.
pub(super) struct Stage {
    tools: Vec<ToolDescriptor>,
    hanging: Notify,
}

impl Stage {
    pub(super) fn new() -> Self {
        let tool = |id: &str| ToolDescriptor {
            id: id.parse().unwrap(),
            title: None,
            description: format!("{id} for tests"),
            parameters: json!({ "type": "object" }),
            output: None,
            hints: ToolHints::default(),
        };
        let ids =
            ["t.denied", "t.echo", "t.fails", "t.gate_hangs", "t.hangs", "t.panics", "t.slow"];
        Self { tools: ids.map(tool).into(), hanging: Notify::new() }
    }

    /// Returns the same tools with another description of one.
    pub(super) fn redescribed() -> Self {
        let mut stage = Self::new();
        stage.tools[1].description = "t.echo for others".into();
        stage
    }

    /// Waits until a tool hangs, and all others have ended.
    pub(super) async fn all_hang(&self) {
        self.hanging.notified().await;
    }

    async fn hang<T>(&self) -> T {
        tokio::time::sleep(Duration::from_millis(50)).await;
        self.hanging.notify_waiters();
        future::pending().await
    }

    async fn outcome(&self, call: &AdmittedCall) -> Outcome {
        match call.tool().tool.as_str() {
            "fails" => Outcome::Failed(
                CallFailure::new(FailureKind::NotFound, "no such city").with_detail("line 3"),
            ),
            "hangs" => self.hang().await,
            "panics" => panic!("as it was told"),
            "slow" => {
                tokio::time::sleep(Duration::from_millis(20)).await;
                completed(json!("slow"))
            }
            _ => completed(call.arguments().clone()),
        }
    }
}

impl Toolbox for Stage {
    fn tools(&self) -> Arc<[ToolDescriptor]> {
        self.tools.clone().into()
    }

    #[expect(clippy::disallowed_methods, reason = "this is a toolbox's own admit")]
    fn admit_call(
        self: Arc<Self>,
        call: RequestedCall,
    ) -> BoxFuture<'static, Result<Admission, Box<CallReport>>> {
        Box::pin(async move {
            match call.tool.tool.as_str() {
                "denied" => Err(Box::new(denied().into())),
                "gate_hangs" => self.hang().await,
                _ => {
                    let arguments = serde_json::from_str(&call.arguments).unwrap();
                    let call = AdmittedCall::new(call, arguments)
                        .with_authorization_reason("a rule".into());
                    let stage = Arc::clone(&self);
                    Ok(Admission::new(call, |call| async move {
                        let outcome = stage.outcome(&call).await;
                        let text = format!("worked on {}", call.arguments_text());
                        let effects = vec![Effect::Logged { level: LogLevel::Info, text }];
                        let elapsed = Duration::from_millis(12);
                        CallReport { outcome, effects, elapsed, memory_bytes_peak: 4096 }
                    }))
                }
            }
        })
    }
}

fn completed(data: Value) -> Outcome {
    Outcome::Completed(ToolOutput { data, ..ToolOutput::default() })
}

fn denied() -> Outcome {
    let (what, why) = ("t may not", "policy.toml:3");
    Outcome::Denied(Denial::new(what, why).with_fix(Some(fix("net = []"))))
}

/// A fix with this policy text.
fn fix(toml: &str) -> PolicyFix {
    let rule = FixRule { tool: "*".to_owned(), net: None, page: None };
    PolicyFix::from_rule("t".parse().unwrap(), rule, toml)
}
