//! Capabilities that are switched on or off, and their settings.
//!
//! Files are combined setting by setting: a grant in one file is enough, and the strictest stated
//! value of a setting applies. `confirm = false` in one file is not overridden by `true` in
//! another.

use std::collections::BTreeMap;

use super::kind::{CapabilityEntry, EntryValue, entry_values};
use crate::{
    document::TomlItem,
    limits::{LimitRange, StatedValue},
    source::{SourceError, SourceLocation},
    tier::PolicyTier,
};

/// A setting of a capability.
#[derive(Debug)]
pub(crate) struct SettingSpec {
    /// Its key.
    pub(crate) key: &'static str,
    /// Its unit and its range.
    pub(crate) range: LimitRange,
    /// Its default, in bytes, milliseconds or as a count; 0 for a flag that is not set.
    pub(crate) default: u64,
    /// Whether a larger value grants less.
    pub(crate) is_larger_stricter: bool,
}

/// The statements of policy files about one capability.
#[derive(Debug, Clone)]
pub(crate) struct CapabilitySettings {
    specs: &'static [SettingSpec],
    stated: BTreeMap<&'static str, StatedValue>,
}

impl SettingSpec {
    /// A setting whose smaller value is stricter.
    pub(crate) const fn new(key: &'static str, range: LimitRange, default: u64) -> Self {
        Self { key, range, default, is_larger_stricter: false }
    }

    /// A flag, which grants something if it is set.
    pub(crate) const fn flag(key: &'static str) -> Self {
        Self::new(key, LimitRange::Flag, 0)
    }

    fn is_stricter_value(&self, one: u64, other: u64) -> bool {
        if self.is_larger_stricter { one > other } else { one < other }
    }
}

impl CapabilitySettings {
    /// No statement about any setting.
    pub(crate) fn new(specs: &'static [SettingSpec]) -> Self {
        Self { specs, stated: BTreeMap::new() }
    }

    /// The settings of the entry that switches a capability on.
    pub(crate) fn of<'e>(
        entries: impl IntoIterator<Item = &'e CapabilityEntry>,
    ) -> Option<&'e Self> {
        entry_values(entries).next()
    }

    /// Reads `true` or a table of settings. A project's table grants nothing; its settings count
    /// only where they are stricter.
    pub(crate) fn read_entry(
        specs: &'static [SettingSpec],
        item: TomlItem<'_>,
        tier: PolicyTier,
    ) -> Result<CapabilityEntry, SourceError> {
        let place = item.place();
        let mut settings = Self::new(specs);
        if !item.is_boolean() {
            if !item.is_table() {
                return item.type_mismatch("true, false or a table");
            }
            item.read_section(|section| {
                for SettingSpec { key, range, .. } in specs {
                    let stated =
                        section.read_optional(key, |item| read_setting(range, item, tier))?;
                    settings.stated.extend(stated.map(|stated| (*key, stated)));
                }
                Ok(())
            })?;
        }
        let is_grant = tier != PolicyTier::Project;
        Ok(CapabilityEntry { is_grant, ..CapabilityEntry::new(settings, place) })
    }

    /// Adds the statements of another file. Those of a project apply where they are stricter than
    /// the effective values without it.
    pub(crate) fn merge_entries(
        own: &mut Vec<CapabilityEntry>,
        theirs: Vec<CapabilityEntry>,
        tier: PolicyTier,
    ) {
        for entry in theirs {
            let merged = own.first().zip(Self::of(own.iter())).zip(Self::of([&entry]));
            let merged = merged.map(|((first, settings), others)| {
                let merged = settings.merge(others, tier);
                CapabilityEntry::new(merged, first.place.clone())
            });
            match merged {
                Some(merged) => *own = vec![merged],
                None if entry.is_grant => own.push(entry),
                // There is nothing to tighten.
                None => {}
            }
        }
    }

    fn merge(&self, other: &Self, tier: PolicyTier) -> Self {
        let mut merged = self.clone();
        for spec in self.specs {
            let Some(theirs) = other.stated.get(spec.key) else { continue };
            let own = match tier {
                PolicyTier::Admin | PolicyTier::User => {
                    self.stated.get(spec.key).map(|stated| stated.value)
                }
                PolicyTier::Project => Some(self.effective_value(spec.key)),
            };
            if own.is_none_or(|own| spec.is_stricter_value(theirs.value, own)) {
                merged.stated.insert(spec.key, theirs.clone());
            }
        }
        merged
    }

    /// Sets a flag.
    pub(crate) fn with_flag(&self, key: &'static str, place: SourceLocation) -> Self {
        let mut settings = self.clone();
        settings.stated.insert(key, StatedValue { value: 1, place });
        settings
    }

    /// The effective value of a setting.
    pub(crate) fn effective_value(&self, key: &str) -> u64 {
        let default = || self.specs.iter().find(|spec| spec.key == key).map(|spec| spec.default);
        let stated = self.stated.get(key).map(|stated| stated.value);
        stated.or_else(default).unwrap_or_default()
    }

    /// Whether a flag is set.
    pub(crate) fn is_flag_set(&self, key: &str) -> bool {
        self.effective_value(key) != 0
    }

    /// The effective value of a setting that is a count.
    pub(crate) fn effective_count(&self, key: &str) -> u32 {
        u32::try_from(self.effective_value(key)).unwrap_or(u32::MAX)
    }

    /// The place of a stated setting.
    pub(crate) fn setting_place(&self, key: &str) -> Option<&SourceLocation> {
        self.stated.get(key).map(|stated| &stated.place)
    }
}

impl EntryValue for CapabilitySettings {
    fn to_toml(&self) -> String {
        let text = |spec: &SettingSpec| {
            let stated = self.stated.get(spec.key)?;
            Some(format!("{} = {}", spec.key, spec.range.format_value(stated.value)))
        };
        let stated: Vec<_> = self.specs.iter().filter_map(text).collect();
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
