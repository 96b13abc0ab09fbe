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
use sallyport_model::{ChatModel, UserInputMessage};
use tokio::sync::mpsc;

use self::cast::{Actor, Stage};
use super::{ReplayError, SessionRecorder, SessionRecording, SessionReplay};
use crate::{
    FrontEndCommand, MemoryMode, SessionEvent, SessionHandle, SessionMemory, SessionOptions,
    SessionParts, approval, history::RestoredSession, journal, spawn_session,
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

fn read(text: &str) -> SessionRecording {
    SessionRecording::read_from(text.as_bytes()).unwrap()
}

fn options() -> SessionOptions {
    SessionOptions { system_prompt: Some("Be brief.".into()), ..SessionOptions::new("s1") }
}

/// A session with its front end.
struct Talk {
    handle: SessionHandle,
    events: mpsc::Receiver<SessionEvent>,
    heard: Vec<String>,
}

impl Talk {
    fn new(model: Arc<dyn ChatModel>, toolbox: Arc<dyn Toolbox>, options: SessionOptions) -> Self {
        Self::recalling(model, toolbox, None, options)
    }

    fn recalling(
        model: Arc<dyn ChatModel>,
        toolbox: Arc<dyn Toolbox>,
        recall: Option<Arc<dyn SessionMemory>>,
        options: SessionOptions,
    ) -> Self {
        let (_, approvals) = approval::approval_channel();
        let (journal, past) =
            (Box::new(journal::MemoryJournal::default()), RestoredSession::default());
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
        Self { handle, events, heard: Vec::new() }
    }

    /// Runs one turn, and cancels it when `cancel` resolves.
    async fn turn(&mut self, input: UserInputMessage, cancel: impl Future<Output = ()>) {
        self.turn_seen(input, cancel, |event| event).await;
    }

    /// Does the same, with events mapped by `seen`.
    async fn turn_seen(
        &mut self,
        input: UserInputMessage,
        cancel: impl Future<Output = ()>,
        seen: impl Fn(SessionEvent) -> SessionEvent,
    ) {
        self.handle.send(FrontEndCommand::SubmitInput { input }).await.unwrap();
        let mut cancel = std::pin::pin!(cancel);
        let mut is_cancelled = false;
        loop {
            tokio::select! {
                () = &mut cancel, if !is_cancelled => {
                    is_cancelled = true;
                    self.handle.send(FrontEndCommand::Cancel).await.unwrap();
                }
                event = self.events.recv() => {
                    let event = seen(event.expect("the session has ended"));
                    self.heard.push(format!("{event:?}"));
                    if matches!(event, SessionEvent::TurnEnded { .. }) {
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
    options: SessionOptions,
    actor: Actor,
    inputs: &[&str],
    redactor: Redactor,
) -> (String, Vec<String>) {
    let shelf = Shelf::default();
    let (model, stage) = (Arc::new(actor), Arc::new(Stage::new()));
    let recording = SessionRecorder::start(shelf.clone(), redactor, &options, &*model, &*stage);
    let cues = Arc::clone(&model.cues);
    let toolbox = recording.wrap_toolbox(Arc::clone(&stage) as Arc<dyn Toolbox>);
    let mut talk = Talk::new(recording.wrap_model(model), toolbox, options);
    for input in inputs {
        let cancelled = async {
            tokio::select! {
                () = stage.all_hang() => {}
                () = cues.notified() => {}
            }
        };
        record_turn(&recording, &mut talk, UserInputMessage::from(*input), cancelled).await;
    }
    recording.finish().unwrap();
    (shelf.text(), talk.heard)
}

/// Records one turn, which is cancelled when the future ends.
async fn record_turn(
    recording: &SessionRecorder,
    talk: &mut Talk,
    input: UserInputMessage,
    cancelled: impl Future<Output = ()>,
) {
    recording.record_input(&input);
    let cancel = async {
        cancelled.await;
        recording.record_cancellation();
    };
    let seen = |event| {
        recording.record_event(&event);
        event
    };
    talk.turn_seen(input, cancel, seen).await;
}

/// Replays a tape, with the changes of a test, and returns the events and the problem.
async fn play(
    tape: &str,
    options: SessionOptions,
    change: impl Fn(&mut UserInputMessage),
) -> (Vec<String>, Option<ReplayError>) {
    let tape = read(tape);
    let inputs = tape.inputs().to_vec();
    let replay = SessionReplay::new(tape, Redactor::empty());
    let mut talk = Talk::new(replay.to_chat_model(), replay.to_toolbox(), options);
    for mut input in inputs {
        change(&mut input);
        talk.turn_seen(input, replay.wait_for_cancellation(), |event| replay.adjust_event(event))
            .await;
    }
    (talk.heard, replay.first_problem())
}
