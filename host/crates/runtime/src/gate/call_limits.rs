//! The limits that count the calls of all plugins together, checked before any call runs.
//!
//! They apply within one process, because no process knows how many calls another one runs. Runs in
//! a role are not counted: a session of a user interface lasts as long as its user wants, and would
//! block its own calls.

use sallyport_contract::{CallFailure, FailureKind};
use sallyport_policy::{GlobalLimits, PluginLimits};
use sallyport_sandbox::{CallSlot, CallSlotError, CallSlots};

/// Counts the calls of all plugins.
pub(crate) struct SharedCallLimits {
    slots: CallSlots,
}

impl SharedCallLimits {
    pub(crate) fn new() -> Self {
        Self { slots: CallSlots::new() }
    }

    /// Waits until one more call may run, and counts it until the place is dropped. The plugin's
    /// limits `own` set how long a call may wait.
    ///
    /// # Errors
    ///
    /// No place became free in time, or too many calls have started in the last minute.
    pub(crate) async fn acquire_place(
        &self,
        global_limits: GlobalLimits,
        plugin_limits: &PluginLimits,
    ) -> Result<Option<CallSlot<'_>>, CallFailure> {
        if !global_limits.is_stated() {
            return Ok(None);
        }
        let limits = PluginLimits {
            concurrent_calls: global_limits.concurrent_calls.unwrap_or(u32::MAX),
            calls_per_minute: global_limits.calls_per_minute,
            ..plugin_limits.clone()
        };
        self.slots.acquire_slot(&limits).await.map(Some).map_err(|none| limit_failure(&none))
    }
}

fn limit_failure(none: &CallSlotError) -> CallFailure {
    let message = match none {
        CallSlotError::Busy { calls, waited } => format!(
            "{calls} calls are running, which is the most for all plugins together \
             ([limits] concurrent-calls), and none ended within {waited:?} (queue-time)"
        ),
        CallSlotError::TooOften { calls } => format!(
            "the limit for all plugins is reached: {calls} calls per minute ([limits] calls-per-minute)"
        ),
    };
    CallFailure::new(FailureKind::LimitReached, message)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn calls_of_all_plugins_are_counted_together_and_waited_for() {
        let all = SharedCallLimits::new();
        let plugin_limits =
            PluginLimits { queue_time: Duration::ZERO, ..PluginLimits::with_defaults() };
        let none = GlobalLimits { calls_per_minute: None, concurrent_calls: None };
        assert!(all.acquire_place(none, &plugin_limits).await.unwrap().is_none());
        let two = GlobalLimits { concurrent_calls: Some(2), ..none };
        let first = all.acquire_place(two, &plugin_limits).await.unwrap();
        let second = all.acquire_place(two, &plugin_limits).await.unwrap();
        let refused = all.acquire_place(two, &plugin_limits).await.err().unwrap();
        assert!(refused.message.contains("[limits] concurrent-calls"), "{}", refused.message);
        drop((first, second));
        let often = GlobalLimits { calls_per_minute: Some(1), ..none };
        assert!(all.acquire_place(often, &plugin_limits).await.is_ok());
        let refused = all.acquire_place(often, &plugin_limits).await.err().unwrap();
        assert!(refused.message.contains("1 calls per minute"), "{}", refused.message);
    }
}
