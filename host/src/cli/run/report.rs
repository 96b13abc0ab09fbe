//! What is told of a turn, in the form that was asked for.
//!
//! Standard output carries the answer, and in the forms for programs the events; standard error
//! carries what a person may want to know in any form.

use std::{mem, time::Duration};

use sallyport_contract::{Denial, Outcome};
use sallyport_model::{Delta, ModelError};
use sallyport_runtime::config::{Chosen, Settings};
use sallyport_session::{Event, Notice, TurnEnd, TurnUsage};
use serde::Serialize;
use serde_json::Value;

use super::args::{RunArgs, RunFormat};
use crate::cli::{
    events::{self, FinishedCall, Line, Summary, Told},
    exit::{Exit, Failure},
    output::Output,
    show,
};

/// Stands behind an answer that never came to its end.
const INCOMPLETE: &str = "[incomplete: the answer broke off here]";

/// Tells what happens, and remembers of it what the end depends on.
pub(super) struct Report<'a> {
    args: &'a RunArgs,
    out: &'a Output,
    verbose: bool,
    streamed: bool,
    /// What has arrived of the answer that is being written.
    arrived: String,
    /// Whether the last line says that a provider is waited for.
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

    /// Tells something that is no event of the session itself.
    pub(super) fn tell(&mut self, told: Told) {
        match self.args.output {
            RunFormat::Text => {}
            RunFormat::Json => self.collect(told),
            RunFormat::Jsonl => self.out.json_line(&to_value(&Line::from(told))),
        }
    }

    /// Tells what happens.
    pub(super) fn take(&mut self, event: &Event) {
        self.remember(event);
        self.show(event);
        if let Some(told) = events::told(event) {
            self.tell(told);
        }
    }

    /// Tells how the turn ended, and returns the code to end with.
    pub(super) fn end(
        &mut self,
        session_id: &str,
        end: &TurnEnd,
        usage: &TurnUsage,
        settings: Option<&Settings>,
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

    /// Tells that there is no turn, or no end of it. The words for the person come from elsewhere.
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

    fn remember(&mut self, event: &Event) {
        match event {
            Event::CallFinished { report, .. } => {
                self.any_failed |= !matches!(report.outcome, Outcome::Completed(_));
                let Outcome::Denied(denial) = &report.outcome else { return };
                self.nobody_to_ask |= denial.nobody_to_ask;
                // Two calls that miss the same grant are helped by the same text.
                if !self.denials.iter().any(|seen| seen.fix == denial.fix) {
                    self.denials.push(denial.clone());
                }
            }
            Event::Delta(Delta::Text(text)) => self.arrived.push_str(text),
            Event::MessageComplete { .. } => self.arrived.clear(),
            Event::Notice(
                Notice::AnswerEmpty
                | Notice::AnswerWithheld
                | Notice::AnswerEnded { is_empty: true, .. },
            ) => self.no_answer = true,
            _ => {}
        }
    }

    /// A wait is shown while it lasts where somebody watches, and kept where nobody does.
    fn show_wait(&mut self, wait: Duration, reason: &str) {
        let words = show::retry(wait, reason);
        self.waits = self.out.stderr_is_terminal;
        match self.waits {
            true => self.out.status(Some(&words)),
            false => self.out.note(&words),
        }
    }

    fn show(&mut self, event: &Event) {
        if mem::take(&mut self.waits) {
            self.out.status(None);
        }
        match event {
            Event::Delta(Delta::Text(text)) if self.streams() => {
                self.streamed = true;
                self.out.piece(text);
            }
            Event::MessageComplete { .. } if self.streamed => self.out.line(""),
            Event::Delta(Delta::LeftOut(what)) => self.out.warn(&what.to_string()),
            Event::Delta(Delta::Retry { wait, reason, .. }) => self.show_wait(*wait, reason),
            Event::CallFinished { tool, report, .. }
                if self.out.stderr_is_terminal && !self.verbose =>
            {
                self.out.note(&format!("· {tool} {}", show::ending(report)));
            }
            Event::Notice(notice) => self.out.warn(&notice.to_string()),
            Event::Noticed { notice } => self.out.notice(notice),
            _ => {}
        }
    }

    /// A person who watches sees words as they come; a program gets whole answers.
    fn streams(&self) -> bool {
        self.prints_answer() && !self.args.emit_needed_grants && self.out.stdout_is_terminal
    }

    /// Whether standard output is for the answer alone.
    fn prints_answer(&self) -> bool {
        self.args.output == RunFormat::Text
    }

    fn show_end(&self, end: &TurnEnd, settings: Option<&Settings>) {
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

    /// What had arrived of an answer that never came to its end belongs to the person all the same,
    /// and says of itself that it is not all.
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

/// What a plugin that stands for the model was denied.
fn denial_of_model(end: &TurnEnd) -> Option<Denial> {
    match end {
        TurnEnd::ModelFailed(ModelError::Denied { provider, message, fix, nobody_to_ask }) => {
            let (what, why) = (provider.clone(), message.clone());
            Some(Denial { what, why, fix: fix.clone(), nobody_to_ask: *nobody_to_ask })
        }
        _ => None,
    }
}

/// Prints how a turn ended. What was streamed has been printed already. The settings say which model
/// was chosen, as far as there was a choice.
pub(in super::super) fn print_end(
    end: &TurnEnd,
    streamed: bool,
    settings: Option<&Settings>,
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

/// What can be done about a model that gave no answer. Whoever chose it knows which variable or
/// which line of the configuration it is about.
fn advice(error: &ModelError, asked: Option<&Chosen>) -> String {
    match (error, asked) {
        (ModelError::Credentials { .. }, Some(asked)) => asked.key_advice(),
        (ModelError::Unreachable { .. }, Some(asked)) => asked.address_advice(),
        _ => error.hint().into_owned(),
    }
}
