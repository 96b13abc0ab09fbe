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
mod search;
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
    Answer, BoxFuture,
    services::{Audience, Notice},
};
use sallyport_model::{Delta, Message};
use tokio::sync::mpsc;

use self::{
    model::{Line, Model},
    toolbox::{Probe, Tools},
};
use super::{
    Command, Ended, Event, Handle, Journal, JournalError, Limits, Options, Parts, Recall, Record,
    Restored, TurnEnd, approval, spawn, transcript,
};

/// A test that waits this long will wait forever.
const STUCK: Duration = Duration::from_secs(60);

/// A session and everything that a test checks about it.
struct Talk {
    handle: Handle,
    events: mpsc::Receiver<Event>,
    requests: Arc<Mutex<Vec<Vec<Message>>>>,
    records: Notes,
    probe: Arc<Probe>,
}

impl Talk {
    fn new(script: impl Fn(usize) -> Line + Send + Sync + 'static) -> Self {
        Self::with(options(), script)
    }

    fn with(options: Options, script: impl Fn(usize) -> Line + Send + Sync + 'static) -> Self {
        Self::resumed(Restored::default(), options, script)
    }

    fn resumed(
        past: Restored,
        options: Options,
        script: impl Fn(usize) -> Line + Send + Sync + 'static,
    ) -> Self {
        let (probe, requests) = (Arc::new(Probe::default()), Arc::default());
        let model = Model::new(script, Arc::clone(&requests), Arc::clone(&probe));
        Self::among(past, options, model, probe)
    }

    fn among(past: Restored, options: Options, model: Model, probe: Arc<Probe>) -> Self {
        Self::recalling(past, options, model, probe, None)
    }

    fn recalling(
        past: Restored,
        options: Options,
        model: Model,
        probe: Arc<Probe>,
        recall: Option<Arc<dyn Recall>>,
    ) -> Self {
        let (desk, approvals) = approval::channel();
        let requests = Arc::clone(model.requests());
        let records = Notes::default();
        let journal = Box::new(records.clone());
        let toolbox = Arc::new(Tools::new(desk, Arc::clone(&probe)));
        let model = Arc::new(model);
        let parts = Parts { model, toolbox, approvals, journal, recall, past, options };
        let (handle, events) = spawn(parts).unwrap();
        Self { handle, events, requests, records, probe }
    }

    async fn send(&self, command: Command) {
        self.handle.send(command).await.unwrap();
    }

    async fn submit(&self, text: &str) {
        self.send(Command::SubmitInput { input: text.into() }).await;
    }

    async fn answer(&self, id: u64, answer: Answer) {
        self.send(Command::ProvideConfirmation { id, answer }).await;
    }

    async fn event(&mut self) -> Event {
        within(self.events.recv()).await.expect("the session has ended")
    }

    /// Reads events up to the expected one, and returns all of them.
    async fn until(&mut self, wanted: impl Fn(&Event) -> bool) -> Vec<Event> {
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

    async fn until_end(&mut self) -> Vec<Event> {
        self.until(|event| matches!(event, Event::TurnEnded { .. })).await
    }

    /// Runs one whole turn and returns its events, without its beginning and changes of state.
    async fn turn(&mut self, text: &str) -> Vec<String> {
        self.submit(text).await;
        let mut events = self.until_end().await;
        let is_frame =
            |event: &Event| matches!(event, Event::State(_) | Event::InputAccepted { .. });
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
fn said_by(plugin: &str, text: &str) -> Notice {
    Notice {
        plugin: plugin.parse().unwrap(),
        session_id: "s1".into(),
        text: text.into(),
        speech: None,
        audience: Audience::Conversation,
        late: false,
    }
}

fn options() -> Options {
    Options::new("s1")
}

fn limited(turns_max: u32, calls_max: u32, repeats_max: u32) -> Options {
    Options {
        limits: Limits { turns_max, calls_max, repeats_max, ..Limits::default() },
        ..options()
    }
}

/// A readable journal that can be made to fail.
#[derive(Clone, Default)]
struct Notes {
    batches: Arc<Mutex<Vec<Vec<Record>>>>,
    is_failing: Arc<AtomicBool>,
}

impl Notes {
    fn all(&self) -> Vec<Record> {
        self.batches.lock().unwrap().concat()
    }
}

impl Journal for Notes {
    fn write(&mut self, records: Vec<Record>) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(async move {
            if self.is_failing.load(Ordering::SeqCst) {
                return Err(JournalError { message: "the disk is full".into() });
            }
            self.batches.lock().unwrap().push(records);
            Ok(())
        })
    }
}

async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(STUCK, work).await.expect("stuck")
}

fn lines(events: &[Event]) -> Vec<String> {
    events.iter().map(line).collect()
}

fn line(event: &Event) -> String {
    match event {
        Event::State(state) => format!("state {state:?}"),
        Event::Delta(Delta::Text(text)) => format!("text {text}"),
        Event::Delta(Delta::Reasoning(text)) => format!("reasoning {text}"),
        Event::Delta(Delta::CallBegun { name }) => format!("begins {name}"),
        Event::Delta(Delta::LeftOut(what)) => format!("left out {what}"),
        Event::Delta(Delta::Retry { attempt, reason, .. }) => format!("retry {attempt} {reason}"),
        Event::MessageComplete { text, .. } => format!("message {text}"),
        Event::CallRequested { call_id, tool, arguments } => {
            format!("call {call_id} {tool} {arguments}")
        }
        Event::ApprovalNeeded { confirmation_id, request, .. } => {
            format!("question {confirmation_id} {}", request.call.tool)
        }
        Event::ArgumentsEdited { call_id, arguments } => format!("edited {call_id} {arguments}"),
        Event::InputAccepted { turn, text, .. } => format!("turn {turn} {text}"),
        Event::Noticed { notice } => format!("noticed {} {}", notice.plugin, notice.text),
        Event::Progress { call_id, progress } => {
            let (part, words) = (progress.part, progress.message.as_deref().unwrap_or_default());
            format!("progress {call_id} {part:?} {words}")
        }
        Event::Undone { text } => format!("undone {text}"),
        Event::ModelChanged { name } => format!("model {name}"),
        Event::Summarized { messages, text } => format!("summary of {messages} {text}"),
        Event::Pinned { turn } => format!("pinned {turn}"),
        Event::ApprovalClosed { confirmation_id } => format!("closed {confirmation_id}"),
        Event::CallFinished { call_id, tool, report } => {
            let outcome = &report.outcome;
            format!("finished {call_id} {tool} {} {}", outcome.word(), outcome.to_model())
        }
        Event::TurnEnded { reason, .. } => format!("end {}", end_line(reason)),
        Event::Notice(notice) => format!("notice {notice}"),
    }
}

fn end_line(reason: &TurnEnd) -> String {
    match reason {
        TurnEnd::Answered { text } => format!("answered {text}"),
        TurnEnd::Spoken { text } => format!("spoken {text}"),
        TurnEnd::BudgetReached { what } => format!("budget {what}"),
        TurnEnd::ModelFailed(error) => format!("model failed {error}"),
        TurnEnd::Cancelled => "cancelled".to_owned(),
        TurnEnd::InputRefused(error) => format!("refused {error}"),
    }
}

fn record_lines(records: &[Record]) -> Vec<String> {
    records.iter().map(record_line).collect()
}

fn record_line(record: &Record) -> String {
    match record {
        Record::Began { system_prompt, memories, .. } => {
            let parts = system_prompt.iter().chain(memories).map(String::as_str);
            format!("began {}", parts.collect::<Vec<_>>().join("+")).trim_end().to_owned()
        }
        Record::Model { name } => format!("model {name}"),
        Record::Input { message } => message_line(&Message::User(message.clone())),
        Record::Answer { message, .. } => message_line(&Message::Assistant(message.clone())),
        Record::Result { result, tool, outcome, .. } => {
            format!("result {} {tool} {outcome}", result.call_id)
        }
        Record::Note { text } => format!("note {text}"),
        Record::TurnEnded { end, .. } => format!("end {end}"),
        Record::Undone => "undone".to_owned(),
        Record::Forgotten => "forgotten".to_owned(),
        Record::Summary { text, through, .. } => format!("summary of {through} {text}"),
        Record::Found { tools } => format!("found {}", tools.join(" ")),
        Record::Pinned { turn } => format!("pinned {turn}"),
        Record::Recalled { memories } => {
            let texts: Vec<&str> = memories.iter().map(|one| one.text.as_str()).collect();
            format!("recalled {}", texts.join("+"))
        }
        Record::Noticed { notice } => format!("noticed {} {}", notice.plugin, notice.text),
        Record::Unknown => "unknown".to_owned(),
    }
}

fn message_line(message: &Message) -> String {
    match message {
        Message::System { text } => format!("system {text}"),
        Message::User(said) => format!("user {}", said.told()),
        Message::Tool(result) => {
            let mark = if result.failed { "!" } else { "" };
            format!("tool{mark} {} {} {}", result.call_id, result.name, result.content)
        }
        Message::Assistant(answer) => {
            let mut line = format!("assistant {}", answer.text);
            for call in &answer.calls {
                line += &format!("[{} {} {}]", call.id, call.name, call.arguments);
            }
            line + if answer.opaque.is_some() { " (opaque)" } else { "" }
        }
    }
}
