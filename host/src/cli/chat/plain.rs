//! A session line by line, for pipes and for terminals without escape sequences.
//!
//! Reading a terminal blocks, so a separate thread reads the lines. A line is either input or the
//! answer to a question, depending on what the session waits for.

use std::{pin::pin, sync::Arc};

use sallyport_contract::{ApprovalAnswer, ApprovalRequest, Outcome, Toolbox, services, text};
use sallyport_model::{FileAttachment, ReplyDelta, UserInputMessage};
use sallyport_runtime::{
    config::{ConfigFlags, HostSettings},
    registry::{PluginSelection, Registry},
    session::{SessionConfig, SessionSelector},
};
use sallyport_session::{self as session, FrontEndCommand, SessionEvent, SessionHandle};
use tokio::sync::mpsc;

use crate::cli::{
    args::ChatArgs,
    call_display,
    consent::{self, ShownQuestion},
    exit::{CommandFailure, ExitStatus},
    file_attachments,
    observers::CallObservers,
    output::CliOutput,
    run, setup,
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
    registry: &'a Registry,
    settings: &'a HostSettings,
    out: &'a CliOutput,
    verbose: bool,
    /// Files for the first message.
    files: Vec<FileAttachment>,
    /// The open question, with the extent to which it was shown.
    question: Option<(u64, ApprovalRequest, ShownQuestion)>,
    is_busy: bool,
    is_streamed: bool,
    is_leaving: bool,
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
    let opened_session =
        setup::open_session(&settings, &SessionSelector::from(&args.session), out)?;
    let model_handle = setup::prepare_model(&settings, out)?;
    let (approval_sender, approvals) = session::approval::approval_channel();
    let host = setup::open_host(
        &settings,
        Arc::new(approval_sender),
        PluginSelection::All,
        observers,
        out,
    )
    .await?;
    setup::print_load_problems(host.registry(), out);
    let config = SessionConfig::from_settings(&(&args.model).into(), &settings, &host).await?;
    let parts = host.session_parts(opened_session, &config, &model_handle, approvals)?;
    out.print_note(&format!(
        "{} · {} tools · /help for help, Ctrl-D to leave",
        parts.model.name(),
        host.tools().len()
    ));
    let (mut session, mut events) = host.begin_session(parts, true)?;
    let timekeeper = host.start_timekeeper();
    let chat = PlainChat {
        handle: session.handle.clone(),
        registry: host.registry(),
        settings: &settings,
        out,
        verbose: observers.verbose,
        files,
        question: None,
        is_busy: false,
        is_streamed: false,
        is_leaving: false,
    };
    chat.run_event_loop(&mut events).await;
    session.stop_listening().await;
    timekeeper.stop().await;
    drop(session);
    // Without a handle the session ends after its remaining work.
    while let Some(event) = events.recv().await {
        if let SessionEvent::Noticed { notice } = event {
            out.print_notice(&notice);
        }
    }
    setup::close_host(host, out).await.apply_to_result(Ok(ExitStatus::Done))
}

impl PlainChat<'_> {
    async fn run_event_loop(mut self, events: &mut mpsc::Receiver<SessionEvent>) {
        let mut lines = read_lines();
        let mut more_lines = true;
        let mut terminated = pin!(setup::wait_for_termination());
        self.show_prompt();
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
                    None => return,
                },
                line = lines.recv(), if can_read_line => match line {
                    Some(line) => {
                        let wants_more = |(_, request, asked): &(_, ApprovalRequest, ShownQuestion)| {
                            asked.must_show_rest(request, Some(&line))
                        };
                        if self.question.as_ref().is_some_and(wants_more) {
                            self.out.discard_typed_input();
                            while lines.try_recv().is_ok() {}
                        }
                        self.handle_line(&line).await;
                    }
                    None => { more_lines = false; self.leave_after_turn().await; }
                },
                _ = tokio::signal::ctrl_c() => self.handle_interrupt().await,
                () = &mut terminated, if !self.is_leaving => {
                    self.is_leaving = true;
                    self.send(FrontEndCommand::Cancel).await;
                }
            }
            if self.is_leaving && !self.is_busy {
                return;
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
            "/quit" | "/exit" => self.leave_after_turn().await,
            "/help" => self.show_note(HELP),
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
        let near = sallyport_policy::source::nearest_match(command, COMMANDS);
        let hint = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        self.show_note(&format!("there is no command {}{hint}", text::escape_line(command)));
    }

    fn show_tools(&self) {
        let lines =
            self.registry.tools().iter().map(|tool| {
                format!("{}  {}", tool.id, text::escape_excerpt(&tool.description, 80))
            });
        self.show_note(&lines.collect::<Vec<_>>().join("\n"));
    }

    fn show_note(&self, text: &str) {
        self.out.print_note(text);
        self.show_prompt();
    }

    async fn show_event(&mut self, event: SessionEvent) {
        match event {
            SessionEvent::Delta(ReplyDelta::Text(text)) => {
                self.is_streamed = true;
                self.out.print_piece(&text);
            }
            SessionEvent::Delta(ReplyDelta::Reasoning(text)) => self.out.print_note_piece(&text),
            SessionEvent::Delta(ReplyDelta::LeftOut(what)) => {
                self.out.print_warning(&what.to_string())
            }
            SessionEvent::Delta(ReplyDelta::Retry { wait, reason, .. }) => {
                self.out.print_note(&call_display::retry_text(wait, &reason));
            }
            SessionEvent::MessageComplete { .. } if self.is_streamed => self.out.print_line(""),
            SessionEvent::CallFinished { tool, report, .. } => {
                if !self.verbose {
                    self.out
                        .print_note(&format!("· {tool} {}", call_display::call_end_text(&report)));
                }
                if let Outcome::Denied(denial) = &report.outcome {
                    call_display::print_denial_fix(
                        denial,
                        self.settings.policy.user_file(),
                        self.out,
                    );
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
        if self.out.can_ask {
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

fn read_lines() -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(LINES_WAITING_MAX);
    std::thread::spawn(move || {
        for line in std::io::stdin().lines() {
            let Ok(line) = line else { return };
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}
