//! The measured side: a session as a front end uses it.

use std::sync::Arc;

use sallyport_contract::{
    Admission, AdmittedCall, BoxFuture, CallReport, Outcome, RequestedCall, ToolDescriptor,
    ToolOutput, Toolbox, json,
};
use sallyport_model::{ModelEndpoint, connect_model};
use sallyport_session::{
    FrontEndCommand, MemoryJournal, RestoredSession, SessionEvent, SessionHandle, SessionOptions,
    SessionParts, TurnEnd, approval, spawn_session,
};
use serde_json::Value;
use tokio::sync::mpsc;

use super::script::{self, Script};

/// Longest arguments of a call; a benchmark's are far shorter.
const ARGUMENTS_BYTES_MAX: usize = 64 * 1024;

/// The system prompt.
const SYSTEM_PROMPT: &str = "You are a helpful assistant with many tools. Answer briefly.";

/// A session and its front end.
pub(crate) struct Conversation {
    handle: SessionHandle,
    events: mpsc::Receiver<SessionEvent>,
}

impl Conversation {
    pub(crate) fn start(script: Script, endpoint: ModelEndpoint) -> Self {
        let mut options = SessionOptions::new("bench");
        options.system_prompt = Some(SYSTEM_PROMPT.to_owned());
        if script == Script::Listed {
            options.tool_tokens_max = None;
        }
        let (_, approvals) = approval::approval_channel();
        let parts = SessionParts {
            model: connect_model(endpoint).expect("an endpoint"),
            toolbox: Arc::new(Tools { specs: script::tools().into(), result: script::result() }),
            approvals,
            journal: Box::new(MemoryJournal::default()),
            recall: None,
            past: RestoredSession::default(),
            account: None,
            options,
        };
        let (handle, events) = spawn_session(parts).expect("names that can be told apart");
        Self { handle, events }
    }

    /// Runs one whole turn.
    pub(crate) async fn turn(&mut self) {
        let input = "What will the weather be like in Copenhagen in the next days?".into();
        self.handle.send(FrontEndCommand::SubmitInput { input }).await.expect("a session");
        loop {
            let event = self.events.recv().await.expect("a session");
            if let SessionEvent::TurnEnded { reason, usage } = event {
                assert!(matches!(reason, TurnEnd::Answered { .. }), "{reason:?}");
                assert_eq!((usage.answers, usage.calls), (2, 1));
                return;
            }
        }
    }
}

/// Tools that all return the same result.
struct Tools {
    specs: Arc<[ToolDescriptor]>,
    result: Value,
}

impl Toolbox for Tools {
    fn tools(&self) -> Arc<[ToolDescriptor]> {
        Arc::clone(&self.specs)
    }

    #[expect(clippy::disallowed_methods, reason = "this is a toolbox's own admit")]
    fn admit_call(
        self: Arc<Self>,
        call: RequestedCall,
    ) -> BoxFuture<'static, Result<Admission, Box<CallReport>>> {
        let arguments = json::parse_json(&call.arguments, ARGUMENTS_BYTES_MAX).expect("arguments");
        let admission = Admission::new(AdmittedCall::new(call, arguments), |_call| async move {
            let output = ToolOutput { data: self.result.clone(), ..ToolOutput::default() };
            Outcome::Completed(output).into()
        });
        Box::pin(std::future::ready(Ok(admission)))
    }
}
