//! `commands`: a UI controls its session. A command needs a seat at a session and the `ui` grant;
//! answering questions needs a grant of its own.

use std::sync::Arc;

use sallyport_contract::{
    ApprovalAnswer, Denial,
    services::{SubmissionError, UiSession},
};
use sallyport_policy::{Capability, UiGrant};

use super::{HostCall, HostCallError, HostCallLimit};
use crate::bindings::v0_1::sallyport::plugin::commands::{Decision, Error, Host, UserInput};

/// Longest reason for a denial, in bytes.
const REASON_BYTES_MAX: usize = 1024;

/// Answers to questions and ended turns of one run. One event leads to few of either.
const COMMANDS: HostCallLimit = HostCallLimit { calls_max: 64, unit: "answers and ends of turns" };

impl Host for HostCall<'_> {
    async fn submit_input(&mut self, input: UserInput) -> Result<(), Error> {
        let ui_session = self.require_seat("hand input to the session", |_| true)?;
        self.count_input()?;
        let text =
            self.check_input(&input.text, input.attachments.len()).map_err(Error::Invalid)?;
        let bytes = text.len();
        ui_session.submit_input(text)?;
        self.run_context.effect_log.record_use(Capability::Ui, format!("input ({bytes} bytes)"));
        Ok(())
    }

    async fn provide_confirmation(
        &mut self,
        confirmation_id: String,
        decision: Decision,
    ) -> Result<(), Error> {
        let ui_session = self.require_seat("answer a question", |ui| ui.confirm)?;
        self.count_call(&COMMANDS)?;
        let answer = self.answer_from_decision(decision)?;
        let word = if answer.is_yes() { "approved" } else { "denied" };
        // The host numbers its questions, so an ID that is not a number matches none of them.
        let id: u64 = confirmation_id.parse().map_err(|_| Error::NoSuchQuestion)?;
        ui_session.answer_question(id, answer)?;
        self.run_context.effect_log.record_use(Capability::Ui, format!("question {id}: {word}"));
        Ok(())
    }

    async fn cancel(&mut self) -> Result<(), Error> {
        let ui_session = self.require_seat("end a turn", |_| true)?;
        self.count_call(&COMMANDS)?;
        ui_session.cancel_turn()?;
        self.run_context.effect_log.record_use(Capability::Ui, "ended the turn".to_owned());
        Ok(())
    }
}

impl HostCall<'_> {
    /// Converts a decision to an answer. A UI that may answer questions answers each one
    /// separately, because an answer for several calls would apply to calls that were never asked
    /// about.
    fn answer_from_decision(&self, decision: Decision) -> Result<ApprovalAnswer, Error> {
        match decision {
            Decision::ApproveOnce => Ok(ApprovalAnswer::Once),
            Decision::Deny(reason) => {
                let reason = self.redact_and_cut(reason.trim(), REASON_BYTES_MAX);
                Ok(ApprovalAnswer::No { reason: Some(reason).filter(|reason| !reason.is_empty()) })
            }
            Decision::ApproveForSession | Decision::ApproveAlways => {
                let why = "a UI answers each question by itself";
                let denial = self.run_context.build_denial("answer for more than once", why);
                Err(self.refuse(denial).into())
            }
            Decision::Other(_) => Err(Error::Invalid("the decision is not known here".to_owned())),
        }
    }

    fn require_seat(
        &self,
        what: &str,
        is_permitted: impl FnOnce(&UiGrant) -> bool,
    ) -> Result<Arc<dyn UiSession>, HostCallError> {
        self.check_seat(what, is_permitted).map_err(|denial| self.refuse(denial))
    }

    /// The run's seat at the session, for one call.
    pub(super) fn check_seat(
        &self,
        what: &str,
        is_permitted: impl FnOnce(&UiGrant) -> bool,
    ) -> Result<Arc<dyn UiSession>, Denial> {
        let ui_session = self.check_role(what, &self.run_context.role_links.ui_session)?;
        self.check_grant(Capability::Ui, what, |grant| grant.ui().filter(is_permitted))?;
        Ok(ui_session)
    }
}

impl From<SubmissionError> for Error {
    fn from(error: SubmissionError) -> Self {
        match error {
            SubmissionError::Invalid(text) => Self::Invalid(text),
            SubmissionError::NoSuchQuestion => Self::NoSuchQuestion,
            SubmissionError::Full | SubmissionError::Ended => Self::Full(error.to_string()),
        }
    }
}

super::impl_not_granted_error!(Error, limit: Full, unavailable: Full);
