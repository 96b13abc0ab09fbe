//! A plugin that is called back by its timers.

use std::sync::Arc;

use sallyport_contract::{AdmittedCall, CallReport, services::TimerFiring};

use crate::{Plugin, role_links::RoleLinks};

/// The result of a firing.
#[derive(Debug)]
pub struct TimerRunResult {
    /// The record of the run.
    pub report: CallReport,
    /// False if the run got no place or a granted folder could not be opened, so the plugin does
    /// not know of the firing.
    pub has_begun: bool,
    /// True if the plugin sent a message to the user that the host could not take at the time.
    pub has_undelivered_notice: bool,
}

impl Plugin {
    /// Notifies the plugin that one of its timers fires. Dropping the future stops the instance.
    pub async fn fire_timer(&self, call: AdmittedCall, firing: TimerFiring) -> TimerRunResult {
        let call = Arc::new(call);
        let body = self.abi().handle_timer(Arc::clone(&call), firing);
        let completed = self.run_call(call, RoleLinks::default(), body).await;
        let (has_begun, has_undelivered_notice) =
            (completed.has_begun, completed.run_context.effect_log.has_undelivered());
        let report = self.build_return_report(completed);
        TimerRunResult { report, has_begun, has_undelivered_notice }
    }
}
