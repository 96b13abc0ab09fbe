//! A session line by line, for pipes and for terminals without escape sequences.
//!
//! Reading a terminal blocks, so a separate thread reads the lines. A line is either input or the
//! answer to a question, depending on what the session waits for.

use std::{io, sync::Arc};

use sallyport_contract::{ApprovalAnswer, ApprovalRequest, Outcome, services, text};
use sallyport_model::{FileAttachment, ReplyDelta, UserInputMessage};
use sallyport_runtime::{
    Host,
    config::{ConfigFlags, HostSettings},
    host::CompileWait,
    session::{SessionSelector, SessionSpec},
};
use sallyport_session::{FrontEndCommand, SessionEvent, SessionHandle, UnattendedConsent};
use sallyport_terminal::slash;
use tokio::{signal::unix::SignalKind, sync::mpsc};

use super::phone;
use crate::cli::{
    args::ChatArgs,
    call_display,
    call_lines::ShownCalls,
    consent::{self, ShownQuestion},
    exit::{CommandFailure, ExitStatus},
    file_attachments, interrupt,
    observers::CallObservers,
    output::{CliOutput, format_count},
    plugin_reload::{PluginReload, PluginReloader},
    run,
    setup::{self, PluginsOfSession, SessionHost},
};

/// Most lines that are read ahead.
const LINES_WAITING_MAX: usize = 16;

const HELP: &str = "\
/help     this list
/tools    the tools that the model can use
/quit     leave (so does Ctrl-D); Ctrl-C stops the answer that is being given";

const COMMANDS: [&str; 3] = ["/help", "/tools", "/quit"];

/// The terminal's side of a session.
struct PlainChat<'a> {
    handle: SessionHandle,
    host: &'a Host,
    settings: &'a HostSettings,
    out: &'a CliOutput,
    verbose: bool,
    /// Files for the first message.
    files: Vec<FileAttachment>,
    /// The open question, with the extent to which it was shown.
    question: Option<(u64, ApprovalRequest, ShownQuestion)>,
    open_calls: ShownCalls,
    is_busy: bool,
    is_streamed: bool,
    is_leaving: bool,
    /// Why the input cannot be read to its end.
    input_failure: Option<CommandFailure>,
}

pub(super) async fn run_plain_chat(
    flags: &ConfigFlags,
    args: &ChatArgs,
    observers: &CallObservers,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let settings = setup::read_settings(flags)?;
    let files = file_attachments::read_flag_files(
        &args.files,
        &file_attachments::search_folders(&settings),
    )?;
    let opened = setup::open_session(&settings, &SessionSelector::from(&args.session), out).await?;
    // A change that comes while the plugins are being loaded counts as one after it.
    let reloader = PluginReloader::beside_person(&settings);
    let consent = Arc::new(UnattendedConsent);
    // Lines from a pipe are answered at once. A person can wait and ask again.
    let compile_wait = if out.can_ask { CompileWait::Start } else { CompileWait::OneAnswer };
    let plugins = PluginsOfSession::all(compile_wait);
    let overrides = (&args.model).into();
    let SessionHost { host, config, model } =
        setup::open_session_host(&settings, &overrides, consent, plugins, observers, out).await?;
    let page = match phone::open_approval_page(args, &host, None, out).await {
        Ok(page) => page,
        Err(failure) => return setup::close_host(host, out).await.apply_to_result(Err(failure)),
    };
    let spec = SessionSpec {
        opened,
        config: &config,
        model: &model,
        answers_questions: true,
        receives_notices: true,
    };
    let first_input = args.prompt.as_deref();
    let session = run_session(&host, spec, &settings, files, first_input, observers, out);
    let report = |reload: &PluginReload| reload.print(&host, out);
    let chat_result = tokio::select! {
        chat_result = session => chat_result,
        never = reloader.keep_plugins_current(&host, flags, report) => match never {},
        never = phone::serve_approval_page(page) => match never {},
    };
    setup::close_host(host, out).await.apply_to_result(chat_result)
}

/// Runs the session until the user leaves. The caller closes the host, also after an error, so that
/// the last audit records are written.
async fn run_session(
    host: &Host,
    spec: SessionSpec<'_>,
    settings: &HostSettings,
    files: Vec<FileAttachment>,
    first_input: Option<&str>,
    observers: &CallObservers,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let prepared = host.prepare_session(spec)?;
    out.print_note(&format!(
        "{} · {} · /help for help, Ctrl-D to leave",
        prepared.parts.model.name(),
        format_count(host.tools().len(), "tool")
    ));
    let (mut session, mut events) = host.start_session(prepared)?;
    let timekeeper = host.start_timekeeper();
    let chat = PlainChat {
        handle: session.handle.clone(),
        host,
        settings,
        out,
        verbose: observers.verbose,
        files,
        question: None,
        open_calls: ShownCalls::default(),
        is_busy: false,
        is_streamed: false,
        is_leaving: false,
        input_failure: None,
    };
    let input_failure = chat.run_event_loop(&mut events, first_input).await;
    session.stop_listening().await;
    timekeeper.stop().await;
    drop(session);
    // Without a handle the session ends after its remaining work.
    while let Some(event) = events.recv().await {
        if let SessionEvent::Noticed { notice } = event {
            out.print_notice(&notice);
        }
    }
    input_failure.map_or(Ok(ExitStatus::Done), Err)
}

impl PlainChat<'_> {
    /// Runs until the user leaves. Returns why the input could not be read to its end, if so.
    async fn run_event_loop(
        mut self,
        events: &mut mpsc::Receiver<SessionEvent>,
        first_input: Option<&str>,
    ) -> Option<CommandFailure> {
        let mut lines = read_lines();
        let mut more_lines = true;
        let mut ctrl_c = interrupt::SignalListener::new(SignalKind::interrupt());
        let mut terminations = interrupt::TerminationListener::new();
        match first_input {
            Some(line) => self.handle_line(line).await,
            None => self.show_prompt(),
        }
        loop {
            // Input that was typed ahead or piped waits for the end of the current turn.
            let can_read_line = more_lines && (!self.is_busy || self.question.is_some());
            tokio::select! {
                event = events.recv() => match event {
                    Some(event) => {
                        if matches!(event, SessionEvent::ApprovalNeeded { .. }) && self.out.can_ask {
                            // Discard earlier input: it cannot be an answer to this question.
                            self.out.discard_typed_input();
                            while lines.try_recv().is_ok() {}
                        }
                        self.show_event(event).await;
                    }
                    None => return self.input_failure,
                },
                line = lines.recv(), if can_read_line => match line {
                    Some(Ok(line)) => {
                        let wants_more = |(_, request, asked): &(_, ApprovalRequest, ShownQuestion)| {
                            asked.must_show_rest(request, Some(&line))
                        };
                        if self.question.as_ref().is_some_and(wants_more) {
                            self.out.discard_typed_input();
                            while lines.try_recv().is_ok() {}
                        }
                        self.handle_line(&line).await;
                    }
                    ended => {
                        more_lines = false;
                        self.input_failure = ended.and_then(Result::err).map(input_failure);
                        self.leave_after_turn().await;
                    }
                },
                () = ctrl_c.recv() => self.handle_interrupt().await,
                () = terminations.wait(), if !self.is_leaving => {
                    self.is_leaving = true;
                    self.send(FrontEndCommand::Cancel).await;
                }
            }
            if self.is_leaving && !self.is_busy {
                return self.input_failure;
            }
        }
    }

    async fn handle_line(&mut self, line: &str) {
        if let Some((id, request, mut shown_question)) = self.question.take() {
            if shown_question.must_show_rest(&request, Some(line)) {
                shown_question.show_rest(&request, self.out);
                self.question = Some((id, request, shown_question));
                return;
            }
            let answer = consent::parse_answer(Some(line), request.rule.is_some());
            self.send(FrontEndCommand::ProvideConfirmation { id, answer }).await;
            if !self.is_busy {
                self.show_prompt();
            }
            return;
        }
        match line.trim() {
            "" => self.show_prompt(),
            "/quit" | "/exit" | "quit" | "exit" | "bye" => self.leave_after_turn().await,
            "/help" | "help" | "/?" | "?" => self.show_note(HELP),
            "/tools" => self.show_tools(),
            command if command.starts_with('/') => self.refuse_unknown_command(command),
            text => {
                self.is_busy = true;
                let attachments = std::mem::take(&mut self.files);
                let input = UserInputMessage { attachments, ..UserInputMessage::from(text) };
                self.send(FrontEndCommand::SubmitInput { input }).await;
            }
        }
    }

    /// Refuses a mistyped command, so that it never goes to the model.
    fn refuse_unknown_command(&self, command: &str) {
        let word = command.split_whitespace().next().unwrap_or(command);
        let foreign = slash::foreign_word_command(word.trim_start_matches('/'));
        let near = sallyport_policy::source::nearest_match(word, COMMANDS);
        let hint = match (near, foreign) {
            (Some(near), _) => format!("; did you mean {near}?"),
            (None, Some(command)) => format!("; {command}"),
            (None, None) => "; /help lists all".to_owned(),
        };
        self.show_note(&format!("there is no command {}{hint}", text::escape_line(word)));
    }

    fn show_tools(&self) {
        let tools = self.host.tools();
        let lines = tools.iter().map(|tool| {
            let head = tool.description.lines().next().unwrap_or_default();
            format!("{}  {}", tool.id, text::escape_excerpt(head, 80))
        });
        self.show_note(&lines.collect::<Vec<_>>().join("\n"));
    }

    fn show_note(&self, text: &str) {
        self.out.print_note(text);
        self.show_prompt();
    }

    async fn show_event(&mut self, event: SessionEvent) {
        self.open_calls.apply_event(&event);
        match event {
            SessionEvent::Delta(ReplyDelta::Text { text }) => {
                self.is_streamed = true;
                self.out.print_piece(&text);
            }
            SessionEvent::Delta(ReplyDelta::Reasoning { text }) => self.out.print_note_piece(&text),
            SessionEvent::Delta(ReplyDelta::LeftOut(what)) => {
                self.out.print_warning(&what.to_string())
            }
            SessionEvent::Delta(ReplyDelta::Retry { wait, reason, .. }) => {
                self.out.print_note(&call_display::retry_text(wait, &reason));
            }
            SessionEvent::MessageComplete { .. } if self.is_streamed => self.out.print_line(""),
            SessionEvent::CallFinished { call_id, tool, report } => {
                let line = self.open_calls.take_line(&call_id, &tool, &report);
                if !self.verbose {
                    self.out.print_note(&line);
                }
                if let Outcome::Denied(denial) = &report.outcome {
                    call_display::print_denial_fix(denial, self.out);
                }
            }
            SessionEvent::ApprovalNeeded { confirmation_id, request, .. } => {
                self.ask_question(confirmation_id, request).await;
            }
            SessionEvent::ApprovalClosed { confirmation_id } => {
                self.question.take_if(|(id, ..)| *id == confirmation_id);
            }
            SessionEvent::Notice(notice) => self.out.print_warning(&notice.to_string()),
            SessionEvent::Noticed { notice } => self.show_notice(&notice),
            SessionEvent::TurnEnded { reason, .. } => {
                run::print_turn_end(&reason, self.is_streamed, Some(self.settings), self.out);
                (self.is_busy, self.is_streamed) = (false, false);
                self.show_prompt();
            }
            _ => {}
        }
    }

    /// Shows a notice from a plugin. It starts a new line even after a prompt or a partial answer.
    fn show_notice(&self, notice: &services::PluginNotice) {
        if self.is_streamed || (self.out.can_ask && !self.is_busy) {
            self.out.print_note("");
        }
        self.out.print_notice(notice);
        if !self.is_busy {
            self.show_prompt();
        }
    }

    /// Asks only at a terminal, because a line from a pipe was written before the question.
    async fn ask_question(&mut self, id: u64, request: ApprovalRequest) {
        if self.out.can_ask && !request.needs_input() {
            let shown_question = ShownQuestion::show_question(&request, self.out);
            if self.out.is_stderr_intact() {
                self.question = Some((id, request, shown_question));
                return;
            }
        }
        self.send(FrontEndCommand::ProvideConfirmation { id, answer: ApprovalAnswer::Nobody })
            .await;
    }

    async fn handle_interrupt(&mut self) {
        if self.is_busy {
            self.send(FrontEndCommand::Cancel).await;
        } else {
            self.show_note("\n(Ctrl-D or /quit to leave)");
        }
    }

    /// Leaves after the current turn, so that all piped questions are answered.
    async fn leave_after_turn(&mut self) {
        self.is_leaving = true;
        if self.question.is_some() {
            self.send(FrontEndCommand::Cancel).await;
        }
    }

    /// Sends a command. Errors are ignored: the last event reports the end of the session.
    async fn send(&self, command: FrontEndCommand) {
        let _ = self.handle.send(command).await;
    }

    fn show_prompt(&self) {
        if self.out.can_ask && !self.is_leaving {
            self.out.print_note_piece("> ");
        }
    }
}

/// The failure of a program whose input cannot be read to its end.
fn input_failure(error: io::Error) -> CommandFailure {
    let message = match error.kind() {
        io::ErrorKind::InvalidData => {
            "a line of standard input is no UTF-8 text; it and the lines after it are left out"
                .to_owned()
        }
        _ => format!("standard input cannot be read: {error}"),
    };
    CommandFailure::new(ExitStatus::Usage, message)
}

/// Reads lines in a separate thread, because reading blocks. Ends with the input, after an error or
/// at a line that is no text: what follows may belong to it.
fn read_lines() -> mpsc::Receiver<io::Result<String>> {
    let (sender, lines) = mpsc::channel(LINES_WAITING_MAX);
    std::thread::spawn(move || {
        for line in io::stdin().lines() {
            let is_last = line.is_err();
            if sender.blocking_send(line).is_err() || is_last {
                return;
            }
        }
    });
    lines
}
