//! `inbox`: input from a listener to the session. A call needs a run that listens, and the `listen`
//! grant.

use sallyport_contract::services::{InputOrigin, SubmissionError};
use sallyport_policy::Capability;

use super::input;
use crate::{
    bindings::v0_1::sallyport::plugin::inbox::{Error, Host, Input},
    guest::Guest,
};

/// Longest origin label in bytes; the rest is cut.
const LABEL_BYTES_MAX: usize = 256;

impl Host for Guest {
    fn submit(&mut self, input: Input) -> wasmtime::Result<Result<(), Error>> {
        Ok(self.submit_listener_input(input))
    }
}

impl Guest {
    fn submit_listener_input(&mut self, input: Input) -> Result<(), Error> {
        let Input { text, attachments, origin: label, extra: _ } = input;
        let (grant, what) = (self.run_context.current_grant(), "hand input to the session");
        let Some(listener_input) = &self.run_context.role_links.listener_input else {
            self.run_context.record_missing_role(what);
            return Err(Error::NotGranted);
        };
        if grant.listen().is_empty() {
            self.run_context
                .effect_log
                .record_refusal(grant.deny_capability(Capability::Listen, what));
            return Err(Error::NotGranted);
        }
        input::count_input(&mut self.counters, &self.run_context).map_err(Error::Full)?;
        input::check_no_files(attachments.len()).map_err(Error::Invalid)?;
        let redactor = self.run_context.authorizer().redactor();
        let text = input::check_and_redact(&text, &redactor).map_err(Error::Invalid)?;
        // Redacted before it is cut, because a cut secret would no longer be recognised.
        let label = label.map(|label| {
            let label = redactor.redact_text(&label);
            label[..label.floor_char_boundary(LABEL_BYTES_MAX)].to_owned()
        });
        let (bytes, connection) = (text.len(), listener_input.connection.clone());
        let origin = InputOrigin { plugin: grant.plugin().clone(), label, connection };
        listener_input.inbox.submit_input(text, origin).map_err(convert_seat_error)?;
        self.run_context
            .effect_log
            .record_use(Capability::Listen, format!("input ({bytes} bytes)"));
        Ok(())
    }
}

fn convert_seat_error(error: SubmissionError) -> Error {
    match error {
        SubmissionError::Invalid(text) => Error::Invalid(text),
        SubmissionError::Full | SubmissionError::NoSuchQuestion | SubmissionError::Ended => {
            Error::Full(error.to_string())
        }
    }
}
