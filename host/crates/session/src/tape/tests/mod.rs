//! Recorded and replayed sessions.

mod cast;
mod damage;
mod differences;
mod lines;
mod outside;
mod secrets;
mod sessions;

use std::{
    io,
    sync::{Arc, Mutex},
};

use sallyport_contract::{Redactor, Toolbox};
use sallyport_model::{ChatModel, UserMessage};
use tokio::sync::mpsc;

use self::cast::{Actor, Stage};
use super::{Recording, Replay, ReplayError, Tape};
use crate::{
    Command, Event, Handle, Memory, Options, Parts, Recall, approval, history::Restored, journal,
    spawn,
};

/// A tape in memory. Clones share it.
#[derive(Debug, Clone, Default)]
struct Shelf(Arc<Mutex<Vec<u8>>>);

impl io::Write for Shelf {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shelf {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

fn read(text: &str) -> Tape {
    Tape::read(text.as_bytes()).unwrap()
}

fn options() -> Options {
    Options { system_prompt: Some("Be brief.".into()), ..Options::new("s1") }
}

/// A session with its front end.
struct Talk {
    handle: Handle,
    events: mpsc::Receiver<Event>,
    heard: Vec<String>,
}

impl Talk {
    fn new(model: Arc<dyn ChatModel>, toolbox: Arc<dyn Toolbox>, options: Options) -> Self {
        Self::recalling(model, toolbox, None, options)
    }

    fn recalling(
        model: Arc<dyn ChatModel>,
        toolbox: Arc<dyn Toolbox>,
        recall: Option<Arc<dyn Recall>>,
        options: Options,
    ) -> Self {
        let (_, approvals) = approval::channel();
        let (journal, past) = (Box::new(journal::NoJournal), Restored::default());
        let parts = Parts { model, toolbox, approvals, journal, recall, past, options };
        let (handle, events) = spawn(parts).unwrap();
        Self { handle, events, heard: Vec::new() }
    }

    /// Runs one turn, and cancels it when `cancel` resolves.
    async fn turn(&mut self, input: UserMessage, cancel: impl Future<Output = ()>) {
        self.turn_seen(input, cancel, |event| event).await;
    }

    /// Does the same, with events mapped by `seen`.
    async fn turn_seen(
        &mut self,
        input: UserMessage,
        cancel: impl Future<Output = ()>,
        seen: impl Fn(Event) -> Event,
    ) {
        self.handle.send(Command::SubmitInput { input }).await.unwrap();
        let mut cancel = std::pin::pin!(cancel);
        let mut is_cancelled = false;
        loop {
            tokio::select! {
                () = &mut cancel, if !is_cancelled => {
                    is_cancelled = true;
                    self.handle.send(Command::Cancel).await.unwrap();
                }
                event = self.events.recv() => {
                    let event = seen(event.expect("the session has ended"));
                    self.heard.push(format!("{event:?}"));
                    if matches!(event, Event::TurnEnded { .. }) {
                        return;
                    }
                }
            }
        }
    }
}

/// Records a session and returns its tape and its events.
async fn record(actor: Actor, inputs: &[&str], redactor: Redactor) -> (String, Vec<String>) {
    record_with(options(), actor, inputs, redactor).await
}

async fn record_with(
    options: Options,
    actor: Actor,
    inputs: &[&str],
    redactor: Redactor,
) -> (String, Vec<String>) {
    let shelf = Shelf::default();
    let (model, stage) = (Arc::new(actor), Arc::new(Stage::new()));
    let recording = Recording::begin(shelf.clone(), redactor, &options, &*model, &*stage);
    let cues = Arc::clone(&model.cues);
    let toolbox = recording.toolbox(Arc::clone(&stage) as Arc<dyn Toolbox>);
    let mut talk = Talk::new(recording.model(model), toolbox, options);
    for input in inputs {
        let input = UserMessage::from(*input);
        recording.input(&input);
        let cancel = async {
            tokio::select! {
                () = stage.all_hang() => {}
                () = cues.notified() => {}
            }
            recording.cancel();
        };
        let seen = |event| {
            recording.event(&event);
            event
        };
        talk.turn_seen(input, cancel, seen).await;
    }
    recording.finish().unwrap();
    (shelf.text(), talk.heard)
}

/// Replays a tape, with the changes of a test, and returns the events and the problem.
async fn play(
    tape: &str,
    options: Options,
    change: impl Fn(&mut UserMessage),
) -> (Vec<String>, Option<ReplayError>) {
    let tape = read(tape);
    let inputs = tape.inputs().to_vec();
    let replay = Replay::new(tape, Redactor::none());
    let mut talk = Talk::new(replay.model(), replay.toolbox(), options);
    for mut input in inputs {
        change(&mut input);
        talk.turn_seen(input, replay.cancel_due(), |event| replay.event(event)).await;
    }
    (talk.heard, replay.problem())
}
