//! The person's side of a session: commands coming in, events going out, questions in between.
//!
//! Whatever a session waits for, a model or a tool, it waits for through [`Front::attend`], so a
//! person is heard at every moment of a turn and there is one place that says what a command does.

use std::{collections::VecDeque, future::Future, pin::pin};

use sallyport_contract::Answer;
use tokio::sync::mpsc;

use super::{
    approval::{Approvals, Change},
    event::{Command, Event, Notice, State, TurnEnd},
};

/// Inputs that may wait for the present turn to end. More than a few were not meant for one
/// conversation; each that is dropped is told.
const INPUTS_WAITING_MAX: usize = 16;

/// Talks to the front ends.
pub(super) struct Front {
    commands: mpsc::Receiver<Command>,
    events: mpsc::Sender<Event>,
    approvals: Approvals,
    inputs: VecDeque<String>,
    /// What the session does, questions aside.
    activity: State,
    /// The state that the front ends know of.
    shown: Option<State>,
    closed: bool,
}

/// The person ended what was going on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cancelled;

impl From<Cancelled> for TurnEnd {
    fn from(Cancelled: Cancelled) -> Self {
        Self::Cancelled
    }
}

/// What can happen while a session waits.
enum Happening {
    Told(Command),
    Questions(Change),
}

impl Front {
    pub(super) fn new(
        commands: mpsc::Receiver<Command>,
        events: mpsc::Sender<Event>,
        approvals: Approvals,
    ) -> Self {
        Self {
            commands,
            events,
            approvals,
            inputs: VecDeque::new(),
            activity: State::Ready,
            shown: None,
            closed: false,
        }
    }

    /// Where work that goes on under [`attend`](Self::attend) puts events of its own.
    pub(super) fn events(&self) -> mpsc::Sender<Event> {
        self.events.clone()
    }

    /// Tells the front ends, waiting for a slow one.
    pub(super) async fn emit(&self, event: Event) {
        // Without a reader the session is about to close; `happening` notices.
        let _ = self.events.send(event).await;
    }

    /// Tells what the session does now.
    pub(super) async fn enter(&mut self, activity: State) {
        self.activity = activity;
        self.show_state().await;
    }

    async fn show_state(&mut self) {
        let waits = self.approvals.any_open();
        let state = if waits { State::WaitingForApproval } else { self.activity };
        if self.shown.replace(state) != Some(state) {
            self.emit(Event::State(state)).await;
        }
    }

    /// Waits for the next input; `None` when there will be no more.
    pub(super) async fn next_input(&mut self) -> Option<String> {
        while !self.closed {
            if let Some(text) = self.inputs.pop_front() {
                return Some(text);
            }
            self.enter(State::Ready).await;
            let happening = self.happening().await;
            // Between turns there is nothing to cancel but questions, and those are closed.
            let _ = self.handle(happening).await;
        }
        None
    }

    /// Waits for the work while listening to the person. Commands come first, so that nothing is
    /// begun after it was called off.
    ///
    /// # Errors
    ///
    /// The person called it off, or is gone; the work was dropped.
    pub(super) async fn attend<T>(
        &mut self,
        work: impl Future<Output = T>,
    ) -> Result<T, Cancelled> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                happening = self.happening() => self.handle(happening).await?,
                result = &mut work => return Ok(result),
            }
        }
    }

    async fn happening(&mut self) -> Happening {
        tokio::select! {
            biased;
            () = self.events.closed() => Happening::Told(Command::Close),
            told = self.commands.recv() => Happening::Told(told.unwrap_or(Command::Close)),
            change = self.approvals.next() => Happening::Questions(change),
        }
    }

    async fn handle(&mut self, happening: Happening) -> Result<(), Cancelled> {
        match happening {
            Happening::Told(command) => return self.obey(command).await,
            Happening::Questions(Change::Asked { id, request }) => {
                self.show_state().await;
                let event = Event::ApprovalNeeded { confirmation_id: id, request: *request };
                self.emit(event).await;
            }
            Happening::Questions(Change::Withdrawn { id }) => self.close_question(id).await,
        }
        Ok(())
    }

    async fn obey(&mut self, command: Command) -> Result<(), Cancelled> {
        match command {
            Command::SubmitInput { text } => self.queue(text).await,
            Command::ProvideConfirmation { id, answer } => self.answer(id, answer).await,
            Command::Cancel => {
                for id in self.approvals.refuse_all() {
                    self.close_question(id).await;
                }
                return Err(Cancelled);
            }
            Command::Close => {
                self.closed = true;
                return Err(Cancelled);
            }
        }
        Ok(())
    }

    async fn queue(&mut self, text: String) {
        if self.inputs.len() < INPUTS_WAITING_MAX {
            self.inputs.push_back(text);
        } else {
            self.emit(Event::Notice(Notice::InputDropped)).await;
        }
    }

    async fn answer(&mut self, id: u64, answer: Answer) {
        if self.approvals.answer(id, answer) {
            self.close_question(id).await;
        } else {
            self.emit(Event::Notice(Notice::NoSuchQuestion { confirmation_id: id })).await;
        }
    }

    async fn close_question(&mut self, id: u64) {
        self.emit(Event::ApprovalClosed { confirmation_id: id }).await;
        self.show_state().await;
    }
}
