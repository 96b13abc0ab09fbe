//! `progress`: how far a call has come. Without the grant, reports are dropped silently.

use sallyport_contract::services::CallProgress;
use sallyport_policy::Capability;

use crate::{bindings::v0_1::sallyport::plugin::progress::Host, guest::Guest};

/// Longest message in bytes. It is a few words next to a progress bar; the rest is cut.
const MESSAGE_BYTES_MAX: usize = 256;

impl Host for Guest {
    fn report(&mut self, part: Option<f64>, message: Option<String>) -> wasmtime::Result<()> {
        if self.run_context.current_grant().can_show_progress() && self.counters.reports.try_count()
        {
            self.show_progress(part, message);
        }
        Ok(())
    }
}

impl Guest {
    fn show_progress(&self, part: Option<f64>, message: Option<String>) {
        let (Some(call), Some(notices)) =
            (self.run_context.call(), self.run_context.authorizer().services().notices)
        else {
            return;
        };
        let redactor = self.run_context.authorizer().redactor();
        // Redacted before it is cut, so that no part of a secret is left.
        let message = message.map(|text| truncate_message(&redactor.redact_text(&text)).to_owned());
        let part = part.filter(|part| part.is_finite()).map(|part| part.clamp(0.0, 1.0));
        notices.report_progress(
            call.context(),
            call.tool(),
            CallProgress { fraction: part, message },
        );
        self.run_context.effect_log.record_use(Capability::Progress, "shown".to_owned());
    }
}

fn truncate_message(text: &str) -> &str {
    &text[..text.floor_char_boundary(MESSAGE_BYTES_MAX)]
}
