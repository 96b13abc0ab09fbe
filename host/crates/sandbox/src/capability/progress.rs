//! `progress`: how far a call has come.

use sallyport_contract::services::CallProgress;
use sallyport_policy::{Capability, Grant};

use super::HostCall;
use crate::bindings::v0_1::sallyport::plugin::progress::Host;

/// Longest message in bytes. It is a few words next to a progress bar; the rest is cut.
const MESSAGE_BYTES_MAX: usize = 256;

/// Progress reports of one run. A screen shows only the latest, so further ones are dropped.
const REPORTS_MAX: u64 = 1000;

impl Host for HostCall<'_> {
    fn report(&mut self, part: Option<f64>, message: Option<String>) -> wasmtime::Result<()> {
        if self.counters.add("reports", 1) <= REPORTS_MAX {
            let granted = |grant: &Grant| grant.can_show_progress().then_some(());
            let checked = self.check_grant(Capability::Progress, "show its progress", granted);
            if self.allow_or_record(checked).is_some() {
                self.show_progress(part, message);
            }
        }
        Ok(())
    }
}

impl HostCall<'_> {
    fn show_progress(&self, part: Option<f64>, message: Option<String>) {
        let (Some(call), Some(notices)) =
            (self.run_context.call(), self.run_context.authorizer().services().notices)
        else {
            return;
        };
        let message = message.map(|text| self.redact_and_cut(&text, MESSAGE_BYTES_MAX));
        let fraction = part.filter(|part| part.is_finite()).map(|part| part.clamp(0.0, 1.0));
        notices.report_progress(call.context(), call.tool(), CallProgress { fraction, message });
        self.run_context.effect_log.record_use(Capability::Progress, "shown".to_owned());
    }
}
