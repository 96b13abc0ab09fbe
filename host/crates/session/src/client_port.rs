//! The user's side of a session: incoming commands, outgoing events, open questions.
//!
//! A session waits for a model or a tool only through [`ClientPort::run_until_interrupted`].
//! Commands and the deadline are therefore handled at every moment of a turn, and the effect of a
//! command is defined in one place.

use std::{
    collections::VecDeque,
    future::{self, Future},
    mem,
    pin::pin,
    sync::Arc,
    time::Duration,
};

use sallyport_contract::{ApprovalAnswer, TraceParent, services};
use sallyport_model::{ChatModel, UserInputMessage};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until},
};

use super::{
    approval::{PendingApprovals, QuestionChange},
    budget::{BudgetLimit, TurnDeadline},
    command::{FrontEndCommand, SessionRequest},
    event::{CallPosition, SessionActivity, SessionEvent, SessionNotice, TurnEnd},
    journal::{JournalError, JournalRecord},
    outbox::SessionOutbox,
    progress_throttle::ProgressThrottle,
    session_log::JournalWriter,
    snapshot::SessionSnapshot,
};

/// Inputs, and other tasks, that may wait for the current turn to end. One conversation never needs
/// more than a few; every dropped one is reported.
const TASKS_WAITING_MAX: usize = 16;

/// The request that follows when no front end is left.
const CLOSE: SessionRequest = SessionRequest::Command(FrontEndCommand::Close);

/// The session's ends of the channels to its [handle](super::SessionHandle).
pub(super) struct SessionChannels {
    pub(super) inbox: mpsc::Receiver<SessionRequest>,
    pub(super) outbox: SessionOutbox,
}

/// Communicates with the front ends.
pub(super) struct ClientPort {
    requests: mpsc::Receiver<SessionRequest>,
    outbox: SessionOutbox,
    approvals: PendingApprovals,
    tasks: VecDeque<SessionTask>,
    /// The ids of the calls that are being decided or run.
    current_call_ids: Vec<String>,
    /// The call whose arguments can be edited, and the edit.
    argument_edit: Option<ArgumentEdit>,
    /// Throttles the progress events of running calls.
    progress_throttle: ProgressThrottle,
    /// Plugin messages that the transcript does not contain yet.
    undelivered_notices: Vec<services::PluginNotice>,
    /// The deadline of the current turn.
    deadline: Option<TurnDeadline>,
    /// The session's state, ignoring questions.
    activity: SessionActivity,
    /// The state that the front ends last received.
    emitted_activity: Option<SessionActivity>,
    closed: bool,
}

/// Work that a session does between turns, or that starts one.
pub(super) enum SessionTask {
    /// Starts a turn, as a part of its caller's trace if there is one.
    Ask(UserInputMessage, Option<TraceParent>),
    Undo,
    Retry,
    UseModel(Arc<dyn ChatModel>),
    Summarize,
    Pin,
}

/// Why work was halted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Interrupt {
    /// The user cancelled it, or has disconnected.
    Cancelled,
    /// The turn has exceeded its time limit.
    TimeUp {
        /// The time limit.
        time_max: Duration,
    },
}

impl From<Interrupt> for TurnEnd {
    fn from(interrupt: Interrupt) -> Self {
        match interrupt {
            Interrupt::Cancelled => Self::Cancelled,
            Interrupt::TimeUp { time_max } => {
                Self::BudgetReached { limit: BudgetLimit::Time { time_max } }
            }
        }
    }
}

/// How waiting for an admission ended.
pub(super) enum AdmissionResult<T> {
    Decided(T),
    /// The user wants a new decision, with other arguments.
    Edited {
        question_id: u64,
        arguments: String,
    },
}

struct ArgumentEdit {
    call_id: String,
    submitted_edit: Option<(u64, String)>,
}

/// Something that can happen while a session waits.
enum PortInput {
    Request(SessionRequest),
    QuestionChanged(QuestionChange),
    /// The progress of a call can be reported again.
    ProgressDue,
    TimeUp {
        time_max: Duration,
    },
}

impl ClientPort {
    pub(super) fn new(channels: SessionChannels, approvals: PendingApprovals) -> Self {
        let SessionChannels { inbox, outbox } = channels;
        Self {
            requests: inbox,
            outbox,
            approvals,
            tasks: VecDeque::new(),
            current_call_ids: Vec::new(),
            argument_edit: None,
            progress_throttle: ProgressThrottle::default(),
            undelivered_notices: Vec::new(),
            deadline: None,
            activity: SessionActivity::Ready,
            emitted_activity: None,
            closed: false,
        }
    }

    /// Returns the sender for events of work that runs under
    /// [`run_until_interrupted`](Self::run_until_interrupted).
    pub(super) fn event_sender(&self) -> mpsc::Sender<SessionEvent> {
        self.outbox.event_sender()
    }

    /// Sends an event to the front ends; a slow one delays the session.
    pub(super) async fn emit(&self, event: SessionEvent) {
        self.outbox.emit(event).await;
    }

    /// Reports what the session does now.
    pub(super) async fn set_activity(&mut self, activity: SessionActivity) {
        self.activity = activity;
        self.emit_activity().await;
    }

    /// Sets or clears the deadline of the current turn.
    pub(super) fn set_deadline(&mut self, deadline: Option<TurnDeadline>) {
        self.deadline = deadline;
    }

    /// Sets the calls that questions may refer to from here on.
    pub(super) fn set_current_calls(&mut self, ids: Vec<String>) {
        self.current_call_ids = ids;
    }

    async fn emit_activity(&mut self) {
        let is_waiting = self.approvals.has_open_question();
        let state = if is_waiting { SessionActivity::WaitingForApproval } else { self.activity };
        if self.emitted_activity.replace(state) != Some(state) {
            self.emit(SessionEvent::State { state }).await;
        }
    }

    /// Waits for the next task; `None` when no more can come.
    pub(super) async fn next_task(
        &mut self,
        journal_writer: &mut JournalWriter,
    ) -> Option<SessionTask> {
        while !self.closed {
            if let Some(task) = self.tasks.pop_front() {
                return Some(task);
            }
            self.set_activity(SessionActivity::Ready).await;
            let port_input = self.next_input().await;
            // Between turns only questions can be cancelled, and those are closed.
            let _ = self.handle_input(port_input, journal_writer).await;
        }
        None
    }

    /// Waits for the work while handling commands and the deadline. Both take precedence, so
    /// nothing starts after a halt.
    ///
    /// # Errors
    ///
    /// The work was halted and dropped.
    pub(super) async fn run_until_interrupted<T>(
        &mut self,
        journal_writer: &mut JournalWriter,
        future_result: impl Future<Output = T>,
    ) -> Result<T, Interrupt> {
        let mut future_result = pin!(future_result);
        loop {
            tokio::select! {
                biased;
                happening = self.next_input() => self.handle_input(happening, journal_writer).await?,
                result = &mut future_result => return Ok(result),
            }
        }
    }

    /// Waits as [`run_until_interrupted`](Self::run_until_interrupted) does for the admission of a
    /// call whose arguments the user may edit in the meantime.
    ///
    /// # Errors
    ///
    /// The work was halted and dropped.
    pub(super) async fn await_admission<T>(
        &mut self,
        journal_writer: &mut JournalWriter,
        call_id: &str,
        future_result: impl Future<Output = T>,
    ) -> Result<AdmissionResult<T>, Interrupt> {
        let mut future_result = pin!(future_result);
        self.argument_edit =
            Some(ArgumentEdit { call_id: call_id.to_owned(), submitted_edit: None });
        let admission_result = loop {
            tokio::select! {
                biased;
                happening = self.next_input() => {
                    if let Err(halt) = self.handle_input(happening, journal_writer).await {
                        break Err(halt);
                    }
                }
                result = &mut future_result => break Ok(AdmissionResult::Decided(result)),
            }
            if let Some((question_id, arguments)) = self.take_edit() {
                break Ok(AdmissionResult::Edited { question_id, arguments });
            }
        };
        self.argument_edit = None;
        admission_result
    }

    fn take_edit(&mut self) -> Option<(u64, String)> {
        self.argument_edit.as_mut()?.submitted_edit.take()
    }

    /// Withdraws a question whose asker has gone.
    pub(super) async fn withdraw_question(&mut self, question_id: u64) {
        self.approvals.withdraw_question(question_id);
        self.close_question(question_id).await;
    }

    async fn next_input(&mut self) -> PortInput {
        tokio::select! {
            biased;
            () = self.outbox.closed() => PortInput::Request(CLOSE),
            request = self.requests.recv() => PortInput::Request(request.unwrap_or(CLOSE)),
            time_max = wait_for_deadline(self.deadline) => PortInput::TimeUp { time_max },
            change = self.approvals.next_change() => PortInput::QuestionChanged(change),
            () = wait_until(self.progress_throttle.next_due()) => PortInput::ProgressDue,
        }
    }

    async fn handle_input(
        &mut self,
        port_input: PortInput,
        journal_writer: &mut JournalWriter,
    ) -> Result<(), Interrupt> {
        match port_input {
            PortInput::Request(SessionRequest::Command(command)) => {
                return self.handle_command(command, journal_writer).await;
            }
            PortInput::Request(SessionRequest::TracedInput(input, caller)) => {
                self.queue_task(SessionTask::Ask(input, Some(caller))).await;
            }
            PortInput::Request(SessionRequest::UseModel(model)) => {
                self.queue_task(SessionTask::UseModel(model)).await;
            }
            PortInput::Request(SessionRequest::Snapshot(reply)) => {
                // The front end may have stopped waiting.
                let _ = reply.send(self.snapshot(journal_writer).await);
            }
            PortInput::Request(SessionRequest::FindResult(number, reply)) => {
                let _ = reply.send(journal_writer.find_result(number).await);
            }
            PortInput::Request(SessionRequest::RetryJournal) => journal_writer.retry().await,
            PortInput::TimeUp { time_max } => {
                self.refuse_all().await;
                return Err(Interrupt::TimeUp { time_max });
            }
            PortInput::QuestionChanged(QuestionChange::Asked { id, request }) => {
                self.emit_activity().await;
                let position = self.call_position(&request.call.context.call_id);
                let request = *request;
                let event = SessionEvent::ApprovalNeeded { confirmation_id: id, position, request };
                self.emit(event).await;
            }
            PortInput::QuestionChanged(QuestionChange::Withdrawn { id }) => {
                self.close_question(id).await
            }
            PortInput::ProgressDue => {
                if let Some((call_id, progress)) = self.progress_throttle.take_due() {
                    self.emit(SessionEvent::Progress { call_id, progress }).await;
                }
            }
        }
        Ok(())
    }

    async fn handle_command(
        &mut self,
        command: FrontEndCommand,
        journal_writer: &mut JournalWriter,
    ) -> Result<(), Interrupt> {
        match command {
            FrontEndCommand::SubmitInput { input } => {
                self.queue_task(SessionTask::Ask(input, None)).await
            }
            FrontEndCommand::Undo => self.queue_task(SessionTask::Undo).await,
            FrontEndCommand::Retry => self.queue_task(SessionTask::Retry).await,
            FrontEndCommand::Summarize => self.queue_task(SessionTask::Summarize).await,
            FrontEndCommand::Pin => self.queue_task(SessionTask::Pin).await,
            FrontEndCommand::ProvideConfirmation { id, answer } => {
                self.answer_question(id, answer).await
            }
            FrontEndCommand::EditArguments { id, arguments } => {
                self.edit_arguments(id, arguments).await
            }
            FrontEndCommand::Notice(notice) => self.record_notice(notice, journal_writer).await,
            FrontEndCommand::Progress { call_id, progress } => {
                if let Some(progress) = self.progress_throttle.accept_progress(&call_id, progress) {
                    self.emit(SessionEvent::Progress { call_id, progress }).await;
                }
            }
            FrontEndCommand::Cancel => {
                self.refuse_all().await;
                return Err(Interrupt::Cancelled);
            }
            FrontEndCommand::Close => {
                self.closed = true;
                return Err(Interrupt::Cancelled);
            }
        }
        Ok(())
    }

    async fn snapshot(
        &self,
        journal_writer: &mut JournalWriter,
    ) -> Result<SessionSnapshot, JournalError> {
        Ok(SessionSnapshot {
            activity: self.emitted_activity.unwrap_or(self.activity),
            records: journal_writer.read_records().await?,
            questions: self.approvals.open_questions(),
        })
    }

    /// Sends a plugin's message to the front ends, once it is recorded or its journal fails.
    async fn record_notice(
        &mut self,
        mut notice: services::PluginNotice,
        journal_writer: &mut JournalWriter,
    ) {
        for notice_text in [&mut notice.text].into_iter().chain(&mut notice.speech) {
            notice_text.truncate(notice_text.floor_char_boundary(services::NOTICE_BYTES_MAX));
        }
        journal_writer.write_records(&[JournalRecord::Noticed { notice: notice.clone() }]).await;
        self.undelivered_notices.push(notice.clone());
        self.emit(SessionEvent::Noticed { notice }).await;
    }

    /// Takes the plugin messages since the last call of this function.
    pub(super) fn take_notices(&mut self) -> Vec<services::PluginNotice> {
        mem::take(&mut self.undelivered_notices)
    }

    /// Accepts progress of a call from here on.
    pub(super) fn begin_progress(&mut self, call_id: &str) {
        self.progress_throttle.begin_call(call_id.to_owned());
    }

    /// Accepts no more progress of a call, and sends its last report.
    pub(super) async fn end_progress(&mut self, call_id: &str) {
        if let Some(progress) = self.progress_throttle.end_call(call_id) {
            self.emit(SessionEvent::Progress { call_id: call_id.to_owned(), progress }).await;
        }
    }

    async fn queue_task(&mut self, task: SessionTask) {
        if self.tasks.len() < TASKS_WAITING_MAX {
            self.tasks.push_back(task);
        } else {
            self.emit(SessionEvent::Notice(SessionNotice::InputDropped)).await;
        }
    }

    async fn answer_question(&mut self, id: u64, answer: ApprovalAnswer) {
        if self.approvals.answer(id, answer) {
            self.close_question(id).await;
        } else {
            self.emit(SessionEvent::Notice(SessionNotice::NoSuchQuestion { confirmation_id: id }))
                .await;
        }
    }

    async fn edit_arguments(&mut self, id: u64, arguments: String) {
        let admission_call = self.approvals.admission_call_id(id);
        let notice = match (admission_call, &mut self.argument_edit) {
            (None, _) => SessionNotice::NoSuchQuestion { confirmation_id: id },
            (Some(Some(call_id)), Some(argument_edit)) if call_id == argument_edit.call_id => {
                argument_edit.submitted_edit = Some((id, arguments));
                return;
            }
            (Some(_), _) => SessionNotice::TooLateToEdit { confirmation_id: id },
        };
        self.emit(SessionEvent::Notice(notice)).await;
    }

    async fn refuse_all(&mut self) {
        for id in self.approvals.refuse_all() {
            self.close_question(id).await;
        }
    }

    async fn close_question(&mut self, id: u64) {
        self.emit(SessionEvent::ApprovalClosed { confirmation_id: id }).await;
        self.emit_activity().await;
    }

    /// A question that belongs to none of the calls counts as "1 of 1".
    fn call_position(&self, call_id: &str) -> CallPosition {
        let call_index = self.current_call_ids.iter().position(|id| id == call_id);
        call_index.map_or(CallPosition { index: 1, count: 1 }, |call_index| CallPosition {
            index: call_index + 1,
            count: self.current_call_ids.len(),
        })
    }
}

/// Waits for a point in time, or forever if there is none.
async fn wait_until(deadline_instant: Option<Instant>) {
    match deadline_instant {
        Some(deadline_instant) => sleep_until(deadline_instant).await,
        None => future::pending().await,
    }
}

/// Waits until the deadline, or forever if there is none, and returns the time limit.
async fn wait_for_deadline(deadline: Option<TurnDeadline>) -> Duration {
    match deadline {
        Some(TurnDeadline { at, time_max }) => {
            sleep_until(at).await;
            time_max
        }
        None => future::pending().await,
    }
}
