//! A session that plugins attend, from its first event to its last.
//!
//! One loop hears everybody: the session, those who bring input, the UI, the terminal. Inputs wait
//! until the present turn is over; answers go to the UI, or are printed, and go back to the
//! connection that the input came from.

mod shown;

use std::{
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use sallyport_contract::{Admitted, Answer, Outcome, services::Origin};
use sallyport_model::UserMessage;
use sallyport_runtime::{
    HostSession,
    config::Settings,
    roles::{
        Run,
        listener::{
            Ear,
            stdin::{self, Line},
        },
        trouble,
        ui::{self, FromUi, News, UiPlayer},
    },
    session::Events,
};
use sallyport_sandbox::roles::UiEvent;
use sallyport_session::{Command, Event, TurnEnd};
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

/// Longest wait, at the end, for connections to be closed and plugins to be told.
const FAREWELL_TIME_MAX: Duration = Duration::from_secs(3);

/// How often it is looked at whether all that was piped in has been dealt with.
const LOOK_EVERY: Duration = Duration::from_millis(20);

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
    session: HostSession,
    settings: &'a Settings,
    screen: Arc<Screen>,
    cast: Cast,
    ui: Option<UiPlayer>,
    questions: Questions,
    /// How much was shown of the question that is first at the terminal.
    asked: Option<Asked>,
    typing: Typing,
    /// What is typed or piped in, unless a listener hears it, until it ends.
    lines: Option<mpsc::Receiver<Line>>,
    has_typed: bool,
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
        session: HostSession,
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

    /// Holds the session until it is to end.
    pub(super) async fn hold(mut self, mut events: Events) -> Result<Exit, Trouble> {
        let mut tasks = JoinSet::new();
        let mut stop = pin!(compose::interrupted());
        self.lines = (self.typing == Typing::Person).then(stdin::lines);
        let began = self.begin(&mut events, stop.as_mut()).await;
        if began.is_ok() && self.leaving.is_none() {
            for server in self.cast.servers.drain(..) {
                tasks.spawn(server.run());
            }
            self.converse(&mut events, &mut tasks, stop).await;
            self.tell_what_waits();
        }
        self.session.stop_listening().await;
        let _ = self.session.handle.send(Command::Close).await;
        while let Some(event) = events.recv().await {
            self.take(event).await;
        }
        self.part(tasks).await;
        began.map(|()| self.exit)
    }

    /// Has the gate decide about the UI and tells the listeners that they begin. Either may ask, so
    /// events are heard meanwhile, and answers.
    async fn begin(
        &mut self,
        events: &mut mpsc::Receiver<Event>,
        mut stop: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<(), Trouble> {
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
                    early.extend(ui::events(&event));
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
        // A question about a role is not for the UI.
        early.retain(|event| !matches!(event, UiEvent::ToolCallRequested(_)));
        if let (Some(call), Some(show)) = (admitted, &self.cast.ui) {
            let ui = UiPlayer::begin(show.player.clone(), call, Arc::clone(&show.seat));
            early.into_iter().for_each(|event| ui.tell(event));
            self.ui = Some(ui);
        }
        Ok(())
    }

    async fn converse(
        &mut self,
        events: &mut mpsc::Receiver<Event>,
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
                news = news(&mut self.ui) => if let News::Broken(why) = news {
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

    /// Begins to read standard input for a listener, if one hears it.
    fn attend_stdin(&self, tasks: &mut JoinSet<()>) -> Option<oneshot::Receiver<()>> {
        let ear = self.cast.stdin.as_ref().filter(|_| self.typing == Typing::Listener)?;
        let screen = Arc::clone(&self.screen);
        let print = Arc::new(move |text: &str| screen.with(|out| out.line(text)));
        let (end, ended) = oneshot::channel();
        tasks.spawn(stdin::attend(Arc::clone(ear), stdin::lines(), print, end));
        Some(ended)
    }

    /// Lines from a pipe wait until all before them has come to its end; what a person types is for
    /// the present turn as well.
    fn is_listening(&self) -> bool {
        self.leaving.is_none() && (self.can_ask || self.is_quiet())
    }

    /// Whether nothing is going on.
    fn is_quiet(&self) -> bool {
        let ui_is_idle = self.ui.as_ref().is_none_or(UiPlayer::is_idle);
        self.turn.is_none() && ui_is_idle && self.cast.inputs.is_empty()
    }

    fn is_over(&self) -> bool {
        match self.leaving {
            None => false,
            Some(Leaving::Now) => self.turn.is_none(),
            Some(Leaving::Done) => self.is_quiet(),
        }
    }

    /// Whether the end of standard input is the end: somebody has left the terminal, or nothing else
    /// is left that could say anything. Where nobody ever typed, a page may still be opened.
    fn ends_with_lines(&self) -> bool {
        let has_page = self.cast.ui.as_ref().is_some_and(|show| show.has_page);
        self.can_ask || (self.cast.ears.is_empty() && (self.has_typed || !has_page))
    }

    /// What was typed before a question was shown is no answer to it.
    fn forget_typed(&mut self) {
        if let (true, Some(lines)) = (self.can_ask, &mut self.lines) {
            self.screen.with(|out| out.forget_typed());
            while lines.try_recv().is_ok() {}
        }
    }

    /// Shows the question that is first at the terminal.
    fn ask(&mut self) {
        self.forget_typed();
        if let Some(request) = self.questions.asked() {
            self.asked = self.screen.with(|out| Some(Asked::about(request, out)));
        }
    }

    async fn submit(&mut self, input: UserMessage) {
        self.turn = Some(input.origin.clone());
        self.send(Command::SubmitInput { input }).await;
    }

    async fn obey(&mut self, command: FromUi) {
        match command {
            FromUi::Confirm { confirmation_id: id, answer } => {
                self.send(Command::ProvideConfirmation { id, answer }).await;
            }
            FromUi::Cancel => self.send(Command::Cancel).await,
        }
    }

    /// Takes a line, or the end of all.
    async fn hear(&mut self, line: Option<Line>) {
        if let Some(line) = line {
            self.has_typed = true;
            return self.take_line(line).await;
        }
        self.lines = None;
        for id in self.questions.without_terminal() {
            self.send(Command::ProvideConfirmation { id, answer: Answer::Nobody }).await;
        }
        if self.ends_with_lines() {
            self.leave(Leaving::Done).await;
        }
    }

    async fn take_line(&mut self, line: Line) {
        let Line::Text(line) = line else {
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
            self.send(Command::ProvideConfirmation { id, answer }).await;
            return self.ask();
        }
        match &self.ui {
            Some(ui) => ui.tell(UiEvent::Line(line)),
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
            self.send(Command::Cancel).await;
        }
    }

    /// Goes on without the UI: what it has left open is answered by nobody.
    async fn lose_ui(&mut self, why: &str) {
        self.ui = None;
        let show = self.cast.ui.as_ref();
        show.inspect(|show| show.seat.leave());
        let name = show.map(|show| show.player.name().to_string()).unwrap_or_default();
        self.screen.with(|out| {
            out.error(&format!("{name} stopped showing this session: {why}"));
            out.hint("the session continues without it; calls that need an approval are denied");
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
                        self.forget_typed();
                    }
                    // One after another: an answer is to the question that is shown.
                    (Answers::Terminal, _) if self.questions.is_first(confirmation_id) => {
                        self.ask()
                    }
                    (Answers::Terminal, _) => {}
                    (Answers::Ui | Answers::Nobody, _) => {
                        let (id, answer) = (confirmation_id, Answer::Nobody);
                        self.send(Command::ProvideConfirmation { id, answer }).await;
                    }
                }
            }
            Event::ApprovalClosed { confirmation_id } => {
                let was_shown = self.questions.is_first(confirmation_id);
                self.questions.close(confirmation_id);
                if was_shown {
                    self.ask();
                }
            }
            Event::CallFinished { report, .. } => self.show_fix(&report.outcome),
            Event::TurnEnded { reason, .. } => self.end_turn(&reason),
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

    /// Says what was taken and is not dealt with: whoever brought it was told that it was taken.
    fn tell_what_waits(&mut self) {
        self.cast.inputs.close();
        let waiting = std::iter::from_fn(|| self.cast.inputs.try_recv().ok()).count();
        if waiting > 0 {
            let words = format!("{waiting} accepted inputs got no answer");
            self.screen.with(|out| out.warn(&words));
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
        let _ = self.session.handle.send(command).await;
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
