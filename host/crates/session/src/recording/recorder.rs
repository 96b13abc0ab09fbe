//! Records the traffic between a session and its model and tools.

use std::{
    fmt,
    io::{self, Write},
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use sallyport_contract::{
    Admission, BoxFuture, CallFailure, CallReport, FailureKind, Outcome, Redactor, RequestedCall,
    ToolDescriptor, Toolbox, services::PluginNotice,
};
use sallyport_model::{
    ChatMessage, ChatModel, ModelError, ModelReply, ModelRequest, ModelToolDefinition,
    ProviderProtocol, ReplyDelta, TokenPrice, UserInputMessage,
};

use crate::{
    RecallError, RecallQuery, RecalledMemory, SessionEvent, SessionMemory, SessionOptions,
    history::PastTurn,
};

use super::{
    clean,
    line::{
        AnswerOutcome, DecisionOutcome, RecallOutcome, RecordedAnswer, RecordedDecision,
        RecordedReport, RecordedRequest, RecordingHeader, RecordingLine, RunOutcome, VERSION,
        digest,
    },
};

/// A tape that is being recorded. Clones write to the same one.
///
/// A session is recorded when its model and its toolbox are [`wrap_model`](Self::wrap_model) and
/// [`wrap_toolbox`](Self::wrap_toolbox) of one recording. The front end passes every input and
/// every cancellation to the recording before it sends it to the session, and passes every event on
/// as well.
#[derive(Debug, Clone)]
pub struct SessionRecorder {
    writer: Arc<Mutex<RecordingWriter>>,
}

/// The output of a recording.
struct RecordingWriter {
    output: Box<dyn Write + Send>,
    redactor: Redactor,
    /// Returns the current redactor.
    live_redactor: Option<Box<dyn Fn() -> Redactor + Send>>,
    /// The number of requests so far.
    requests: usize,
    /// The last request, without secrets.
    messages: Vec<ChatMessage>,
    tools: Option<Vec<ModelToolDefinition>>,
    problem: Option<io::Error>,
}

impl SessionRecorder {
    /// Begins a tape. Secrets that the redactor knows are not written to it.
    pub fn start(
        output: impl Write + Send + 'static,
        redactor: Redactor,
        options: &SessionOptions,
        model: &dyn ChatModel,
        toolbox: &dyn Toolbox,
    ) -> Self {
        let mut header = RecordingHeader {
            version: VERSION,
            options: options.clone(),
            model: model.name().to_owned(),
            price: model.price(),
            tools: toolbox.tools().to_vec(),
        };
        clean::clean_options(&redactor, &mut header.options);
        clean::clean_text(&redactor, &mut header.model);
        header.tools.iter_mut().for_each(|tool| clean::clean_tool(&redactor, tool));
        let (output, messages) = (Box::new(output), Vec::new());
        let (live_redactor, tools, problem) = (None, None, None);
        let mut writer = RecordingWriter {
            output,
            redactor,
            live_redactor,
            requests: 0,
            messages,
            tools,
            problem,
        };
        writer.write_line(&RecordingLine::Tape(header));
        Self { writer: Arc::new(Mutex::new(writer)) }
    }

    /// From now on, uses the redactor that `present` returns at the time of each line.
    pub fn with_live_redactor(self, live_redactor: impl Fn() -> Redactor + Send + 'static) -> Self {
        self.lock_writer().live_redactor = Some(Box::new(live_redactor));
        self
    }

    /// Returns the model, wrapped to be recorded.
    pub fn wrap_model(&self, model: Arc<dyn ChatModel>) -> Arc<dyn ChatModel> {
        Arc::new(RecordingWrapper { inner: model, recorder: self.clone() })
    }

    /// Returns the toolbox, wrapped to be recorded.
    pub fn wrap_toolbox(&self, toolbox: Arc<dyn Toolbox>) -> Arc<dyn Toolbox> {
        let tools = toolbox.tools();
        Arc::new(RecordingToolbox { inner: toolbox, recorder: self.clone(), tools })
    }

    /// Returns the recall, wrapped to be recorded.
    pub fn wrap_recall(&self, recall: Arc<dyn SessionMemory>) -> Arc<dyn SessionMemory> {
        self.lock_writer().write_line(&RecordingLine::Recalls);
        Arc::new(RecordingWrapper { inner: recall, recorder: self.clone() })
    }

    /// Records a plugin's message before it is sent.
    pub fn record_notice(&self, notice: &PluginNotice) {
        let mut writer = self.lock_writer();
        let mut notice = notice.clone();
        clean::clean_notice(&writer.redactor, &mut notice);
        writer.write_line(&RecordingLine::Noticed { notice });
    }

    /// Records an input before it is sent.
    pub fn record_input(&self, message: &UserInputMessage) {
        let mut writer = self.lock_writer();
        let mut message = message.clone();
        clean::clean_input(&writer.redactor, &mut message);
        writer.write_line(&RecordingLine::Input { message });
    }

    /// Records a cancellation before it is sent.
    pub fn record_cancellation(&self) {
        self.lock_writer().write_line(&RecordingLine::Cancel);
    }

    /// Records the part of an event that belongs on a tape.
    pub fn record_event(&self, event: &SessionEvent) {
        if let SessionEvent::TurnEnded { usage, .. } = event {
            self.lock_writer().write_line(&RecordingLine::Turn { elapsed: usage.elapsed });
        }
    }

    /// Ends the tape. Nothing is written after that.
    ///
    /// # Errors
    ///
    /// The first write that failed; nothing after it was written.
    pub fn finish(&self) -> io::Result<()> {
        let mut writer = self.lock_writer();
        let problem = writer.problem.replace(io::Error::other("the tape has ended"));
        problem.map_or(Ok(()), Err)
    }

    fn lock_writer(&self) -> MutexGuard<'_, RecordingWriter> {
        // A writer that panicked leaves at worst half a line, which a reader treats as the end.
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(live_redactor) = &writer.live_redactor {
            writer.redactor = live_redactor();
        }
        writer
    }
}

impl RecordingWriter {
    fn write_line(&mut self, line: &RecordingLine) {
        if self.problem.is_none() {
            self.problem = self.write_and_flush(line).err();
        }
    }

    /// Writes and flushes a whole line, so a killed host leaves at least the lines before.
    fn write_and_flush(&mut self, line: &RecordingLine) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.output.write_all(&text)?;
        self.output.flush()
    }

    /// Writes a request and returns its number.
    fn write_request(&mut self, request: ModelRequest<'_>) -> usize {
        let (mut messages, mut tools) = (request.messages.to_vec(), request.tools.to_vec());
        messages.iter_mut().for_each(|message| clean::clean_message(&self.redactor, message));
        tools.iter_mut().for_each(|tool| clean::clean_definition(&self.redactor, tool));
        let same = messages.iter().zip(&self.messages).take_while(|(new, old)| new == old).count();
        let recorded_request = RecordedRequest {
            number: self.requests,
            digest: digest(&messages, &tools),
            same,
            messages: messages[same..].to_vec(),
            tools: (self.tools.as_ref() != Some(&tools)).then(|| tools.clone()),
        };
        self.write_line(&RecordingLine::Request(recorded_request));
        self.requests += 1;
        (self.messages, self.tools) = (messages, Some(tools));
        self.requests - 1
    }

    fn write_answer(
        &mut self,
        request: usize,
        mut deltas: Vec<ReplyDelta>,
        mut end: AnswerOutcome,
    ) {
        clean::clean_deltas(&self.redactor, &mut deltas);
        match &mut end {
            AnswerOutcome::Reply(reply) => clean::clean_reply(&self.redactor, reply),
            AnswerOutcome::Failed(error) => clean::clean_error(&self.redactor, error),
            AnswerOutcome::Dropped => {}
        }
        self.write_line(&RecordingLine::Answer(RecordedAnswer { request, deltas, end }));
    }

    fn write_decision(&mut self, call: &RequestedCall, mut end: DecisionOutcome) {
        let (mut id, mut arguments) = (call.context.call_id.clone(), call.arguments.clone());
        clean::clean_text(&self.redactor, &mut id);
        clean::clean_text(&self.redactor, &mut arguments);
        match &mut end {
            DecisionOutcome::Admitted { arguments, grounds: reason } => {
                self.redactor.redact_value(arguments);
                clean::clean_text(&self.redactor, reason);
            }
            DecisionOutcome::Refused(report) => self.redactor.redact_report(report),
            DecisionOutcome::Dropped => {}
        }
        self.write_line(&RecordingLine::Decision(RecordedDecision {
            call: id,
            tool: call.tool.clone(),
            arguments,
            end,
        }));
    }

    fn write_recall(&mut self, mut end: RecallOutcome) {
        clean::clean_recall(&self.redactor, &mut end);
        self.write_line(&RecordingLine::Recalled { end });
    }

    fn write_report(&mut self, mut call: String, mut end: RunOutcome) {
        clean::clean_text(&self.redactor, &mut call);
        if let RunOutcome::Finished(report) = &mut end {
            self.redactor.redact_report(report);
        }
        self.write_line(&RecordingLine::Report(RecordedReport { call, end }));
    }
}

impl fmt::Debug for RecordingWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { requests, problem, .. } = self;
        f.debug_struct("RecordingWriter")
            .field("requests", requests)
            .field("problem", problem)
            .finish()
    }
}

/// A model, a toolbox or a recall whose traffic is recorded.
struct RecordingWrapper<T: ?Sized> {
    recorder: SessionRecorder,
    inner: Arc<T>,
}

impl ChatModel for RecordingWrapper<dyn ChatModel> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn price(&self) -> Option<TokenPrice> {
        self.inner.price()
    }

    fn protocol(&self) -> Option<ProviderProtocol> {
        self.inner.protocol()
    }

    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        on_delta: &'a mut (dyn FnMut(ReplyDelta) + Send),
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(async move {
            let mut open = OpenRequest::new(&self.recorder, request);
            let deltas = &mut open.deltas;
            let mut on_delta = |delta: ReplyDelta| {
                deltas.push(delta.clone());
                on_delta(delta);
            };
            let reply = self.inner.generate(request, &mut on_delta).await;
            open.end = reply.clone().map_or_else(AnswerOutcome::Failed, AnswerOutcome::Reply);
            reply
        })
    }
}

/// A toolbox that is recorded.
struct RecordingToolbox {
    inner: Arc<dyn Toolbox>,
    recorder: SessionRecorder,
    /// The tools of the whole recording, because a tape lists them once.
    tools: Arc<[ToolDescriptor]>,
}

impl Toolbox for RecordingToolbox {
    fn tools(&self) -> Arc<[ToolDescriptor]> {
        Arc::clone(&self.tools)
    }

    fn admit_call(
        self: Arc<Self>,
        call: RequestedCall,
    ) -> BoxFuture<'static, Result<Admission, Box<CallReport>>> {
        Box::pin(async move {
            let recorder = &self.recorder;
            let mut open =
                OpenDecision { recorder, call: call.clone(), end: DecisionOutcome::Dropped };
            let decision = Arc::clone(&self.inner).admit_call(call).await;
            open.end = match &decision {
                Ok(admission) => DecisionOutcome::Admitted {
                    arguments: admission.call().arguments().clone(),
                    grounds: admission.call().authorization_reason().to_owned(),
                },
                Err(report) => DecisionOutcome::Refused((**report).clone()),
            };
            let recorder = recorder.clone();
            decision.map(|admission| {
                admission.wrap_run(|call, run| async move {
                    let id = call.context().call_id.clone();
                    let mut open =
                        UnrecordedCall { recorder: &recorder, id, end: RunOutcome::Dropped };
                    let report = run.await;
                    open.end = RunOutcome::Finished(report.clone());
                    report
                })
            })
        })
    }
}

/// Remembering and forgetting are not on the tape, because no request depends on them.
impl SessionMemory for RecordingWrapper<dyn SessionMemory> {
    fn find_memories<'a>(
        &'a self,
        query: RecallQuery<'a>,
    ) -> BoxFuture<'a, Result<Vec<RecalledMemory>, RecallError>> {
        Box::pin(async move {
            let recorder = &self.recorder;
            let mut open = OpenRecall { recorder, end: RecallOutcome::Dropped };
            let found = self.inner.find_memories(query).await;
            open.end = match &found {
                Ok(found) => RecallOutcome::Found(found.clone()),
                Err(error) => RecallOutcome::Failed(error.message.clone()),
            };
            found
        })
    }

    fn remember_turn<'a>(&'a self, turn: &'a PastTurn) -> BoxFuture<'a, Result<(), RecallError>> {
        self.inner.remember_turn(turn)
    }

    fn forget_turn(&self, turn: usize) -> BoxFuture<'_, Result<(), RecallError>> {
        self.inner.forget_turn(turn)
    }
}

/// A request in progress. Its end is always written, even when the session does not wait for it.
struct OpenRequest<'r> {
    recorder: &'r SessionRecorder,
    number: usize,
    deltas: Vec<ReplyDelta>,
    end: AnswerOutcome,
}

impl<'r> OpenRequest<'r> {
    fn new(recorder: &'r SessionRecorder, request: ModelRequest<'_>) -> Self {
        let number = recorder.lock_writer().write_request(request);
        Self { recorder, number, deltas: Vec::new(), end: AnswerOutcome::Dropped }
    }
}

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        let (deltas, end) =
            (mem::take(&mut self.deltas), mem::replace(&mut self.end, AnswerOutcome::Dropped));
        self.recorder.lock_writer().write_answer(self.number, deltas, end);
    }
}

/// A recall in progress.
struct OpenRecall<'r> {
    recorder: &'r SessionRecorder,
    end: RecallOutcome,
}

impl Drop for OpenRecall<'_> {
    fn drop(&mut self) {
        let end = mem::replace(&mut self.end, RecallOutcome::Dropped);
        self.recorder.lock_writer().write_recall(end);
    }
}

/// A call at the gate.
struct OpenDecision<'r> {
    recorder: &'r SessionRecorder,
    call: RequestedCall,
    end: DecisionOutcome,
}

impl Drop for OpenDecision<'_> {
    fn drop(&mut self) {
        let end = mem::replace(&mut self.end, DecisionOutcome::Dropped);
        let end = panic_report().map_or(end, DecisionOutcome::Refused);
        self.recorder.lock_writer().write_decision(&self.call, end);
    }
}

/// A running call.
struct UnrecordedCall<'r> {
    recorder: &'r SessionRecorder,
    id: String,
    end: RunOutcome,
}

impl Drop for UnrecordedCall<'_> {
    fn drop(&mut self) {
        let end = mem::replace(&mut self.end, RunOutcome::Dropped);
        let end = panic_report().map_or(end, RunOutcome::Finished);
        self.recorder.lock_writer().write_report(mem::take(&mut self.id), end);
    }
}

/// The report on the tape for a call that a bug of the host ended; no caller receives it.
fn panic_report() -> Option<CallReport> {
    let failure =
        || CallFailure::new(FailureKind::Internal, "the host failed while it handled this call");
    thread::panicking().then(|| Outcome::Failed(failure()).into())
}
