//! Interactive chat: handles keys, session events and all other inputs one at a time.

use std::{panic, sync::Arc};

use sallyport_model::{ChatModel, FileAttachment};
use sallyport_runtime::{
    config::{ConfigFlags, EditMode, HostSettings},
    registry::{PluginSelection, Registry},
    roles::SessionRoles,
    session::{Events, ModelHandle, SessionConfig, SessionSelector},
};
use sallyport_session::{FrontEndCommand, TurnUsage};
use sallyport_terminal::{
    attach::LocalFiles,
    editor::{
        self, InitialInput, InputPrompt, KeyStyle, Keyboard, KeyboardError, LineInput,
        PromptTicket, TerminalModes,
    },
    style::{ColourMode, StyledLine},
};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use super::{
    asking::Questions,
    desk::Reception,
    ears::{Ears, Typed},
    talk::{Stage, Talk},
    view::{self, View},
    waiting::Waiting,
};
use crate::cli::{
    args::ChatArgs,
    attached, compose,
    exit::{Exit, Failure},
    output::Output,
    watch::{Aside, Watch},
};

/// The current activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    /// None. The user can type.
    Nothing,
    /// A turn. `is_pinned` pins it at its end.
    Turn { is_pinned: bool },
    /// An operation of the session between turns.
    Errand,
}

/// The action after the current session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Leave,
    New,
}

/// The user's side of a session.
pub(super) struct Chat<'a> {
    pub(super) settings: &'a HostSettings,
    pub(super) registry: &'a Registry,
    pub(super) manner: &'a SessionConfig,
    pub(super) keyboard: Keyboard,
    pub(super) typed: UnboundedSender<Typed>,
    pub(super) view: View,
    pub(super) disk: LocalFiles,
    pub(super) talk: Talk,
    pub(super) roles: Arc<SessionRoles>,
    /// The model: for any session, for this session, and the name that selected it.
    pub(super) voice: ModelHandle,
    pub(super) model: Arc<dyn ChatModel>,
    pub(super) model_name: String,
    pub(super) doing: Doing,
    pub(super) next: Option<Next>,
    /// The line that is being typed.
    pub(super) line: Option<PromptTicket>,
    /// The text of a line that a question interrupted.
    pub(super) put_off: Option<String>,
    pub(super) questions: Questions,
    pub(super) waiting: Waiting,
    /// Whether part of the current answer is on the screen.
    pub(super) is_streamed: bool,
    /// Files for the next message.
    pub(super) files: Vec<FileAttachment>,
    pub(super) last_turn: Option<TurnUsage>,
}

pub(super) async fn chat(
    flags: &ConfigFlags,
    args: &ChatArgs,
    watch: &Watch,
    colour: ColourMode,
    out: &Output,
) -> Result<Exit, Failure> {
    let settings = compose::settings(flags)?;
    let files = attached::named(&args.files, &attached::disk(&settings))?;
    let voice = compose::model(&settings, out)?;
    let reception = Arc::new(Reception::default());
    let (asides, heard) = mpsc::unbounded_channel();
    let watch = Watch { asides: Some(asides), ..watch.clone() };
    let consent = Arc::clone(&reception);
    let tools = compose::open_host(&settings, consent, PluginSelection::All, &watch, out).await?;
    compose::show_problems(tools.registry(), out);
    let farewell = match SessionConfig::from_settings(&(&args.model).into(), &settings, &tools)
        .await
    {
        Ok(manner) => {
            let manner = &manner;
            let stage = Stage { args, settings: &settings, tools: &tools, manner, reception, out };
            let timekeeper = tools.start_timekeeper();
            let farewell = talk_at(&stage, voice, files, colour, heard).await;
            timekeeper.stop().await;
            farewell
        }
        Err(error) => Err(error.into()),
    };
    let recorded = compose::close(tools, out).await;
    recorded.end(farewell.map(|farewell| {
        farewell.into_iter().for_each(|line| out.note(&line));
        Exit::Done
    }))
}

/// Runs one session after another at the terminal. Returns the farewell message.
async fn talk_at(
    stage: &Stage<'_>,
    voice: ModelHandle,
    files: Vec<FileAttachment>,
    colour: ColourMode,
    heard: UnboundedReceiver<Aside>,
) -> Result<Option<String>, Failure> {
    let (talk, mut events) = stage.begin(&SessionSelector::from(&stage.args.session), &voice)?;
    let (typed, typing) = mpsc::unbounded_channel();
    let mut ears = Ears::new(typing, heard)?;
    let mut chat = Chat::new(stage, talk, voice, files, typed, colour)?;
    chat.welcome();
    while chat.converse(&mut events, &mut ears).await == Next::New {
        chat.next = None;
        match stage.begin(&chat.talk.another(), &chat.voice) {
            Ok((talk, new)) => {
                let old = chat.renew(talk);
                let ended = std::mem::replace(&mut events, new);
                old.close(ended, stage.tools.registry()).await;
            }
            Err(failure) => chat.fail(&failure),
        }
    }
    let farewell = chat.farewell();
    let Chat { keyboard, talk, view, .. } = chat;
    view.finish();
    // This restores the terminal's modes.
    drop(keyboard);
    talk.close(events, stage.tools.registry()).await;
    Ok(farewell)
}

fn keyboard(
    settings: &HostSettings,
    disk: &LocalFiles,
    view: &View,
    colour: ColourMode,
) -> Result<Keyboard, Failure> {
    let editor = ["VISUAL", "EDITOR"].iter().find_map(|name| settings.env.get(name));
    let of_editor = editor::EditorSettings {
        folder: Some(settings.paths.state.join("terminal")),
        keys: match settings.chat.edit_mode {
            EditMode::Emacs => KeyStyle::Emacs,
            EditMode::Vi => KeyStyle::Vi,
        },
        colour,
        editor: editor.map(str::to_owned),
        disk: disk.clone(),
    };
    let shown = view.clone();
    let show = Box::new(move |lines: &[StyledLine]| shown.print(lines));
    let unusable = |error: KeyboardError| Failure::new(Exit::Failed, error.to_string());
    let (keyboard, notices) = Keyboard::start(of_editor, show).map_err(unusable)?;
    restore_after_panic(keyboard.original_modes());
    view.print(&notices);
    Ok(keyboard)
}

/// Restores the terminal on a panic, so that the message is readable.
fn restore_after_panic(original: TerminalModes) {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        original.restore();
        usual(panic);
    }));
}

impl<'a> Chat<'a> {
    fn new(
        stage: &Stage<'a>,
        talk: Talk,
        voice: ModelHandle,
        files: Vec<FileAttachment>,
        typed: UnboundedSender<Typed>,
        colour: ColourMode,
    ) -> Result<Self, Failure> {
        let settings = stage.settings;
        let (view, disk) = (View::new(colour), attached::disk(settings));
        Ok(Self {
            settings,
            registry: stage.tools.registry(),
            manner: stage.manner,
            keyboard: keyboard(settings, &disk, &view, colour)?,
            typed,
            view,
            disk,
            model: Arc::clone(&talk.model),
            roles: Arc::clone(stage.tools.roles()),
            talk,
            voice,
            model_name: settings.chosen.name.clone(),
            doing: Doing::Nothing,
            next: None,
            line: None,
            put_off: None,
            questions: Questions::default(),
            waiting: Waiting::default(),
            is_streamed: false,
            files,
            last_turn: None,
        })
    }

    /// Handles inputs until the user leaves or starts a new session.
    async fn converse(&mut self, events: &mut Events, ears: &mut Ears) -> Next {
        self.listen(InitialInput::With(String::new()));
        loop {
            if let (Some(next), Doing::Nothing) = (self.next, self.doing) {
                return next;
            }
            let is_busy = self.doing != Doing::Nothing && self.questions.is_empty();
            tokio::select! {
                event = events.recv() => match event {
                    Some(event) => self.hear(event).await,
                    None => return Next::Leave,
                },
                Some(typed) = ears.typed.recv() => self.take(typed).await,
                Some(aside) = ears.asides.recv() => self.overhear(aside),
                _ = ears.interrupts.recv() => self.interrupt().await,
                _ = ears.terminations.recv() => self.leave().await,
                _ = ears.hangups.recv() => self.leave().await,
                _ = ears.resizes.recv() => self.view.resize(),
                _ = ears.ticks.tick(), if is_busy => self.view.tick(),
            }
        }
    }

    /// Reads the next line.
    pub(super) fn listen(&mut self, begin: InitialInput) {
        let typed = self.typed.clone();
        let prompt = InputPrompt::Message { model: self.model_name.clone() };
        let reply = move |input| drop(typed.send(Typed::Line(input)));
        self.line = Some(self.keyboard.read_line(prompt, begin, reply));
    }

    /// Resumes an interrupted line once no question is open.
    pub(super) fn resume(&mut self) {
        let is_free = self.line.is_none() && self.questions.is_empty();
        if let Some(begun) = self.put_off.take_if(|_| is_free) {
            self.listen(InitialInput::With(begun));
        }
    }

    async fn take(&mut self, typed: Typed) {
        match typed {
            Typed::Line(input) => {
                self.line = None;
                match input {
                    LineInput::Line(line) => self.take_line(line).await,
                    LineInput::Interrupted | LineInput::End => self.next = Some(Next::Leave),
                    LineInput::Withdrawn(begun) => {
                        self.put_off = Some(begun);
                        self.resume();
                    }
                }
            }
            Typed::Key(id, answer) => self.take_key(id, answer).await,
            Typed::Arguments(id, input) => self.take_arguments(id, input).await,
            Typed::Reason(id, input) => self.take_reason(id, input).await,
        }
    }

    /// Handles Ctrl-C while no line is typed.
    async fn interrupt(&mut self) {
        match self.doing {
            Doing::Nothing => self.next = Some(Next::Leave),
            Doing::Turn { .. } | Doing::Errand => self.send(FrontEndCommand::Cancel).await,
        }
    }

    /// Ends the current activity, and then the program.
    pub(super) async fn leave(&mut self) {
        self.next = Some(Next::Leave);
        if self.doing != Doing::Nothing {
            self.send(FrontEndCommand::Cancel).await;
        }
    }

    /// Shows lines next to the answer, or above the line that is being typed.
    pub(super) fn tell(&self, lines: &[StyledLine]) {
        if self.line.is_some() {
            // Lines beyond the printer's limit are dropped. The user could not read that many
            // either.
            let _ = self.keyboard.printer().print_lines(lines);
        } else {
            self.view.print(lines);
        }
    }

    pub(super) fn fail(&self, failure: &Failure) {
        let hint = failure.hint.as_deref().map(view::hint);
        let lines = [Some(view::error(&failure.message)), hint];
        self.tell(&lines.into_iter().flatten().collect::<Vec<_>>());
    }

    fn overhear(&mut self, aside: Aside) {
        match aside {
            Aside::Warning(message) => self.tell(&[view::warning(&message)]),
            Aside::Traced(line) | Aside::Told(line) => self.tell(&view::note(&line)),
            Aside::Turned { call_id, host } => {
                self.waiting.turn_to(&call_id, host, self.view.now());
                self.show_waiting();
            }
        }
    }

    /// Sends a command. Errors are ignored: the end of the events reports the end of the session.
    pub(super) async fn send(&self, command: FrontEndCommand) {
        let _ = self.talk.session.handle.send(command).await;
    }
}
