//! Capabilities that are switched on or off, and their settings.
//!
//! Files are combined setting by setting: a grant in one file is enough, and the strictest stated
//! value of a setting applies. `confirm = false` in one file is not overridden by `true` in
//! another.

use std::{collections::BTreeMap, time::Duration};

use super::Capability;
use crate::{
    document::TomlItem,
    limits::{LimitRange, StatedValue},
    source::{SourceError, SourceLocation},
    tier::PolicyTier,
};

/// All keys and values of one plugin and user: some thousand notes, but not a bulk store.
pub const STATE_QUOTA_DEFAULT_BYTES: u64 = 1 << 20;

/// The largest quota that a policy may state: the store is a single file, not a file server.
const STATE_QUOTA_BYTES_MAX: u64 = 1 << 30;

/// The longest single value: a text document; larger data belongs in a file.
pub const STATE_VALUE_DEFAULT_BYTES: u64 = 64 << 10;

/// The longest value that a policy may allow: each value is held in memory as a whole.
const STATE_VALUE_BYTES_MAX: u64 = 64 << 20;

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

/// Messages of a plugin per minute: enough for a busy timer, too few for a flood.
pub const NOTIFY_PER_MINUTE_DEFAULT: u32 = 10;

/// The most messages that a policy may allow: ten per second, too many to read.
const NOTIFY_PER_MINUTE_MAX: u32 = 600;

/// A setting of a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CapabilitySettingKey {
    Quota,
    Value,
    Timers,
    Interval,
    PerMinute,
    Confirm,
    Network,
    Unsandboxed,
}

/// A setting with its capability, its key and its range.
type Key = (CapabilitySettingKey, Capability, &'static str, LimitRange);

/// Every setting, in output order.
static KEYS: [Key; 8] = [
    (
        CapabilitySettingKey::Quota,
        Capability::State,
        "quota",
        LimitRange::Bytes(1..=STATE_QUOTA_BYTES_MAX),
    ),
    (
        CapabilitySettingKey::Value,
        Capability::State,
        "value",
        LimitRange::Bytes(1..=STATE_VALUE_BYTES_MAX),
    ),
    (
        CapabilitySettingKey::Timers,
        Capability::Schedule,
        "timers",
        LimitRange::Count(1..=SCHEDULE_TIMERS_MAX),
    ),
    (
        CapabilitySettingKey::Interval,
        Capability::Schedule,
        "interval",
        LimitRange::Time(SCHEDULE_INTERVAL_MS_MIN..=SCHEDULE_INTERVAL_MS_MAX),
    ),
    (
        CapabilitySettingKey::PerMinute,
        Capability::Notify,
        "per-minute",
        LimitRange::Count(1..=NOTIFY_PER_MINUTE_MAX),
    ),
    (CapabilitySettingKey::Confirm, Capability::Ui, "confirm", LimitRange::Flag),
    (CapabilitySettingKey::Network, Capability::Process, "network", LimitRange::Flag),
    (CapabilitySettingKey::Unsandboxed, Capability::Process, "unwalled", LimitRange::Flag),
];

impl CapabilitySettingKey {
    /// The default of a setting, in bytes, milliseconds or as a count.
    fn default_value(self) -> u64 {
        match self {
            Self::Quota => STATE_QUOTA_DEFAULT_BYTES,
            Self::Value => STATE_VALUE_DEFAULT_BYTES,
            Self::Timers => SCHEDULE_TIMERS_DEFAULT.into(),
            Self::Interval => SCHEDULE_INTERVAL_DEFAULT.as_secs() * 1000,
            Self::PerMinute => NOTIFY_PER_MINUTE_DEFAULT.into(),
            Self::Confirm | Self::Network | Self::Unsandboxed => 0,
        }
    }

    /// Whether one value grants less than another.
    fn is_stricter_value(self, one: u64, other: u64) -> bool {
        match self {
            Self::Interval => one > other,
            Self::Quota
            | Self::Value
            | Self::Timers
            | Self::PerMinute
            | Self::Confirm
            | Self::Network
            | Self::Unsandboxed => one < other,
        }
    }
}

/// The statements of policy files about one capability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CapabilitySettings {
    /// The place of the grant, if there is one.
    pub(crate) granted: Option<SourceLocation>,
    stated: BTreeMap<CapabilitySettingKey, StatedValue>,
}

impl CapabilitySettings {
    /// No statement about the capability.
    pub(crate) fn empty() -> Self {
        Self { granted: None, stated: BTreeMap::new() }
    }

    /// Grants the capability, and keeps the stated settings.
    pub(crate) fn with_grant(self, place: SourceLocation) -> Self {
        Self { granted: Some(place), ..self }
    }

    /// Sets a flag.
    pub(crate) fn with_flag(
        mut self,
        setting: CapabilitySettingKey,
        place: SourceLocation,
    ) -> Self {
        self.stated.insert(setting, StatedValue { value: 1, place });
        self
    }

    /// Reads `true` or a table of settings. A project's table grants nothing; its settings count
    /// only where they are stricter.
    pub(crate) fn from_toml(
        capability: Capability,
        item: TomlItem<'_>,
        tier: PolicyTier,
    ) -> Result<Self, SourceError> {
        let place = item.place();
        let grants = tier != PolicyTier::Project;
        let granted = grants.then(|| place.clone());
        if item.is_boolean() {
            return Ok(Self { granted, stated: BTreeMap::new() });
        }
        if !item.is_table() {
            return item.type_mismatch("true, false or a table");
        }
        let stated = item.read_section(|section| {
            let mut stated = BTreeMap::new();
            for (setting, _, key, span) in KEYS.iter().filter(|key| key.1 == capability) {
                if let Some(found) =
                    section.read_optional(key, |item| read_setting(span, item, tier))?
                {
                    stated.insert(*setting, found);
                }
            }
            Ok(stated)
        })?;
        Ok(Self { granted, stated })
    }

    /// Adds the statements of a file that may grant.
    pub(crate) fn merge_from(&mut self, other: Self) {
        self.granted = self.granted.take().or(other.granted);
        for (setting, theirs) in other.stated {
            let own = self.stated.entry(setting).or_insert_with(|| theirs.clone());
            if setting.is_stricter_value(theirs.value, own.value) {
                *own = theirs;
            }
        }
    }

    /// Adds the settings of a project's file that are stricter than the effective values without
    /// it.
    pub(crate) fn tighten_with(&mut self, other: Self) {
        for (setting, theirs) in other.stated {
            if setting.is_stricter_value(theirs.value, self.effective_value(setting)) {
                self.stated.insert(setting, theirs);
            }
        }
    }

    /// The effective value of a setting.
    pub(crate) fn effective_value(&self, setting: CapabilitySettingKey) -> u64 {
        self.stated.get(&setting).map_or(setting.default_value(), |stated| stated.value)
    }

    /// Whether a flag is set.
    pub(crate) fn is_flag_set(&self, setting: CapabilitySettingKey) -> bool {
        self.effective_value(setting) != 0
    }

    /// The place of a stated setting.
    pub(crate) fn setting_place(&self, setting: CapabilitySettingKey) -> Option<&SourceLocation> {
        self.stated.get(&setting).map(|stated| &stated.place)
    }

    /// The value of the key, as TOML.
    pub(crate) fn to_toml(&self) -> String {
        let text = |(setting, _, key, span): &Key| {
            let stated = self.stated.get(setting)?;
            Some(format!("{key} = {}", span.format_value(stated.value)))
        };
        let stated: Vec<_> = KEYS.iter().filter_map(text).collect();
        match stated.is_empty() {
            true => "true".to_owned(),
            false => format!("{{ {} }}", stated.join(", ")),
        }
    }
}

fn read_setting(
    span: &LimitRange,
    item: TomlItem<'_>,
    tier: PolicyTier,
) -> Result<StatedValue, SourceError> {
    match span {
        LimitRange::Flag if item.is_true() => span.read_value(tier.check_may_grant(item)?),
        LimitRange::Flag | LimitRange::Time(_) | LimitRange::Bytes(_) | LimitRange::Count(_) => {
            span.read_value(item)
        }
    }
}
