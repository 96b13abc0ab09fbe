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
    attached, compose,
    consent::{self, Asked},
    exit::{Exit, Failure},
    output::Output,
    run, show,
    watch::Watch,
};

/// Most lines that are read ahead.
const LINES_WAITING_MAX: usize = 16;

const HELP: &str = "\
/help     this list
/tools    the tools that the model can use
/quit     leave (so does Ctrl-D); Ctrl-C stops the answer that is being given";

const COMMANDS: [&str; 3] = ["/help", "/tools", "/quit"];

/// The terminal's side of a session.
struct Chat<'a> {
    handle: SessionHandle,
    registry: &'a Registry,
    settings: &'a HostSettings,
    out: &'a Output,
    verbose: bool,
    /// Files for the first message.
    files: Vec<FileAttachment>,
    /// The open question, with the extent to which it was shown.
    question: Option<(u64, ApprovalRequest, Asked)>,
    busy: bool,
    streamed: bool,
    leaving: bool,
}

pub(super) async fn chat(
    flags: &ConfigFlags,
    args: &ChatArgs,
    watch: &Watch,
    out: &Output,
) -> Result<Exit, Failure> {
    let settings = compose::settings(flags)?;
    let files = attached::named(&args.files, &attached::disk(&settings))?;
    let talk = compose::open_session(&settings, &SessionSelector::from(&args.session), out)?;
    let voice = compose::model(&settings, out)?;
    let (desk, approvals) = session::approval::approval_channel();
    let tools =
        compose::open_host(&settings, Arc::new(desk), PluginSelection::All, watch, out).await?;
    compose::show_problems(tools.registry(), out);
    let config = SessionConfig::from_settings(&(&args.model).into(), &settings, &tools).await?;
    let parts = tools.session_parts(talk, &config, &voice, approvals)?;
    out.note(&format!(
        "{} · {} tools · /help for help, Ctrl-D to leave",
        parts.model.name(),
        tools.tools().len()
    ));
    let (mut session, mut events) = tools.begin_session(parts, true)?;
    let timekeeper = tools.start_timekeeper();
    let chat = Chat {
        handle: session.handle.clone(),
        registry: tools.registry(),
        settings: &settings,
        out,
        verbose: watch.verbose,
        files,
        question: None,
        busy: false,
        streamed: false,
        leaving: false,
    };
    chat.converse(&mut events).await;
    session.stop_listening().await;
    timekeeper.stop().await;
    drop(session);
    // Without a handle the session ends after its remaining work.
    while let Some(event) = events.recv().await {
        if let SessionEvent::Noticed { notice } = event {
            out.notice(&notice);
        }
    }
    compose::close(tools, out).await.end(Ok(Exit::Done))
}

impl Chat<'_> {
    async fn converse(mut self, events: &mut mpsc::Receiver<SessionEvent>) {
        let mut lines = read_lines();
        let mut more_lines = true;
        let mut terminated = pin!(compose::terminated());
        self.prompt();
        loop {
            // Input that was typed ahead or piped waits for the end of the current turn.
            let listening = more_lines && (!self.busy || self.question.is_some());
            tokio::select! {
                event = events.recv() => match event {
                    Some(event) => {
                        if matches!(event, SessionEvent::ApprovalNeeded { .. }) && self.out.can_ask {
                            // Discard earlier input: it cannot be an answer to this question.
                            self.out.forget_typed();
                            while lines.try_recv().is_ok() {}
                        }
                        self.show(event).await;
                    }
                    None => return,
                },
                line = lines.recv(), if listening => match line {
                    Some(line) => {
                        let wants_more = |(_, request, asked): &(_, ApprovalRequest, Asked)| {
                            asked.wants_more(request, Some(&line))
                        };
                        if self.question.as_ref().is_some_and(wants_more) {
                            self.out.forget_typed();
                            while lines.try_recv().is_ok() {}
                        }
                        self.take(&line).await;
                    }
                    None => { more_lines = false; self.leave().await; }
                },
                _ = tokio::signal::ctrl_c() => self.interrupt().await,
                () = &mut terminated, if !self.leaving => {
                    self.leaving = true;
                    self.send(FrontEndCommand::Cancel).await;
                }
            }
            if self.leaving && !self.busy {
                return;
            }
        }
    }

    async fn take(&mut self, line: &str) {
        if let Some((id, request, mut asked)) = self.question.take() {
            if asked.wants_more(&request, Some(line)) {
                asked.show_rest(&request, self.out);
                self.question = Some((id, request, asked));
                return;
            }
            let answer = consent::parse(Some(line), request.rule.is_some());
            self.send(FrontEndCommand::ProvideConfirmation { id, answer }).await;
            if !self.busy {
                self.prompt();
            }
            return;
        }
        match line.trim() {
            "" => self.prompt(),
            "/quit" | "/exit" => self.leave().await,
            "/help" => self.aside(HELP),
            "/tools" => self.tools(),
            command if command.starts_with('/') => self.unknown(command),
            text => {
                self.busy = true;
                let attachments = std::mem::take(&mut self.files);
                let input = UserInputMessage { attachments, ..UserInputMessage::from(text) };
                self.send(FrontEndCommand::SubmitInput { input }).await;
            }
        }
    }

    /// Refuses a mistyped command, so that it never goes to the model.
    fn unknown(&self, command: &str) {
        let near = sallyport_policy::source::nearest_match(command, COMMANDS);
        let hint = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        self.aside(&format!("there is no command {}{hint}", text::escape_line(command)));
    }

    fn tools(&self) {
        let lines =
            self.registry.tools().iter().map(|tool| {
                format!("{}  {}", tool.id, text::escape_excerpt(&tool.description, 80))
            });
        self.aside(&lines.collect::<Vec<_>>().join("\n"));
    }

    fn aside(&self, text: &str) {
        self.out.note(text);
        self.prompt();
    }

    async fn show(&mut self, event: SessionEvent) {
        match event {
            SessionEvent::Delta(ReplyDelta::Text(text)) => {
                self.streamed = true;
                self.out.piece(&text);
            }
            SessionEvent::Delta(ReplyDelta::Reasoning(text)) => self.out.aside(&text),
            SessionEvent::Delta(ReplyDelta::LeftOut(what)) => self.out.warn(&what.to_string()),
            SessionEvent::Delta(ReplyDelta::Retry { wait, reason, .. }) => {
                self.out.note(&show::retry(wait, &reason));
            }
            SessionEvent::MessageComplete { .. } if self.streamed => self.out.line(""),
            SessionEvent::CallFinished { tool, report, .. } => {
                if !self.verbose {
                    self.out.note(&format!("· {tool} {}", show::ending(&report)));
                }
                if let Outcome::Denied(denial) = &report.outcome {
                    show::fix(denial, self.settings.policy.user_file(), self.out);
                }
            }
            SessionEvent::ApprovalNeeded { confirmation_id, request, .. } => {
                self.ask(confirmation_id, request).await;
            }
            SessionEvent::ApprovalClosed { confirmation_id } => {
                self.question.take_if(|(id, ..)| *id == confirmation_id);
            }
            SessionEvent::Notice(notice) => self.out.warn(&notice.to_string()),
            SessionEvent::Noticed { notice } => self.announce(&notice),
            SessionEvent::TurnEnded { reason, .. } => {
                run::print_end(&reason, self.streamed, Some(self.settings), self.out);
                (self.busy, self.streamed) = (false, false);
                self.prompt();
            }
            _ => {}
        }
    }

    /// Shows a notice from a plugin. It starts a new line even after a prompt or a partial answer.
    fn announce(&self, notice: &services::PluginNotice) {
        if self.streamed || (self.out.can_ask && !self.busy) {
            self.out.note("");
        }
        self.out.notice(notice);
        if !self.busy {
            self.prompt();
        }
    }

    /// Asks only at a terminal, because a line from a pipe was written before the question.
    async fn ask(&mut self, id: u64, request: ApprovalRequest) {
        if self.out.can_ask {
            let asked = Asked::about(&request, self.out);
            if self.out.is_seen() {
                self.question = Some((id, request, asked));
                return;
            }
        }
        self.send(FrontEndCommand::ProvideConfirmation { id, answer: ApprovalAnswer::Nobody })
            .await;
    }

    async fn interrupt(&mut self) {
        if self.busy {
            self.send(FrontEndCommand::Cancel).await;
        } else {
            self.aside("\n(Ctrl-D or /quit to leave)");
        }
    }

    /// Leaves after the current turn, so that all piped questions are answered.
    async fn leave(&mut self) {
        self.leaving = true;
        if self.question.is_some() {
            self.send(FrontEndCommand::Cancel).await;
        }
    }

    /// Sends a command. Errors are ignored: the last event reports the end of the session.
    async fn send(&self, command: FrontEndCommand) {
        let _ = self.handle.send(command).await;
    }

    fn prompt(&self) {
        if self.out.can_ask && !self.leaving {
            self.out.aside("> ");
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
