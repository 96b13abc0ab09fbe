//! Sessions with a scripted model and a toolbox of small fakes.
//!
//! Every test is a script and its expected outcome, both as lines of text: the events of the front
//! end and the messages of the model. The model checks the transcript of every request.

mod approvals;
mod budgets;
mod cancel;
mod commands;
mod edits;
mod exports;
mod histories;
mod hostile;
mod memories;
mod model;
mod notices;
mod origins;
mod progress;
mod property;
mod recall;
mod records;
mod results;
mod search;
mod serialized;
mod speech;
mod toolbox;
mod transcripts;
mod turns;

use std::{
    future::Future,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sallyport_contract::{
    ApprovalAnswer, BoxFuture,
    services::{NoticeAudience, PluginNotice},
};
use sallyport_model::{ChatMessage, ReplyDelta};
use tokio::sync::mpsc;

use self::{
    model::{Line, Model},
    toolbox::{Probe, Tools},
};
use super::{
    FrontEndCommand, Journal, JournalError, JournalRecord, RestoredSession, ResultLookup,
    SessionEndedError, SessionEvent, SessionHandle, SessionMemory, SessionOptions, SessionParts,
    TurnEnd, TurnLimits, approval, results::MemoryResults, spawn_session, transcript,
};

/// A test that waits this long will wait forever.
const STUCK: Duration = Duration::from_secs(60);

/// A session and everything that a test checks about it.
struct Talk {
    handle: SessionHandle,
    events: mpsc::Receiver<SessionEvent>,
    requests: Arc<Mutex<Vec<Vec<ChatMessage>>>>,
    records: Notes,
    probe: Arc<Probe>,
}

impl Talk {
    fn new(script: impl Fn(usize) -> Line + Send + Sync + 'static) -> Self {
        Self::with(options(), script)
    }

    fn with(
        options: SessionOptions,
        script: impl Fn(usize) -> Line + Send + Sync + 'static,
    ) -> Self {
        Self::resumed(RestoredSession::default(), options, script)
    }

    fn resumed(
        past: RestoredSession,
        options: SessionOptions,
        script: impl Fn(usize) -> Line + Send + Sync + 'static,
    ) -> Self {
        let (probe, requests) = (Arc::new(Probe::default()), Arc::default());
        let model = Model::new(script, Arc::clone(&requests), Arc::clone(&probe));
        Self::among(past, options, model, probe)
    }

    fn among(
        past: RestoredSession,
        options: SessionOptions,
        model: Model,
        probe: Arc<Probe>,
    ) -> Self {
        Self::recalling(past, options, model, probe, None)
    }

    fn recalling(
        past: RestoredSession,
        options: SessionOptions,
        model: Model,
        probe: Arc<Probe>,
        recall: Option<Arc<dyn SessionMemory>>,
    ) -> Self {
        let (desk, approvals) = approval::approval_channel();
        let requests = Arc::clone(model.requests());
        let records = Notes::default();
        let journal = Box::new(records.clone());
        let toolbox = Arc::new(Tools::new(desk, Arc::clone(&probe)));
        let model = Arc::new(model);
        let parts = SessionParts {
            model,
            toolbox,
            approvals,
            journal,
            recall,
            past,
            account: None,
            options,
        };
        let (handle, events) = spawn_session(parts).unwrap();
        Self { handle, events, requests, records, probe }
    }

    async fn send(&self, command: FrontEndCommand) {
        self.handle.send(command).await.unwrap();
    }

    async fn submit(&self, text: &str) {
        self.send(FrontEndCommand::SubmitInput { input: text.into() }).await;
    }

    async fn answer(&self, id: u64, answer: ApprovalAnswer) {
        self.send(FrontEndCommand::ProvideConfirmation { id, answer }).await;
    }

    async fn event(&mut self) -> SessionEvent {
        within(self.events.recv()).await.expect("the session has ended")
    }

    /// Reads events up to the expected one, and returns all of them.
    async fn until(&mut self, wanted: impl Fn(&SessionEvent) -> bool) -> Vec<SessionEvent> {
        let mut events = Vec::new();
        loop {
            events.push(self.event().await);
            if wanted(&events[events.len() - 1]) {
                return events;
            }
        }
    }

    async fn until_line(&mut self, wanted: &str) -> Vec<String> {
        lines(&self.until(|event| line(event) == wanted).await)
    }

    async fn until_end(&mut self) -> Vec<SessionEvent> {
        self.until(|event| matches!(event, SessionEvent::TurnEnded { .. })).await
    }

    /// Runs one whole turn and returns its events, without its beginning and changes of state.
    async fn turn(&mut self, text: &str) -> Vec<String> {
        self.submit(text).await;
        let mut events = self.until_end().await;
        let is_frame = |event: &SessionEvent| {
            matches!(event, SessionEvent::State { .. } | SessionEvent::InputAccepted { .. })
        };
        events.retain(|event| !is_frame(event));
        lines(&events)
    }

    /// Returns the written records, one line each.
    fn written(&self) -> Vec<String> {
        record_lines(&self.records.all())
    }

    /// Returns the model's last request, one line per message.
    fn shown(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        requests.last().expect("the model was asked").iter().map(message_line).collect()
    }
}

/// Runs one turn with the script and compares the events of the front end.
async fn check(script: Vec<Line>, expected: &[&str]) -> Talk {
    let mut talk = Talk::new(model::script(script));
    assert_eq!(talk.turn("hello").await, expected);
    talk
}

/// Compares the model's last request.
fn check_shown(talk: &Talk, expected: &[&str]) {
    assert_eq!(talk.shown(), expected);
}

/// A plugin's message.
fn said_by(plugin: &str, text: &str) -> PluginNotice {
    PluginNotice {
        plugin: plugin.parse().unwrap(),
        session_id: "s1".into(),
        text: text.into(),
        speech: None,
        audience: NoticeAudience::Conversation,
        late: false,
    }
}

fn options() -> SessionOptions {
    SessionOptions::new("s1")
}

fn limited(turns_max: u32, calls_max: u32, repeats_max: u32) -> SessionOptions {
    SessionOptions {
        limits: TurnLimits { turns_max, calls_max, repeats_max, ..TurnLimits::default() },
        ..options()
    }
}

/// A readable journal that can be made to fail.
#[derive(Clone, Default)]
struct Notes {
    batches: Arc<Mutex<Vec<Vec<JournalRecord>>>>,
    is_failing: Arc<AtomicBool>,
    results: Arc<Mutex<MemoryResults>>,
}

impl Notes {
    fn all(&self) -> Vec<JournalRecord> {
        self.batches.lock().unwrap().concat()
    }
}

impl Journal for Notes {
    fn write_records(
        &mut self,
        records: Vec<JournalRecord>,
    ) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(async move {
            if self.is_failing.load(Ordering::SeqCst) {
                return Err(JournalError { message: "the disk is full".into() });
            }
            self.batches.lock().unwrap().push(records);
            Ok(())
        })
    }

    fn read_records(&mut self) -> BoxFuture<'_, Result<Vec<JournalRecord>, JournalError>> {
        Box::pin(async { Ok(self.all()) })
    }

    fn keep_result(&mut self, text: String) -> BoxFuture<'_, Result<u64, JournalError>> {
        let is_full = self.is_failing.load(Ordering::SeqCst);
        let kept = || self.results.lock().unwrap().keep_text(text);
        let full = || JournalError { message: "the disk is full".into() };
        let kept = (!is_full).then(kept).ok_or_else(full);
        Box::pin(async { kept })
    }

    fn find_result(&mut self, number: u64) -> BoxFuture<'_, Result<ResultLookup, JournalError>> {
        let found = self.results.lock().unwrap().find_text(number);
        Box::pin(async { Ok(found) })
    }
}

async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(STUCK, work).await.expect("stuck")
}

fn lines(events: &[SessionEvent]) -> Vec<String> {
    events.iter().map(line).collect()
}

fn line(event: &SessionEvent) -> String {
    match event {
        SessionEvent::State { state } => format!("state {state:?}"),
        SessionEvent::Delta(ReplyDelta::Text { text }) => format!("text {text}"),
        SessionEvent::Delta(ReplyDelta::Reasoning { text }) => format!("reasoning {text}"),
        SessionEvent::Delta(ReplyDelta::CallBegun { name }) => format!("begins {name}"),
        SessionEvent::Delta(ReplyDelta::LeftOut(what)) => format!("left out {what}"),
        SessionEvent::Delta(ReplyDelta::Retry { attempt, reason, .. }) => {
            format!("retry {attempt} {reason}")
        }
        SessionEvent::MessageComplete { text, .. } => format!("message {text}"),
        SessionEvent::CallRequested { call_id, tool, arguments } => {
            format!("call {call_id} {tool} {arguments}")
        }
        SessionEvent::ApprovalNeeded { confirmation_id, request, .. } => {
            format!("question {confirmation_id} {}", request.call.tool)
        }
        SessionEvent::ArgumentsEdited { call_id, arguments } => {
            format!("edited {call_id} {arguments}")
        }
        SessionEvent::InputAccepted { turn, text, .. } => format!("turn {turn} {text}"),
        SessionEvent::Noticed { notice } => format!("noticed {} {}", notice.plugin, notice.text),
        SessionEvent::Progress { call_id, progress } => {
            let (part, words) =
                (progress.fraction, progress.message.as_deref().unwrap_or_default());
            format!("progress {call_id} {part:?} {words}")
        }
        SessionEvent::Undone { text } => format!("undone {text}"),
        SessionEvent::ModelChanged { name } => format!("model {name}"),
        SessionEvent::Summarized { messages, text } => format!("summary of {messages} {text}"),
        SessionEvent::Pinned { turn } => format!("pinned {turn}"),
        SessionEvent::ApprovalClosed { confirmation_id } => format!("closed {confirmation_id}"),
        SessionEvent::CallFinished { call_id, tool, report } => {
            let outcome = &report.outcome;
            format!("finished {call_id} {tool} {} {}", outcome.as_str(), outcome.to_model_value())
        }
        SessionEvent::ResultKept { call_id, kept } => {
            format!("kept {call_id} {} {} {}", kept.number, kept.bytes, kept.lines)
        }
        SessionEvent::TurnEnded { reason, .. } => format!("end {}", end_line(reason)),
        SessionEvent::Notice(notice) => format!("notice {notice}"),
    }
}

fn end_line(reason: &TurnEnd) -> String {
    match reason {
        TurnEnd::Answered { text } => format!("answered {text}"),
        TurnEnd::Spoken { text } => format!("spoken {text}"),
        TurnEnd::BudgetReached { limit: what } => format!("budget {what}"),
        TurnEnd::ModelFailed(error) => format!("model failed {error}"),
        TurnEnd::Cancelled => "cancelled".to_owned(),
        TurnEnd::InputRefused(error) => format!("refused {error}"),
    }
}

fn record_lines(records: &[JournalRecord]) -> Vec<String> {
    records.iter().map(record_line).collect()
}

fn record_line(record: &JournalRecord) -> String {
    match record {
        JournalRecord::Began { system_prompt, memories, .. } => {
            let parts = system_prompt.iter().chain(memories).map(String::as_str);
            format!("began {}", parts.collect::<Vec<_>>().join("+")).trim_end().to_owned()
        }
        JournalRecord::Model { name } => format!("model {name}"),
        JournalRecord::Input { message } => message_line(&ChatMessage::User(message.clone())),
        JournalRecord::Answer { message, .. } => {
            message_line(&ChatMessage::Assistant(message.clone()))
        }
        JournalRecord::Result { result, tool, outcome, .. } => {
            format!("result {} {tool} {outcome}", result.call_id)
        }
        JournalRecord::Note { text } => format!("note {text}"),
        JournalRecord::TurnEnded { end, .. } => format!("end {end}"),
        JournalRecord::Undone => "undone".to_owned(),
        JournalRecord::Forgotten => "forgotten".to_owned(),
        JournalRecord::Summary { text, through, .. } => format!("summary of {through} {text}"),
        JournalRecord::Found { tools } => format!("found {}", tools.join(" ")),
        JournalRecord::Pinned { turn } => format!("pinned {turn}"),
        JournalRecord::Recalled { memories } => {
            let texts: Vec<&str> = memories.iter().map(|one| one.text.as_str()).collect();
            format!("recalled {}", texts.join("+"))
        }
        JournalRecord::Noticed { notice } => format!("noticed {} {}", notice.plugin, notice.text),
        JournalRecord::Unknown => "unknown".to_owned(),
    }
}

fn message_line(message: &ChatMessage) -> String {
    match message {
        ChatMessage::System { text } => format!("system {text}"),
        ChatMessage::User(said) => format!("user {}", said.text_for_model()),
        ChatMessage::Tool(result) => {
            let mark = if result.failed { "!" } else { "" };
            format!("tool{mark} {} {} {}", result.call_id, result.name, result.content)
        }
        ChatMessage::Assistant(answer) => {
            let mut line = format!("assistant {}", answer.text);
            for call in &answer.calls {
                line += &format!("[{} {} {}]", call.id, call.name, call.arguments);
            }
            line + if answer.opaque.is_some() { " (opaque)" } else { "" }
        }
    }
}
