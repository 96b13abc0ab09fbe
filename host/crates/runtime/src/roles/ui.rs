//! A plugin as the user's side of a session: the events that it receives, and the commands that it
//! may send.
//!
//! The session never waits for it. Events wait in a queue, where adjacent pieces of an answer are
//! merged, and a separate task delivers them one by one. A UI that fails, hangs or falls too far
//! behind is ended; the session continues, and its owner learns the reason.
//!
//! A UI can answer only the questions that it was shown, only while they are open, and only once.

mod event_conversion;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use sallyport_contract::{
    AdmittedCall, ApprovalAnswer, CallReport, Outcome,
    services::{SubmissionError, TextStyle, UiSession},
};
use sallyport_model::UserInputMessage;
use sallyport_sandbox::roles::{UiEvent, UiMessageAuthor};
use tokio::{
    sync::{Notify, mpsc},
    task::JoinHandle,
};

use super::{RolePlugin, failure_reason, listener::inbox::InputQueue};

pub use event_conversion::{convert_event, fits_in_event};

/// Most events that may wait. A turn with many calls causes a few hundred; a plugin that is further
/// behind no longer shows the current state.
const EVENTS_WAITING_MAX: usize = 1024;

/// Longest merged piece of an answer in bytes: the limit of one event.
const DELTA_BYTES_MAX: usize = 64 * 1024;

/// Most commands that may wait for the session.
const COMMANDS_WAITING_MAX: usize = 64;

/// Longest wait for the remaining events to be delivered at the end.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(3);

/// A command that the session handles immediately. Inputs are queued separately and wait for their
/// turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UiCommand {
    /// The answer to a question.
    Confirm {
        /// The question.
        confirmation_id: u64,
        /// The answer.
        answer: ApprovalAnswer,
    },
    /// Ends the current turn.
    Cancel,
}

/// The surface that a UI draws on. Texts are untrusted.
pub trait UiSurface: Send + Sync {
    /// Prints whole lines.
    fn print(&self, text: &str, style: TextStyle);

    /// Replaces the status text; `None` removes it.
    fn set_status(&self, text: Option<&str>);
}

/// The host's side of a UI in its session.
pub struct UiCommandHandler {
    /// The open questions, and whether the UI was shown them.
    open_questions: Mutex<BTreeMap<u64, QuestionStatus>>,
    /// The UI has ended, but its page may still be open.
    is_closed: AtomicBool,
    inputs: InputQueue,
    commands: mpsc::Sender<UiCommand>,
    surface: Arc<dyn UiSurface>,
}

/// The delivery state of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QuestionStatus {
    /// Its event is still in the queue.
    Pending,
    Shown,
}

impl UiCommandHandler {
    /// Creates a seat that puts inputs into `inputs`, and returns the receiver of its other
    /// commands.
    pub fn new(
        inputs: InputQueue,
        surface: Arc<dyn UiSurface>,
    ) -> (Arc<Self>, mpsc::Receiver<UiCommand>) {
        let (commands, command_receiver) = mpsc::channel(COMMANDS_WAITING_MAX);
        let open_questions = Mutex::default();
        (
            Arc::new(Self {
                open_questions,
                is_closed: AtomicBool::new(false),
                inputs,
                commands,
                surface,
            }),
            command_receiver,
        )
    }

    /// Rejects all further commands.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    fn check_open(&self) -> Result<(), SubmissionError> {
        if self.is_closed.load(Ordering::Relaxed) { Err(SubmissionError::Ended) } else { Ok(()) }
    }

    fn send_command(&self, command: UiCommand) -> Result<(), SubmissionError> {
        self.commands.try_send(command).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => SubmissionError::Full,
            mpsc::error::TrySendError::Closed(_) => SubmissionError::Ended,
        })
    }

    fn with_open_questions<T>(
        &self,
        change: impl FnOnce(&mut BTreeMap<u64, QuestionStatus>) -> T,
    ) -> T {
        change(&mut self.open_questions.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Marks a question as shown, just before its delivery. A closed question stays closed.
    fn mark_shown(&self, id: u64) {
        self.with_open_questions(|open_questions| {
            open_questions.entry(id).and_modify(|status| *status = QuestionStatus::Shown);
        });
    }

    /// Removes a question that the UI was shown, to answer it.
    fn take_question(&self, id: u64) -> Result<(), SubmissionError> {
        let taken = self.with_open_questions(|open_questions| match open_questions.get(&id) {
            Some(QuestionStatus::Shown) => open_questions.remove(&id),
            Some(QuestionStatus::Pending) | None => None,
        });
        taken.map(drop).ok_or(SubmissionError::NoSuchQuestion)
    }
}

impl UiSession for UiCommandHandler {
    fn submit_input(&self, text: String) -> Result<(), SubmissionError> {
        self.check_open()?;
        self.inputs.push(UserInputMessage { text, ..UserInputMessage::default() })
    }

    fn answer_question(
        &self,
        confirmation_id: u64,
        answer: ApprovalAnswer,
    ) -> Result<(), SubmissionError> {
        self.check_open()?;
        self.take_question(confirmation_id)?;
        let sent = self.send_command(UiCommand::Confirm { confirmation_id, answer });
        if sent == Err(SubmissionError::Full) {
            self.with_open_questions(|open_questions| {
                open_questions.insert(confirmation_id, QuestionStatus::Shown)
            });
        }
        sent
    }

    fn cancel_turn(&self) -> Result<(), SubmissionError> {
        self.check_open()?;
        self.send_command(UiCommand::Cancel)
    }

    fn print_text(&self, text: &str, style: TextStyle) {
        self.surface.print(text, style);
    }

    fn set_status(&self, text: Option<&str>) {
        self.surface.set_status(text);
    }
}

/// The queue of events for a UI.
#[derive(Debug, Default)]
struct UiEventQueue {
    state: Mutex<UiQueueState>,
    changed: Notify,
    /// Notified when every event has been delivered.
    drained: Notify,
}

#[derive(Debug, Default)]
struct UiQueueState {
    events: VecDeque<UiEvent>,
    /// An event that has left the queue is being delivered.
    is_delivering: bool,
    is_closed: bool,
    is_lagging: bool,
}

impl UiEventQueue {
    fn update_state(&self, change: impl FnOnce(&mut UiQueueState)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_one();
    }

    fn take_event(&self) -> Option<Result<UiEvent, DeliveryEnd>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_lagging {
            let why = format!("it is more than {EVENTS_WAITING_MAX} events behind");
            return Some(Err(DeliveryEnd::Failed(why)));
        }
        let event = state.events.pop_front();
        state.is_delivering = event.is_some();
        event.map(Ok).or_else(|| state.is_closed.then_some(Err(DeliveryEnd::Done)))
    }

    /// Waits for the next event, or for the end of all events.
    async fn next(&self) -> Result<UiEvent, DeliveryEnd> {
        loop {
            if let Some(next) = self.take_event() {
                return next;
            }
            self.drained.notify_one();
            self.changed.notified().await;
        }
    }
}

impl UiQueueState {
    fn push(&mut self, event: UiEvent) {
        match (&event, self.events.back_mut()) {
            (UiEvent::Delta(text_delta), Some(UiEvent::Delta(last)))
                if last.len() + text_delta.len() <= DELTA_BYTES_MAX =>
            {
                return last.push_str(text_delta);
            }
            // The complete message replaces the pieces that are still in the queue.
            (UiEvent::NewMessage(message), _) if message.author == UiMessageAuthor::Assistant => {
                self.events.retain(|event| !matches!(event, UiEvent::Delta(_)));
            }
            _ => {}
        }
        self.is_lagging |= self.events.len() >= EVENTS_WAITING_MAX;
        if !self.is_lagging {
            self.events.push_back(event);
        }
    }
}

/// Why the delivery of events ended.
#[derive(Debug, PartialEq, Eq)]
enum DeliveryEnd {
    /// Every event was delivered, and the queue is closed.
    Done,
    /// The UI failed, for this reason.
    Failed(String),
}

/// A change in the state of a UI.
#[derive(Debug)]
pub enum UiStatus {
    /// Every waiting event was delivered. New ones may have arrived since.
    Idle,
    /// The UI failed, for this reason.
    Failed(String),
}

/// A UI in its session.
pub struct UiPluginHandle {
    queue: Arc<UiEventQueue>,
    command_handler: Arc<UiCommandHandler>,
    delivery_task: JoinHandle<DeliveryEnd>,
}

impl UiPluginHandle {
    /// Starts to deliver events to a plugin. The gate has admitted the run.
    pub fn start(
        role_plugin: RolePlugin,
        call: AdmittedCall,
        command_handler: Arc<UiCommandHandler>,
    ) -> Self {
        let queue = Arc::new(UiEventQueue::default());
        let delivery_task =
            deliver_events(role_plugin, call, Arc::clone(&queue), Arc::clone(&command_handler));
        Self { queue, command_handler, delivery_task: tokio::spawn(delivery_task) }
    }

    /// Adds an event to the queue.
    pub fn send_event(&self, event: UiEvent) {
        self.command_handler.with_open_questions(|open_questions| match &event {
            UiEvent::ToolCallRequested(request) => {
                open_questions.insert(request.confirmation_id, QuestionStatus::Pending);
            }
            UiEvent::ConfirmationClosed(id) => {
                open_questions.remove(id);
            }
            _ => {}
        });
        self.queue.update_state(|state| state.push(event));
    }

    /// Whether every event has been delivered.
    pub fn is_idle(&self) -> bool {
        let state = self.queue.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.events.is_empty() && !state.is_delivering
    }

    /// Waits until every waiting event is delivered, or the UI has ended.
    pub async fn wait_for_status(&mut self) -> UiStatus {
        let ended = tokio::select! {
            ended = &mut self.delivery_task => ended,
            () = self.queue.drained.notified() => return UiStatus::Idle,
        };
        UiStatus::Failed(match ended {
            Ok(DeliveryEnd::Failed(why)) => why,
            Ok(DeliveryEnd::Done) => "it was closed".to_owned(),
            Err(_) => "it crashed".to_owned(),
        })
    }

    /// Delivers the remaining events, and ends.
    pub async fn close(mut self) {
        self.queue.update_state(|state| state.is_closed = true);
        // A plugin that takes longer misses the last events.
        let _ = tokio::time::timeout(CLOSE_TIME_MAX, &mut self.delivery_task).await;
        self.delivery_task.abort();
    }
}

/// Delivers events until the end. Only runs with effects or failures are recorded, because a UI
/// receives every piece of every answer.
async fn deliver_events(
    role_plugin: RolePlugin,
    call: AdmittedCall,
    queue: Arc<UiEventQueue>,
    command_handler: Arc<UiCommandHandler>,
) -> DeliveryEnd {
    let ui = role_plugin
        .plugin()
        .create_ui(call.clone(), Arc::clone(&command_handler) as Arc<dyn UiSession>);
    loop {
        let event = match queue.next().await {
            Ok(event) => event,
            Err(delivery_end) => return delivery_end,
        };
        if let Some(denial) = role_plugin.run_denial(&call).await {
            role_plugin.start_run(&call).finish(&CallReport::from(Outcome::Denied(denial.clone())));
            return DeliveryEnd::Failed(denial.to_string());
        }
        if let UiEvent::ToolCallRequested(request) = &event {
            command_handler.mark_shown(request.confirmation_id);
        }
        let role_run = role_plugin.start_silent_run(&call);
        let report: CallReport = ui.handle_event(event).await;
        role_run.finish(&report);
        if let Some(why) = failure_reason(&report) {
            return DeliveryEnd::Failed(why);
        }
    }
}

#[cfg(test)]
mod tests {
    use sallyport_sandbox::roles::UiTextFormat;

    use super::{event_conversion::new_message_event, *};

    /// Draws nothing.
    struct Nowhere;

    impl UiSurface for Nowhere {
        fn print(&self, _: &str, _: TextStyle) {}

        fn set_status(&self, _: Option<&str>) {}
    }

    fn delta(text: &str) -> UiEvent {
        UiEvent::Delta(text.to_owned())
    }

    #[test]
    fn pieces_melt_into_one_and_the_whole_stands_for_them() {
        let mut state = UiQueueState::default();
        for event in [delta("a"), delta("b"), UiEvent::ReadyForInput, delta("c")] {
            state.push(event);
        }
        assert_eq!(state.events, [delta("ab"), UiEvent::ReadyForInput, delta("c")]);
        let whole =
            new_message_event(UiMessageAuthor::Assistant, UiTextFormat::Markdown, "abc", None);
        state.push(whole.clone());
        assert_eq!(state.events, [UiEvent::ReadyForInput, whole]);
    }

    #[test]
    fn a_flood_of_pieces_takes_no_room_and_one_of_events_ends_it() {
        let queue = UiEventQueue::default();
        let long = "x".repeat(DELTA_BYTES_MAX / 2);
        (0..10).for_each(|_| queue.update_state(|state| state.push(delta(&long))));
        assert_eq!(queue.state.lock().unwrap().events.len(), 5);
        (0..EVENTS_WAITING_MAX)
            .for_each(|_| queue.update_state(|it| it.push(UiEvent::ReadyForInput)));
        assert!(queue.state.lock().unwrap().events.len() <= EVENTS_WAITING_MAX);
        assert!(
            matches!(queue.take_event(), Some(Err(DeliveryEnd::Failed(why))) if why.contains("1024"))
        );
    }

    #[tokio::test]
    async fn whoever_shows_no_more_has_nothing_to_say() {
        let (inputs, _waiting) = InputQueue::new();
        let (command_handler, _commands) = UiCommandHandler::new(inputs, Arc::new(Nowhere));
        command_handler
            .with_open_questions(|open_questions| open_questions.insert(7, QuestionStatus::Shown));
        command_handler.close();
        let said = [
            command_handler.submit_input("hello".to_owned()),
            command_handler.answer_question(7, ApprovalAnswer::Once),
            command_handler.cancel_turn(),
        ];
        assert!(said.iter().all(|said| *said == Err(SubmissionError::Ended)), "{said:?}");
    }

    #[tokio::test]
    async fn a_question_is_answered_once_and_only_when_it_was_shown() {
        let (inputs, _waiting) = InputQueue::new();
        let (command_handler, mut commands) = UiCommandHandler::new(inputs, Arc::new(Nowhere));
        let ask = |id| {
            command_handler.with_open_questions(|open_questions| {
                open_questions.insert(id, QuestionStatus::Pending)
            })
        };
        assert_eq!(
            command_handler.answer_question(7, ApprovalAnswer::Once),
            Err(SubmissionError::NoSuchQuestion)
        );
        ask(7);
        assert_eq!(
            command_handler.answer_question(7, ApprovalAnswer::Once),
            Err(SubmissionError::NoSuchQuestion)
        );
        command_handler.mark_shown(7);
        assert_eq!(command_handler.answer_question(7, ApprovalAnswer::Once), Ok(()));
        assert_eq!(
            command_handler.answer_question(7, ApprovalAnswer::No { reason: None }),
            Err(SubmissionError::NoSuchQuestion)
        );
        let confirm = UiCommand::Confirm { confirmation_id: 7, answer: ApprovalAnswer::Once };
        assert_eq!(commands.recv().await, Some(confirm));
        // The question was closed before the UI received it.
        command_handler.mark_shown(8);
        assert_eq!(
            command_handler.answer_question(8, ApprovalAnswer::Once),
            Err(SubmissionError::NoSuchQuestion)
        );
        for id in 0..=COMMANDS_WAITING_MAX as u64 {
            ask(id);
            command_handler.mark_shown(id);
        }
        let answers: Vec<_> = (0..=COMMANDS_WAITING_MAX as u64)
            .map(|id| command_handler.answer_question(id, ApprovalAnswer::Once))
            .collect();
        assert_eq!(answers.last(), Some(&Err(SubmissionError::Full)));
        assert!(
            command_handler
                .with_open_questions(|open| open.contains_key(&(COMMANDS_WAITING_MAX as u64)))
        );
        drop(commands);
        assert_eq!(command_handler.cancel_turn(), Err(SubmissionError::Ended));
    }
}
