//! Capabilities that are granted with yes or no, and the settings that say how much of them.
//!
//! Files are brought together setting by setting: either file may grant, and of what several state
//! the strictest counts. A file that says `confirm = false` is not overruled by one that says
//! `true`.

use std::{collections::BTreeMap, time::Duration};

use super::Capability;
use crate::{
    document::Item,
    limits::{Span, Stated},
    source::{Place, SourceError},
    tier::Tier,
};

/// All keys and values of one plugin and user: some thousand notes, and no place to hoard in.
pub const STATE_QUOTA_STANDARD_BYTES: u64 = 1 << 20;

/// The largest quota that a policy may give: the store is one file, and not a file server.
const STATE_QUOTA_BYTES_MAX: u64 = 1 << 30;

/// The longest single value: a document of text; what is larger is a file.
pub const STATE_VALUE_STANDARD_BYTES: u64 = 64 << 10;

/// The longest value that a policy may allow: each is held in memory as a whole.
const STATE_VALUE_BYTES_MAX: u64 = 64 << 20;

/// Timers of one plugin and user: more than anybody keeps an eye on.
pub const SCHEDULE_TIMERS_STANDARD: u32 = 64;

/// The most timers that a policy may allow: all of them are looked at when one is set.
const SCHEDULE_TIMERS_MAX: u32 = 10_000;

/// Least time between two firings of a repeated timer: each is a run of the plugin.
pub const SCHEDULE_INTERVAL_STANDARD: Duration = Duration::from_secs(60);

/// The least that a policy may set: what comes more often is never set, whoever allows it.
const SCHEDULE_INTERVAL_MS_MIN: u64 = 1000;

/// The most that a policy may set: what fires daily is no burden.
const SCHEDULE_INTERVAL_MS_MAX: u64 = 24 * 60 * 60 * 1000;

/// Messages of a plugin within a minute: a lively timer fits, a flood does not.
pub const NOTIFY_PER_MINUTE_STANDARD: u32 = 10;

/// The most messages that a policy may allow: ten a second, which nobody can read.
const NOTIFY_PER_MINUTE_MAX: u32 = 600;

/// A setting of a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Setting {
    Quota,
    Value,
    Timers,
    Interval,
    PerMinute,
    Confirm,
    Network,
    Unwalled,
}

/// A setting with its capability and key, and what may be written.
type Key = (Setting, Capability, &'static str, Span);

/// Every setting, in the order in which they are written.
static KEYS: [Key; 8] = [
    (Setting::Quota, Capability::State, "quota", Span::Bytes(1..=STATE_QUOTA_BYTES_MAX)),
    (Setting::Value, Capability::State, "value", Span::Bytes(1..=STATE_VALUE_BYTES_MAX)),
    (Setting::Timers, Capability::Schedule, "timers", Span::Count(1..=SCHEDULE_TIMERS_MAX)),
    (
        Setting::Interval,
        Capability::Schedule,
        "interval",
        Span::Time(SCHEDULE_INTERVAL_MS_MIN..=SCHEDULE_INTERVAL_MS_MAX),
    ),
    (Setting::PerMinute, Capability::Notify, "per-minute", Span::Count(1..=NOTIFY_PER_MINUTE_MAX)),
    (Setting::Confirm, Capability::Ui, "confirm", Span::Flag),
    (Setting::Network, Capability::Process, "network", Span::Flag),
    (Setting::Unwalled, Capability::Process, "unwalled", Span::Flag),
];

impl Setting {
    /// What holds where nobody states it, in bytes, milliseconds or pieces.
    fn standard(self) -> u64 {
        match self {
            Self::Quota => STATE_QUOTA_STANDARD_BYTES,
            Self::Value => STATE_VALUE_STANDARD_BYTES,
            Self::Timers => SCHEDULE_TIMERS_STANDARD.into(),
            Self::Interval => SCHEDULE_INTERVAL_STANDARD.as_secs() * 1000,
            Self::PerMinute => NOTIFY_PER_MINUTE_STANDARD.into(),
            Self::Confirm | Self::Network | Self::Unwalled => 0,
        }
    }

    /// Whether one value grants less than another.
    fn is_stricter(self, one: u64, other: u64) -> bool {
        match self {
            Self::Interval => one > other,
            Self::Quota
            | Self::Value
            | Self::Timers
            | Self::PerMinute
            | Self::Confirm
            | Self::Network
            | Self::Unwalled => one < other,
        }
    }
}

/// What files say about one capability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Switch {
    /// Where it is granted, if it is.
    pub(crate) granted: Option<Place>,
    stated: BTreeMap<Setting, Stated>,
}

impl Switch {
    /// No word about the capability.
    pub(crate) fn none() -> Self {
        Self { granted: None, stated: BTreeMap::new() }
    }

    /// Grants it, with what is stated already.
    pub(crate) fn granted_at(self, place: Place) -> Self {
        Self { granted: Some(place), ..self }
    }

    /// States a flag.
    pub(crate) fn with_flag(mut self, setting: Setting, place: Place) -> Self {
        self.stated.insert(setting, Stated { value: 1, place });
        self
    }

    /// Reads `true` or a table of settings. A project's table grants nothing; what it states counts
    /// where it is stricter.
    pub(crate) fn read(
        capability: Capability,
        item: Item<'_>,
        tier: Tier,
    ) -> Result<Self, SourceError> {
        let place = item.place();
        let grants = tier != Tier::Project;
        let granted = grants.then(|| place.clone());
        if item.is_boolean() {
            return Ok(Self { granted, stated: BTreeMap::new() });
        }
        if !item.is_table() {
            return item.mismatch("true, false or a table");
        }
        let stated = item.section(|section| {
            let mut stated = BTreeMap::new();
            for (setting, _, key, span) in KEYS.iter().filter(|key| key.1 == capability) {
                if let Some(found) = section.optional(key, |item| read_one(span, item, tier))? {
                    stated.insert(*setting, found);
                }
            }
            Ok(stated)
        })?;
        Ok(Self { granted, stated })
    }

    /// Adds what a file that may grant says.
    pub(crate) fn join(&mut self, other: Self) {
        self.granted = self.granted.take().or(other.granted);
        for (setting, theirs) in other.stated {
            let own = self.stated.entry(setting).or_insert_with(|| theirs.clone());
            if setting.is_stricter(theirs.value, own.value) {
                *own = theirs;
            }
        }
    }

    /// Adds what a project's file states, where that is stricter than what holds without it.
    pub(crate) fn tighten(&mut self, other: Self) {
        for (setting, theirs) in other.stated {
            if setting.is_stricter(theirs.value, self.value(setting)) {
                self.stated.insert(setting, theirs);
            }
        }
    }

    /// What holds of a setting.
    pub(crate) fn value(&self, setting: Setting) -> u64 {
        self.stated.get(&setting).map_or(setting.standard(), |stated| stated.value)
    }

    /// Whether a flag holds.
    pub(crate) fn is_set(&self, setting: Setting) -> bool {
        self.value(setting) != 0
    }

    /// Where a setting is stated.
    pub(crate) fn place_of(&self, setting: Setting) -> Option<&Place> {
        self.stated.get(&setting).map(|stated| &stated.place)
    }

    /// The value of the key, as TOML.
    pub(crate) fn text(&self) -> String {
        let text = |(setting, _, key, span): &Key| {
            let stated = self.stated.get(setting)?;
            Some(format!("{key} = {}", span.text(stated.value)))
        };
        let stated: Vec<_> = KEYS.iter().filter_map(text).collect();
        match stated.is_empty() {
            true => "true".to_owned(),
            false => format!("{{ {} }}", stated.join(", ")),
        }
    }
}

fn read_one(span: &Span, item: Item<'_>, tier: Tier) -> Result<Stated, SourceError> {
    match span {
        Span::Flag if item.is_true() => span.read(tier.granting(item)?),
        Span::Flag | Span::Time(_) | Span::Bytes(_) | Span::Count(_) => span.read(item),
    }
}
