//! `inbox`: input from a listener to the session. A call needs a run that listens, and the `listen`
//! grant.

use sallyport_contract::services::{InputOrigin, SubmissionError};
use sallyport_policy::{Capability, Grant};

use super::HostCall;
use crate::bindings::v0_1::sallyport::plugin::inbox::{Error, Host, Input};

/// Longest origin label in bytes; the rest is cut.
const LABEL_BYTES_MAX: usize = 256;

impl Host for HostCall<'_> {
    async fn submit(&mut self, input: Input) -> Result<(), Error> {
        let what = "hand input to the session";
        let listener_input = self
            .check_role(what, &self.run_context.role_links.listener_input)
            .map_err(|denial| self.refuse(denial))?;
        let granted = |grant: &Grant| (!grant.listen().is_empty()).then(|| grant.plugin().clone());
        let plugin = self.require_grant(Capability::Listen, what, granted).await?;
        self.count_input()?;
        let text =
            self.check_input(&input.text, input.attachments.len()).map_err(Error::Invalid)?;
        let label = input.origin.map(|label| self.redact_and_cut(&label, LABEL_BYTES_MAX));
        let (bytes, connection) = (text.len(), listener_input.connection);
        listener_input.inbox.submit_input(text, InputOrigin { plugin, label, connection })?;
        let what = format!("input ({bytes} bytes)");
        self.run_context.effect_log.record_use(Capability::Listen, what);
        Ok(())
    }
}

impl From<SubmissionError> for Error {
    fn from(error: SubmissionError) -> Self {
        match error {
            SubmissionError::Invalid(text) => Self::Invalid(text),
            SubmissionError::Full | SubmissionError::NoSuchQuestion | SubmissionError::Ended => {
                Self::Full(error.to_string())
            }
        }
    }
}

super::impl_not_granted_error!(Error, limit: Full, unavailable: Full);
