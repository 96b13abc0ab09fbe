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
const FIRINGS_PER_PLUGIN_MAX: usize = 2;

/// The period in which firings are counted.
const MINUTE: Duration = Duration::from_secs(60);

/// Minimum number of firings per minute that every plugin may have, regardless of its grant. One
/// per second is more than a user sets.
const PER_MINUTE_MIN: u64 = 60;

/// The running firings of each plugin, and those of the current minute.
#[derive(Debug, Default)]
pub(super) struct FiringSlots(Mutex<BTreeMap<PluginName, PluginFirings>>);

#[derive(Debug)]
struct PluginFirings {
    running: usize,
    minute_start: Instant,
    started_in_minute: u64,
}

/// Whether a plugin has a free place for a timer that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotAvailability {
    /// It can fire.
    Free,
    /// All places are taken by running firings.
    Full,
    /// It has used up its firings of this minute.
    RateLimited {
        /// Maximum number of firings per minute.
        per_minute: u64,
    },
}

/// A place that is taken until this value is dropped.
#[derive(Debug)]
pub(super) struct FiringSlot {
    slots: Arc<FiringSlots>,
    plugin: PluginName,
}

impl FiringSlots {
    pub(super) fn check_availability(
        &self,
        plugin: &PluginName,
        grant: &ScheduleGrant,
        now: Instant,
    ) -> SlotAvailability {
        let rows = self.lock_rows();
        let plugin_firings = rows.get(plugin);
        let all: usize = rows.values().map(|firings| firings.running).sum();
        if all >= FIRINGS_MAX
            || plugin_firings
                .is_some_and(|plugin_firings| plugin_firings.running >= FIRINGS_PER_PLUGIN_MAX)
        {
            return SlotAvailability::Full;
        }
        let per_minute = firings_per_minute(grant);
        match plugin_firings {
            Some(plugin_firings)
                if plugin_firings.is_same_minute(now)
                    && plugin_firings.started_in_minute >= per_minute =>
            {
                SlotAvailability::RateLimited { per_minute }
            }
            _ => SlotAvailability::Free,
        }
    }

    pub(super) fn take_slot(self: &Arc<Self>, plugin: &PluginName, now: Instant) -> FiringSlot {
        let mut rows = self.lock_rows();
        let plugin_firings = rows.entry(plugin.clone()).or_insert(PluginFirings {
            running: 0,
            minute_start: now,
            started_in_minute: 0,
        });
        if !plugin_firings.is_same_minute(now) {
            (plugin_firings.minute_start, plugin_firings.started_in_minute) = (now, 0);
        }
        (plugin_firings.running, plugin_firings.started_in_minute) =
            (plugin_firings.running + 1, plugin_firings.started_in_minute + 1);
        FiringSlot { slots: Arc::clone(self), plugin: plugin.clone() }
    }

    fn lock_rows(&self) -> MutexGuard<'_, BTreeMap<PluginName, PluginFirings>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PluginFirings {
    /// Returns whether the counted minute includes `now`.
    fn is_same_minute(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.minute_start) < MINUTE
    }
}

impl Drop for FiringSlot {
    fn drop(&mut self) {
        if let Some(plugin_firings) = self.slots.lock_rows().get_mut(&self.plugin) {
            plugin_firings.running = plugin_firings.running.saturating_sub(1);
        }
    }
}

/// Returns the maximum number of firings per minute: as many as the plugin's maximum number of
/// timers would have at the minimum interval.
fn firings_per_minute(grant: &ScheduleGrant) -> u64 {
    let interval_ms = grant.interval_min.as_millis().max(1);
    let firings_per_timer =
        u64::try_from(MINUTE.as_millis().div_ceil(interval_ms)).unwrap_or(u64::MAX);
    u64::from(grant.timers_max).saturating_mul(firings_per_timer).max(PER_MINUTE_MIN)
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
        let (places, now, may) = (Arc::new(FiringSlots::default()), Instant::now(), grant(64, 60));
        let room = |name: &str| places.check_availability(&plugin(name), &may, now);
        let mut firings = Vec::new();
        for name in ["a", "b", "c", "d"] {
            for _ in 0..FIRINGS_PER_PLUGIN_MAX {
                assert_eq!(room(name), SlotAvailability::Free, "{name}");
                firings.push(places.take_slot(&plugin(name), now));
            }
            assert_eq!(room(name), SlotAvailability::Full, "{name}");
        }
        assert_eq!((firings.len(), room("e")), (FIRINGS_MAX, SlotAvailability::Full));
        firings.remove(0);
        assert_eq!(
            (room("a"), room("b"), room("e")),
            (SlotAvailability::Free, SlotAvailability::Full, SlotAvailability::Free)
        );
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
            assert_eq!(super::firings_per_minute(&grant(timers_max, interval_s)), per_minute);
        }
        let (places, begun, may) =
            (Arc::new(FiringSlots::default()), Instant::now(), grant(64, 60));
        let (chain, other) = (plugin("chain"), plugin("other"));
        for minute in 0..3 {
            let now = begun + minute * MINUTE;
            for _ in 0..64 {
                assert_eq!(places.check_availability(&chain, &may, now), SlotAvailability::Free);
                drop(places.take_slot(&chain, now));
            }
            let last = now + MINUTE - Duration::from_millis(1);
            assert_eq!(
                places.check_availability(&chain, &may, last),
                SlotAvailability::RateLimited { per_minute: 64 }
            );
            assert_eq!(places.check_availability(&other, &may, last), SlotAvailability::Free);
        }
    }
}
