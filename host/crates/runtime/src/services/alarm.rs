//! The timers of the store, with an alarm that wakes the timekeeper.

use sallyport_contract::services::{DataOwner, StoredTimer, TimerError, TimerRequest, TimerStore};
use sallyport_store::PersistentTimerStore;
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
    pub(super) timer_store: PersistentTimerStore,
    pub(super) alarm: std::sync::Arc<TimerAlarm>,
}

impl TimerStore for NotifyingTimers {
    fn add_timer(&self, owner: &DataOwner, plan: TimerRequest) -> Result<StoredTimer, TimerError> {
        let timer = self.timer_store.add_timer(owner, plan)?;
        self.alarm.notify_waiter();
        Ok(timer)
    }

    fn cancel_timer(&self, owner: &DataOwner, id: &str) -> Result<bool, TimerError> {
        self.timer_store.cancel_timer(owner, id)
    }

    fn list_timers(&self, owner: &DataOwner) -> Result<Vec<StoredTimer>, TimerError> {
        self.timer_store.list_timers(owner)
    }
}
