//! One connection of a client: its calls, its questions, and what it wants to hear.
#![expect(deprecated, reason = "log messages, which clients of the versions in use still show")]

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::StreamExt;
use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ConstString, CreateTaskResult,
        ElicitRequest, ElicitResult, InputRequest, InputRequests, InputRequiredResult,
        InputResponses, LoggingLevel, LoggingMessageNotificationParam, ProtocolVersion,
    },
    service::{Peer, RequestContext},
};
use sallyport_contract::{
    ApprovalAnswer, CallReport, Effect, LogLevel, Outcome, RequestedCall, ToolDescriptor, ToolId,
    text,
};
use sallyport_runtime::HostNotice;
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

use crate::{
    approval, call_result,
    calls::{CallEvent, CallStep, ClientQuestion, ServedCall},
    connection_session::ConnectionSession,
    offers,
    progress::ProgressReporter,
    request_span::{record_end, record_tool},
    server::McpServer,
    subscriptions::{self, Subscriptions},
    tasks::{self, LongCall, TASK_AFTER},
};

/// The key of the one question in a request for input.
const QUESTION_KEY: &str = "approval";

/// The state of a call whose question waits for the user.
const ASKING: &str = "waiting for an approval, running";

/// Least important message that a client gets which has not said what it wants.
const DEFAULT_LOG_LEVEL: LoggingLevel = LoggingLevel::Warning;

/// One connection of a client.
pub(crate) struct McpConnection {
    server: Arc<McpServer>,
    session: Arc<ConnectionSession>,
    subscriptions: Arc<Subscriptions>,
    log_level: Mutex<LoggingLevel>,
    reports_changes: AtomicBool,
    /// Held while the user is asked, so that questions come one after another.
    question: tokio::sync::Mutex<()>,
    /// Its place among others, if there can be others.
    _place: Option<OwnedSemaphorePermit>,
}

/// How a client can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QuestionWay {
    /// By a request of the server.
    Request,
    /// By an answer that the client returns to with the user's answer.
    InputRequired,
    /// Not at all.
    None,
}

/// How a call goes on after its client was waited for.
pub(crate) enum CallTurn {
    Finished(Box<CallReport>),
    NeedsInput(InputRequiredResult),
}

/// How the request for a call ends.
enum CallEnd {
    Turn(CallTurn),
    Task(CreateTaskResult),
}

impl McpConnection {
    /// A connection of the local user, which is a conversation of its own.
    pub(crate) fn new(server: Arc<McpServer>) -> Self {
        Self::with_place(server, None)
    }

    /// The same. If it has a place among several connections, its session ends when it is dropped.
    pub(crate) fn with_place(server: Arc<McpServer>, place: Option<OwnedSemaphorePermit>) -> Self {
        let session = ConnectionSession::new(Arc::clone(&server), place.is_some());
        Self {
            session: Arc::new(session),
            server,
            subscriptions: Arc::default(),
            log_level: Mutex::new(DEFAULT_LOG_LEVEL),
            reports_changes: AtomicBool::new(false),
            question: tokio::sync::Mutex::default(),
            _place: place,
        }
    }

    /// The session of its calls.
    pub(crate) fn session_id(&self) -> &str {
        self.session.id()
    }

    pub(crate) async fn answer_call(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let offered = self.server.offered_tools();
        let Some(tool) = offered.find_tool(&request.name) else {
            let name = text::escape_excerpt(&request.name, 100);
            return Err(ErrorData::invalid_params(format!("Unknown tool: {name}"), None));
        };
        record_tool(&tool.id);
        let call = match &request.request_state {
            Some(state) => {
                let arguments = arguments_text(&request);
                Some(self.resume_call(state, &tool.id, &arguments, &request.input_responses)?)
            }
            None => self.server.start_call(self.requested_call(tool, &request)),
        };
        let Some(call) = call else { return Ok(busy_result().into()) };
        let leftovers = self.server.leftovers().guard();
        let response = match self.drive_or_keep(call, tool, context).await {
            CallEnd::Task(created) => CallToolResponse::Task(created),
            CallEnd::Turn(CallTurn::NeedsInput(result)) => result.into(),
            CallEnd::Turn(CallTurn::Finished(report)) => {
                record_end(&report.outcome);
                self.send_log(&report, tool, context).await;
                self.report_command(&report);
                call_result::result_from_report(&report, tool).into()
            }
        };
        leftovers.disarm();
        Ok(response)
    }

    /// Accompanies a call as below. One that takes long becomes a task, if the client knows tasks.
    async fn drive_or_keep(
        &self,
        call: ServedCall,
        tool: &ToolDescriptor,
        context: &RequestContext<RoleServer>,
    ) -> CallEnd {
        if !knows_tasks(context) {
            return CallEnd::Turn(self.drive_call(call, context).await);
        }
        let call = match self.drive_before(call, context, tokio::time::sleep(TASK_AFTER)).await {
            Ok(turn) => return CallEnd::Turn(turn),
            Err(call) => *call,
        };
        let long = LongCall {
            call,
            tool: tool.clone(),
            session: Arc::clone(&self.session),
            can_ask: question_way(context) == QuestionWay::InputRequired,
        };
        match tasks::begin_task(&self.server, long).await {
            Ok(created) => CallEnd::Task(created),
            Err(long) => CallEnd::Turn(self.drive_call(long.call, context).await),
        }
    }

    fn requested_call(
        &self,
        tool: &ToolDescriptor,
        request: &CallToolRequestParams,
    ) -> RequestedCall {
        let (context, tool) = (self.session.new_context(), tool.id.clone());
        RequestedCall { context, tool, arguments: arguments_text(request) }
    }

    /// The session of its calls.
    pub(crate) fn session(&self) -> &Arc<ConnectionSession> {
        &self.session
    }

    /// The user of the connection.
    pub(crate) fn user(&self) -> &str {
        self.session.user()
    }

    /// What all connections share.
    pub(crate) fn server(&self) -> &Arc<McpServer> {
        &self.server
    }

    /// Continues a call with the user's answer. An answer belongs to one question about one call,
    /// so anything else ends the call.
    pub(crate) fn resume_call(
        &self,
        state: &str,
        tool: &ToolId,
        arguments: &str,
        answers: &Option<InputResponses>,
    ) -> Result<ServedCall, ErrorData> {
        let gone = "this call no longer waits for an answer; make it again";
        // Together, so that the call is dropped before its question.
        let parked = self
            .server
            .take_parked_call(state)
            .ok_or_else(|| ErrorData::invalid_params(gone, None))?;
        let requested = parked.0.requested();
        if requested.tool != *tool || requested.arguments != arguments {
            let message = "the answer belongs to another call, which is cancelled";
            return Err(ErrorData::invalid_params(message, None));
        }
        let form = answers.as_ref().and_then(|forms| forms.get(QUESTION_KEY));
        let form = form.and_then(|form| serde_json::from_value::<ElicitResult>(form.clone()).ok());
        let (call, question) = parked;
        let answer = form.map_or(ApprovalAnswer::No { reason: None }, |form| {
            approval::answer_from_form(&form, &question.request)
        });
        question.answer(answer);
        Ok(call)
    }

    /// Accompanies a call until its end, or until the client has to return with an answer.
    pub(crate) async fn drive_call(
        &self,
        mut call: ServedCall,
        context: &RequestContext<RoleServer>,
    ) -> CallTurn {
        loop {
            match self.drive_before(call, context, std::future::pending()).await {
                Ok(turn) => return turn,
                Err(running) => call = *running,
            }
        }
    }

    /// The same until a deadline. Returns a call that runs by then.
    async fn drive_before(
        &self,
        call: ServedCall,
        context: &RequestContext<RoleServer>,
        deadline: impl Future<Output = ()>,
    ) -> Result<CallTurn, Box<ServedCall>> {
        let mut progress = ProgressReporter::new(context);
        let mut deadline = pin!(deadline);
        // Of what is dropped with this future, the call comes first. If its question were dropped
        // before it, it would go on as if no user were connected.
        let mut answering;
        let mut call = call;
        loop {
            let step = tokio::select! {
                step = progress.report_during("running", call.next_step()) => step,
                () = &mut deadline => return Err(Box::new(call)),
            };
            match step {
                CallStep::Finished(report) => return Ok(CallTurn::Finished(report)),
                CallStep::Event(CallEvent::Contacting(server)) => {
                    progress.report(format!("contacting {server}")).await;
                }
                CallStep::Event(CallEvent::Progress(reported)) => {
                    progress.report_plugin(reported).await;
                }
                CallStep::Event(CallEvent::Question(question)) => {
                    progress.report("waiting for an approval".to_owned()).await;
                    match question_way(context) {
                        QuestionWay::Request => {
                            answering = Box::pin(self.ask_client(question, &context.peer));
                            progress.report_during(ASKING, &mut answering).await;
                        }
                        QuestionWay::InputRequired => match self.park_call(call, question) {
                            Ok(result) => return Ok(CallTurn::NeedsInput(result)),
                            Err(unasked) => call = *unasked,
                        },
                        QuestionWay::None => question.answer(ApprovalAnswer::Nobody),
                    }
                }
            }
        }
    }

    /// Asks by a request, and gives the answer to the call.
    async fn ask_client(&self, mut question: ClientQuestion, peer: &Peer<RoleServer>) {
        let Some(form) = approval::question_form(&question.request) else {
            return question.answer(ApprovalAnswer::Nobody);
        };
        let answered = {
            let ask = async {
                let _one_at_a_time = self.question.lock().await;
                peer.create_elicitation(form).await
            };
            tokio::select! {
                answered = ask => answered.ok(),
                () = question.wait_for_withdrawal() => None,
            }
        };
        let answer = answered.map_or(ApprovalAnswer::Nobody, |form| {
            approval::answer_from_form(&form, &question.request)
        });
        question.answer(answer);
    }

    /// Keeps a call, and returns what the client has to ask the user. Returns the call if the
    /// question cannot be asked.
    fn park_call(
        &self,
        call: ServedCall,
        question: ClientQuestion,
    ) -> Result<InputRequiredResult, Box<ServedCall>> {
        let Some(form) = approval::question_form(&question.request) else {
            question.answer(ApprovalAnswer::Nobody);
            return Err(Box::new(call));
        };
        let form = InputRequest::Elicitation(ElicitRequest::new(form));
        let forms = InputRequests::from([(QUESTION_KEY.to_owned(), form)]);
        let state = self.server.park_call(call, question);
        Ok(InputRequiredResult::new(Some(forms), Some(state)))
    }

    /// Sends what the plugin has logged.
    async fn send_log(
        &self,
        report: &CallReport,
        tool: &ToolDescriptor,
        context: &RequestContext<RoleServer>,
    ) {
        let Some(least) = self.wanted_log_level(context) else { return };
        for effect in &report.effects {
            let Effect::Logged { level, text } = effect else { continue };
            let level = logging_level(*level);
            if (level as u8) < (least as u8) {
                continue;
            }
            let message = LoggingMessageNotificationParam::new(level, text.as_str().into())
                .with_logger(tool.id.plugin.as_str());
            let sent = context.peer.notify_logging_message(message).await;
            if sent.is_err() {
                return;
            }
        }
    }

    /// Sets the least important message that the client gets.
    pub(crate) fn set_log_level(&self, level: LoggingLevel) {
        *self.log_level.lock().unwrap_or_else(PoisonError::into_inner) = level;
    }

    /// Without a session, only a request that says so wants to hear anything.
    fn wanted_log_level(&self, context: &RequestContext<RoleServer>) -> Option<LoggingLevel> {
        match is_stateless(context) {
            true => context.meta.log_level(),
            false => Some(*self.log_level.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// Reports to the operator how to allow what was refused. The client's user sees the same
    /// command in the result, if the client shows it.
    fn report_command(&self, report: &CallReport) {
        if let Outcome::Denied(denial) = &report.outcome
            && let Some(command) = call_result::allowing_command(denial)
        {
            let text = format!("denied: {denial}. To allow it: {command}");
            self.server.host().notices()(HostNotice::Info(text));
        }
    }

    /// Subscribes to a resource, and watches it from now on.
    pub(crate) async fn subscribe_to(
        &self,
        uri: String,
        peer: Peer<RoleServer>,
    ) -> Result<(), ErrorData> {
        offers::check_address(&self.session, &uri).await?;
        if self.subscriptions.add(uri)? {
            let (session, subscriptions) =
                (Arc::downgrade(&self.session), Arc::downgrade(&self.subscriptions));
            let watching = subscriptions::watch(session, subscriptions, peer);
            tokio::spawn(self.server.stop_token().clone().run_until_cancelled_owned(watching));
        }
        Ok(())
    }

    /// Hears no more of a resource.
    pub(crate) fn unsubscribe_from(&self, uri: &str) {
        self.subscriptions.remove(uri);
    }

    /// A method about resources does not exist without a plugin that offers some.
    pub(crate) fn require_resources<M: ConstString>(&self) -> Result<(), ErrorData> {
        let missing = || ErrorData::method_not_found::<M>();
        offers::has_resources(&self.server).then_some(()).ok_or_else(missing)
    }

    /// The same for a method about prompts.
    pub(crate) fn require_prompts<M: ConstString>(&self) -> Result<(), ErrorData> {
        let missing = || ErrorData::method_not_found::<M>();
        offers::has_prompts(&self.server).then_some(()).ok_or_else(missing)
    }

    /// Does a part of a request, unless the client cancels it or the server stops.
    pub(crate) fn until_stopped<T>(
        &self,
        context: &RequestContext<RoleServer>,
        part: impl Future<Output = T>,
    ) -> impl Future<Output = Result<T, ErrorData>> {
        // The future of a request has room for the largest part of any request and is moved several
        // times, so the parts are boxed.
        let part = Box::pin(part);
        let cancelled = || ErrorData::internal_error("the call was cancelled", None);
        async move {
            tokio::select! {
                // What is cancelled before it begins does not begin.
                biased;
                () = context.ct.cancelled() => Err(cancelled()),
                () = self.server.stop_token().cancelled() => Err(cancelled()),
                done = part => Ok(done),
            }
        }
    }

    /// Reports each change of the plugins until the connection ends. Only versions with a session
    /// take such reports unasked.
    pub(crate) fn report_changes(&self, peer: Peer<RoleServer>) {
        if self.reports_changes.swap(true, Ordering::Relaxed) {
            return;
        }
        let changes = self.server.host().changes();
        let stop = self.server.stop_token().clone();
        let server = Arc::clone(&self.server);
        tokio::spawn(stop.run_until_cancelled_owned(async move {
            let mut changes = pin!(changes);
            while changes.next().await.is_some() {
                let mut told = vec![peer.notify_tool_list_changed().await];
                if offers::has_resources(&server) {
                    told.push(peer.notify_resource_list_changed().await);
                }
                if offers::has_prompts(&server) {
                    told.push(peer.notify_prompt_list_changed().await);
                }
                if told.iter().any(Result::is_err) {
                    return;
                }
            }
        }));
    }
}

/// The arguments as text. Left out, they are an empty object.
fn arguments_text(request: &CallToolRequestParams) -> String {
    let arguments = request.arguments.clone().map_or_else(|| json!({}), Value::Object);
    arguments.to_string()
}

fn busy_result() -> CallToolResult {
    let reason = json!({ "kind": "failed", "failure": "unavailable" });
    call_result::failed_result("too many calls run already; try again when one has ended", reason)
}

fn question_way(context: &RequestContext<RoleServer>) -> QuestionWay {
    let elicitation = context.client_capabilities().and_then(|client| client.elicitation);
    // A client that names no kind of question means forms.
    let has_forms = elicitation.is_some_and(|kinds| kinds.form.is_some() || kinds.url.is_none());
    match (has_forms, is_stateless(context)) {
        (false, _) => QuestionWay::None,
        (true, false) => QuestionWay::Request,
        (true, true) => QuestionWay::InputRequired,
    }
}

/// Whether a request may be answered with a task.
fn knows_tasks(context: &RequestContext<RoleServer>) -> bool {
    is_stateless(context)
        && context.client_capabilities().is_some_and(|client| client.supports_tasks())
}

/// Whether the request belongs to a version of the protocol without sessions.
pub(crate) fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

fn logging_level(level: LogLevel) -> LoggingLevel {
    match level {
        LogLevel::Trace | LogLevel::Debug => LoggingLevel::Debug,
        LogLevel::Info => LoggingLevel::Info,
        LogLevel::Warn => LoggingLevel::Warning,
        LogLevel::Error => LoggingLevel::Error,
    }
}
