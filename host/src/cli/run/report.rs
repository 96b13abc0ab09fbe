//! Reports a turn in the requested format.
//!
//! Standard output carries the answer, or the events in the formats for programs. Standard error
//! carries messages for the user in any format.

use std::{mem, time::Duration};

use sallyport_contract::{Denial, Outcome};
use sallyport_model::{ModelError, ReplyDelta};
use sallyport_runtime::config::{ChosenModel, HostSettings};
use sallyport_session::{SessionEvent, SessionNotice, TurnEnd, TurnUsage};
use serde::Serialize;
use serde_json::Value;

use super::args::{RunArgs, RunFormat};
use crate::cli::{
    events::{self, FinishedCall, Line, Summary, Told},
    exit::{Exit, Failure},
    output::Output,
    show,
};

/// Printed after an answer that is incomplete.
const INCOMPLETE: &str = "[incomplete: the answer broke off here]";

/// Reports events, and keeps what the end of the turn depends on.
pub(super) struct Report<'a> {
    args: &'a RunArgs,
    out: &'a Output,
    verbose: bool,
    streamed: bool,
    /// The received part of the current answer.
    arrived: String,
    /// Whether the status line shows a wait for the provider.
    waits: bool,
    denials: Vec<Denial>,
    nobody_to_ask: bool,
    any_failed: bool,
    no_answer: bool,
    calls: Vec<FinishedCall>,
    notices: Vec<String>,
}

impl<'a> Report<'a> {
    pub(super) fn new(args: &'a RunArgs, verbose: bool, out: &'a Output) -> Self {
        Self {
            args,
            out,
            verbose,
            streamed: false,
            arrived: String::new(),
            waits: false,
            denials: Vec::new(),
            nobody_to_ask: false,
            any_failed: false,
            no_answer: false,
            calls: Vec::new(),
            notices: Vec::new(),
        }
    }

    /// Reports something that is not an event of the session itself.
    pub(super) fn tell(&mut self, told: Told) {
        match self.args.output {
            RunFormat::Text => {}
            RunFormat::Json => self.collect(told),
            RunFormat::Jsonl => self.out.json_line(&to_value(&Line::from(told))),
        }
    }

    /// Reports an event of the session.
    pub(super) fn take(&mut self, event: &SessionEvent) {
        self.remember(event);
        self.show(event);
        if let Some(told) = events::told(event) {
            self.tell(told);
        }
    }

    /// Reports the end of the turn, and returns the exit code.
    pub(super) fn end(
        &mut self,
        session_id: &str,
        end: &TurnEnd,
        usage: &TurnUsage,
        settings: Option<&HostSettings>,
    ) -> Exit {
        let exit = self.exit(end);
        if mem::take(&mut self.waits) {
            self.out.status(None);
        }
        if self.args.emit_needed_grants {
            self.denials.extend(denial_of_model(end));
        }
        self.show_end(end, settings);
        self.last(events::ending(session_id, end, usage, exit).with_arrived(&self.arrived));
        exit
    }

    /// Reports that the turn did not start or did not end. The caller prints the message for the
    /// user.
    pub(super) fn fail(&mut self, failure: &Failure) {
        self.last(failure.into());
    }

    fn last(&mut self, told: Told) {
        match self.args.output {
            RunFormat::Text => {}
            RunFormat::Json => {
                let (calls, notices) = (mem::take(&mut self.calls), mem::take(&mut self.notices));
                self.out.json(&to_value(&Summary::new(told, calls, notices)));
            }
            RunFormat::Jsonl => self.out.json_line(&to_value(&Line::from(told))),
        }
    }

    fn collect(&mut self, told: Told) {
        match told {
            Told::CallFinished(call) => self.calls.push(call),
            Told::Notice { message } => self.notices.push(message),
            Told::Notified { plugin, text, .. } => self.notices.push(format!("{plugin}: {text}")),
            _ => {}
        }
    }

    fn remember(&mut self, event: &SessionEvent) {
        match event {
            SessionEvent::CallFinished { report, .. } => {
                self.any_failed |= !matches!(report.outcome, Outcome::Completed(_));
                let Outcome::Denied(denial) = &report.outcome else { return };
                self.nobody_to_ask |= denial.nobody_to_ask;
                // Two calls that lack the same grant have the same fix.
                if !self.denials.iter().any(|seen| seen.fix == denial.fix) {
                    self.denials.push(denial.clone());
                }
            }
            SessionEvent::Delta(ReplyDelta::Text(text)) => self.arrived.push_str(text),
            SessionEvent::MessageComplete { .. } => self.arrived.clear(),
            SessionEvent::Notice(
                SessionNotice::AnswerEmpty
                | SessionNotice::AnswerWithheld
                | SessionNotice::AnswerEnded { is_empty: true, .. },
            ) => self.no_answer = true,
            _ => {}
        }
    }

    /// Shows a wait: as a status at a terminal, and as a line elsewhere.
    fn show_wait(&mut self, wait: Duration, reason: &str) {
        let words = show::retry(wait, reason);
        self.waits = self.out.stderr_is_terminal;
        match self.waits {
            true => self.out.status(Some(&words)),
            false => self.out.note(&words),
        }
    }

    fn show(&mut self, event: &SessionEvent) {
        if mem::take(&mut self.waits) {
            self.out.status(None);
        }
        match event {
            SessionEvent::Delta(ReplyDelta::Text(text)) if self.streams() => {
                self.streamed = true;
                self.out.piece(text);
            }
            SessionEvent::MessageComplete { .. } if self.streamed => self.out.line(""),
            SessionEvent::Delta(ReplyDelta::LeftOut(what)) => self.out.warn(&what.to_string()),
            SessionEvent::Delta(ReplyDelta::Retry { wait, reason, .. }) => {
                self.show_wait(*wait, reason)
            }
            SessionEvent::CallFinished { tool, report, .. }
                if self.out.stderr_is_terminal && !self.verbose =>
            {
                self.out.note(&format!("· {tool} {}", show::ending(report)));
            }
            SessionEvent::Notice(notice) => self.out.warn(&notice.to_string()),
            SessionEvent::Noticed { notice } => self.out.notice(notice),
            _ => {}
        }
    }

    /// Whether the answer is printed as it arrives. Programs get whole answers.
    fn streams(&self) -> bool {
        self.prints_answer() && !self.args.emit_needed_grants && self.out.stdout_is_terminal
    }

    /// Whether standard output is only for the answer.
    fn prints_answer(&self) -> bool {
        self.args.output == RunFormat::Text
    }

    fn show_end(&self, end: &TurnEnd, settings: Option<&HostSettings>) {
        if self.args.emit_needed_grants && !self.denials.is_empty() {
            show::needed(&self.denials, self.out);
            return;
        }
        self.show_arrived(end);
        match end {
            TurnEnd::Answered { .. } | TurnEnd::Spoken { .. } if !self.prints_answer() => {}
            end => {
                print_end(end, self.streamed, settings, self.out);
            }
        }
        if let Some(settings) = settings {
            let file = settings.policy.user_file();
            self.denials.iter().for_each(|denial| show::fix(denial, file, self.out));
        }
    }

    /// Prints the received part of an incomplete answer, with a mark.
    fn show_arrived(&self, end: &TurnEnd) {
        let is_answer = matches!(end, TurnEnd::Answered { .. } | TurnEnd::Spoken { .. });
        if is_answer || self.arrived.is_empty() || !self.prints_answer() {
            return;
        }
        match self.streamed {
            true => self.out.line(""),
            false => self.out.answer(&self.arrived),
        }
        self.out.line(INCOMPLETE);
    }

    fn exit(&self, end: &TurnEnd) -> Exit {
        match Exit::of_turn(end) {
            Exit::Done if self.no_answer => Exit::Failed,
            Exit::Done if self.nobody_to_ask => Exit::NobodyToAsk,
            Exit::Done if self.any_failed && self.args.fail_on_tool_error => Exit::ToolFailed,
            exit => exit,
        }
    }
}

fn to_value(told: &impl Serialize) -> Value {
    serde_json::to_value(told).expect("texts, numbers and JSON can always be written")
}

/// Returns the denial of a provider plugin.
fn denial_of_model(end: &TurnEnd) -> Option<Denial> {
    match end {
        TurnEnd::ModelFailed(ModelError::Denied { provider, message, fix, nobody_to_ask }) => {
            let (what, why) = (provider.clone(), message.clone());
            Some(Denial { what, why, fix: fix.clone(), nobody_to_ask: *nobody_to_ask })
        }
        _ => None,
    }
}

/// Prints the end of a turn, without text that was already streamed.
///
/// The settings are used for hints about the selected model.
pub(in super::super) fn print_end(
    end: &TurnEnd,
    streamed: bool,
    settings: Option<&HostSettings>,
    out: &Output,
) {
    match end {
        TurnEnd::Answered { .. } if streamed => {}
        TurnEnd::Answered { text } | TurnEnd::Spoken { text } => out.answer(text),
        TurnEnd::ModelFailed(error) => {
            out.error(&error.to_string());
            match (error, settings) {
                (ModelError::Denied { fix: Some(fix), .. }, Some(settings)) => {
                    show::lifted_by(fix, settings.policy.user_file(), out);
                }
                _ => out.hint(&advice(error, settings.map(|settings| &settings.chosen))),
            }
        }
        TurnEnd::BudgetReached { what } => out.error(&format!("stopped: {what}")),
        TurnEnd::Cancelled => out.note("cancelled"),
        TurnEnd::InputRefused(error) => {
            out.error(&error.to_string());
            out.hint(error.hint());
        }
    }
}

/// Returns a hint for a model that returned no answer. The selected model adds the variable or the
/// configuration line in question.
fn advice(error: &ModelError, asked: Option<&ChosenModel>) -> String {
    match (error, asked) {
        (ModelError::Credentials { .. }, Some(asked)) => asked.key_advice(),
        (ModelError::Unreachable { .. }, Some(asked)) => asked.address_advice(),
        _ => error.hint().into_owned(),
    }
}
