//! The user's side of a session: incoming commands, outgoing events, open questions.
//!
//! A session waits for a model or a tool only through [`Front::attend`]. Commands and the deadline
//! are therefore handled at every moment of a turn, and the effect of a command is defined in one
//! place.

use std::{
    collections::VecDeque,
    future::{self, Future},
    mem,
    pin::pin,
    time::Duration,
};

use sallyport_contract::{Answer, services};
use sallyport_model::UserMessage;
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};

use super::{
    approval::{Approvals, Change},
    book::Pages,
    budget::{Budget, Deadline},
    command::{Command, Speaker},
    event::{Event, Notice, Position, State, TurnEnd},
    journal::Record,
    pace::Pace,
};

/// Inputs, and other tasks, that may wait for the current turn to end. One conversation never needs
/// more than a few; every dropped one is reported.
const TASKS_WAITING_MAX: usize = 16;

/// The session's ends of the channels to its [handle](super::Handle).
pub(super) struct Line {
    pub(super) inbox: mpsc::Receiver<Command>,
    pub(super) outbox: mpsc::Sender<Event>,
    /// Counts the plugin messages that are recorded.
    pub(super) noting: watch::Sender<u64>,
}

/// Communicates with the front ends.
pub(super) struct Front {
    commands: mpsc::Receiver<Command>,
    events: mpsc::Sender<Event>,
    noting: watch::Sender<u64>,
    approvals: Approvals,
    tasks: VecDeque<Task>,
    /// The ids of the calls that are being decided or run.
    calls: Vec<String>,
    /// The call whose arguments can be edited, and the edit.
    editing: Option<Editing>,
    /// Throttles the progress events of running calls.
    pace: Pace,
    /// Plugin messages that the transcript does not contain yet.
    noticed: Vec<services::Notice>,
    /// The deadline of the current turn.
    deadline: Option<Deadline>,
    /// The session's state, ignoring questions.
    activity: State,
    /// The state that the front ends last received.
    shown: Option<State>,
    closed: bool,
}

/// Work that a session does between turns, or that starts one.
#[derive(Debug)]
pub(super) enum Task {
    Ask(UserMessage),
    Undo,
    Retry,
    UseModel(Speaker),
    Summarize,
    Pin,
}

/// Why work was halted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Halt {
    /// The user cancelled it, or has disconnected.
    Cancelled,
    /// The turn has exceeded its time limit.
    TimeUp {
        /// The time limit.
        time_max: Duration,
    },
}

impl From<Halt> for TurnEnd {
    fn from(halt: Halt) -> Self {
        match halt {
            Halt::Cancelled => Self::Cancelled,
            Halt::TimeUp { time_max } => Self::BudgetReached { what: Budget::Time { time_max } },
        }
    }
}

/// How waiting for an admission ended.
pub(super) enum Ruling<T> {
    Made(T),
    /// The user wants a new decision, with other arguments.
    Edited {
        question: u64,
        arguments: String,
    },
}

struct Editing {
    call_id: String,
    edit: Option<(u64, String)>,
}

/// Something that can happen while a session waits.
enum Happening {
    Told(Command),
    Questions(Change),
    /// The progress of a call can be reported again.
    ProgressDue,
    TimeUp {
        time_max: Duration,
    },
}

impl Front {
    pub(super) fn new(line: Line, approvals: Approvals) -> Self {
        let Line { inbox, outbox, noting } = line;
        Self {
            commands: inbox,
            events: outbox,
            noting,
            approvals,
            tasks: VecDeque::new(),
            calls: Vec::new(),
            editing: None,
            pace: Pace::default(),
            noticed: Vec::new(),
            deadline: None,
            activity: State::Ready,
            shown: None,
            closed: false,
        }
    }

    /// Returns the sender for events of work that runs under [`attend`](Self::attend).
    pub(super) fn events(&self) -> mpsc::Sender<Event> {
        self.events.clone()
    }

    /// Sends an event to the front ends; a slow one delays the session.
    pub(super) async fn emit(&self, event: Event) {
        // Without a receiver the session is about to close; `happening` detects that.
        let _ = self.events.send(event).await;
    }

    /// Reports what the session does now.
    pub(super) async fn enter(&mut self, activity: State) {
        self.activity = activity;
        self.show_state().await;
    }

    /// Sets or clears the deadline of the current turn.
    pub(super) fn expect_end(&mut self, deadline: Option<Deadline>) {
        self.deadline = deadline;
    }

    /// Sets the calls that questions may refer to from here on.
    pub(super) fn expect_calls(&mut self, ids: Vec<String>) {
        self.calls = ids;
    }

    async fn show_state(&mut self) {
        let waits = self.approvals.any_open();
        let state = if waits { State::WaitingForApproval } else { self.activity };
        if self.shown.replace(state) != Some(state) {
            self.emit(Event::State(state)).await;
        }
    }

    /// Waits for the next task; `None` when no more can come.
    pub(super) async fn next_task(&mut self, pages: &mut Pages) -> Option<Task> {
        while !self.closed {
            if let Some(task) = self.tasks.pop_front() {
                return Some(task);
            }
            self.enter(State::Ready).await;
            let happening = self.happening().await;
            // Between turns only questions can be cancelled, and those are closed.
            let _ = self.handle(happening, pages).await;
        }
        None
    }

    /// Waits for the work while handling commands and the deadline. Both take precedence, so
    /// nothing starts after a halt.
    ///
    /// # Errors
    ///
    /// The work was halted and dropped.
    pub(super) async fn attend<T>(
        &mut self,
        pages: &mut Pages,
        work: impl Future<Output = T>,
    ) -> Result<T, Halt> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                happening = self.happening() => self.handle(happening, pages).await?,
                result = &mut work => return Ok(result),
            }
        }
    }

    /// Waits as [`attend`](Self::attend) does for the admission of a call whose arguments the user
    /// may edit in the meantime.
    ///
    /// # Errors
    ///
    /// The work was halted and dropped.
    pub(super) async fn attend_admission<T>(
        &mut self,
        pages: &mut Pages,
        call_id: &str,
        work: impl Future<Output = T>,
    ) -> Result<Ruling<T>, Halt> {
        let mut work = pin!(work);
        self.editing = Some(Editing { call_id: call_id.to_owned(), edit: None });
        let ruling = loop {
            tokio::select! {
                biased;
                happening = self.happening() => {
                    if let Err(halt) = self.handle(happening, pages).await {
                        break Err(halt);
                    }
                }
                result = &mut work => break Ok(Ruling::Made(result)),
            }
            if let Some((question, arguments)) = self.edit() {
                break Ok(Ruling::Edited { question, arguments });
            }
        };
        self.editing = None;
        ruling
    }

    fn edit(&mut self) -> Option<(u64, String)> {
        self.editing.as_mut()?.edit.take()
    }

    /// Withdraws a question whose asker has gone.
    pub(super) async fn withdraw(&mut self, question: u64) {
        self.approvals.withdraw(question);
        self.close_question(question).await;
    }

    async fn happening(&mut self) -> Happening {
        tokio::select! {
            biased;
            () = self.events.closed() => Happening::Told(Command::Close),
            told = self.commands.recv() => Happening::Told(told.unwrap_or(Command::Close)),
            time_max = up(self.deadline) => Happening::TimeUp { time_max },
            change = self.approvals.next() => Happening::Questions(change),
            () = reached(self.pace.due()) => Happening::ProgressDue,
        }
    }

    async fn handle(&mut self, happening: Happening, pages: &mut Pages) -> Result<(), Halt> {
        match happening {
            Happening::Told(command) => return self.obey(command, pages).await,
            Happening::TimeUp { time_max } => {
                self.refuse_all().await;
                return Err(Halt::TimeUp { time_max });
            }
            Happening::Questions(Change::Asked { id, request }) => {
                self.show_state().await;
                let position = self.position(&request.call.context.call_id);
                let request = *request;
                let event = Event::ApprovalNeeded { confirmation_id: id, position, request };
                self.emit(event).await;
            }
            Happening::Questions(Change::Withdrawn { id }) => self.close_question(id).await,
            Happening::ProgressDue => {
                if let Some((call_id, progress)) = self.pace.next() {
                    self.emit(Event::Progress { call_id, progress }).await;
                }
            }
        }
        Ok(())
    }

    async fn obey(&mut self, command: Command, pages: &mut Pages) -> Result<(), Halt> {
        match command {
            Command::SubmitInput { input } => self.queue(Task::Ask(input)).await,
            Command::Undo => self.queue(Task::Undo).await,
            Command::Retry => self.queue(Task::Retry).await,
            Command::UseModel(model) => self.queue(Task::UseModel(model)).await,
            Command::Summarize => self.queue(Task::Summarize).await,
            Command::Pin => self.queue(Task::Pin).await,
            Command::ProvideConfirmation { id, answer } => self.answer(id, answer).await,
            Command::EditArguments { id, arguments } => self.edit_arguments(id, arguments).await,
            Command::Notice(notice) => self.notice(notice, pages).await,
            Command::Progress { call_id, progress } => {
                if let Some(progress) = self.pace.take(&call_id, progress) {
                    self.emit(Event::Progress { call_id, progress }).await;
                }
            }
            Command::Cancel => {
                self.refuse_all().await;
                return Err(Halt::Cancelled);
            }
            Command::Close => {
                self.closed = true;
                return Err(Halt::Cancelled);
            }
        }
        Ok(())
    }

    /// Sends a plugin's message to the front ends, once it is recorded.
    async fn notice(&mut self, mut notice: services::Notice, pages: &mut Pages) {
        for words in [&mut notice.text].into_iter().chain(&mut notice.speech) {
            words.truncate(words.floor_char_boundary(services::NOTICE_BYTES_MAX));
        }
        pages.write(&[Record::Noticed { notice: notice.clone() }], self).await;
        self.noting.send_modify(|count| *count += 1);
        self.noticed.push(notice.clone());
        self.emit(Event::Noticed { notice }).await;
    }

    /// Takes the plugin messages since the last call of this function.
    pub(super) fn take_noticed(&mut self) -> Vec<services::Notice> {
        mem::take(&mut self.noticed)
    }

    /// Accepts progress of a call from here on.
    pub(super) fn expect_progress(&mut self, call_id: &str) {
        self.pace.begin(call_id.to_owned());
    }

    /// Accepts no more progress of a call, and sends its last report.
    pub(super) async fn end_progress(&mut self, call_id: &str) {
        if let Some(progress) = self.pace.end(call_id) {
            self.emit(Event::Progress { call_id: call_id.to_owned(), progress }).await;
        }
    }

    async fn queue(&mut self, task: Task) {
        if self.tasks.len() < TASKS_WAITING_MAX {
            self.tasks.push_back(task);
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

    async fn edit_arguments(&mut self, id: u64, arguments: String) {
        let admission_of = self.approvals.admission_of(id);
        let notice = match (admission_of, &mut self.editing) {
            (None, _) => Notice::NoSuchQuestion { confirmation_id: id },
            (Some(Some(call_id)), Some(editing)) if call_id == editing.call_id => {
                editing.edit = Some((id, arguments));
                return;
            }
            (Some(_), _) => Notice::TooLateToEdit { confirmation_id: id },
        };
        self.emit(Event::Notice(notice)).await;
    }

    async fn refuse_all(&mut self) {
        for id in self.approvals.refuse_all() {
            self.close_question(id).await;
        }
    }

    async fn close_question(&mut self, id: u64) {
        self.emit(Event::ApprovalClosed { confirmation_id: id }).await;
        self.show_state().await;
    }

    /// A question that belongs to none of the calls counts as "1 of 1".
    fn position(&self, call_id: &str) -> Position {
        let place = self.calls.iter().position(|id| id == call_id);
        place.map_or(Position { index: 1, count: 1 }, |place| Position {
            index: place + 1,
            count: self.calls.len(),
        })
    }
}

/// Waits for a point in time, or forever if there is none.
async fn reached(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => future::pending().await,
    }
}

/// Waits until the deadline, or forever if there is none, and returns the time limit.
async fn up(deadline: Option<Deadline>) -> Duration {
    match deadline {
        Some(Deadline { at, time_max }) => {
            sleep_until(at).await;
            time_max
        }
        None => future::pending().await,
    }
}
