//! A plugin that is called back by its timers.

use std::sync::Arc;

use sallyport_contract::{Admitted, CallReport, services::Firing};

use super::RoleLinks;
use crate::{Plugin, run};

impl Plugin {
    /// Tells the plugin that one of its timers fires. Dropping the future ends the instance.
    pub async fn fire(&self, call: Admitted, firing: Firing) -> CallReport {
        let (abi, call) = (self.abi(), Arc::new(call));
        let admitted = Arc::clone(&call);
        let body = run::body(move |store, instance| {
            Box::pin(async move { abi.on_timer(store, instance, &admitted, firing).await })
        });
        let ran = self.run_for(call, RoleLinks::default(), body).await;
        self.report(ran, |value, ledger| self.outcome(value, ledger))
    }
}
