//! Limits on firings: how many run at the same time and how many begin within a minute, for each
//! plugin.
//!
//! A callback may take as long as a call, may need the user's approval, and may set another timer
//! that is due immediately. The limits make only the timers of the same plugin wait for it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use sallyport_contract::PluginName;
use sallyport_policy::ScheduleGrant;

/// Maximum number of firings at the same time. It is small, so that conversations stay responsive.
const FIRINGS_MAX: usize = 8;

/// Maximum number of firings of one plugin at the same time, so that a slow plugin does not delay
/// others.
const OF_PLUGIN_MAX: usize = 2;

/// The period in which firings are counted.
const MINUTE: Duration = Duration::from_secs(60);

/// Minimum number of firings per minute that every plugin may have, regardless of its grant. One
/// per second is more than a user sets.
const PER_MINUTE_MIN: u64 = 60;

/// The running firings of each plugin, and those of the current minute.
#[derive(Debug, Default)]
pub(super) struct Places(Mutex<BTreeMap<PluginName, Taken>>);

#[derive(Debug)]
struct Taken {
    now: usize,
    minute: Instant,
    in_minute: u64,
}

/// Whether a plugin has a free place for a timer that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// It can fire.
    Free,
    /// All places are taken by running firings.
    Full,
    /// It has used up its firings of this minute.
    Spent {
        /// Maximum number of firings per minute.
        per_minute: u64,
    },
}

/// A place that is taken until this value is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    plugin: PluginName,
}

impl Places {
    pub(super) fn room(&self, plugin: &PluginName, grant: &ScheduleGrant, now: Instant) -> Room {
        let rows = self.rows();
        let own = rows.get(plugin);
        let all: usize = rows.values().map(|taken| taken.now).sum();
        if all >= FIRINGS_MAX || own.is_some_and(|own| own.now >= OF_PLUGIN_MAX) {
            return Room::Full;
        }
        let per_minute = per_minute(grant);
        match own {
            Some(own) if own.is_of(now) && own.in_minute >= per_minute => {
                Room::Spent { per_minute }
            }
            _ => Room::Free,
        }
    }

    pub(super) fn take(self: &Arc<Self>, plugin: &PluginName, now: Instant) -> Place {
        let mut rows = self.rows();
        let own = rows.entry(plugin.clone()).or_insert(Taken { now: 0, minute: now, in_minute: 0 });
        if !own.is_of(now) {
            (own.minute, own.in_minute) = (now, 0);
        }
        (own.now, own.in_minute) = (own.now + 1, own.in_minute + 1);
        Place { places: Arc::clone(self), plugin: plugin.clone() }
    }

    fn rows(&self) -> MutexGuard<'_, BTreeMap<PluginName, Taken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    /// Returns whether the counted minute includes `now`.
    fn is_of(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.minute) < MINUTE
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(own) = self.places.rows().get_mut(&self.plugin) {
            own.now = own.now.saturating_sub(1);
        }
    }
}

/// Returns the maximum number of firings per minute: as many as the plugin's maximum number of
/// timers would have at the minimum interval.
fn per_minute(grant: &ScheduleGrant) -> u64 {
    let interval_ms = grant.interval_min.as_millis().max(1);
    let of_each = u64::try_from(MINUTE.as_millis().div_ceil(interval_ms)).unwrap_or(u64::MAX);
    u64::from(grant.timers_max).saturating_mul(of_each).max(PER_MINUTE_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plugin(name: &str) -> PluginName {
        name.parse().unwrap()
    }

    fn grant(timers_max: u32, interval_s: u64) -> ScheduleGrant {
        ScheduleGrant { timers_max, interval_min: Duration::from_secs(interval_s) }
    }

    #[test]
    fn a_plugin_that_is_slow_leaves_places_to_others() {
        let (places, now, may) = (Arc::new(Places::default()), Instant::now(), grant(64, 60));
        let room = |name: &str| places.room(&plugin(name), &may, now);
        let mut taken = Vec::new();
        for name in ["a", "b", "c", "d"] {
            for _ in 0..OF_PLUGIN_MAX {
                assert_eq!(room(name), Room::Free, "{name}");
                taken.push(places.take(&plugin(name), now));
            }
            assert_eq!(room(name), Room::Full, "{name}");
        }
        assert_eq!((taken.len(), room("e")), (FIRINGS_MAX, Room::Full));
        taken.remove(0);
        assert_eq!((room("a"), room("b"), room("e")), (Room::Free, Room::Full, Room::Free));
    }

    #[test]
    fn a_plugin_that_fires_without_end_waits_for_the_next_minute() {
        for (timers_max, interval_s, per_minute) in [
            (1, 3600, 60),
            (64, 60, 64),
            (3, 1, 180),
            (100, 40, 200),
            (u32::MAX, 1, 257_698_037_700),
        ] {
            assert_eq!(super::per_minute(&grant(timers_max, interval_s)), per_minute);
        }
        let (places, begun, may) = (Arc::new(Places::default()), Instant::now(), grant(64, 60));
        let (chain, other) = (plugin("chain"), plugin("other"));
        for minute in 0..3 {
            let now = begun + minute * MINUTE;
            for _ in 0..64 {
                assert_eq!(places.room(&chain, &may, now), Room::Free);
                drop(places.take(&chain, now));
            }
            let last = now + MINUTE - Duration::from_millis(1);
            assert_eq!(places.room(&chain, &may, last), Room::Spent { per_minute: 64 });
            assert_eq!(places.room(&other, &may, last), Room::Free);
        }
    }
}
