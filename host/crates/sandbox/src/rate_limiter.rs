//! Counts how often something happened within the last minute.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard},
    time::{Duration, Instant},
};

use crate::mutex::lock_mutex;

/// The length of the window.
pub(crate) const MINUTE: Duration = Duration::from_secs(60);

/// The events of the last minute, across all runs of a plugin.
#[derive(Debug, Default)]
pub(crate) struct MinuteRateLimiter(Mutex<VecDeque<Instant>>);

/// When an event may happen under a limit per minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventTiming {
    /// Now, separately.
    Now,
    /// After this time, together with every other event until then.
    Gathered(Duration),
}

/// How long a gathered event waits for others, so that a burst becomes one event.
const GATHER_TIME: Duration = Duration::from_secs(1);

impl MinuteRateLimiter {
    /// Counts one more. The last event that fits into the minute gathers every further one, so that
    /// events beyond the limit are combined instead of lost.
    pub(crate) fn schedule_event(&self, limit: u32, now: Instant) -> EventTiming {
        let limit = (limit as usize).max(1);
        let mut recent = self.lock_recent(now);
        let planned = recent.back().and_then(|last| last.checked_duration_since(now));
        if let Some(wait) = planned.filter(|wait| !wait.is_zero()) {
            return EventTiming::Gathered(wait);
        }
        if recent.len() + 1 < limit {
            recent.push_back(now);
            return EventTiming::Now;
        }
        let at = match recent.len().checked_sub(limit).and_then(|first| recent.get(first)) {
            // The next slot becomes free when the oldest event leaves the window.
            Some(oldest) => (*oldest + MINUTE).max(now + GATHER_TIME),
            None => now + GATHER_TIME,
        };
        recent.push_back(at);
        EventTiming::Gathered(at - now)
    }

    /// Counts one more. Returns false if the limit is reached.
    pub(crate) fn try_count(&self, limit: u32, now: Instant) -> bool {
        let mut recent = self.lock_recent(now);
        let fits = recent.len() < limit as usize;
        if fits {
            recent.push_back(now);
        }
        fits
    }

    /// The events of the last minute, and a planned one.
    fn lock_recent(&self, now: Instant) -> MutexGuard<'_, VecDeque<Instant>> {
        let mut recent = lock_mutex(&self.0);
        while recent.front().is_some_and(|at| now.saturating_duration_since(*at) >= MINUTE) {
            recent.pop_front();
        }
        recent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_later_there_is_room_again() {
        let (minute, now) = (MinuteRateLimiter::default(), Instant::now());
        for second in 0..3 {
            assert!(minute.try_count(3, now + Duration::from_secs(second)));
        }
        assert!(!minute.try_count(3, now + MINUTE - Duration::from_millis(1)));
        assert!(minute.try_count(3, now + MINUTE));
        assert!(!minute.try_count(3, now + MINUTE));
        assert!(minute.try_count(4, now + MINUTE), "the policy has changed");
    }

    /// No minute has more turns than the limit for any sequence of events, and no event is refused.
    #[test]
    fn what_is_beyond_the_limit_of_a_minute_is_gathered_and_not_refused() {
        for limit in [1, 2, 3, 10, 600] {
            for step_ms in [0, 7, 900, 5_000, 61_000] {
                let (minute, begun) = (MinuteRateLimiter::default(), Instant::now());
                let mut shown = Vec::new();
                for number in 0..1_500_u32 {
                    let now = begun + Duration::from_millis(step_ms) * number;
                    let at = match minute.schedule_event(limit, now) {
                        EventTiming::Now => now,
                        EventTiming::Gathered(wait) => now + wait,
                    };
                    assert!(at < now + MINUTE + GATHER_TIME, "{limit} {step_ms}: {number}");
                    // Events of the same gathering are one message.
                    if at == now || shown.last() != Some(&at) {
                        shown.push(at);
                    }
                }
                for minute in shown.windows(limit as usize + 1) {
                    let took = minute[limit as usize] - minute[0];
                    assert!(took >= MINUTE, "{limit} {step_ms}: {took:?}");
                }
            }
        }
    }

    #[test]
    fn all_that_comes_at_one_moment_is_shown_within_seconds() {
        let (minute, now) = (MinuteRateLimiter::default(), Instant::now());
        let turns: Vec<EventTiming> = (0..25).map(|_| minute.schedule_event(10, now)).collect();
        assert_eq!(turns[..9], [EventTiming::Now; 9]);
        assert_eq!(turns[9..], [EventTiming::Gathered(GATHER_TIME); 16]);
        let lower = minute.schedule_event(3, now + GATHER_TIME);
        assert_eq!(lower, EventTiming::Gathered(MINUTE - GATHER_TIME), "the policy has changed");
    }
}
