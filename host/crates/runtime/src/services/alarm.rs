//! Timers as plugins set them, with an alarm that tells whoever waits for the next one.

use sallyport_contract::services::{Owner, Plan, Timer, TimerError, Timers};
use sallyport_store::KeptTimers;
use tokio::sync::Notify;

/// Rings when the timers of this program are others than before.
#[derive(Debug, Default)]
pub struct Alarm(Notify);

impl Alarm {
    /// Wakes whoever waits, now or as soon as they do.
    pub fn ring(&self) {
        self.0.notify_one();
    }

    /// Waits until it rings. One that rang while nobody waited is heard at once.
    pub async fn rings(&self) {
        self.0.notified().await;
    }
}

/// The timers of the store. Whoever sets one that is due soon need not wait for the next look.
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
