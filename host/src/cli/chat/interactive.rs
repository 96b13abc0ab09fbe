//! Interactive chat: handles keys, session events and all other inputs one at a time.

use std::{panic, sync::Arc};

use sallyport_model::{ChatModel, FileAttachment};
use sallyport_runtime::{
    config::{ConfigFlags, EditMode, HostSettings},
    connections::{ConnectionDesk, SignInPresenter},
    host::CompileWait,
    roles::SessionRoles,
    session::{Events, ModelHandle, SessionConfig, SessionSelector},
};
use sallyport_session::{FrontEndCommand, TurnUsage, UnattendedConsent};
use sallyport_terminal::{
    attach::LocalFiles,
    editor::{
        self, InitialInput, InputPrompt, KeyStyle, Keyboard, KeyboardError, LineInput,
        PromptTicket, TerminalModes,
    },
    picture::PictureProtocol,
    style::{ColourMode, StyledLine},
};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};

use super::{
    activity_tracker::ActivityTracker,
    approval_questions::QuestionQueue,
    call_details::FinishedCalls,
    chat_session::{ChatContext, ChatSession},
    connect::ChatSignIn,
    inputs::{ChatInputs, KeyboardInput},
    phone, pictures,
    typing_ahead::TypingAhead,
    undo::ProposedUndo,
    view::{self, ChatView},
};
use crate::cli::{
    args::ChatArgs,
    call_lines::ShownCalls,
    exit::{CommandFailure, ExitStatus},
    file_attachments,
    observers::{CallObservers, SideMessage},
    output::CliOutput,
    plugin_reload::{PluginReload, PluginReloader},
    setup::{self, PluginsOfSession, SessionHost},
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
    /// The size of the model's context in tokens, if it is known.
    pub(super) context_window: Option<u64>,
    pub(super) activity: ChatActivity,
    pub(super) next_action: Option<NextAction>,
    /// The line that is being typed.
    pub(super) line_ticket: Option<PromptTicket>,
    /// The text of a line that a question interrupted.
    pub(super) interrupted_line: Option<String>,
    /// The prompt of the command line, until it is sent.
    first_input: Option<String>,
    pub(super) questions: QuestionQueue,
    pub(super) activity_tracker: ActivityTracker,
    pub(super) typing_ahead: TypingAhead,
    pub(super) open_calls: ShownCalls,
    pub(super) finished_calls: FinishedCalls,
    /// Whether part of the current answer is on the screen.
    pub(super) is_streamed: bool,
    /// Files for the next message.
    pub(super) files: Vec<FileAttachment>,
    pub(super) last_turn: Option<TurnUsage>,
    /// How the terminal draws pictures, if it does.
    pub(super) picture_protocol: Option<PictureProtocol>,
    /// The files that are put back if the user agrees.
    pub(super) proposed_undo: Option<ProposedUndo>,
    /// The accounts of users, and what shows a sign-in.
    pub(super) connections: Option<Arc<ConnectionDesk>>,
    pub(super) sign_in: Arc<ChatSignIn>,
}

pub(super) async fn run_interactive_chat(
    flags: &ConfigFlags,
    args: &ChatArgs,
    observers: &CallObservers,
    colour: ColourMode,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let settings = setup::read_settings(flags)?;
    let files = file_attachments::read_flag_files(
        &args.files,
        &file_attachments::search_folders(&settings),
    )?;
    let (side_messages, side_message_receiver) = mpsc::unbounded_channel();
    let reload_messages = side_messages.clone();
    let observers = CallObservers { side_messages: Some(side_messages), ..observers.clone() };
    // A change that comes while the plugins are being loaded counts as one after it.
    let reloader = PluginReloader::beside_person(&settings);
    let consent = Arc::new(UnattendedConsent);
    let overrides = (&args.model).into();
    let SessionHost { host, config, model } = setup::open_session_host(
        &settings,
        &overrides,
        consent,
        PluginsOfSession::all(CompileWait::Start),
        &observers,
        out,
    )
    .await?;
    let page = phone::open_approval_page(args, &host, Some(reload_messages.clone()), out).await;
    let page = match page {
        Ok(page) => page,
        Err(failure) => return setup::close_host(host, out).await.apply_to_result(Err(failure)),
    };
    let (settings, session_config) = (&settings, &config);
    let sign_in = ChatSignIn::new(settings, reload_messages.clone());
    if let Some(desk) = host.connections() {
        desk.offer_sign_ins(Arc::clone(&sign_in) as Arc<dyn SignInPresenter>);
    }
    let context = ChatContext { args, settings, host: &host, session_config, sign_in, out };
    host.remove_stale_file_copies().await;
    let timekeeper = host.start_timekeeper();
    let sessions = run_sessions(&context, model, files, colour, side_message_receiver);
    // The receiver is gone only when the chat ends.
    let report = |reload: &PluginReload| {
        for sentence in reload.sentences(&host) {
            let _ = reload_messages.send(SideMessage::Info(sentence));
        }
    };
    let farewell = tokio::select! {
        farewell = sessions => farewell,
        never = reloader.keep_plugins_current(&host, flags, report) => match never {},
        never = phone::serve_approval_page(page) => match never {},
    };
    timekeeper.stop().await;
    let audit_completeness = setup::close_host(host, out).await;
    audit_completeness.apply_to_result(farewell.map(|farewell| {
        farewell.into_iter().for_each(|line| out.print_note(&line));
        ExitStatus::Done
    }))
}

/// Runs one session after another at the terminal. Returns the farewell message.
async fn run_sessions(
    context: &ChatContext<'_>,
    model_handle: ModelHandle,
    files: Vec<FileAttachment>,
    colour: ColourMode,
    side_message_receiver: UnboundedReceiver<SideMessage>,
) -> Result<Option<String>, CommandFailure> {
    let selector = SessionSelector::from(&context.args.session);
    let (chat_session, mut events) = context.begin_session(&selector, &model_handle).await?;
    let (keyboard_input, keyboard_receiver) = mpsc::unbounded_channel();
    let mut inputs = ChatInputs::new(keyboard_receiver, side_message_receiver)?;
    let mut interactive_chat =
        InteractiveChat::new(context, chat_session, model_handle, files, keyboard_input, colour)?;
    interactive_chat.show_welcome().await;
    while interactive_chat.run_event_loop(&mut events, &mut inputs).await == NextAction::NewSession
    {
        interactive_chat.next_action = None;
        let selector = interactive_chat.chat_session.next_selector();
        match context.begin_session(&selector, &interactive_chat.model_handle).await {
            Ok((chat_session, new)) => {
                let old = interactive_chat.replace_session(chat_session);
                let ended = std::mem::replace(&mut events, new);
                old.close(ended, &context.host.registry()).await;
            }
            Err(failure) => interactive_chat.show_failure(&failure),
        }
    }
    let farewell = interactive_chat.farewell_text().await;
    let InteractiveChat { keyboard, chat_session, view, .. } = interactive_chat;
    view.finish();
    // This restores the terminal's modes.
    drop(keyboard);
    chat_session.close(events, &context.host.registry()).await;
    Ok(farewell)
}

fn start_keyboard(
    settings: &HostSettings,
    local_files: &LocalFiles,
    view: &ChatView,
    colour: ColourMode,
) -> Result<Keyboard, CommandFailure> {
    let editor = ["VISUAL", "EDITOR"].iter().find_map(|name| settings.env.get(name));
    let editor_settings = editor::EditorSettings {
        folder: Some(settings.paths.state.join("terminal")),
        keys: match settings.chat.edit_mode {
            EditMode::Emacs => KeyStyle::Emacs,
            EditMode::Vi => KeyStyle::Vi,
        },
        colour,
        editor: editor.map(str::to_owned),
        local_files: local_files.clone(),
    };
    let screen_view = view.clone();
    let line_sink = Box::new(move |lines: &[StyledLine]| screen_view.print_exact_lines(lines));
    let to_failure =
        |error: KeyboardError| CommandFailure::new(ExitStatus::Failed, error.to_string());
    let (keyboard, notices) = Keyboard::start(editor_settings, line_sink).map_err(to_failure)?;
    restore_terminal_on_panic(keyboard.original_modes());
    view.print_lines(&notices);
    Ok(keyboard)
}

/// Restores the terminal on a panic, so that the message is readable.
fn restore_terminal_on_panic(original: TerminalModes) {
    let default_hook = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        original.restore();
        default_hook(panic);
    }));
}

impl<'a> InteractiveChat<'a> {
    fn new(
        context: &ChatContext<'a>,
        chat_session: ChatSession,
        model_handle: ModelHandle,
        files: Vec<FileAttachment>,
        keyboard_input: UnboundedSender<KeyboardInput>,
        colour: ColourMode,
    ) -> Result<Self, CommandFailure> {
        let settings = context.settings;
        let (view, local_files) =
            (ChatView::new(colour), file_attachments::search_folders(settings));
        Ok(Self {
            settings,
            session_config: context.session_config,
            keyboard: start_keyboard(settings, &local_files, &view, colour)?,
            keyboard_input,
            view,
            local_files,
            model: Arc::clone(&chat_session.model),
            roles: Arc::clone(context.host.roles()),
            chat_session,
            model_handle,
            model_name: settings.chosen_model.name.clone(),
            context_window: settings.chosen_model.context_tokens,
            activity: ChatActivity::Idle,
            next_action: None,
            line_ticket: None,
            interrupted_line: None,
            first_input: context.args.prompt.clone(),
            questions: QuestionQueue::default(),
            activity_tracker: ActivityTracker::default(),
            typing_ahead: TypingAhead::default(),
            open_calls: ShownCalls::default(),
            finished_calls: FinishedCalls::default(),
            is_streamed: false,
            files,
            last_turn: None,
            picture_protocol: pictures::picture_protocol(settings),
            proposed_undo: None,
            connections: context.host.connections(),
            sign_in: Arc::clone(&context.sign_in),
        })
    }

    /// Handles inputs until the user leaves or starts a new session.
    async fn run_event_loop(&mut self, events: &mut Events, inputs: &mut ChatInputs) -> NextAction {
        if let Some(line) = self.first_input.take() {
            self.view.print_lines(&view::typed_lines(&self.model_name, &line));
            self.handle_line(line).await;
        }
        self.read_next_input().await;
        loop {
            self.update_typing_ahead();
            if let (Some(next_action), ChatActivity::Idle) = (self.next_action, self.activity) {
                return next_action;
            }
            let is_busy = self.activity != ChatActivity::Idle && self.questions.is_empty();
            tokio::select! {
                event = events.recv() => match event {
                    Some(event) => self.handle_event(event).await,
                    None => return NextAction::Leave,
                },
                Some(typed) = inputs.keyboard_input.recv() => self.handle_input(typed).await,
                Some(aside) = inputs.side_messages.recv() => self.show_side_message(aside),
                _ = inputs.interrupts.recv() => self.handle_interrupt().await,
                _ = inputs.terminations.recv() => self.leave_chat().await,
                _ = inputs.hangups.recv() => self.leave_chat().await,
                _ = inputs.resizes.recv() => self.view.resize(),
                _ = inputs.ticks.tick(), if is_busy => self.view.tick_spinner(),
            }
        }
    }

    /// Reads the next line.
    pub(super) fn read_next_line(&mut self, initial_input: InitialInput) {
        let keyboard_input = self.keyboard_input.clone();
        let prompt = InputPrompt::Message { model: self.model_name.clone() };
        let reply = move |input| drop(keyboard_input.send(KeyboardInput::Line(input)));
        self.line_ticket = Some(self.keyboard.read_line(prompt, initial_input, reply));
    }

    /// Resumes an interrupted line once no question is open.
    pub(super) fn resume_line(&mut self) {
        let is_free = self.line_ticket.is_none() && self.questions.is_empty();
        if let Some(partial_line) = self.interrupted_line.take_if(|_| is_free) {
            self.read_next_line(InitialInput::Text(partial_line));
        }
    }

    async fn handle_input(&mut self, keyboard_input: KeyboardInput) {
        match keyboard_input {
            KeyboardInput::Line(input) => {
                self.line_ticket = None;
                match input {
                    LineInput::Line(line) => {
                        self.handle_line(line).await;
                        self.read_next_input().await;
                    }
                    LineInput::CallDetails => {
                        self.show_call_details(1);
                        self.read_next_input().await;
                    }
                    LineInput::Interrupted | LineInput::End => {
                        self.next_action = Some(NextAction::Leave)
                    }
                    LineInput::Withdrawn(partial_line) => {
                        self.interrupted_line = Some(partial_line);
                        self.resume_line();
                    }
                }
            }
            KeyboardInput::TypedAhead(input) => self.handle_typed_ahead(input).await,
            KeyboardInput::Key(id, answer) => self.handle_answer_key(id, answer).await,
            KeyboardInput::Arguments(id, input) => self.handle_edited_arguments(id, input).await,
            KeyboardInput::Reason(id, input) => self.handle_denial_reason(id, input).await,
            KeyboardInput::Folder(id, input) => self.handle_folder(id, input),
            KeyboardInput::Field(id, input) => self.handle_field(id, input).await,
            KeyboardInput::Undo(input) => {
                self.handle_undo_answer(input).await;
                self.read_next_input().await;
            }
        }
    }

    /// Handles Ctrl-C while no line is typed.
    ///
    /// It leaves nothing, because it may have been meant for an answer that just ended, or for the
    /// external editor.
    async fn handle_interrupt(&mut self) {
        if self.activity != ChatActivity::Idle {
            self.typing_ahead.mark_stopped();
            self.send(FrontEndCommand::Cancel).await;
        }
    }

    /// Shows a finished call with its arguments and its result. The last one has number 1.
    pub(super) fn show_call_details(&self, number: usize) {
        self.show_lines(&self.finished_calls.detail_lines(number, self.view.columns()));
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
            let _ = self.keyboard.printer().print_lines(&self.view.fold_messages(lines));
        } else {
            self.view.print_lines(lines);
        }
    }

    pub(super) fn show_failure(&self, failure: &CommandFailure) {
        let hint = failure.hint.as_deref().map(view::hint_line);
        let lines = [Some(view::error_line(&failure.message)), hint];
        self.show_lines(&lines.into_iter().flatten().collect::<Vec<_>>());
    }

    fn show_side_message(&mut self, side_message: SideMessage) {
        match side_message {
            SideMessage::Warning(message) => self.show_lines(&[view::warning_line(&message)]),
            SideMessage::Trace(line) | SideMessage::Info(line) => {
                self.show_lines(&view::note_lines(&line))
            }
            SideMessage::HostContacted { call_id, host } => {
                self.activity_tracker.set_contacted_host(&call_id, &host);
                self.show_status();
            }
        }
    }

    /// Sends a command. Errors are ignored: the end of the events reports the end of the session.
    pub(super) async fn send(&self, command: FrontEndCommand) {
        let _ = self.chat_session.session.handle.send(command).await;
    }
}
