//! A session that plugins attend, from its first event to its last.
//!
//! One loop handles the session's events, the inputs, the UI and the terminal. Inputs wait for the
//! end of the current turn. Answers go to the UI or are printed, and go back to the connection of
//! the input.

mod shown;

use std::{
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use sallyport_contract::{AdmittedCall, ApprovalAnswer, Outcome, services::InputOrigin};
use sallyport_model::UserInputMessage;
use sallyport_runtime::{
    HostSession,
    config::HostSettings,
    roles::{
        RoleRunKind, failure_reason,
        listener::{
            SessionListener,
            stdin::{self, InputLine},
        },
        ui::{self, UiCommand, UiPluginHandle, UiStatus},
    },
    session::Events,
};
use sallyport_sandbox::roles::UiEvent;
use sallyport_session::{FrontEndCommand, SessionEvent, TurnEnd};
use serde_json::json;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};

use super::{
    Trouble,
    canvas::Screen,
    cast::Cast,
    questions::{Answers, Questions},
    waiting::{at_end, news, next_command, next_line},
};
use crate::cli::{
    compose,
    consent::{self, Asked},
    exit::{Exit, Failure},
    run,
};

/// Longest wait at the end for connections to close and for plugins to handle it.
const FAREWELL_TIME_MAX: Duration = Duration::from_secs(3);

/// Interval of checks whether all piped input has been handled.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Reply to an input without an answer. The reason is for the user only.
const NO_ANSWER: &str = "There was no answer.";

/// Destination of lines from standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Typing {
    /// A listener is the only reader.
    Listener,
    /// The UI, and questions at the terminal.
    Person,
    Nobody,
}

/// A session that plugins attend.
pub(super) struct Floor<'a> {
    session: HostSession,
    settings: &'a HostSettings,
    screen: Arc<Screen>,
    cast: Cast,
    ui: Option<UiPluginHandle>,
    questions: Questions,
    /// The extent to which the first question at the terminal was shown.
    asked: Option<Asked>,
    typing: Typing,
    /// Typed or piped lines, until they end. `None` if a listener reads them.
    lines: Option<mpsc::Receiver<InputLine>>,
    has_typed: bool,
    can_ask: bool,
    /// The current turn, with the origin of its input.
    turn: Option<Option<InputOrigin>>,
    is_streamed: bool,
    /// Whether the session is ending: immediately, or after all piped input.
    leaving: Option<Leaving>,
    exit: Exit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaving {
    /// No further turn is started.
    Now,
    /// Pending input is handled first.
    Done,
}

impl<'a> Floor<'a> {
    pub(super) fn new(
        session: HostSession,
        cast: Cast,
        settings: &'a HostSettings,
        screen: Arc<Screen>,
    ) -> Self {
        let can_ask = screen.with(|out| out.can_ask);
        let typing = match (&cast.stdin, &cast.ui) {
            (Some(_), _) => Typing::Listener,
            (None, Some(_)) => Typing::Person,
            (None, None) if can_ask => Typing::Person,
            (None, None) => Typing::Nobody,
        };
        let at_terminal = can_ask && typing == Typing::Person;
        let answers = match &cast.ui {
            Some(show) if show.may_confirm && (show.has_page || at_terminal) => Answers::Ui,
            _ if at_terminal => Answers::Terminal,
            _ => Answers::Nobody,
        };
        Self {
            session,
            settings,
            screen,
            cast,
            ui: None,
            questions: Questions::new(answers),
            asked: None,
            typing,
            lines: None,
            has_typed: false,
            can_ask,
            turn: None,
            is_streamed: false,
            leaving: None,
            exit: Exit::Done,
        }
    }

    /// Runs the session to its end.
    pub(super) async fn hold(mut self, mut events: Events) -> Result<Exit, Trouble> {
        let mut tasks = JoinSet::new();
        let mut stop = pin!(compose::interrupted());
        self.lines = (self.typing == Typing::Person).then(stdin::spawn_line_reader);
        let began = self.begin(&mut events, stop.as_mut()).await;
        if began.is_ok() && self.leaving.is_none() {
            for server in self.cast.servers.drain(..) {
                tasks.spawn(server.run());
            }
            self.converse(&mut events, &mut tasks, stop).await;
            self.tell_what_waits();
        }
        self.session.stop_listening().await;
        let _ = self.session.handle.send(FrontEndCommand::Close).await;
        while let Some(event) = events.recv().await {
            self.take(event).await;
        }
        self.part(tasks).await;
        began.map(|()| self.exit)
    }

    /// Asks the gate to admit the UI, and starts the listeners.
    ///
    /// Either may need an approval, so events and answers are handled meanwhile.
    async fn begin(
        &mut self,
        events: &mut mpsc::Receiver<SessionEvent>,
        mut stop: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<(), Trouble> {
        let (roles, session) = (Arc::clone(&self.cast.roles), self.cast.session_id.clone());
        let show = self.cast.ui.as_ref().map(|show| show.player.clone());
        let ears = self.cast.ears.clone();
        let mut beginning = pin!(async move {
            let mut admitted: Option<AdmittedCall> = None;
            if let Some(player) = show {
                let call = player
                    .admit_run(RoleRunKind::Ui, roles.new_call_context(&session), &json!({}))
                    .await;
                admitted = Some(call.map_err(|report| refused(report.outcome))?);
            }
            for ear in ears {
                let name = ear.player.name().clone();
                ear.start().await.map_err(|why| {
                    Failure::new(Exit::PluginRejected, format!("{name} cannot listen: {why}"))
                })?;
            }
            Ok::<_, Trouble>(admitted)
        });
        let mut early = Vec::new();
        let admitted = loop {
            tokio::select! {
                admitted = &mut beginning => break admitted?,
                Some(event) = events.recv() => {
                    early.extend(ui::convert_event(&event));
                    self.take(event).await;
                }
                line = next_line(&mut self.lines), if self.questions.is_asking() => {
                    self.hear(line).await;
                }
                () = &mut stop => {
                    self.leaving = Some(Leaving::Now);
                    return Ok(());
                }
            }
        };
        // The UI does not get questions about a role.
        early.retain(|event| !matches!(event, UiEvent::ToolCallRequested(_)));
        if let (Some(call), Some(show)) = (admitted, &self.cast.ui) {
            let ui = UiPluginHandle::start(show.player.clone(), call, Arc::clone(&show.seat));
            early.into_iter().for_each(|event| ui.send_event(event));
            self.ui = Some(ui);
        }
        Ok(())
    }

    async fn converse(
        &mut self,
        events: &mut mpsc::Receiver<SessionEvent>,
        tasks: &mut JoinSet<()>,
        mut stop: Pin<&mut impl Future<Output = ()>>,
    ) {
        let mut piped = self.attend_stdin(tasks);
        loop {
            if self.is_over() {
                return;
            }
            let is_listening = self.is_listening();
            let may_begin = self.turn.is_none() && self.leaving != Some(Leaving::Now);
            tokio::select! {
                event = events.recv() => match event {
                    Some(event) => self.take(event).await,
                    None => return,
                },
                Some(command) = next_command(&mut self.cast.ui) => self.obey(command).await,
                news = news(&mut self.ui) => if let UiStatus::Broken(why) = news {
                    self.lose_ui(&why).await;
                },
                Some(input) = self.cast.inputs.recv(), if may_begin => self.submit(input).await,
                line = next_line(&mut self.lines), if is_listening => self.hear(line).await,
                Ok(()) = at_end(&mut piped) => {
                    piped = None;
                    if self.cast.ears.len() == 1 && self.cast.ui.is_none() {
                        self.leave(Leaving::Done).await;
                    }
                }
                () = &mut stop, if self.leaving != Some(Leaving::Now) => {
                    self.leave(Leaving::Now).await;
                }
                () = tokio::time::sleep(LOOK_EVERY), if self.leaving.is_some() => {}
            }
        }
    }

    /// Starts to read standard input for the listener that handles it, if there is one.
    fn attend_stdin(&self, tasks: &mut JoinSet<()>) -> Option<oneshot::Receiver<()>> {
        let ear = self.cast.stdin.as_ref().filter(|_| self.typing == Typing::Listener)?;
        let screen = Arc::clone(&self.screen);
        let print = Arc::new(move |text: &str| screen.with(|out| out.line(text)));
        let (end, ended) = oneshot::channel();
        tasks.spawn(stdin::deliver_lines(Arc::clone(ear), stdin::spawn_line_reader(), print, end));
        Some(ended)
    }

    /// Whether a line may be read. Piped lines wait for all earlier work, but typed ones may
    /// concern the current turn.
    fn is_listening(&self) -> bool {
        self.leaving.is_none() && (self.can_ask || self.is_quiet())
    }

    /// Whether the session is idle.
    fn is_quiet(&self) -> bool {
        let ui_is_idle = self.ui.as_ref().is_none_or(UiPluginHandle::is_idle);
        self.turn.is_none() && ui_is_idle && self.cast.inputs.is_empty()
    }

    fn is_over(&self) -> bool {
        match self.leaving {
            None => false,
            Some(Leaving::Now) => self.turn.is_none(),
            Some(Leaving::Done) => self.is_quiet(),
        }
    }

    /// Whether the end of standard input ends the session: the user left the terminal, or no other
    /// input is possible. Without any typed line a page may still be opened.
    fn ends_with_lines(&self) -> bool {
        let has_page = self.cast.ui.as_ref().is_some_and(|show| show.has_page);
        self.can_ask || (self.cast.ears.is_empty() && (self.has_typed || !has_page))
    }

    /// Discards input that was typed before the question was shown.
    fn forget_typed(&mut self) {
        if let (true, Some(lines)) = (self.can_ask, &mut self.lines) {
            self.screen.with(|out| out.forget_typed());
            while lines.try_recv().is_ok() {}
        }
    }

    /// Shows the first question at the terminal.
    fn ask(&mut self) {
        self.forget_typed();
        if let Some(request) = self.questions.asked() {
            self.asked = self.screen.with(|out| Some(Asked::about(request, out)));
        }
    }

    async fn submit(&mut self, input: UserInputMessage) {
        self.turn = Some(input.origin.clone());
        self.send(FrontEndCommand::SubmitInput { input }).await;
    }

    async fn obey(&mut self, command: UiCommand) {
        match command {
            UiCommand::Confirm { confirmation_id: id, answer } => {
                self.send(FrontEndCommand::ProvideConfirmation { id, answer }).await;
            }
            UiCommand::Cancel => self.send(FrontEndCommand::Cancel).await,
        }
    }

    /// Handles a line, or the end of standard input.
    async fn hear(&mut self, line: Option<InputLine>) {
        if let Some(line) = line {
            self.has_typed = true;
            return self.take_line(line).await;
        }
        self.lines = None;
        for id in self.questions.without_terminal() {
            self.send(FrontEndCommand::ProvideConfirmation { id, answer: ApprovalAnswer::Nobody })
                .await;
        }
        if self.ends_with_lines() {
            self.leave(Leaving::Done).await;
        }
    }

    async fn take_line(&mut self, line: InputLine) {
        let InputLine::Text(line) = line else {
            return self.screen.with(|out| out.warn("skipped a line that is not UTF-8 text"));
        };
        let wants_more = |request| self.asked.is_some_and(|it| it.wants_more(request, Some(&line)));
        if self.questions.asked().is_some_and(wants_more) {
            self.forget_typed();
            if let (Some(request), Some(asked)) = (self.questions.asked(), &mut self.asked) {
                self.screen.with(|out| asked.show_rest(request, out));
            }
            return;
        }
        if let Some((id, request)) = self.questions.take_asked() {
            let answer = consent::parse(Some(&line), request.rule.is_some());
            self.send(FrontEndCommand::ProvideConfirmation { id, answer }).await;
            return self.ask();
        }
        match &self.ui {
            Some(ui) => ui.send_event(UiEvent::Line(line)),
            None if line.trim().is_empty() => {}
            None => self.screen.with(|out| {
                out.note(
                    "`listen` ignores typed lines. Use `sallyport chat` to talk to the model.",
                );
            }),
        }
    }

    async fn leave(&mut self, leaving: Leaving) {
        self.leaving = Some(leaving);
        if leaving == Leaving::Now && self.turn.is_some() {
            self.send(FrontEndCommand::Cancel).await;
        }
    }

    /// Continues without the UI and denies its open questions.
    async fn lose_ui(&mut self, why: &str) {
        self.ui = None;
        let show = self.cast.ui.as_ref();
        show.inspect(|show| show.seat.close());
        let name = show.map(|show| show.player.name().to_string()).unwrap_or_default();
        self.screen.with(|out| {
            out.error(&format!("{name} stopped showing this session: {why}"));
            out.hint("the session continues without it; calls that need an approval are denied");
        });
        self.exit = Exit::PluginRejected;
        for id in self.questions.without_ui() {
            self.send(FrontEndCommand::ProvideConfirmation { id, answer: ApprovalAnswer::Nobody })
                .await;
        }
    }

    async fn take(&mut self, event: SessionEvent) {
        if let Some(ui) = &self.ui {
            let is_for_ui = !matches!(event, SessionEvent::ApprovalNeeded { .. });
            ui::convert_event(&event)
                .into_iter()
                .filter(|_| is_for_ui)
                .for_each(|event| ui.send_event(event));
        } else {
            self.show(&event);
        }
        match event {
            SessionEvent::ApprovalNeeded { confirmation_id, ref request, .. } => {
                match (self.questions.open(confirmation_id, request), &self.ui) {
                    (Answers::Ui, Some(ui)) => {
                        ui::convert_event(&event)
                            .into_iter()
                            .for_each(|event| ui.send_event(event));
                        self.forget_typed();
                    }
                    // Show one question at a time, so that each answer belongs to the one shown.
                    (Answers::Terminal, _) if self.questions.is_first(confirmation_id) => {
                        self.ask()
                    }
                    (Answers::Terminal, _) => {}
                    (Answers::Ui | Answers::Nobody, _) => {
                        let (id, answer) = (confirmation_id, ApprovalAnswer::Nobody);
                        self.send(FrontEndCommand::ProvideConfirmation { id, answer }).await;
                    }
                }
            }
            SessionEvent::ApprovalClosed { confirmation_id } => {
                let was_shown = self.questions.is_first(confirmation_id);
                self.questions.close(confirmation_id);
                if was_shown {
                    self.ask();
                }
            }
            SessionEvent::CallFinished { report, .. } => self.show_fix(&report.outcome),
            SessionEvent::TurnEnded { reason, .. } => self.end_turn(&reason),
            _ => {}
        }
    }

    fn end_turn(&mut self, end: &TurnEnd) {
        let origin = self.turn.take().flatten();
        let is_written = origin.as_ref().is_some_and(|origin| self.is_heard(origin));
        if self.ui.is_none() && !is_written {
            let settings = Some(self.settings);
            self.screen.with(|out| run::print_end(end, self.is_streamed, settings, out));
        }
        self.is_streamed = false;
        let Some(InputOrigin { plugin, connection: Some(connection), .. }) = origin else { return };
        let ear = self.cast.ears.iter().find(|ear| *ear.player.name() == plugin);
        let answer = match end {
            TurnEnd::Answered { text } | TurnEnd::Spoken { text } => text,
            _ => NO_ANSWER,
        };
        if let Some(ear) = ear {
            ear.deliver_answer(&connection, answer);
        }
    }

    /// Whether the listener on standard input writes the answer where it would otherwise be
    /// printed.
    fn is_heard(&self, origin: &InputOrigin) -> bool {
        let is_answer = |ear: &Arc<SessionListener>| *ear.player.name() == origin.plugin;
        let is_stdin = origin.connection.as_deref().is_some_and(|name| name.starts_with("stdin-"));
        is_stdin && self.cast.stdin.as_ref().is_some_and(is_answer)
    }

    /// Warns about accepted inputs that got no answer.
    fn tell_what_waits(&mut self) {
        self.cast.inputs.close();
        let waiting = std::iter::from_fn(|| self.cast.inputs.try_recv().ok()).count();
        if waiting > 0 {
            let words = format!("{waiting} accepted inputs got no answer");
            self.screen.with(|out| out.warn(&words));
        }
    }

    /// Ends the UI, the connections and the listeners.
    async fn part(&mut self, mut tasks: JoinSet<()>) {
        if let Some(ui) = self.ui.take() {
            ui.close().await;
        }
        let ears = &self.cast.ears;
        let farewell = async {
            ears.iter().for_each(|ear| ear.close_connections());
            while ears.iter().any(|ear| ear.has_connections()) {
                tokio::time::sleep(LOOK_EVERY).await;
            }
            for ear in ears {
                ear.stop().await;
            }
        };
        // A plugin that takes longer gets no notification.
        let _ = tokio::time::timeout(FAREWELL_TIME_MAX, farewell).await;
        tasks.shutdown().await;
    }

    /// Sends a command. Errors are ignored: the last event reports the end of the session.
    async fn send(&self, command: FrontEndCommand) {
        let _ = self.session.handle.send(command).await;
    }
}

fn refused(outcome: Outcome) -> Trouble {
    match outcome {
        Outcome::Denied(denial) => Trouble::Denied(Box::new(denial)),
        outcome => {
            let why =
                failure_reason(&outcome.into()).unwrap_or_else(|| "it was cancelled".to_owned());
            Trouble::Failure(Failure::new(Exit::PluginRejected, why))
        }
    }
}
