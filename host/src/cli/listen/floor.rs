//! A session that plugins attend, from its first event to its last.
//!
//! One loop hears everybody: the session, those who bring input, the UI, the terminal. Inputs wait
//! until the present turn is over; answers go to the UI, or are printed, and go back to the
//! connection that the input came from.

use std::{future, pin::pin, sync::Arc, time::Duration};

use sallyport_contract::{Admitted, Answer, Outcome, services::Origin, text};
use sallyport_model::{Delta, UserMessage};
use sallyport_sandbox::roles::UiEvent;
use sallyport_session::{Command, Event, Handle, TurnEnd};
use serde_json::json;
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};

use super::{
    Trouble,
    canvas::Screen,
    cast::{Cast, Show},
    questions::{Answers, Questions},
};
use crate::{
    cli::{
        compose, consent,
        exit::{Exit, Failure},
        run, show,
    },
    config::Settings,
    roles::{
        Run,
        listener::{
            Ear,
            stdin::{self, Line},
        },
        trouble,
        ui::{self, FromUi, UiPlayer},
    },
    services::Attendance,
};

/// Longest wait, at the end, for connections to be closed and plugins to be told.
const FAREWELL_TIME_MAX: Duration = Duration::from_secs(3);

/// How often it is looked at whether all that was piped in has been dealt with.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Most characters of an input that are shown beside its origin.
const INPUT_CHARS_MAX: usize = 120;

/// What somebody is sent whose input got no answer. Why is for the person alone.
const NO_ANSWER: &str = "There was no answer.";

/// Where lines of standard input go, if they are read at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Typing {
    /// To a listener; nobody else reads them.
    Listener,
    /// To the UI, and to questions at the terminal.
    Person,
    Nobody,
}

/// A session that plugins attend.
pub(super) struct Floor<'a> {
    handle: Handle,
    settings: &'a Settings,
    screen: Arc<Screen>,
    cast: Cast,
    ui: Option<UiPlayer>,
    questions: Questions,
    typing: Typing,
    can_ask: bool,
    /// The present turn, with where its input came from.
    turn: Option<Option<Origin>>,
    is_streamed: bool,
    /// It ends as soon as nothing is going on: at once, or when all that was piped in is done.
    leaving: Option<Leaving>,
    exit: Exit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaving {
    /// Nothing more is begun.
    Now,
    /// What came is dealt with first.
    Done,
}

impl<'a> Floor<'a> {
    pub(super) fn new(
        handle: Handle,
        cast: Cast,
        settings: &'a Settings,
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
            handle,
            settings,
            screen,
            cast,
            ui: None,
            questions: Questions::new(answers),
            typing,
            can_ask,
            turn: None,
            is_streamed: false,
            leaving: None,
            exit: Exit::Done,
        }
    }

    /// Holds the session until it is to end. What plugins say comes in by `attendance`.
    pub(super) async fn hold(
        mut self,
        mut events: mpsc::Receiver<Event>,
        attendance: Attendance,
    ) -> Result<Exit, Trouble> {
        let mut tasks = JoinSet::new();
        let began = self.begin(&mut events).await;
        if began.is_ok() {
            for server in self.cast.servers.drain(..) {
                tasks.spawn(server.run());
            }
            self.converse(&mut events, &mut tasks).await;
        }
        attendance.leave().await;
        let _ = self.handle.send(Command::Close).await;
        while let Some(event) = events.recv().await {
            self.take(event).await;
        }
        self.part(tasks).await;
        began.map(|()| self.exit)
    }

    /// Has the gate decide about the UI and tells the listeners that they begin. Either may ask, so
    /// events are heard meanwhile.
    async fn begin(&mut self, events: &mut mpsc::Receiver<Event>) -> Result<(), Trouble> {
        let (roles, session) = (Arc::clone(&self.cast.roles), self.cast.session_id.clone());
        let show = self.cast.ui.as_ref().map(|show| show.player.clone());
        let ears = self.cast.ears.clone();
        let mut beginning = pin!(async move {
            let mut admitted: Option<Admitted> = None;
            if let Some(player) = show {
                let call = player.admit(Run::Ui, roles.context(&session), &json!({})).await;
                admitted = Some(call.map_err(|report| refused(report.outcome))?);
            }
            for ear in ears {
                let name = ear.player.name().clone();
                ear.start().await.map_err(|why| {
                    Failure::new(Exit::PluginRejected, format!("{name} does not listen: {why}"))
                })?;
            }
            Ok::<_, Trouble>(admitted)
        });
        let mut early = Vec::new();
        let admitted = loop {
            tokio::select! {
                admitted = &mut beginning => break admitted?,
                Some(event) = events.recv() => {
                    early.extend(ui::events(&event));
                    self.take(event).await;
                }
            }
        };
        // A question about a role is not for the UI.
        early.retain(|event| !matches!(event, UiEvent::ToolCallRequested(_)));
        if let (Some(call), Some(show)) = (admitted, &self.cast.ui) {
            let ui = UiPlayer::begin(show.player.clone(), call, Arc::clone(&show.seat));
            early.into_iter().for_each(|event| ui.tell(event));
            self.ui = Some(ui);
        }
        Ok(())
    }

    async fn converse(&mut self, events: &mut mpsc::Receiver<Event>, tasks: &mut JoinSet<()>) {
        let (mut lines, mut piped) = self.read(tasks);
        let mut stop = pin!(compose::interrupted());
        loop {
            if self.is_over() {
                return;
            }
            let is_listening = self.is_listening();
            let may_begin = self.turn.is_none() && self.leaving != Some(Leaving::Now);
            tokio::select! {
                event = events.recv() => match event {
                    Some(event) => {
                        self.forget_typed(&event, &mut lines);
                        self.take(event).await;
                    }
                    None => return,
                },
                Some(command) = next_command(&mut self.cast.ui) => self.obey(command).await,
                why = broken(&mut self.ui) => self.lose_ui(&why).await,
                Some(input) = self.cast.inputs.recv(), if may_begin => self.submit(input).await,
                line = next_line(&mut lines), if is_listening => match line {
                    Some(line) => self.take_line(line).await,
                    None => { lines = None; self.leave(Leaving::Done).await; }
                },
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

    /// Begins to read standard input, for a listener or for the person.
    fn read(
        &self,
        tasks: &mut JoinSet<()>,
    ) -> (Option<mpsc::Receiver<Line>>, Option<oneshot::Receiver<()>>) {
        match (self.typing, &self.cast.stdin) {
            (Typing::Listener, Some(ear)) => {
                let screen = Arc::clone(&self.screen);
                let print = Arc::new(move |text: &str| screen.with(|out| out.line(text)));
                let (end, ended) = oneshot::channel();
                tasks.spawn(stdin::attend(Arc::clone(ear), stdin::lines(), print, end));
                (None, Some(ended))
            }
            (Typing::Person, _) => (Some(stdin::lines()), None),
            _ => (None, None),
        }
    }

    /// Lines from a pipe wait for the present turn; what a person types is for it as well.
    fn is_listening(&self) -> bool {
        self.leaving.is_none() && (self.can_ask || self.turn.is_none())
    }

    fn is_over(&self) -> bool {
        let is_idle = self.turn.is_none();
        match self.leaving {
            None => false,
            Some(Leaving::Now) => is_idle,
            Some(Leaving::Done) => {
                let ui_is_idle = self.ui.as_ref().is_none_or(UiPlayer::is_idle);
                is_idle && ui_is_idle && self.cast.inputs.is_empty()
            }
        }
    }

    /// What was typed before a question was shown is no answer to it.
    fn forget_typed(&self, event: &Event, lines: &mut Option<mpsc::Receiver<Line>>) {
        if let (Event::ApprovalNeeded { .. }, true, Some(lines)) = (event, self.can_ask, lines) {
            self.screen.with(|out| out.forget_typed());
            while lines.try_recv().is_ok() {}
        }
    }

    async fn submit(&mut self, input: UserMessage) {
        self.turn = Some(input.origin.clone());
        self.send(Command::SubmitInput { input }).await;
    }

    async fn obey(&mut self, command: FromUi) {
        match command {
            FromUi::Confirm { confirmation_id: id, approved } => {
                let answer = if approved { Answer::Once } else { Answer::No { reason: None } };
                self.send(Command::ProvideConfirmation { id, answer }).await;
            }
            FromUi::Cancel => self.send(Command::Cancel).await,
        }
    }

    async fn take_line(&mut self, line: Line) {
        let Line::Text(line) = line else {
            return self.screen.with(|out| out.warn("a line that is no text is passed over"));
        };
        if let Some((id, offers_always)) = self.questions.at_terminal.take() {
            let answer = consent::parse(Some(&line), offers_always);
            return self.send(Command::ProvideConfirmation { id, answer }).await;
        }
        match &self.ui {
            Some(ui) => ui.tell(UiEvent::Line(line)),
            None if line.trim().is_empty() => {}
            None => self.screen.with(|out| {
                out.note("what is typed here goes nowhere; `sallyport chat` is for talking");
            }),
        }
    }

    async fn leave(&mut self, leaving: Leaving) {
        self.leaving = Some(leaving);
        if leaving == Leaving::Now && self.turn.is_some() {
            self.send(Command::Cancel).await;
        }
    }

    /// Goes on without the UI: what it has left open is answered by nobody.
    async fn lose_ui(&mut self, why: &str) {
        self.ui = None;
        let name = self.cast.ui.as_ref().map(|show| show.player.name().to_string());
        let name = name.unwrap_or_default();
        self.screen.with(|out| {
            out.error(&format!("{name} shows this session no more: {why}"));
            out.hint("the session goes on here; what needs an approval is refused");
        });
        self.exit = Exit::PluginRejected;
        for id in self.questions.without_ui() {
            self.send(Command::ProvideConfirmation { id, answer: Answer::Nobody }).await;
        }
    }

    async fn take(&mut self, event: Event) {
        if let Some(ui) = &self.ui {
            let is_for_ui = !matches!(event, Event::ApprovalNeeded { .. });
            ui::events(&event).into_iter().filter(|_| is_for_ui).for_each(|event| ui.tell(event));
        } else {
            self.show(&event);
        }
        match event {
            Event::ApprovalNeeded { confirmation_id, ref request, .. } => {
                match (self.questions.open(confirmation_id, request), &self.ui) {
                    (Answers::Ui, Some(ui)) => {
                        ui::events(&event).into_iter().for_each(|event| ui.tell(event));
                    }
                    (Answers::Terminal, _) => self.screen.with(|out| {
                        show::question(request, out);
                        out.aside(consent::prompt(request));
                    }),
                    (Answers::Ui | Answers::Nobody, _) => {
                        let (id, answer) = (confirmation_id, Answer::Nobody);
                        self.send(Command::ProvideConfirmation { id, answer }).await;
                    }
                }
            }
            Event::ApprovalClosed { confirmation_id } => self.questions.close(confirmation_id),
            Event::CallFinished { report, .. } => self.show_fix(&report.outcome),
            Event::TurnEnded { reason, .. } => self.end_turn(&reason),
            _ => {}
        }
    }

    /// How a denial could be lifted is for the person alone: no plugin is told.
    fn show_fix(&self, outcome: &Outcome) {
        if let Outcome::Denied(denial) = outcome {
            let file = self.settings.policy.user_file();
            self.screen.with(|out| show::fix(denial, file, out));
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
        let Some(Origin { plugin, connection: Some(connection), .. }) = origin else { return };
        let ear = self.cast.ears.iter().find(|ear| *ear.player.name() == plugin);
        let answer = match end {
            TurnEnd::Answered { text } | TurnEnd::Spoken { text } => text,
            _ => NO_ANSWER,
        };
        if let Some(ear) = ear {
            ear.answered(&connection, answer);
        }
    }

    /// Whether the answer is written to where it would be printed: by who hears standard input.
    fn is_heard(&self, origin: &Origin) -> bool {
        let is_answer = |ear: &Arc<Ear>| *ear.player.name() == origin.plugin;
        let is_stdin = origin.connection.as_deref().is_some_and(|name| name.starts_with("stdin-"));
        is_stdin && self.cast.stdin.as_ref().is_some_and(is_answer)
    }

    /// Shows what happens where no plugin does.
    fn show(&mut self, event: &Event) {
        let is_written = matches!(&self.turn, Some(Some(origin)) if self.is_heard(origin));
        match event {
            Event::InputAccepted { text, origin: Some(origin), .. } if !is_written => {
                let (from, text) = (ui::words(origin), text::excerpt(text, INPUT_CHARS_MAX));
                self.screen.with(|out| out.note(&format!("> {from}: {text}")));
            }
            Event::Delta(Delta::Text(piece)) if !is_written => {
                let is_shown = self.screen.with(|out| {
                    if out.stdout_is_terminal {
                        out.piece(piece);
                    }
                    out.stdout_is_terminal
                });
                self.is_streamed |= is_shown;
            }
            Event::MessageComplete { .. } if self.is_streamed => {
                self.screen.with(|out| out.line(""));
            }
            Event::CallFinished { tool, report, .. } => {
                self.screen.with(|out| out.note(&format!("· {tool} {}", show::ending(report))));
            }
            Event::Noticed { notice } => {
                let is_aloud = notice.speech.is_some();
                let speaker = show::speaker(notice);
                self.screen.with(|out| out.notice(&speaker, &notice.text, is_aloud));
            }
            Event::Notice(notice) => self.screen.with(|out| out.warn(&notice.to_string())),
            _ => {}
        }
    }

    /// Lets everybody go: who is connected, who listened, who showed.
    async fn part(&mut self, mut tasks: JoinSet<()>) {
        if let Some(ui) = self.ui.take() {
            ui.close().await;
        }
        let ears = &self.cast.ears;
        let farewell = async {
            ears.iter().for_each(|ear| ear.hang_up());
            while ears.iter().any(|ear| ear.is_connected()) {
                tokio::time::sleep(LOOK_EVERY).await;
            }
            for ear in ears {
                ear.stop().await;
            }
        };
        // A plugin that takes longer is not told.
        let _ = tokio::time::timeout(FAREWELL_TIME_MAX, farewell).await;
        tasks.shutdown().await;
    }

    /// When the session has ended, its last event says so.
    async fn send(&self, command: Command) {
        let _ = self.handle.send(command).await;
    }
}

fn refused(outcome: Outcome) -> Trouble {
    match outcome {
        Outcome::Denied(denial) => Trouble::Denied(Box::new(denial)),
        outcome => {
            let why = trouble(&outcome.into()).unwrap_or_else(|| "it was cancelled".to_owned());
            Trouble::Failure(Failure::new(Exit::PluginRejected, why))
        }
    }
}

async fn next_command(show: &mut Option<Show>) -> Option<FromUi> {
    match show {
        Some(show) => show.commands.recv().await,
        None => future::pending().await,
    }
}

async fn broken(ui: &mut Option<UiPlayer>) -> String {
    match ui {
        Some(ui) => ui.broken().await,
        None => future::pending().await,
    }
}

async fn next_line(lines: &mut Option<mpsc::Receiver<Line>>) -> Option<Line> {
    match lines {
        Some(lines) => lines.recv().await,
        None => future::pending().await,
    }
}

async fn at_end(
    ended: &mut Option<oneshot::Receiver<()>>,
) -> Result<(), oneshot::error::RecvError> {
    match ended {
        Some(ended) => ended.await,
        None => future::pending().await,
    }
}
