//! How often something happened within the last minute.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// The time in which it is counted.
pub(crate) const MINUTE: Duration = Duration::from_secs(60);

/// What happened within the last minute, across all runs of a plugin.
#[derive(Debug, Default)]
pub(crate) struct Minute(Mutex<VecDeque<Instant>>);

impl Minute {
    /// Counts one more, unless there were as many as may be.
    pub(crate) fn take(&self, most: u32, now: Instant) -> bool {
        // Each change is whole by itself, so a panic elsewhere leaves the list sound.
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while recent.front().is_some_and(|at| now.duration_since(*at) >= MINUTE) {
            recent.pop_front();
        }
        let fits = recent.len() < most as usize;
        if fits {
            recent.push_back(now);
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_later_there_is_room_again() {
        let (minute, now) = (Minute::default(), Instant::now());
        for second in 0..3 {
            assert!(minute.take(3, now + Duration::from_secs(second)));
        }
        assert!(!minute.take(3, now + MINUTE - Duration::from_millis(1)));
        assert!(minute.take(3, now + MINUTE));
        assert!(!minute.take(3, now + MINUTE));
        assert!(minute.take(4, now + MINUTE), "the policy has changed");
    }
}
