//! Places of one plugin: how many of its calls run at a time, how long others wait for a free
//! place, and how many may start in a minute.
//!
//! The limits are those of the policy when the call arrives.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use sallyport_policy::PluginLimits;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

use crate::{mutex::lock_mutex, rate_limiter::MinuteRateLimiter};

/// The places of a plugin.
pub struct CallSlots {
    free: Semaphore,
    count: Mutex<CallSlotCount>,
    recent: MinuteRateLimiter,
}

/// The number of places, taken or free, and the number that is wanted. Surplus places are removed
/// when their calls end.
struct CallSlotCount {
    existing: u32,
    wanted: u32,
}

/// A place that a call has taken.
pub struct CallSlot<'a> {
    slots: &'a CallSlots,
    permit: Option<SemaphorePermit<'a>>,
}

/// The reason why a call got no place, phrased to follow the plugin's name.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallSlotError {
    /// All places stayed taken.
    #[error(
        "is busy: {calls} of its calls are running (limits.concurrent-calls), and none ended \
         within {waited:?} (limits.queue-time)"
    )]
    Busy {
        /// The number of places.
        calls: u32,
        /// How long the call waited.
        waited: Duration,
    },
    /// Too many calls have started within the last minute.
    #[error("may be called {calls} times a minute (limits.calls-per-minute)")]
    TooOften {
        /// How many calls may start in a minute.
        calls: u32,
    },
}

impl CallSlots {
    /// Creates places, none of which is taken.
    #[expect(clippy::new_without_default, reason = "nothing has a standard number of places")]
    pub fn new() -> Self {
        Self {
            free: Semaphore::new(0),
            count: Mutex::new(CallSlotCount { existing: 0, wanted: 0 }),
            recent: MinuteRateLimiter::default(),
        }
    }

    /// Waits for a place, and counts the call.
    ///
    /// # Errors
    ///
    /// No place became free in time, or too many calls have started within the last minute.
    pub async fn acquire_slot(&self, limits: &PluginLimits) -> Result<CallSlot<'_>, CallSlotError> {
        let (calls, waited) = (limits.concurrent_calls, limits.queue_time);
        self.resize(calls);
        let permit = match timeout(waited, self.free.acquire()).await {
            Ok(Ok(permit)) => Some(permit),
            // The semaphore is never closed, so the wait timed out.
            Ok(Err(_)) | Err(_) => return Err(CallSlotError::Busy { calls, waited }),
        };
        let slot = CallSlot { slots: self, permit };
        self.count_call(limits.calls_per_minute, Instant::now())?;
        Ok(slot)
    }

    fn resize(&self, wanted: u32) {
        let mut count = lock_mutex(&self.count);
        count.wanted = wanted;
        if wanted > count.existing {
            self.free.add_permits((wanted - count.existing) as usize);
            count.existing = wanted;
        } else {
            // The result is at most the surplus, which is a `u32`.
            count.existing -= self.free.forget_permits((count.existing - wanted) as usize) as u32;
        }
    }

    fn count_call(&self, calls_max: Option<u32>, now: Instant) -> Result<(), CallSlotError> {
        let Some(calls) = calls_max else { return Ok(()) };
        if self.recent.try_count(calls, now) {
            Ok(())
        } else {
            Err(CallSlotError::TooOften { calls })
        }
    }
}

impl Drop for CallSlot<'_> {
    fn drop(&mut self) {
        let Some(permit) = self.permit.take() else { return };
        let mut count = lock_mutex(&self.slots.count);
        if count.existing > count.wanted {
            count.existing -= 1;
            permit.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate_limiter::MINUTE;

    fn limits(concurrent_calls: u32) -> PluginLimits {
        let queue_time = Duration::ZERO;
        PluginLimits { concurrent_calls, queue_time, ..PluginLimits::with_defaults() }
    }

    #[tokio::test]
    async fn places_come_and_go_with_the_policy() {
        let places = CallSlots::new();
        let busy = |calls| Some(CallSlotError::Busy { calls, waited: Duration::ZERO });
        let take = async |calls| places.acquire_slot(&limits(calls)).await;
        let one = take(1).await.unwrap();
        assert_eq!(take(1).await.err(), busy(1));
        let two = take(3).await.unwrap();
        let three = take(3).await.unwrap();
        assert_eq!(take(3).await.err(), busy(3));
        assert_eq!(take(1).await.err(), busy(1));
        drop((one, two));
        assert_eq!(take(1).await.err(), busy(1), "the third call still runs");
        drop(three);
        let one = take(1).await.unwrap();
        assert_eq!(take(1).await.err(), busy(1));
        drop(one);
        take(1).await.unwrap();
    }

    #[tokio::test]
    async fn who_waits_is_given_no_place_that_is_no_longer_there() {
        let places = CallSlots::new();
        let patient = PluginLimits { queue_time: MINUTE, ..limits(1) };
        let (one, two) =
            (places.acquire_slot(&limits(2)).await, places.acquire_slot(&limits(2)).await);
        let mut waiting = std::pin::pin!(places.acquire_slot(&patient));
        assert!(futures::poll!(&mut waiting).is_pending());
        drop(one);
        assert!(futures::poll!(&mut waiting).is_pending(), "the second call still runs");
        drop(two);
        assert!(waiting.await.is_ok());
    }

    #[test]
    fn without_a_limit_calls_are_not_counted() {
        let (places, now) = (CallSlots::new(), Instant::now());
        assert_eq!(places.count_call(Some(1), now), Ok(()));
        assert_eq!(places.count_call(Some(1), now), Err(CallSlotError::TooOften { calls: 1 }));
        assert_eq!(places.count_call(None, now), Ok(()));
    }
}
