//! The events of a session, sent to the client as updates.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use sallyport_contract::{
    ApprovalAnswer, ApprovalRequest, CallReport, Effect, Principal, RequestedCall,
    services::{CallProgress, InputOrigin, PluginNotice},
    text,
};
use sallyport_model::{ModelError, ReplyDelta, TokenUsage};
use sallyport_runtime::{Host, HostSession, file_write::host_file, session::Events};
use sallyport_session::{
    BudgetLimit, FrontEndCommand, SessionEvent, SessionNotice, ToolRef, TurnEnd, TurnUsage,
};
use serde_json::{Value, json};
use tokio::task::{AbortHandle, JoinSet};

use crate::{
    file_writes::FileWrites,
    output::ClientOutput,
    permission::PermissionQuestion,
    rpc::RpcError,
    session::AcpSession,
    session_config::QuestionMode,
    updates::{self, ChunkKind},
};

/// Most files of a call whose places the client receives.
const LOCATIONS_MAX: usize = 32;

/// The argument in which tools name a file.
const PATH_ARGUMENT: &str = "path";

/// Sends the events of one session.
pub(crate) struct EventFeed {
    session: Arc<AcpSession>,
    host: Arc<Host>,
    output: Arc<ClientOutput>,
    writes: Arc<FileWrites>,
    shows_notices: Arc<AtomicBool>,
    /// The calls that have not ended.
    calls: HashMap<String, RequestedCall>,
    /// The open questions, by their ids.
    questions: HashMap<u64, AbortHandle>,
    asking: JoinSet<()>,
    /// Whether the answer that arrives was sent already, piece by piece.
    is_streamed: bool,
    /// Whether a turn runs that no prompt of the client began.
    is_foreign_turn: bool,
    cost_micro_usd: Option<u64>,
}

impl EventFeed {
    pub(crate) fn new(
        session: Arc<AcpSession>,
        host: Arc<Host>,
        output: Arc<ClientOutput>,
        writes: Arc<FileWrites>,
        shows_notices: Arc<AtomicBool>,
    ) -> Self {
        Self {
            session,
            host,
            output,
            writes,
            shows_notices,
            calls: HashMap::new(),
            questions: HashMap::new(),
            asking: JoinSet::new(),
            is_streamed: false,
            is_foreign_turn: false,
            cost_micro_usd: None,
        }
    }

    /// Sends events until the session ends, and then ends the instances of plugins for it.
    pub(crate) async fn run(mut self, mut host_session: HostSession, mut events: Events) {
        while let Some(event) = events.recv().await {
            self.handle_event(event).await;
        }
        self.answer_prompt(Ok(stop_result("cancelled", None))).await;
        host_session.stop_listening().await;
        self.host.registry().end_session(self.session.id()).await;
    }

    async fn handle_event(&mut self, event: SessionEvent) {
        match event {
            SessionEvent::InputAccepted { text, origin, .. } => {
                self.begin_turn(&text, origin).await
            }
            SessionEvent::Delta(delta) => self.send_delta(delta).await,
            SessionEvent::MessageComplete { text, usage } => self.end_message(&text, usage).await,
            SessionEvent::CallRequested { call_id, tool, arguments } => {
                self.begin_call(call_id, &tool, arguments).await;
            }
            SessionEvent::ApprovalNeeded { confirmation_id, request, .. } => {
                self.ask(confirmation_id, request);
            }
            SessionEvent::ApprovalClosed { confirmation_id } => {
                if let Some(asking) = self.questions.remove(&confirmation_id) {
                    asking.abort();
                }
            }
            SessionEvent::Progress { call_id, progress } => {
                self.send_progress(&call_id, progress).await;
            }
            SessionEvent::CallFinished { call_id, report, .. } => {
                self.end_call(&call_id, &report).await;
            }
            SessionEvent::TurnEnded { reason, usage } => self.end_turn(reason, usage).await,
            SessionEvent::Notice(notice) => self.send_session_notice(&notice).await,
            SessionEvent::Noticed { notice } => self.send_plugin_notice(&notice).await,
            // The client sees the calls, and knows the model that it chose.
            SessionEvent::State { .. }
            | SessionEvent::ArgumentsEdited { .. }
            | SessionEvent::ResultKept { .. }
            | SessionEvent::Undone { .. }
            | SessionEvent::ModelChanged { .. }
            | SessionEvent::Summarized { .. }
            | SessionEvent::Pinned { .. } => {}
        }
    }

    async fn send(&self, update: Value) {
        self.output.send_update(self.session.id(), update).await;
    }

    /// Sends a sentence for the user: as a notice, or as a message to a client that shows none.
    async fn send_notice(&self, severity: &str, words: &str) {
        let update = match self.shows_notices.load(Ordering::Relaxed) {
            true => updates::notice(severity, words),
            false => updates::text_chunk(ChunkKind::Agent, &format!("_{words}_\n\n")),
        };
        self.send(update).await;
    }

    async fn begin_turn(&mut self, words: &str, origin: Option<InputOrigin>) {
        self.is_foreign_turn = origin.is_some();
        if let Some(origin) = origin {
            let words = format!("[from {}] {words}", origin.plugin);
            self.send(updates::text_chunk(ChunkKind::User, &words)).await;
        }
        for note in self.session.take_notes() {
            self.send_notice("warning", &note).await;
        }
    }

    async fn send_delta(&mut self, delta: ReplyDelta) {
        match delta {
            ReplyDelta::Text { text } => {
                self.is_streamed = true;
                self.send(updates::text_chunk(ChunkKind::Agent, &text)).await;
            }
            ReplyDelta::Reasoning { text } => {
                self.send(updates::text_chunk(ChunkKind::Thought, &text)).await;
            }
            ReplyDelta::Retry { wait, reason, .. } => {
                let reason = text::escape_line(&reason);
                let words = format!("{reason}; the request is repeated in {wait:?}");
                self.send_notice("info", &words).await;
            }
            ReplyDelta::LeftOut(omitted) => self.send_notice("warning", &omitted.to_string()).await,
            ReplyDelta::CallBegun { .. } => {}
        }
    }

    async fn end_message(&mut self, words: &str, usage: Option<TokenUsage>) {
        if !std::mem::take(&mut self.is_streamed) && !words.is_empty() {
            self.send(updates::text_chunk(ChunkKind::Agent, words)).await;
        }
        if let (Some(usage), Some(size)) = (usage, self.session.context_tokens()) {
            let used = usage.input_tokens.saturating_add(usage.output_tokens);
            self.send(updates::usage(used, size, self.cost_micro_usd)).await;
        }
    }

    async fn begin_call(&mut self, call_id: String, tool: &ToolRef, arguments: String) {
        let mut locations = Vec::new();
        let mut kind = "other";
        let title = tool.to_string();
        if let ToolRef::Known(id) = tool {
            let tools = self.host.tools();
            kind = updates::tool_kind(tools.iter().find(|tool| tool.id == *id));
            let context = Principal::local().call_context(call_id.clone(), self.session.id());
            let (tool, arguments) = (id.clone(), arguments.clone());
            let call = RequestedCall { context, tool, arguments };
            locations.extend(self.named_file(&call));
            self.calls.insert(call_id.clone(), call);
        }
        self.send(updates::tool_call(&call_id, &title, kind, &arguments, &locations)).await;
    }

    /// The file on the host that the arguments of a call name.
    fn named_file(&self, call: &RequestedCall) -> Option<PathBuf> {
        let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
        host_file(call, arguments.get(PATH_ARGUMENT)?.as_str()?, &self.host.registry())
    }

    /// Asks the client in a task of its own, so that other events are sent meanwhile.
    fn ask(&mut self, confirmation_id: u64, request: ApprovalRequest) {
        let (session, output) = (Arc::clone(&self.session), Arc::clone(&self.output));
        if session.mode() == QuestionMode::DenyAll || session.is_refused(&request) {
            let reason = "the user has refused this for now".to_owned();
            let answer = ApprovalAnswer::No { reason: Some(reason) };
            let command = FrontEndCommand::ProvideConfirmation { id: confirmation_id, answer };
            self.asking.spawn(async move { session.order(command).await });
            return;
        }
        let write = self.writes.write_of(&request.call.context.call_id);
        let diff = write.as_ref().map(updates::diff_content);
        let question = PermissionQuestion { session, output, confirmation_id, request, diff };
        let asking = self.asking.spawn(question.ask_client());
        self.questions.insert(confirmation_id, asking);
        while self.asking.try_join_next().is_some() {}
    }

    async fn send_progress(&self, call_id: &str, progress: CallProgress) {
        let mut fields = json!({ "status": "in_progress" });
        let percent = progress.fraction.map(|fraction| format!("{:.0} %", fraction * 100.0));
        let words: Vec<String> = percent.into_iter().chain(progress.message).collect();
        if !words.is_empty() {
            let words = updates::shortened(&text::escape_line(&words.join(" · ")));
            fields["content"] = json!([updates::text_content(&updates::fenced(&words))]);
        }
        self.send(updates::tool_call_update(call_id, fields)).await;
    }

    async fn end_call(&mut self, call_id: &str, report: &CallReport) {
        let write = self.writes.take_write(call_id);
        let call = self.calls.remove(call_id);
        let locations = call.map(|call| self.changed_files(&call, report)).unwrap_or_default();
        self.send(updates::finished_call(call_id, report, write.as_ref(), &locations)).await;
    }

    /// The files on the host that a call has changed.
    fn changed_files(&self, call: &RequestedCall, report: &CallReport) -> Vec<PathBuf> {
        let registry = self.host.registry();
        let changed = report.effects.iter().filter_map(|effect| match effect {
            Effect::Changed { path } => host_file(call, path, &registry),
            _ => None,
        });
        changed.take(LOCATIONS_MAX).collect()
    }

    async fn send_session_notice(&mut self, notice: &SessionNotice) {
        self.send_notice("warning", &notice.to_string()).await;
        if matches!(notice, SessionNotice::InputDropped) {
            let error = RpcError::invalid_request("too many inputs wait in this session");
            self.answer_prompt(Err(error)).await;
        }
    }

    async fn send_plugin_notice(&self, notice: &PluginNotice) {
        let words = text::escape_line(&notice.text);
        self.send_notice("info", &format!("{}: {words}", notice.plugin)).await;
    }

    async fn end_turn(&mut self, reason: TurnEnd, usage: TurnUsage) {
        // What is left of a turn that was cut off.
        let was_streamed = std::mem::take(&mut self.is_streamed);
        self.calls.clear();
        if let Some(cost) = usage.cost {
            let before = self.cost_micro_usd.unwrap_or_default();
            self.cost_micro_usd = Some(before.saturating_add(cost.micro_usd));
        }
        let result = self.turn_result(reason, &usage, was_streamed).await;
        let is_foreign = std::mem::take(&mut self.is_foreign_turn);
        match result {
            Err(error) if is_foreign => self.send_notice("error", error.message()).await,
            _ if is_foreign => {}
            result => self.answer_prompt(result).await,
        }
    }

    /// How the turn ended, in words of the protocol. What it has no word for is a message.
    async fn turn_result(
        &self,
        reason: TurnEnd,
        usage: &TurnUsage,
        was_streamed: bool,
    ) -> Result<Value, RpcError> {
        let stop = match reason {
            TurnEnd::Answered { .. } => "end_turn",
            TurnEnd::Spoken { text } => {
                if !was_streamed {
                    self.send(updates::text_chunk(ChunkKind::Agent, &text)).await;
                }
                "end_turn"
            }
            TurnEnd::BudgetReached { limit } => {
                self.send_notice("warning", &format!("Stopped: {limit}")).await;
                match limit {
                    BudgetLimit::Tokens { .. } => "max_tokens",
                    _ => "max_turn_requests",
                }
            }
            TurnEnd::Cancelled => "cancelled",
            TurnEnd::ModelFailed(error) => return Err(model_failure(&error)),
            TurnEnd::InputRefused(error) => {
                let refused = RpcError::invalid_params(error.to_string());
                return Err(refused.with_hint(Some(error.hint())));
            }
        };
        Ok(stop_result(stop, Some(usage)))
    }

    async fn answer_prompt(&self, result: Result<Value, RpcError>) {
        if let Some(id) = self.session.take_prompt() {
            self.output.answer(id, result).await;
        }
    }
}

fn stop_result(reason: &str, usage: Option<&TurnUsage>) -> Value {
    json!({ "stopReason": reason, "_meta": { "sallyport/usage": usage } })
}

fn model_failure(error: &ModelError) -> RpcError {
    let failure = match error {
        ModelError::Credentials { .. } => RpcError::auth_required(error.to_string()),
        _ => RpcError::internal(error.to_string()),
    };
    failure.with_hint(Some(error.hint()))
}
