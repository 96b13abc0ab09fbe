//! A session that plugins attend, from its first event to its last.
//!
//! One loop handles the session's events, the inputs, the UI and the terminal. Inputs wait for the
//! end of the current turn. Answers go to the UI or are printed, and go back to the connection of
//! the input.

mod event_output;

use std::{
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use sallyport_contract::{AdmittedCall, ApprovalAnswer, LOCAL_USER, services::InputOrigin};
use sallyport_model::UserInputMessage;
use sallyport_runtime::{
    HostSession,
    config::HostSettings,
    registry::RoleRunKind,
    roles::{
        listener::{
            SessionListener,
            stdin::{self, InputLine},
        },
        ui::{self, UiCommand, UiPluginHandle, UiStatus},
    },
    session::Events,
};
use sallyport_sandbox::roles::UiEvent;
use sallyport_session::{FrontEndCommand, SessionActivity, SessionEvent, TurnEnd};
use serde_json::json;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};

use super::{
    SessionStartError,
    optional_inputs::{ShutdownMode, next_command, next_line, next_ui_status, wait_for_end},
    participants::Participants,
    questions::{AnswerSource, OpenQuestions},
    session_facts::SessionFacts,
    terminal_surface::TerminalSurface,
};
use crate::cli::{
    call_lines::ShownCalls,
    consent::{self, ShownQuestion},
    exit::{CommandFailure, ExitStatus},
    interrupt, run,
};

/// Longest wait at the end for connections to close and for plugins to handle it.
const SHUTDOWN_TIME_MAX: Duration = Duration::from_secs(3);

/// Interval of checks whether all piped input has been handled.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Reply to an input without an answer. The reason is for the user only.
const NO_ANSWER: &str = "There was no answer.";

/// Destination of lines from standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StdinDestination {
    /// A listener is the only reader.
    Listener,
    /// The UI, and questions at the terminal.
    User,
    Nobody,
}

/// A session that plugins attend.
pub(super) struct AttendedSession<'a> {
    session: HostSession,
    settings: &'a HostSettings,
    surface: Arc<TerminalSurface>,
    participants: Participants,
    facts: SessionFacts<'a>,
    ui: Option<UiPluginHandle>,
    questions: OpenQuestions,
    /// The extent to which the first question at the terminal was shown.
    shown_question: Option<ShownQuestion>,
    stdin_destination: StdinDestination,
    /// Plugins also take input at addresses, so the end of standard input is not the last.
    has_addresses: bool,
    /// Typed or piped lines, until they end. `None` if a listener reads them.
    lines: Option<mpsc::Receiver<InputLine>>,
    has_typed: bool,
    can_ask: bool,
    /// The current turn, with the origin of its input.
    current_turn: Option<Option<InputOrigin>>,
    is_streamed: bool,
    open_calls: ShownCalls,
    /// Whether the session is ending: immediately, or after all piped input.
    shutdown_mode: Option<ShutdownMode>,
    exit: ExitStatus,
}

impl<'a> AttendedSession<'a> {
    pub(super) fn new(
        session: HostSession,
        participants: Participants,
        facts: SessionFacts<'a>,
        settings: &'a HostSettings,
        surface: Arc<TerminalSurface>,
    ) -> Self {
        let can_ask = surface.with_output(|out| out.can_ask);
        let stdin_destination = match (&participants.stdin, &participants.ui) {
            (Some(_), _) => StdinDestination::Listener,
            (None, Some(_)) => StdinDestination::User,
            (None, None) if can_ask => StdinDestination::User,
            (None, None) => StdinDestination::Nobody,
        };
        let at_terminal = can_ask && stdin_destination == StdinDestination::User;
        let answer_source = match &participants.ui {
            Some(selected_ui)
                if selected_ui.may_confirm && (selected_ui.has_page || at_terminal) =>
            {
                AnswerSource::Ui
            }
            _ if at_terminal => AnswerSource::Terminal,
            _ => AnswerSource::Nobody,
        };
        Self {
            session,
            settings,
            surface,
            participants,
            facts,
            ui: None,
            questions: OpenQuestions::new(answer_source),
            shown_question: None,
            stdin_destination,
            lines: None,
            has_addresses: false,
            has_typed: false,
            can_ask,
            current_turn: None,
            is_streamed: false,
            open_calls: ShownCalls::default(),
            shutdown_mode: None,
            exit: ExitStatus::Done,
        }
    }

    /// Runs the session to its end.
    pub(super) async fn run(mut self, mut events: Events) -> Result<ExitStatus, SessionStartError> {
        if self.participants.ui.is_some() {
            self.facts.skip_old_records().await;
        }
        let mut tasks = JoinSet::new();
        let mut interrupt = pin!(interrupt::wait_for_interrupt());
        self.lines =
            (self.stdin_destination == StdinDestination::User).then(stdin::spawn_line_reader);
        let started = self.start_participants(&mut events, interrupt.as_mut()).await;
        if started.is_ok() && self.shutdown_mode.is_none() {
            self.has_addresses = !self.participants.servers.is_empty();
            for server in self.participants.servers.drain(..) {
                tasks.spawn(server.run());
            }
            self.run_event_loop(&mut events, &mut tasks, interrupt).await;
            self.warn_of_unanswered();
        }
        self.session.stop_listening().await;
        let _ = self.session.handle.send(FrontEndCommand::Close).await;
        while let Some(event) = events.recv().await {
            self.handle_event(event).await;
        }
        self.stop_participants(tasks).await;
        started.map(|()| self.exit)
    }

    /// Asks the gate to admit the UI, and starts the listeners.
    ///
    /// Either may need an approval, so events and answers are handled meanwhile.
    async fn start_participants(
        &mut self,
        events: &mut mpsc::Receiver<SessionEvent>,
        mut interrupt: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<(), SessionStartError> {
        let (roles, session) =
            (Arc::clone(&self.participants.roles), self.participants.session_id.clone());
        let selected_ui =
            self.participants.ui.as_ref().map(|selected_ui| selected_ui.role_plugin.clone());
        let listeners = self.participants.listeners.clone();
        let mut startup = pin!(async move {
            let mut admitted: Option<AdmittedCall> = None;
            if let Some(player) = selected_ui {
                let context = roles.new_call_context(LOCAL_USER, &session);
                let call = player.admit_run(RoleRunKind::Ui, context, &json!({})).await;
                admitted =
                    Some(call.map_err(|report| SessionStartError::from_outcome(report.outcome))?);
            }
            for ear in listeners {
                let name = ear.role_plugin.name().clone();
                ear.start().await.map_err(|why| {
                    CommandFailure::new(
                        ExitStatus::PluginRejected,
                        format!("{name} cannot listen: {why}"),
                    )
                })?;
            }
            Ok::<_, SessionStartError>(admitted)
        });
        let mut early_events = Vec::new();
        let admitted = loop {
            tokio::select! {
                admitted = &mut startup => break admitted?,
                Some(event) = events.recv() => {
                    early_events.extend(ui::convert_event(&event));
                    self.handle_event(event).await;
                }
                line = next_line(&mut self.lines), if self.questions.has_terminal_question() => {
                    self.handle_stdin(line).await;
                }
                () = &mut interrupt => {
                    self.shutdown_mode = Some(ShutdownMode::Now);
                    return Ok(());
                }
            }
        };
        // The UI does not get questions about a role.
        early_events.retain(|event| !matches!(event, UiEvent::ToolCallRequested(_)));
        if let (Some(call), Some(selected_ui)) = (admitted, &self.participants.ui) {
            let ui = UiPluginHandle::start(
                selected_ui.role_plugin.clone(),
                call,
                Arc::clone(&selected_ui.command_handler),
            );
            early_events.into_iter().for_each(|event| ui.send_event(event));
            self.ui = Some(ui);
            self.send_facts().await;
        }
        Ok(())
    }

    async fn run_event_loop(
        &mut self,
        events: &mut mpsc::Receiver<SessionEvent>,
        tasks: &mut JoinSet<()>,
        mut interrupt: Pin<&mut impl Future<Output = ()>>,
    ) {
        let mut stdin_end = self.spawn_stdin_listener(tasks);
        loop {
            if self.is_over() {
                return;
            }
            let is_listening = self.can_read_line();
            let may_begin =
                self.current_turn.is_none() && self.shutdown_mode != Some(ShutdownMode::Now);
            tokio::select! {
                event = events.recv() => match event {
                    Some(event) => self.handle_event(event).await,
                    None => return,
                },
                Some(command) = next_command(&mut self.participants.ui) => self.handle_ui_command(command).await,
                news = next_ui_status(&mut self.ui) => if let UiStatus::Failed(why) = news {
                    self.handle_lost_ui(&why).await;
                },
                Some(input) = self.participants.inputs.recv(), if may_begin => self.submit_input(input).await,
                line = next_line(&mut self.lines), if is_listening => self.handle_stdin(line).await,
                Ok(()) = wait_for_end(&mut stdin_end) => {
                    stdin_end = None;
                    if !self.has_addresses && self.participants.ui.is_none() {
                        self.begin_shutdown(ShutdownMode::AfterPendingInput).await;
                    }
                }
                () = &mut interrupt, if self.shutdown_mode != Some(ShutdownMode::Now) => {
                    self.begin_shutdown(ShutdownMode::Now).await;
                }
                () = tokio::time::sleep(POLL_INTERVAL), if self.shutdown_mode.is_some() => {}
            }
        }
    }

    /// Starts to read standard input for the listener that handles it, if there is one.
    fn spawn_stdin_listener(&self, tasks: &mut JoinSet<()>) -> Option<oneshot::Receiver<()>> {
        let session_listener = self
            .participants
            .stdin
            .as_ref()
            .filter(|_| self.stdin_destination == StdinDestination::Listener)?;
        let surface = Arc::clone(&self.surface);
        let print = Arc::new(move |text: &str| surface.with_output(|out| out.print_line(text)));
        let (end, ended) = oneshot::channel();
        tasks.spawn(stdin::deliver_lines(
            Arc::clone(session_listener),
            stdin::spawn_line_reader(),
            print,
            end,
        ));
        Some(ended)
    }

    /// Whether a line may be read. Piped lines wait for all earlier work, but typed ones may
    /// concern the current turn.
    fn can_read_line(&self) -> bool {
        self.shutdown_mode.is_none() && (self.can_ask || self.is_idle())
    }

    /// Whether the session is idle.
    fn is_idle(&self) -> bool {
        let ui_is_idle = self.ui.as_ref().is_none_or(UiPluginHandle::is_idle);
        self.current_turn.is_none() && ui_is_idle && self.participants.inputs.is_empty()
    }

    fn is_over(&self) -> bool {
        match self.shutdown_mode {
            None => false,
            Some(ShutdownMode::Now) => self.current_turn.is_none(),
            Some(ShutdownMode::AfterPendingInput) => self.is_idle(),
        }
    }

    /// Whether the end of standard input ends the session: the user left the terminal, or no other
    /// input is possible. Without any typed line a page may still be opened.
    fn is_ended_by_stdin(&self) -> bool {
        let has_page =
            self.participants.ui.as_ref().is_some_and(|selected_ui| selected_ui.has_page);
        self.can_ask || (self.participants.listeners.is_empty() && (self.has_typed || !has_page))
    }

    /// Discards input that was typed before the question was shown.
    fn discard_typed_input(&mut self) {
        if let (true, Some(lines)) = (self.can_ask, &mut self.lines) {
            self.surface.with_output(|out| out.discard_typed_input());
            while lines.try_recv().is_ok() {}
        }
    }

    /// Shows the first question at the terminal.
    fn show_question(&mut self) {
        self.discard_typed_input();
        if let Some(request) = self.questions.first_terminal_question() {
            self.shown_question =
                self.surface.with_output(|out| Some(ShownQuestion::show_question(request, out)));
        }
    }

    async fn submit_input(&mut self, input: UserInputMessage) {
        self.current_turn = Some(input.origin.clone());
        self.send(FrontEndCommand::SubmitInput { input }).await;
    }

    async fn handle_ui_command(&mut self, command: UiCommand) {
        match command {
            UiCommand::Confirm { confirmation_id: id, answer } => {
                self.send_answer(id, answer).await;
            }
            UiCommand::Cancel => self.send(FrontEndCommand::Cancel).await,
        }
    }

    /// Handles a line, or the end of standard input.
    async fn handle_stdin(&mut self, line: Option<InputLine>) {
        if let Some(line) = line {
            self.has_typed = true;
            return self.handle_line(line).await;
        }
        self.lines = None;
        for id in self.questions.remove_terminal() {
            self.send_answer(id, ApprovalAnswer::Nobody).await;
        }
        if self.is_ended_by_stdin() {
            self.begin_shutdown(ShutdownMode::AfterPendingInput).await;
        }
    }

    async fn handle_line(&mut self, line: InputLine) {
        let InputLine::Text(line) = line else {
            return self
                .surface
                .with_output(|out| out.print_warning("skipped a line that is not UTF-8 text"));
        };
        let wants_more = |request| {
            self.shown_question
                .is_some_and(|question| question.must_show_rest(request, Some(&line)))
        };
        if self.questions.first_terminal_question().is_some_and(wants_more) {
            self.discard_typed_input();
            if let (Some(request), Some(shown_question)) =
                (self.questions.first_terminal_question(), &mut self.shown_question)
            {
                self.surface.with_output(|out| shown_question.show_rest(request, out));
            }
            return;
        }
        if let Some((id, request)) = self.questions.take_first_question() {
            let answer = consent::parse_answer(Some(&line), request.rule.is_some());
            self.send_answer(id, answer).await;
            return self.show_question();
        }
        match &self.ui {
            Some(ui) => ui.send_event(UiEvent::Line(line)),
            None if line.trim().is_empty() => {}
            None => self.surface.with_output(|out| {
                out.print_note(
                    "`listen` ignores typed lines. Use `sallyport chat` to talk to the model.",
                );
            }),
        }
    }

    async fn begin_shutdown(&mut self, shutdown_mode: ShutdownMode) {
        self.shutdown_mode = Some(shutdown_mode);
        if shutdown_mode == ShutdownMode::Now && self.current_turn.is_some() {
            self.send(FrontEndCommand::Cancel).await;
        }
    }

    /// Continues without the UI and denies its open questions.
    async fn handle_lost_ui(&mut self, why: &str) {
        self.ui = None;
        let selected_ui = self.participants.ui.as_ref();
        selected_ui.inspect(|selected_ui| selected_ui.command_handler.close());
        let name = selected_ui
            .map(|selected_ui| selected_ui.role_plugin.name().to_string())
            .unwrap_or_default();
        self.surface.with_output(|out| {
            out.print_error(&format!("{name} stopped showing this session: {why}"));
            out.print_hint(
                "the session continues without it; calls that need an approval are denied",
            );
        });
        self.exit = ExitStatus::PluginRejected;
        for id in self.questions.remove_ui() {
            self.send_answer(id, ApprovalAnswer::Nobody).await;
        }
    }

    async fn handle_event(&mut self, event: SessionEvent) {
        match &self.ui {
            // Only the questions that the UI may answer are sent to it, below.
            Some(_) if matches!(event, SessionEvent::ApprovalNeeded { .. }) => {}
            Some(ui) => send_to_ui(ui, &event),
            None => self.show_event(&event),
        }
        match event {
            SessionEvent::ApprovalNeeded { confirmation_id, ref request, .. } => {
                match (self.questions.open(confirmation_id, request), &self.ui) {
                    (AnswerSource::Ui, Some(ui)) => {
                        send_to_ui(ui, &event);
                        self.discard_typed_input();
                    }
                    // Show one question at a time, so that each answer belongs to the one shown.
                    (AnswerSource::Terminal, _) if self.questions.is_first(confirmation_id) => {
                        self.show_question()
                    }
                    (AnswerSource::Terminal, _) => {}
                    (AnswerSource::Ui | AnswerSource::Nobody, _) => {
                        self.send_answer(confirmation_id, ApprovalAnswer::Nobody).await;
                    }
                }
            }
            SessionEvent::ApprovalClosed { confirmation_id } => {
                let was_shown = self.questions.is_first(confirmation_id);
                self.questions.close(confirmation_id);
                if was_shown {
                    self.show_question();
                }
            }
            SessionEvent::CallFinished { report, .. } => self.show_fix(&report.outcome),
            SessionEvent::TurnEnded { reason, .. } => self.end_turn(&reason),
            SessionEvent::State { state: SessionActivity::Ready } => self.send_facts().await,
            _ => {}
        }
    }

    /// Sends the UI what is new about the session besides the conversation.
    async fn send_facts(&mut self) {
        if let Some(ui) = &self.ui {
            self.facts.news().await.into_iter().for_each(|event| ui.send_event(event));
        }
    }

    fn end_turn(&mut self, end: &TurnEnd) {
        let origin = self.current_turn.take().flatten();
        let is_written = origin.as_ref().is_some_and(|origin| self.is_answered_on_stdin(origin));
        if self.ui.is_none() && !is_written {
            let settings = Some(self.settings);
            self.surface
                .with_output(|out| run::print_turn_end(end, self.is_streamed, settings, out));
        }
        self.is_streamed = false;
        let Some(InputOrigin { plugin, connection: Some(connection), .. }) = origin else { return };
        let session_listener = self
            .participants
            .listeners
            .iter()
            .find(|session_listener| *session_listener.role_plugin.name() == plugin);
        let answer = match end {
            TurnEnd::Answered { text } | TurnEnd::Spoken { text } => text,
            _ => NO_ANSWER,
        };
        if let Some(session_listener) = session_listener {
            session_listener.deliver_answer(&connection, answer);
        }
    }

    /// Whether the listener on standard input writes the answer where it would otherwise be
    /// printed.
    fn is_answered_on_stdin(&self, origin: &InputOrigin) -> bool {
        let is_answer = |session_listener: &Arc<SessionListener>| {
            *session_listener.role_plugin.name() == origin.plugin
        };
        let is_stdin = origin.connection.as_deref().is_some_and(|name| name.starts_with("stdin-"));
        is_stdin && self.participants.stdin.as_ref().is_some_and(is_answer)
    }

    /// Warns about accepted inputs that got no answer.
    fn warn_of_unanswered(&mut self) {
        self.participants.inputs.close();
        let waiting = std::iter::from_fn(|| self.participants.inputs.try_recv().ok()).count();
        if waiting > 0 {
            let words = format!("{waiting} accepted inputs got no answer");
            self.surface.with_output(|out| out.print_warning(&words));
        }
    }

    /// Ends the UI, the connections and the listeners.
    async fn stop_participants(&mut self, mut tasks: JoinSet<()>) {
        if let Some(ui) = self.ui.take() {
            ui.close().await;
        }
        let listeners = &self.participants.listeners;
        let listener_shutdown = async {
            listeners.iter().for_each(|session_listener| session_listener.close_connections());
            while listeners.iter().any(|session_listener| session_listener.has_connections()) {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
            for session_listener in listeners {
                session_listener.stop().await;
            }
        };
        // A plugin that takes longer gets no notification.
        let _ = tokio::time::timeout(SHUTDOWN_TIME_MAX, listener_shutdown).await;
        tasks.shutdown().await;
    }

    async fn send_answer(&self, id: u64, answer: ApprovalAnswer) {
        self.send(FrontEndCommand::ProvideConfirmation { id, answer }).await;
    }

    /// Sends a command. Errors are ignored: the last event reports the end of the session.
    async fn send(&self, command: FrontEndCommand) {
        let _ = self.session.handle.send(command).await;
    }
}

fn send_to_ui(ui: &UiPluginHandle, event: &SessionEvent) {
    ui::convert_event(event).into_iter().for_each(|event| ui.send_event(event));
}
