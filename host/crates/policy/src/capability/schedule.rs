//! `schedule`: timers that call a plugin back.

use std::time::Duration;

use super::{CapabilityKind, HeldCapability, kind::GrantedEntries, settings::SettingSpec};
use crate::{limits::LimitRange, unit::TimeSpan};

/// Timers of one plugin and user: more than anyone keeps track of.
pub const SCHEDULE_TIMERS_DEFAULT: u32 = 64;

/// The most timers that a policy may allow: setting a timer examines all of them.
const SCHEDULE_TIMERS_MAX: u32 = 10_000;

/// Shortest time between two firings of a repeated timer: each firing runs the plugin.
pub const SCHEDULE_INTERVAL_DEFAULT: Duration = Duration::from_secs(60);

/// The shortest interval that a policy may state; a more frequent timer is never set.
const SCHEDULE_INTERVAL_MS_MIN: u64 = 1000;

/// The longest interval that a policy may state: a daily timer is not a burden.
const SCHEDULE_INTERVAL_MS_MAX: u64 = 24 * 60 * 60 * 1000;

/// The timers that a plugin may set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScheduleGrant {
    /// The number of timers for one user.
    pub timers_max: u32,
    /// The shortest time between two firings of a repeated timer.
    pub interval_min: Duration,
}

/// The capability.
pub(crate) struct Schedule;

static SETTINGS: [SettingSpec; 2] = [
    SettingSpec::new(
        "timers",
        LimitRange::Count(1..=SCHEDULE_TIMERS_MAX),
        SCHEDULE_TIMERS_DEFAULT as u64,
    ),
    SettingSpec {
        key: "interval",
        range: LimitRange::Time(SCHEDULE_INTERVAL_MS_MIN..=SCHEDULE_INTERVAL_MS_MAX),
        default: SCHEDULE_INTERVAL_DEFAULT.as_secs() * 1000,
        is_larger_stricter: true,
    },
];

impl CapabilityKind for Schedule {
    fn word(&self) -> &'static str {
        "schedule"
    }

    fn settings(&self) -> &'static [SettingSpec] {
        &SETTINGS
    }

    fn action_phrase(&self, _detail: Option<&str>) -> String {
        "set timers".to_owned()
    }

    fn hold(&self, granted: &GrantedEntries<'_>) -> Option<HeldCapability> {
        let settings = granted.settings()?;
        let timers_max = settings.effective_count("timers");
        let interval_min = Duration::from_millis(settings.effective_value("interval"));
        let every = TimeSpan(interval_min);
        let line = format!("set up to {timers_max} timers, each at most every {every}");
        let grant = ScheduleGrant { timers_max, interval_min };
        Some(HeldCapability::new(grant, vec![line], self.danger()))
    }
}
