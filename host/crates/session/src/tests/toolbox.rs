//! Tools that do one thing each, and probes that observe them.

use std::{
    future,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use sallyport_contract::{
    Admission, AdmittedCall, ApprovalAnswer, ApprovalRequest, ApprovalSubject, BoxFuture,
    CallFailure, CallReport, Consent, Denial, FailureKind, Outcome, RequestedCall, ToolDescriptor,
    ToolHints, ToolOutput, Toolbox, json,
};
use serde_json::{Value, json};
use tokio::sync::{Barrier, Notify};

use super::approval::ApprovalSender;

/// Internal events, made visible.
pub(super) struct Probe {
    /// The number of futures that hang.
    hanging: AtomicUsize,
    /// Notified by every tool that begins to hang.
    pub(super) hangs: Notify,
    /// Two tools have to meet before either continues.
    meeting: Barrier,
    pub(super) runs: AtomicUsize,
    /// The tool `t.echo` is gone.
    pub(super) is_without_echo: AtomicBool,
    /// The names of the tools in each request.
    pub(super) listed_tools: Mutex<Vec<Vec<String>>>,
}

impl Default for Probe {
    fn default() -> Self {
        let (hangs, meeting) = (Notify::new(), Barrier::new(2));
        let (hanging, runs, is_without_echo, listed_tools) = Default::default();
        Self { hanging, hangs, meeting, runs, is_without_echo, listed_tools }
    }
}

impl Probe {
    pub(super) fn hanging(&self) -> usize {
        self.hanging.load(Ordering::SeqCst)
    }
}

/// Counts a future as hanging while it lives.
pub(super) struct Presence(Arc<Probe>);

impl Presence {
    pub(super) fn new(probe: &Arc<Probe>) -> Self {
        probe.hanging.fetch_add(1, Ordering::SeqCst);
        probe.hangs.notify_one();
        Self(Arc::clone(probe))
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.hanging.fetch_sub(1, Ordering::SeqCst);
    }
}

pub(super) struct Tools {
    specs: Arc<[ToolDescriptor]>,
    desk: ApprovalSender,
    probe: Arc<Probe>,
}

impl Tools {
    pub(super) fn new(desk: ApprovalSender, probe: Arc<Probe>) -> Self {
        let names = [
            "t.asks",
            "t.asks_late",
            "t.big",
            "t.breaks",
            "t.breaks_at_gate",
            "t.denied",
            "t.echo",
            "t.echo_twice",
            "t.fails",
            "t.hangs",
            "t.hangs_at_gate",
            "t.long",
            "t.meets",
            "t.speaks",
        ];
        Self { specs: names.map(spec).into(), desk, probe }
    }

    async fn gate(&self, call: &RequestedCall) -> Result<Value, Outcome> {
        let invalid = |e: json::JsonError| {
            Outcome::InvalidArguments(CallFailure::new(
                FailureKind::InvalidArguments,
                e.to_string(),
            ))
        };
        let arguments = json::parse_json(&call.arguments, 1000).map_err(invalid)?;
        match call.tool.tool.as_str() {
            "asks" => self.ask(call).await?,
            "denied" => return Err(denied("policy.toml:3", false)),
            "breaks_at_gate" => panic!("gate at /home/me"),
            "hangs_at_gate" => self.hang().await,
            _ => {}
        }
        Ok(arguments)
    }

    async fn ask(&self, call: &RequestedCall) -> Result<(), Outcome> {
        let request = ApprovalRequest {
            call: call.clone(),
            subject: ApprovalSubject::Call,
            request: None,
            plugin_version: "1.0".into(),
            plugin_digest: "ab".into(),
            reason: "default".into(),
            rule: None,
            capabilities: Vec::new(),
        };
        match self.desk.ask_user(request).await {
            ApprovalAnswer::No { reason } => Err(denied(reason.as_deref().unwrap_or("no"), false)),
            ApprovalAnswer::Nobody => Err(denied("nobody to ask", true)),
            _ => Ok(()),
        }
    }

    async fn hang<T>(&self) -> T {
        let _present = Presence::new(&self.probe);
        future::pending().await
    }

    async fn work(&self, call: &AdmittedCall) -> Outcome {
        self.probe.runs.fetch_add(1, Ordering::SeqCst);
        let arguments = call.arguments();
        match call.tool().tool.as_str() {
            "asks_late" => self.ask_late(call).await,
            "big" => completed(Value::String("\"".repeat(300 * 1024))),
            "breaks" => panic!("tool at /home/me"),
            "long" => completed(numbered_lines(arguments).into()),
            "fails" => {
                let failure = CallFailure::new(FailureKind::Failed, "no such city");
                Outcome::Failed(failure.with_detail("at /home/me"))
            }
            "hangs" => self.hang().await,
            "meets" => {
                self.probe.meeting.wait().await;
                completed(json!("met"))
            }
            "speaks" => {
                let speech = arguments["say"].as_str().map(str::to_owned);
                Outcome::Completed(ToolOutput { data: Value::Null, content: Vec::new(), speech })
            }
            _ => completed(arguments.clone()),
        }
    }

    /// Asks while it runs, and does not wait for the answer if so instructed.
    async fn ask_late(&self, call: &AdmittedCall) -> Outcome {
        let (context, tool) = (call.context().clone(), call.tool().clone());
        let question = RequestedCall { context, tool, arguments: call.arguments_text().to_owned() };
        let asked = self.ask(&question);
        if call.arguments()["impatient"] == json!(true) {
            tokio::select! {
                biased;
                answer = asked => panic!("nobody answers: {answer:?}"),
                () = self.probe.hangs.notified() => return completed(json!("gave up")),
            }
        }
        asked.await.map_or_else(|outcome| outcome, |()| completed(json!("asked")))
    }
}

impl Toolbox for Tools {
    fn tools(&self) -> Arc<[ToolDescriptor]> {
        if self.probe.is_without_echo.load(Ordering::SeqCst) {
            return self
                .specs
                .iter()
                .filter(|tool| tool.id.tool.as_str() != "echo")
                .cloned()
                .collect();
        }
        Arc::clone(&self.specs)
    }

    #[expect(clippy::disallowed_methods, reason = "this is a toolbox's own admit")]
    fn admit_call(
        self: Arc<Self>,
        call: RequestedCall,
    ) -> BoxFuture<'static, Result<Admission, Box<CallReport>>> {
        Box::pin(async move {
            match self.gate(&call).await {
                Ok(arguments) => {
                    let call = AdmittedCall::new(call, arguments);
                    Ok(Admission::new(call, |call| async move { self.work(&call).await.into() }))
                }
                Err(outcome) => Err(Box::new(outcome.into())),
            }
        })
    }
}

pub(super) fn spec(id: &str) -> ToolDescriptor {
    ToolDescriptor {
        id: id.parse().unwrap(),
        title: None,
        description: format!("{id} for tests"),
        parameters: json!({ "type": "object" }),
        output: None,
        hints: ToolHints::default(),
    }
}

fn completed(data: Value) -> Outcome {
    Outcome::Completed(ToolOutput { data, ..ToolOutput::default() })
}

fn denied(why: &str, nobody_to_ask: bool) -> Outcome {
    Outcome::Denied(Denial { nobody_to_ask, ..Denial::new("denied", why) })
}

/// Returns as many lines of 40 bytes as the arguments say.
fn numbered_lines(arguments: &Value) -> String {
    let count = arguments["lines"].as_u64().unwrap();
    (1..=count).map(|line| format!("line {line:>10} of one long result here\n")).collect()
}
