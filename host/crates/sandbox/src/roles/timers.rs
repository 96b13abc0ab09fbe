//! A plugin that is called back by its timers.

use std::sync::Arc;

use sallyport_contract::{AdmittedCall, CallReport, services::TimerFiring};

use super::RoleLinks;
use crate::{Plugin, run};

/// The result of a firing.
#[derive(Debug)]
pub struct Fired {
    /// The record of the run.
    pub report: CallReport,
    /// False if the run got no place or a granted folder could not be opened, so the plugin does
    /// not know of the firing.
    pub is_told: bool,
    /// True if the plugin sent a message to the user that the host could not take at the time.
    pub is_unsaid: bool,
}

impl Plugin {
    /// Notifies the plugin that one of its timers fires. Dropping the future stops the instance.
    pub async fn fire(&self, call: AdmittedCall, firing: TimerFiring) -> Fired {
        let (abi, call) = (self.abi(), Arc::new(call));
        let admitted = Arc::clone(&call);
        let body = run::body(move |store, instance| {
            Box::pin(async move { abi.on_timer(store, instance, &admitted, firing).await })
        });
        let ran = self.run_for(call, RoleLinks::default(), body).await;
        let (is_told, is_unsaid) = (ran.has_begun, ran.case.ledger.is_unsaid());
        let report = self.report(ran, |value, ledger| self.outcome(value, ledger));
        Fired { report, is_told, is_unsaid }
    }
}
