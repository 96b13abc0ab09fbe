//! The timers of the store, with an alarm that wakes the timekeeper.

use std::sync::Arc;

use sallyport_contract::{
    async_trait,
    services::{DataOwner, StoredTimer, TimerError, TimerRequest, TimerStore},
};
use tokio::sync::Notify;

/// Rings when a timer is set in this program.
#[derive(Debug, Default)]
pub struct TimerAlarm(Notify);

impl TimerAlarm {
    /// Wakes the waiting task, or the next one that waits.
    pub fn notify_waiter(&self) {
        self.0.notify_one();
    }

    /// Waits until the alarm rings. Returns immediately if it rang before.
    pub async fn wait_for_notification(&self) {
        self.0.notified().await;
    }
}

/// The timers of the store. Adding one rings the alarm, so that it need not wait for the next look.
pub(super) struct NotifyingTimers {
    pub(super) timer_store: Arc<dyn TimerStore>,
    pub(super) alarm: Arc<TimerAlarm>,
}

#[async_trait]
impl TimerStore for NotifyingTimers {
    async fn add_timer(
        &self,
        owner: &DataOwner,
        plan: TimerRequest,
    ) -> Result<StoredTimer, TimerError> {
        let timer = self.timer_store.add_timer(owner, plan).await?;
        self.alarm.notify_waiter();
        Ok(timer)
    }

    async fn cancel_timer(&self, owner: &DataOwner, id: &str) -> Result<bool, TimerError> {
        self.timer_store.cancel_timer(owner, id).await
    }

    async fn list_timers(&self, owner: &DataOwner) -> Result<Vec<StoredTimer>, TimerError> {
        self.timer_store.list_timers(owner).await
    }
}
