//! The timers of the store, with an alarm that wakes the timekeeper.

use sallyport_contract::services::{Owner, Plan, Timer, TimerError, Timers};
use sallyport_store::KeptTimers;
use tokio::sync::Notify;

/// Rings when a timer is set in this program.
#[derive(Debug, Default)]
pub struct Alarm(Notify);

impl Alarm {
    /// Wakes the waiting task, or the next one that waits.
    pub fn ring(&self) {
        self.0.notify_one();
    }

    /// Waits until the alarm rings. Returns immediately if it rang before.
    pub async fn rings(&self) {
        self.0.notified().await;
    }
}

/// The timers of the store. Adding one rings the alarm, so that it need not wait for the next look.
pub(super) struct RungTimers {
    pub(super) kept: KeptTimers,
    pub(super) alarm: std::sync::Arc<Alarm>,
}

impl Timers for RungTimers {
    fn add(&self, owner: &Owner, plan: Plan) -> Result<Timer, TimerError> {
        let timer = self.kept.add(owner, plan)?;
        self.alarm.ring();
        Ok(timer)
    }

    fn cancel(&self, owner: &Owner, id: &str) -> Result<bool, TimerError> {
        self.kept.cancel(owner, id)
    }

    fn list(&self, owner: &Owner) -> Result<Vec<Timer>, TimerError> {
        self.kept.list(owner)
    }
}
