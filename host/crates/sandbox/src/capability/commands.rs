//! `commands`: a UI controls its session. A command needs a seat at a session and the `ui` grant;
//! answering questions needs a grant of its own.

use std::sync::Arc;

use sallyport_contract::{
    ApprovalAnswer, Denial,
    services::{SubmissionError, UiSession},
};
use sallyport_policy::{Capability, Grant};

use super::input;
use crate::{
    bindings::v0_1::sallyport::plugin::commands::{Decision, Error, Host, UserInput},
    guest::Guest,
};

/// Longest reason for a denial, in bytes.
const REASON_BYTES_MAX: usize = 1024;

impl Host for Guest {
    fn submit_input(&mut self, input: UserInput) -> wasmtime::Result<Result<(), Error>> {
        Ok(self.submit_user_input(input))
    }

    fn provide_confirmation(
        &mut self,
        confirmation_id: String,
        decision: Decision,
    ) -> wasmtime::Result<Result<(), Error>> {
        Ok(self.answer_question(&confirmation_id, decision))
    }

    fn cancel(&mut self) -> wasmtime::Result<Result<(), Error>> {
        Ok(self.cancel_turn())
    }
}

impl Guest {
    fn submit_user_input(&mut self, input: UserInput) -> Result<(), Error> {
        let ui_session = self.require_seat("hand input to the session", |_| true)?;
        input::count_input(&mut self.counters, &self.run_context).map_err(Error::Full)?;
        input::check_no_files(input.attachments.len()).map_err(Error::Invalid)?;
        let text = input::check_and_redact(&input.text, &self.run_context.authorizer().redactor())
            .map_err(Error::Invalid)?;
        let bytes = text.len();
        ui_session.submit_input(text).map_err(convert_seat_error)?;
        self.run_context.effect_log.record_use(Capability::Ui, format!("input ({bytes} bytes)"));
        Ok(())
    }

    fn answer_question(&mut self, id: &str, decision: Decision) -> Result<(), Error> {
        let is_permitted = |grant: &Grant| grant.ui().is_some_and(|ui| ui.confirm);
        let ui_session = self.require_seat("answer a question", is_permitted)?;
        self.count_command()?;
        let answer = self.answer_from_decision(decision)?;
        let word = if answer.is_yes() { "approved" } else { "denied" };
        // The host numbers its questions, so an ID that is not a number matches none of them.
        let id: u64 = id.parse().map_err(|_| Error::NoSuchQuestion)?;
        ui_session.answer_question(id, answer).map_err(convert_seat_error)?;
        self.run_context.effect_log.record_use(Capability::Ui, format!("question {id}: {word}"));
        Ok(())
    }

    /// Converts a decision to an answer. A UI that may answer questions answers each one
    /// separately, because an answer for several calls would apply to calls that were never asked
    /// about.
    fn answer_from_decision(&self, decision: Decision) -> Result<ApprovalAnswer, Error> {
        match decision {
            Decision::ApproveOnce => Ok(ApprovalAnswer::Once),
            Decision::Deny(reason) => {
                let redactor = self.run_context.authorizer().redactor();
                let reason = truncate_reason(&redactor.redact_text(reason.trim())).to_owned();
                Ok(ApprovalAnswer::No { reason: Some(reason).filter(|reason| !reason.is_empty()) })
            }
            Decision::ApproveForSession | Decision::ApproveAlways => {
                self.run_context.effect_log.record_refusal(Denial {
                    what: format!(
                        "{} may not answer for more than once",
                        self.run_context.current_grant().plugin()
                    ),
                    why: "a UI answers each question by itself".to_owned(),
                    fix: None,
                    nobody_to_ask: false,
                });
                Err(Error::NotGranted)
            }
            Decision::Other(_) => Err(Error::Invalid("the decision is not known here".to_owned())),
        }
    }

    fn cancel_turn(&mut self) -> Result<(), Error> {
        let ui_session = self.require_seat("end a turn", |_| true)?;
        self.count_command()?;
        ui_session.cancel_turn().map_err(convert_seat_error)?;
        self.run_context.effect_log.record_use(Capability::Ui, "ended the turn".to_owned());
        Ok(())
    }

    /// The run's seat at the session, for one command.
    fn require_seat(
        &self,
        what: &str,
        is_permitted: impl FnOnce(&Grant) -> bool,
    ) -> Result<Arc<dyn UiSession>, Error> {
        let grant = self.run_context.current_grant();
        let Some(ui_session) = &self.run_context.role_links.ui_session else {
            self.run_context.record_missing_role(what);
            return Err(Error::NotGranted);
        };
        if grant.ui().is_none() || !is_permitted(&grant) {
            self.run_context.effect_log.record_refusal(grant.deny_capability(Capability::Ui, what));
            return Err(Error::NotGranted);
        }
        Ok(Arc::clone(ui_session))
    }

    fn count_command(&mut self) -> Result<(), Error> {
        if self.counters.commands.try_count() {
            return Ok(());
        }
        let limit = self.counters.commands.limit_text("answers and ends of turns");
        self.run_context.effect_log.record_limit(limit.clone());
        Err(Error::Full(format!("the limit of {limit} is reached")))
    }
}

/// Cuts a reason to the length limit.
fn truncate_reason(reason: &str) -> &str {
    &reason[..reason.floor_char_boundary(REASON_BYTES_MAX)]
}

fn convert_seat_error(error: SubmissionError) -> Error {
    match error {
        SubmissionError::Invalid(text) => Error::Invalid(text),
        SubmissionError::NoSuchQuestion => Error::NoSuchQuestion,
        SubmissionError::Full | SubmissionError::Ended => Error::Full(error.to_string()),
    }
}
