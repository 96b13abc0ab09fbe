//! The capabilities in one plugin's tables of the policy files, and their combination.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Capability,
    kind::{CapabilityEntry, ValueShape},
};
use crate::{
    document::{TomlItem, TomlSection},
    folder::FsEntry,
    source::{SourceError, SourceLocation},
    tier::PolicyTier,
    toml_text::toml_list,
};

/// The capabilities in one plugin's table, whether or not the plugin requests them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CapabilityTable {
    entries: BTreeMap<Capability, Vec<CapabilityEntry>>,
    /// The denied capabilities, with the places of their denials.
    denied: BTreeMap<Capability, SourceLocation>,
    /// The denied capabilities that only a project denies.
    denied_by_project: BTreeSet<Capability>,
}

impl CapabilityTable {
    /// No statement about any capability.
    pub(crate) fn empty() -> Self {
        Self {
            entries: BTreeMap::new(),
            denied: BTreeMap::new(),
            denied_by_project: BTreeSet::new(),
        }
    }

    /// Takes every key of a capability out of a plugin's table.
    pub(crate) fn from_toml(
        section: &mut TomlSection<'_>,
        tier: PolicyTier,
    ) -> Result<Self, SourceError> {
        let mut table = Self::empty();
        for capability in Capability::ALL {
            if let Some(item) = section.take_item(capability.as_str()) {
                table.read_capability(capability, item, tier)?;
            }
        }
        Ok(table)
    }

    fn read_capability(
        &mut self,
        capability: Capability,
        item: TomlItem<'_>,
        tier: PolicyTier,
    ) -> Result<(), SourceError> {
        if item.is_false() {
            self.denied.insert(capability, item.place());
            return Ok(());
        }
        let kind = capability.kind();
        // A project may tighten the settings of a switch.
        let may_tighten = kind.shape() == ValueShape::Switch && !item.is_true();
        let item = if may_tighten { item } else { tier.check_may_grant(item)? };
        let entries = match kind.shape() {
            ValueShape::Switch | ValueShape::Table(_) => vec![kind.read_entry(item, tier)?],
            ValueShape::List(most) => {
                read_bounded_list(item, most, |item| kind.read_entry(item, tier))?
            }
        };
        self.entries.insert(capability, entries);
        Ok(())
    }

    /// Adds the statements of another file: a grant in one file is enough, and so is a denial.
    pub(crate) fn merge_from(&mut self, tier: PolicyTier, other: Self) {
        for (capability, theirs) in other.entries {
            let own = self.entries.entry(capability).or_default();
            capability.kind().merge_entries(own, theirs, tier);
        }
        for (capability, place) in other.denied {
            if tier == PolicyTier::Project && !self.denied.contains_key(&capability) {
                self.denied_by_project.insert(capability);
            }
            self.denied.entry(capability).or_insert(place);
        }
    }

    /// The place where a capability is denied, if it is.
    pub(crate) fn denied_at(&self, capability: Capability) -> Option<&SourceLocation> {
        self.denied.get(&capability)
    }

    /// Whether only a project denies a capability.
    pub(super) fn is_denied_only_by_project(&self, capability: Capability) -> bool {
        self.denied_by_project.contains(&capability)
    }

    /// The entries that grant a capability, even if another one denies it.
    pub(crate) fn grants(&self, capability: Capability) -> impl Iterator<Item = &CapabilityEntry> {
        let entries = self.entries.get(&capability).into_iter().flatten();
        entries.filter(|entry| entry.is_grant)
    }

    /// The entries of a capability, to change them.
    pub(crate) fn entries_mut(&mut self, capability: Capability) -> &mut Vec<CapabilityEntry> {
        self.entries.entry(capability).or_default()
    }

    /// Every entry about a capability in the files, with its text.
    pub(crate) fn entries_with_text(
        &self,
        capability: Capability,
    ) -> Vec<(&SourceLocation, String)> {
        self.grants(capability).map(|entry| (&entry.place, entry.to_toml())).collect()
    }

    /// The places of all entries about capabilities.
    pub(crate) fn entry_places(&self) -> impl Iterator<Item = &SourceLocation> {
        let grants = Capability::ALL.into_iter().flat_map(|capability| self.grants(capability));
        grants.map(|entry| &entry.place).chain(self.denied.values())
    }

    /// The keys of one file with their values, as TOML.
    pub(crate) fn toml_pairs(&self) -> Vec<(&'static str, String)> {
        let line =
            |capability: Capability| Some((capability.as_str(), self.toml_value(capability)?));
        Capability::ALL.into_iter().filter_map(line).collect()
    }

    fn toml_value(&self, capability: Capability) -> Option<String> {
        if self.denied.contains_key(&capability) {
            return Some("false".to_owned());
        }
        let mut texts = self.grants(capability).map(CapabilityEntry::to_toml).peekable();
        texts.peek()?;
        match capability.kind().shape() {
            ValueShape::Switch | ValueShape::Table(_) => texts.next(),
            ValueShape::List(_) => Some(toml_list(texts)),
        }
    }

    /// Whether the lists of one file are within the limits for reading.
    pub(crate) fn is_within_limits(&self) -> bool {
        self.entries.iter().all(|(of, entries)| of.kind().is_within_limits(entries))
    }

    /// Refuses entries that conflict with each other or with `fs` entries.
    pub(crate) fn check_conflicts(&self, fs: &[FsEntry]) -> Result<(), SourceError> {
        Capability::ALL.into_iter().try_for_each(|of| of.kind().check_conflicts(self, fs))
    }
}

/// Reads a list of a bounded length.
pub(crate) fn read_bounded_list<'d, T>(
    item: TomlItem<'d>,
    most: usize,
    read: impl FnMut(TomlItem<'d>) -> Result<T, SourceError>,
) -> Result<Vec<T>, SourceError> {
    let (place, label) = (item.place(), item.label().to_owned());
    let list = item.read_list(read)?;
    match list.len() <= most {
        true => Ok(list),
        false => Err(place.into_error(format!("{label} holds more than {most} entries"))),
    }
}
