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
    call_display,
    call_lines::ShownCalls,
    events::{self, JsonEventLine, JsonFinishedCall, JsonRunResult, ProgramEvent},
    exit::{CommandFailure, ExitStatus},
    output::CliOutput,
};

/// Printed after an answer that is incomplete.
const INCOMPLETE: &str = "[incomplete: the answer broke off here]";

/// Reports events, and keeps what the end of the turn depends on.
pub(super) struct RunReport<'a> {
    args: &'a RunArgs,
    out: &'a CliOutput,
    verbose: bool,
    is_streamed: bool,
    /// The received part of the current answer.
    partial_answer: String,
    /// Whether the status line shows a wait for the provider.
    is_wait_shown: bool,
    open_calls: ShownCalls,
    denials: Vec<Denial>,
    nobody_to_ask: bool,
    any_failed: bool,
    no_answer: bool,
    calls: Vec<JsonFinishedCall>,
    notices: Vec<String>,
}

impl<'a> RunReport<'a> {
    pub(super) fn new(args: &'a RunArgs, verbose: bool, out: &'a CliOutput) -> Self {
        Self {
            args,
            out,
            verbose,
            is_streamed: false,
            partial_answer: String::new(),
            is_wait_shown: false,
            open_calls: ShownCalls::default(),
            denials: Vec::new(),
            nobody_to_ask: false,
            any_failed: false,
            no_answer: false,
            calls: Vec::new(),
            notices: Vec::new(),
        }
    }

    /// Reports an event of the program.
    pub(super) fn report_program_event(&self, event: ProgramEvent) {
        if self.args.output == RunFormat::Jsonl {
            self.out.print_json_line(&to_json_value(&JsonEventLine::from(event)));
        }
    }

    /// Reports an event of the session.
    pub(super) fn report_event(&mut self, event: &SessionEvent) {
        self.track_event(event);
        self.open_calls.apply_event(event);
        self.show_event(event);
        match self.args.output {
            RunFormat::Text => {}
            RunFormat::Json => self.collect_event(event),
            RunFormat::Jsonl => {
                self.out.print_json_line(&to_json_value(&JsonEventLine::from_event(event)))
            }
        }
    }

    /// Reports the end of the turn, and returns the exit code.
    pub(super) fn report_end(
        &mut self,
        session_id: &str,
        end: &TurnEnd,
        usage: &TurnUsage,
        settings: Option<&HostSettings>,
    ) -> ExitStatus {
        let exit = self.exit_status(end);
        if mem::take(&mut self.is_wait_shown) {
            self.out.set_status(None);
        }
        if self.args.emit_needed_grants {
            self.denials.extend(model_denial(end));
        }
        self.show_end(end, settings);
        let partial_text = &self.partial_answer;
        let last = JsonEventLine::from_turn_end(session_id, (end, usage), exit, partial_text);
        self.report_last_event(last);
        exit
    }

    /// Reports that the turn did not start or did not end. The caller prints the message for the
    /// user.
    pub(super) fn report_failure(&mut self, failure: &CommandFailure) {
        self.report_last_event(failure.into());
    }

    fn report_last_event(&mut self, last: JsonEventLine<'static>) {
        match self.args.output {
            RunFormat::Text => {}
            RunFormat::Json => {
                let (calls, notices) = (mem::take(&mut self.calls), mem::take(&mut self.notices));
                self.out.print_json(&to_json_value(&JsonRunResult { last, calls, notices }));
            }
            RunFormat::Jsonl => self.out.print_json_line(&to_json_value(&last)),
        }
    }

    fn collect_event(&mut self, event: &SessionEvent) {
        match event {
            SessionEvent::CallFinished { call_id, tool, report } => {
                self.calls.push(JsonFinishedCall {
                    call_id: call_id.clone(),
                    tool: tool.clone(),
                    result: report.outcome.to_model_value(),
                    report: report.clone(),
                })
            }
            SessionEvent::Noticed { notice } => {
                self.notices.push(format!("{}: {}", notice.plugin, notice.text))
            }
            event => self.notices.extend(events::event_message(event)),
        }
    }

    fn track_event(&mut self, event: &SessionEvent) {
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
            SessionEvent::Delta(ReplyDelta::Text { text }) => self.partial_answer.push_str(text),
            SessionEvent::MessageComplete { .. } => self.partial_answer.clear(),
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
        let words = call_display::retry_text(wait, reason);
        self.is_wait_shown = self.out.stderr_is_terminal;
        match self.is_wait_shown {
            true => self.out.set_status(Some(&words)),
            false => self.out.print_note(&words),
        }
    }

    fn show_event(&mut self, event: &SessionEvent) {
        if mem::take(&mut self.is_wait_shown) {
            self.out.set_status(None);
        }
        match event {
            SessionEvent::Delta(ReplyDelta::Text { text }) if self.is_streaming() => {
                self.is_streamed = true;
                self.out.print_piece(text);
            }
            SessionEvent::MessageComplete { .. } if self.is_streamed => self.out.print_line(""),
            SessionEvent::Delta(ReplyDelta::LeftOut(what)) => {
                self.out.print_warning(&what.to_string())
            }
            SessionEvent::Delta(ReplyDelta::Retry { wait, reason, .. }) => {
                self.show_wait(*wait, reason)
            }
            SessionEvent::CallFinished { call_id, tool, report }
                if self.out.stderr_is_terminal && !self.verbose =>
            {
                self.out.print_note(&self.open_calls.take_line(call_id, tool, report));
            }
            SessionEvent::Notice(notice) => self.out.print_warning(&notice.to_string()),
            SessionEvent::Noticed { notice } => self.out.print_notice(notice),
            _ => {}
        }
    }

    /// Whether the answer is printed as it arrives. Programs get whole answers.
    fn is_streaming(&self) -> bool {
        self.is_text_format() && !self.args.emit_needed_grants && self.out.stdout_is_terminal
    }

    /// Whether standard output is only for the answer.
    fn is_text_format(&self) -> bool {
        self.args.output == RunFormat::Text
    }

    fn show_end(&self, end: &TurnEnd, settings: Option<&HostSettings>) {
        if self.args.emit_needed_grants && !self.denials.is_empty() {
            call_display::print_needed_grants(&self.denials, self.out);
            return;
        }
        self.show_incomplete_answer(end);
        match end {
            TurnEnd::Answered { .. } | TurnEnd::Spoken { .. } if !self.is_text_format() => {}
            end => {
                print_turn_end(end, self.is_streamed, settings, self.out);
            }
        }
        self.denials.iter().for_each(|denial| call_display::print_denial_fix(denial, self.out));
    }

    /// Prints the received part of an incomplete answer, with a mark.
    fn show_incomplete_answer(&self, end: &TurnEnd) {
        let is_answer = matches!(end, TurnEnd::Answered { .. } | TurnEnd::Spoken { .. });
        if is_answer || self.partial_answer.is_empty() || !self.is_text_format() {
            return;
        }
        match self.is_streamed {
            true => self.out.print_line(""),
            false => self.out.print_answer(&self.partial_answer),
        }
        self.out.print_line(INCOMPLETE);
    }

    fn exit_status(&self, end: &TurnEnd) -> ExitStatus {
        match ExitStatus::from_turn_end(end) {
            ExitStatus::Done if self.no_answer => ExitStatus::Failed,
            ExitStatus::Done if self.nobody_to_ask => ExitStatus::NobodyToAsk,
            ExitStatus::Done if self.any_failed && self.args.fail_on_tool_error => {
                ExitStatus::ToolFailed
            }
            exit => exit,
        }
    }
}

fn to_json_value(json_event: &impl Serialize) -> Value {
    serde_json::to_value(json_event).expect("texts, numbers and JSON can always be written")
}

/// Returns the denial of a provider plugin.
fn model_denial(end: &TurnEnd) -> Option<Denial> {
    match end {
        TurnEnd::ModelFailed(ModelError::Denied { provider, message, fix, nobody_to_ask }) => {
            let denial = Denial::new(provider, message).with_fix(fix.as_deref().cloned());
            Some(Denial { nobody_to_ask: *nobody_to_ask, ..denial })
        }
        _ => None,
    }
}

/// Prints the end of a turn, without text that was already streamed.
///
/// The settings are used for hints about the selected model.
pub(in super::super) fn print_turn_end(
    end: &TurnEnd,
    is_streamed: bool,
    settings: Option<&HostSettings>,
    out: &CliOutput,
) {
    match end {
        TurnEnd::Answered { .. } if is_streamed => {}
        TurnEnd::Answered { text } | TurnEnd::Spoken { text } => out.print_answer(text),
        TurnEnd::ModelFailed(error) => {
            out.print_error(&error.to_string());
            match error {
                ModelError::Denied { fix: Some(fix), .. } => {
                    out.print_hint(&call_display::fix_text(fix));
                }
                _ => out.print_hint(&model_error_hint(
                    error,
                    settings.map(|settings| &settings.chosen_model),
                )),
            }
        }
        TurnEnd::BudgetReached { limit: what } => out.print_error(&format!("stopped: {what}")),
        TurnEnd::Cancelled => out.print_note("cancelled"),
        TurnEnd::InputRefused(error) => {
            out.print_error(&error.to_string());
            out.print_hint(error.hint());
        }
    }
}

/// Returns a hint for a model that returned no answer. The selected model adds the variable or the
/// configuration line in question.
fn model_error_hint(error: &ModelError, chosen_model: Option<&ChosenModel>) -> String {
    match (error, chosen_model) {
        (ModelError::Credentials { .. }, Some(chosen_model)) => chosen_model.key_advice(),
        (ModelError::Unreachable { .. }, Some(chosen_model)) => chosen_model.address_advice(),
        _ => error.hint().into_owned(),
    }
}
