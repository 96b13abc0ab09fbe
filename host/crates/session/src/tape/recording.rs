//! Records the traffic between a session and its model and tools.

use std::{
    fmt,
    io::{self, Write},
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
};

use sallyport_contract::{
    Admitted, BoxFuture, CallReport, Failure, FailureKind, Outcome, Redactor, ToolCall, ToolSpec,
    Toolbox, services::Notice,
};
use sallyport_model::{
    ChatModel, Delta, Message, ModelError, Price, Reply, Request, ToolDefinition, UserMessage,
};

use crate::{Event, Options, Recall, RecallError, Recalled, Wanted, history::PastTurn};

use super::{
    clean,
    line::{
        Answer, Answered, Asked, Decided, Decision, Header, Line, Recollected, Report, Reported,
        VERSION, digest,
    },
};

/// A tape that is being recorded. Clones write to the same one.
///
/// A session is recorded when its model and its toolbox are [`model`](Self::model) and
/// [`toolbox`](Self::toolbox) of one recording. The front end passes every input and every
/// cancellation to the recording before it sends it to the session, and passes every event on as
/// well.
#[derive(Debug, Clone)]
pub struct Recording {
    sink: Arc<Mutex<Sink>>,
}

/// The output of a recording.
struct Sink {
    out: Box<dyn Write + Send>,
    redactor: Redactor,
    /// Returns the current redactor.
    present: Option<Box<dyn Fn() -> Redactor + Send>>,
    /// The number of requests so far.
    requests: usize,
    /// The last request, without secrets.
    messages: Vec<Message>,
    tools: Option<Vec<ToolDefinition>>,
    problem: Option<io::Error>,
}

impl Recording {
    /// Begins a tape. Secrets that the redactor knows are not written to it.
    pub fn begin(
        out: impl Write + Send + 'static,
        redactor: Redactor,
        options: &Options,
        model: &dyn ChatModel,
        toolbox: &dyn Toolbox,
    ) -> Self {
        let mut header = Header {
            version: VERSION,
            options: options.clone(),
            model: model.name().to_owned(),
            price: model.price(),
            tools: toolbox.tools().to_vec(),
        };
        clean::options(&redactor, &mut header.options);
        clean::text(&redactor, &mut header.model);
        header.tools.iter_mut().for_each(|tool| clean::tool(&redactor, tool));
        let (out, messages) = (Box::new(out), Vec::new());
        let (present, tools, problem) = (None, None, None);
        let mut sink = Sink { out, redactor, present, requests: 0, messages, tools, problem };
        sink.write(&Line::Tape(header));
        Self { sink: Arc::new(Mutex::new(sink)) }
    }

    /// From now on, uses the redactor that `present` returns at the time of each line.
    pub fn keeping_up(self, present: impl Fn() -> Redactor + Send + 'static) -> Self {
        self.sink().present = Some(Box::new(present));
        self
    }

    /// Returns the model, wrapped to be recorded.
    pub fn model(&self, model: Arc<dyn ChatModel>) -> Arc<dyn ChatModel> {
        Arc::new(Recorded { inner: model, recording: self.clone() })
    }

    /// Returns the toolbox, wrapped to be recorded.
    pub fn toolbox(&self, toolbox: Arc<dyn Toolbox>) -> Arc<dyn Toolbox> {
        Arc::new(Recorded { inner: toolbox, recording: self.clone() })
    }

    /// Returns the recall, wrapped to be recorded.
    pub fn recall(&self, recall: Arc<dyn Recall>) -> Arc<dyn Recall> {
        self.sink().write(&Line::Recalls);
        Arc::new(Recorded { inner: recall, recording: self.clone() })
    }

    /// Records a plugin's message before it is sent.
    pub fn notice(&self, notice: &Notice) {
        let mut sink = self.sink();
        let mut notice = notice.clone();
        clean::notice(&sink.redactor, &mut notice);
        sink.write(&Line::Noticed { notice });
    }

    /// Records an input before it is sent.
    pub fn input(&self, message: &UserMessage) {
        let mut sink = self.sink();
        let mut message = message.clone();
        clean::input(&sink.redactor, &mut message);
        sink.write(&Line::Input { message });
    }

    /// Records a cancellation before it is sent.
    pub fn cancel(&self) {
        self.sink().write(&Line::Cancel);
    }

    /// Records the part of an event that belongs on a tape.
    pub fn event(&self, event: &Event) {
        if let Event::TurnEnded { usage, .. } = event {
            self.sink().write(&Line::Turn { elapsed: usage.elapsed });
        }
    }

    /// Ends the tape. Nothing is written after that.
    ///
    /// # Errors
    ///
    /// The first write that failed; nothing after it was written.
    pub fn finish(&self) -> io::Result<()> {
        let mut sink = self.sink();
        let problem = sink.problem.replace(io::Error::other("the tape has ended"));
        problem.map_or(Ok(()), Err)
    }

    fn sink(&self) -> MutexGuard<'_, Sink> {
        // A writer that panicked leaves at worst half a line, which a reader treats as the end.
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(present) = &sink.present {
            sink.redactor = present();
        }
        sink
    }
}

impl Sink {
    fn write(&mut self, line: &Line) {
        if self.problem.is_none() {
            self.problem = self.put(line).err();
        }
    }

    /// Writes and flushes a whole line, so a killed host leaves at least the lines before.
    fn put(&mut self, line: &Line) -> io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.out.write_all(&text)?;
        self.out.flush()
    }

    /// Writes a request and returns its number.
    fn request(&mut self, request: Request<'_>) -> usize {
        let (mut messages, mut tools) = (request.messages.to_vec(), request.tools.to_vec());
        messages.iter_mut().for_each(|message| clean::message(&self.redactor, message));
        tools.iter_mut().for_each(|tool| clean::definition(&self.redactor, tool));
        let same = messages.iter().zip(&self.messages).take_while(|(new, old)| new == old).count();
        let asked = Asked {
            number: self.requests,
            digest: digest(&messages, &tools),
            same,
            messages: messages[same..].to_vec(),
            tools: (self.tools.as_ref() != Some(&tools)).then(|| tools.clone()),
        };
        self.write(&Line::Request(asked));
        self.requests += 1;
        (self.messages, self.tools) = (messages, Some(tools));
        self.requests - 1
    }

    fn answer(&mut self, request: usize, mut deltas: Vec<Delta>, mut end: Answer) {
        clean::deltas(&self.redactor, &mut deltas);
        match &mut end {
            Answer::Reply(reply) => clean::reply(&self.redactor, reply),
            Answer::Failed(error) => clean::error(&self.redactor, error),
            Answer::Dropped => {}
        }
        self.write(&Line::Answer(Answered { request, deltas, end }));
    }

    fn decision(&mut self, call: &ToolCall, mut end: Decision) {
        let (mut id, mut arguments) = (call.context.call_id.clone(), call.arguments.clone());
        clean::text(&self.redactor, &mut id);
        clean::text(&self.redactor, &mut arguments);
        match &mut end {
            Decision::Admitted { arguments, grounds } => {
                self.redactor.value(arguments);
                clean::text(&self.redactor, grounds);
            }
            Decision::Refused(report) => self.redactor.report(report),
            Decision::Dropped => {}
        }
        self.write(&Line::Decision(Decided { call: id, tool: call.tool.clone(), arguments, end }));
    }

    fn recalled(&mut self, mut end: Recollected) {
        clean::recollected(&self.redactor, &mut end);
        self.write(&Line::Recalled { end });
    }

    fn report(&mut self, mut call: String, mut end: Report) {
        clean::text(&self.redactor, &mut call);
        if let Report::Finished(report) = &mut end {
            self.redactor.report(report);
        }
        self.write(&Line::Report(Reported { call, end }));
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { requests, problem, .. } = self;
        f.debug_struct("Sink").field("requests", requests).field("problem", problem).finish()
    }
}

/// A model, a toolbox or a recall whose traffic is recorded.
struct Recorded<T: ?Sized> {
    recording: Recording,
    inner: Arc<T>,
}

impl ChatModel for Recorded<dyn ChatModel> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn price(&self) -> Option<Price> {
        self.inner.price()
    }

    fn generate<'a>(
        &'a self,
        request: Request<'a>,
        on_delta: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            let mut open = OpenRequest::new(&self.recording, request);
            let deltas = &mut open.deltas;
            let mut on_delta = |delta: Delta| {
                deltas.push(delta.clone());
                on_delta(delta);
            };
            let reply = self.inner.generate(request, &mut on_delta).await;
            open.end = reply.clone().map_or_else(Answer::Failed, Answer::Reply);
            reply
        })
    }
}

impl Toolbox for Recorded<dyn Toolbox> {
    fn tools(&self) -> &[ToolSpec] {
        self.inner.tools()
    }

    fn admit(&self, call: ToolCall) -> BoxFuture<'_, Result<Admitted, Box<CallReport>>> {
        Box::pin(async move {
            let recording = &self.recording;
            let mut open = OpenDecision { recording, call: call.clone(), end: Decision::Dropped };
            let decided = self.inner.admit(call).await;
            open.end = match &decided {
                Ok(admitted) => Decision::Admitted {
                    arguments: admitted.arguments().clone(),
                    grounds: admitted.grounds().to_owned(),
                },
                Err(report) => Decision::Refused((**report).clone()),
            };
            decided
        })
    }

    fn run(&self, call: Admitted) -> BoxFuture<'_, CallReport> {
        Box::pin(async move {
            let (recording, id) = (&self.recording, call.context().call_id.clone());
            let mut open = OpenCall { recording, id, end: Report::Dropped };
            let report = self.inner.run(call).await;
            open.end = Report::Finished(report.clone());
            report
        })
    }
}

/// Remembering and forgetting are not on the tape, because no request depends on them.
impl Recall for Recorded<dyn Recall> {
    fn recall<'a>(
        &'a self,
        wanted: Wanted<'a>,
    ) -> BoxFuture<'a, Result<Vec<Recalled>, RecallError>> {
        Box::pin(async move {
            let recording = &self.recording;
            let mut open = OpenRecollection { recording, end: Recollected::Dropped };
            let found = self.inner.recall(wanted).await;
            open.end = match &found {
                Ok(found) => Recollected::Found(found.clone()),
                Err(error) => Recollected::Failed(error.message.clone()),
            };
            found
        })
    }

    fn remember<'a>(&'a self, turn: &'a PastTurn) -> BoxFuture<'a, Result<(), RecallError>> {
        self.inner.remember(turn)
    }

    fn forget(&self, turn: usize) -> BoxFuture<'_, Result<(), RecallError>> {
        self.inner.forget(turn)
    }
}

/// A request in progress. Its end is always written, even when the session does not wait for it.
struct OpenRequest<'r> {
    recording: &'r Recording,
    number: usize,
    deltas: Vec<Delta>,
    end: Answer,
}

impl<'r> OpenRequest<'r> {
    fn new(recording: &'r Recording, request: Request<'_>) -> Self {
        let number = recording.sink().request(request);
        Self { recording, number, deltas: Vec::new(), end: Answer::Dropped }
    }
}

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        let (deltas, end) =
            (mem::take(&mut self.deltas), mem::replace(&mut self.end, Answer::Dropped));
        self.recording.sink().answer(self.number, deltas, end);
    }
}

/// A recall in progress.
struct OpenRecollection<'r> {
    recording: &'r Recording,
    end: Recollected,
}

impl Drop for OpenRecollection<'_> {
    fn drop(&mut self) {
        let end = mem::replace(&mut self.end, Recollected::Dropped);
        self.recording.sink().recalled(end);
    }
}

/// A call at the gate.
struct OpenDecision<'r> {
    recording: &'r Recording,
    call: ToolCall,
    end: Decision,
}

impl Drop for OpenDecision<'_> {
    fn drop(&mut self) {
        let end = mem::replace(&mut self.end, Decision::Dropped);
        let end = lost().map_or(end, Decision::Refused);
        self.recording.sink().decision(&self.call, end);
    }
}

/// A running call.
struct OpenCall<'r> {
    recording: &'r Recording,
    id: String,
    end: Report,
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        let end = mem::replace(&mut self.end, Report::Dropped);
        let end = lost().map_or(end, Report::Finished);
        self.recording.sink().report(mem::take(&mut self.id), end);
    }
}

/// The report on the tape for a call that a bug of the host ended; no caller receives it.
fn lost() -> Option<CallReport> {
    let failure =
        || Failure::new(FailureKind::Internal, "the host failed while it handled this call");
    thread::panicking().then(|| Outcome::Failed(failure()).into())
}
