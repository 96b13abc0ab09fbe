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
    activity_tracker::ActivityTracker,
    approval_questions::QuestionQueue,
    approval_router::ApprovalRouter,
    chat_session::{ChatContext, ChatSession},
    inputs::{ChatInputs, KeyboardInput},
    view::{self, ChatView},
};
use crate::cli::{
    args::ChatArgs,
    exit::{CommandFailure, ExitStatus},
    file_attachments,
    observers::{CallObservers, SideMessage},
    output::CliOutput,
    setup,
};

/// The current activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChatActivity {
    /// None. The user can type.
    Idle,
    /// A turn. `is_pinned` pins it at its end.
    Turn { is_pinned: bool },
    /// An operation of the session between turns.
    SessionOperation,
}

/// The action after the current session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextAction {
    Leave,
    NewSession,
}

/// The user's side of a session.
pub(super) struct InteractiveChat<'a> {
    pub(super) settings: &'a HostSettings,
    pub(super) registry: &'a Registry,
    pub(super) session_config: &'a SessionConfig,
    pub(super) keyboard: Keyboard,
    pub(super) keyboard_input: UnboundedSender<KeyboardInput>,
    pub(super) view: ChatView,
    pub(super) local_files: LocalFiles,
    pub(super) chat_session: ChatSession,
    pub(super) roles: Arc<SessionRoles>,
    /// The model: for any session, for this session, and the name that selected it.
    pub(super) model_handle: ModelHandle,
    pub(super) model: Arc<dyn ChatModel>,
    pub(super) model_name: String,
    pub(super) activity: ChatActivity,
    pub(super) next_action: Option<NextAction>,
    /// The line that is being typed.
    pub(super) line_ticket: Option<PromptTicket>,
    /// The text of a line that a question interrupted.
    pub(super) interrupted_line: Option<String>,
    pub(super) questions: QuestionQueue,
    pub(super) activity_tracker: ActivityTracker,
    /// Whether part of the current answer is on the screen.
    pub(super) is_streamed: bool,
    /// Files for the next message.
    pub(super) files: Vec<FileAttachment>,
    pub(super) last_turn: Option<TurnUsage>,
}

pub(super) async fn run_interactive_chat(
    flags: &ConfigFlags,
    args: &ChatArgs,
    watch: &CallObservers,
    colour: ColourMode,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let settings = setup::read_settings(flags)?;
    let files = file_attachments::read_flag_files(
        &args.files,
        &file_attachments::search_folders(&settings),
    )?;
    let voice = setup::prepare_model(&settings, out)?;
    let reception = Arc::new(ApprovalRouter::default());
    let (asides, heard) = mpsc::unbounded_channel();
    let watch = CallObservers { side_messages: Some(asides), ..watch.clone() };
    let consent = Arc::clone(&reception);
    let tools = setup::open_host(&settings, consent, PluginSelection::All, &watch, out).await?;
    setup::print_load_problems(tools.registry(), out);
    let farewell =
        match SessionConfig::from_settings(&(&args.model).into(), &settings, &tools).await {
            Ok(manner) => {
                let manner = &manner;
                let stage = ChatContext {
                    args,
                    settings: &settings,
                    host: &tools,
                    session_config: manner,
                    approval_router: reception,
                    out,
                };
                let timekeeper = tools.start_timekeeper();
                let farewell = run_sessions(&stage, voice, files, colour, heard).await;
                timekeeper.stop().await;
                farewell
            }
            Err(error) => Err(error.into()),
        };
    let recorded = setup::close_host(tools, out).await;
    recorded.apply_to_result(farewell.map(|farewell| {
        farewell.into_iter().for_each(|line| out.print_note(&line));
        ExitStatus::Done
    }))
}

/// Runs one session after another at the terminal. Returns the farewell message.
async fn run_sessions(
    stage: &ChatContext<'_>,
    voice: ModelHandle,
    files: Vec<FileAttachment>,
    colour: ColourMode,
    heard: UnboundedReceiver<SideMessage>,
) -> Result<Option<String>, CommandFailure> {
    let (talk, mut events) =
        stage.begin_session(&SessionSelector::from(&stage.args.session), &voice)?;
    let (typed, typing) = mpsc::unbounded_channel();
    let mut ears = ChatInputs::new(typing, heard)?;
    let mut chat = InteractiveChat::new(stage, talk, voice, files, typed, colour)?;
    chat.show_welcome();
    while chat.run_event_loop(&mut events, &mut ears).await == NextAction::NewSession {
        chat.next_action = None;
        match stage.begin_session(&chat.chat_session.next_selector(), &chat.model_handle) {
            Ok((talk, new)) => {
                let old = chat.replace_session(talk);
                let ended = std::mem::replace(&mut events, new);
                old.close(ended, stage.host.registry()).await;
            }
            Err(failure) => chat.show_failure(&failure),
        }
    }
    let farewell = chat.farewell_text();
    let InteractiveChat { keyboard, chat_session: talk, view, .. } = chat;
    view.finish();
    // This restores the terminal's modes.
    drop(keyboard);
    talk.close(events, stage.host.registry()).await;
    Ok(farewell)
}

fn start_keyboard(
    settings: &HostSettings,
    disk: &LocalFiles,
    view: &ChatView,
    colour: ColourMode,
) -> Result<Keyboard, CommandFailure> {
    let editor = ["VISUAL", "EDITOR"].iter().find_map(|name| settings.env.get(name));
    let of_editor = editor::EditorSettings {
        folder: Some(settings.paths.state.join("terminal")),
        keys: match settings.chat.edit_mode {
            EditMode::Emacs => KeyStyle::Emacs,
            EditMode::Vi => KeyStyle::Vi,
        },
        colour,
        editor: editor.map(str::to_owned),
        local_files: disk.clone(),
    };
    let shown = view.clone();
    let show = Box::new(move |lines: &[StyledLine]| shown.print_lines(lines));
    let unusable =
        |error: KeyboardError| CommandFailure::new(ExitStatus::Failed, error.to_string());
    let (keyboard, notices) = Keyboard::start(of_editor, show).map_err(unusable)?;
    restore_terminal_on_panic(keyboard.original_modes());
    view.print_lines(&notices);
    Ok(keyboard)
}

/// Restores the terminal on a panic, so that the message is readable.
fn restore_terminal_on_panic(original: TerminalModes) {
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        original.restore();
        usual(panic);
    }));
}

impl<'a> InteractiveChat<'a> {
    fn new(
        stage: &ChatContext<'a>,
        talk: ChatSession,
        voice: ModelHandle,
        files: Vec<FileAttachment>,
        typed: UnboundedSender<KeyboardInput>,
        colour: ColourMode,
    ) -> Result<Self, CommandFailure> {
        let settings = stage.settings;
        let (view, disk) = (ChatView::new(colour), file_attachments::search_folders(settings));
        Ok(Self {
            settings,
            registry: stage.host.registry(),
            session_config: stage.session_config,
            keyboard: start_keyboard(settings, &disk, &view, colour)?,
            keyboard_input: typed,
            view,
            local_files: disk,
            model: Arc::clone(&talk.model),
            roles: Arc::clone(stage.host.roles()),
            chat_session: talk,
            model_handle: voice,
            model_name: settings.chosen_model.name.clone(),
            activity: ChatActivity::Idle,
            next_action: None,
            line_ticket: None,
            interrupted_line: None,
            questions: QuestionQueue::default(),
            activity_tracker: ActivityTracker::default(),
            is_streamed: false,
            files,
            last_turn: None,
        })
    }

    /// Handles inputs until the user leaves or starts a new session.
    async fn run_event_loop(&mut self, events: &mut Events, ears: &mut ChatInputs) -> NextAction {
        self.read_next_line(InitialInput::Text(String::new()));
        loop {
            if let (Some(next), ChatActivity::Idle) = (self.next_action, self.activity) {
                return next;
            }
            let is_busy = self.activity != ChatActivity::Idle && self.questions.is_empty();
            tokio::select! {
                event = events.recv() => match event {
                    Some(event) => self.handle_event(event).await,
                    None => return NextAction::Leave,
                },
                Some(typed) = ears.keyboard_input.recv() => self.handle_input(typed).await,
                Some(aside) = ears.side_messages.recv() => self.show_side_message(aside),
                _ = ears.interrupts.recv() => self.handle_interrupt().await,
                _ = ears.terminations.recv() => self.leave_chat().await,
                _ = ears.hangups.recv() => self.leave_chat().await,
                _ = ears.resizes.recv() => self.view.resize(),
                _ = ears.ticks.tick(), if is_busy => self.view.tick_spinner(),
            }
        }
    }

    /// Reads the next line.
    pub(super) fn read_next_line(&mut self, begin: InitialInput) {
        let typed = self.keyboard_input.clone();
        let prompt = InputPrompt::Message { model: self.model_name.clone() };
        let reply = move |input| drop(typed.send(KeyboardInput::Line(input)));
        self.line_ticket = Some(self.keyboard.read_line(prompt, begin, reply));
    }

    /// Resumes an interrupted line once no question is open.
    pub(super) fn resume_line(&mut self) {
        let is_free = self.line_ticket.is_none() && self.questions.is_empty();
        if let Some(begun) = self.interrupted_line.take_if(|_| is_free) {
            self.read_next_line(InitialInput::Text(begun));
        }
    }

    async fn handle_input(&mut self, typed: KeyboardInput) {
        match typed {
            KeyboardInput::Line(input) => {
                self.line_ticket = None;
                match input {
                    LineInput::Line(line) => self.handle_line(line).await,
                    LineInput::Interrupted | LineInput::End => {
                        self.next_action = Some(NextAction::Leave)
                    }
                    LineInput::Withdrawn(begun) => {
                        self.interrupted_line = Some(begun);
                        self.resume_line();
                    }
                }
            }
            KeyboardInput::Key(id, answer) => self.handle_answer_key(id, answer).await,
            KeyboardInput::Arguments(id, input) => self.handle_edited_arguments(id, input).await,
            KeyboardInput::Reason(id, input) => self.handle_denial_reason(id, input).await,
        }
    }

    /// Handles Ctrl-C while no line is typed.
    async fn handle_interrupt(&mut self) {
        match self.activity {
            ChatActivity::Idle => self.next_action = Some(NextAction::Leave),
            ChatActivity::Turn { .. } | ChatActivity::SessionOperation => {
                self.send(FrontEndCommand::Cancel).await
            }
        }
    }

    /// Ends the current activity, and then the program.
    pub(super) async fn leave_chat(&mut self) {
        self.next_action = Some(NextAction::Leave);
        if self.activity != ChatActivity::Idle {
            self.send(FrontEndCommand::Cancel).await;
        }
    }

    /// Shows lines next to the answer, or above the line that is being typed.
    pub(super) fn show_lines(&self, lines: &[StyledLine]) {
        if self.line_ticket.is_some() {
            // Lines beyond the printer's limit are dropped. The user could not read that many
            // either.
            let _ = self.keyboard.printer().print_lines(lines);
        } else {
            self.view.print_lines(lines);
        }
    }

    pub(super) fn show_failure(&self, failure: &CommandFailure) {
        let hint = failure.hint.as_deref().map(view::hint_line);
        let lines = [Some(view::error_line(&failure.message)), hint];
        self.show_lines(&lines.into_iter().flatten().collect::<Vec<_>>());
    }

    fn show_side_message(&mut self, aside: SideMessage) {
        match aside {
            SideMessage::Warning(message) => self.show_lines(&[view::warning_line(&message)]),
            SideMessage::Trace(line) | SideMessage::Info(line) => {
                self.show_lines(&view::note_lines(&line))
            }
            SideMessage::HostContacted { call_id, host } => {
                self.activity_tracker.set_contacted_host(&call_id, host, self.view.elapsed_time());
                self.show_status();
            }
        }
    }

    /// Sends a command. Errors are ignored: the end of the events reports the end of the session.
    pub(super) async fn send(&self, command: FrontEndCommand) {
        let _ = self.chat_session.session.handle.send(command).await;
    }
}
