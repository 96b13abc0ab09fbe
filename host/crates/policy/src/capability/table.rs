//! The capabilities in one plugin's tables of the policy files, and their combination.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use super::{
    Capability, ListenGrant,
    listen::LISTENS_MAX,
    open_url::{OpenUrlEntry, PATTERNS_MAX},
    packages::{PACKAGES_MAX, PackageEntry},
    scratch::{SCRATCHES_MAX, ScratchEntry},
    settings::CapabilitySettings,
};
use crate::{
    document::{TomlItem, TomlSection},
    fix::{toml_list, toml_string},
    folder::{FsEntry, are_nested},
    source::{SourceError, SourceLocation, quoted},
    tier::PolicyTier,
};

/// The capabilities in one plugin's table, whether or not the plugin requests them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CapabilityTable {
    /// The capabilities that are switched on or off.
    pub(super) settings: BTreeMap<Capability, CapabilitySettings>,
    /// One entry for each file that grants it.
    pub(crate) open_url: Vec<OpenUrlEntry>,
    pub(crate) packages: Vec<PackageEntry>,
    pub(crate) scratch: Vec<ScratchEntry>,
    pub(crate) listen: Vec<ListenGrant>,
    /// The denied capabilities, with the places of their denials.
    denied: BTreeMap<Capability, SourceLocation>,
    /// The denied capabilities that only a project denies.
    denied_by_project: BTreeSet<Capability>,
}

impl CapabilityTable {
    /// No statement about any capability.
    pub(crate) fn empty() -> Self {
        Self {
            settings: BTreeMap::new(),
            open_url: Vec::new(),
            packages: Vec::new(),
            scratch: Vec::new(),
            listen: Vec::new(),
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
        match capability {
            Capability::State
            | Capability::Schedule
            | Capability::Notify
            | Capability::Progress
            | Capability::Ui
            | Capability::Process => {
                let item = if item.is_true() { tier.check_may_grant(item)? } else { item };
                let settings = CapabilitySettings::from_toml(capability, item, tier)?;
                self.settings.insert(capability, settings);
            }
            Capability::OpenUrl => {
                self.open_url.push(OpenUrlEntry::from_toml(tier.check_may_grant(item)?)?)
            }
            Capability::Packages => {
                self.packages = read_bounded_list(
                    tier.check_may_grant(item)?,
                    PACKAGES_MAX,
                    PackageEntry::from_toml,
                )?;
            }
            Capability::Scratch => {
                self.scratch = read_bounded_list(
                    tier.check_may_grant(item)?,
                    SCRATCHES_MAX,
                    ScratchEntry::from_toml,
                )?;
            }
            Capability::Listen => {
                self.listen = read_bounded_list(
                    tier.check_may_grant(item)?,
                    LISTENS_MAX,
                    ListenGrant::from_toml,
                )?;
            }
        }
        Ok(())
    }

    /// Adds the statements of another file: a grant in one file is enough, and so is a denial.
    pub(crate) fn merge_from(&mut self, tier: PolicyTier, other: Self) {
        for (capability, theirs) in other.settings {
            let own = self.settings.entry(capability).or_insert_with(CapabilitySettings::empty);
            match tier {
                PolicyTier::Admin | PolicyTier::User => own.merge_from(theirs),
                PolicyTier::Project => own.tighten_with(theirs),
            }
        }
        self.open_url.extend(other.open_url);
        self.packages.extend(other.packages);
        let scratch = other.scratch.into_iter();
        self.scratch =
            merge_without_duplicates(&self.scratch, scratch, ScratchEntry::is_duplicate_of);
        let listen = other.listen.into_iter();
        self.listen = merge_without_duplicates(&self.listen, listen, ListenGrant::is_duplicate_of);
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

    /// The statements about a capability, if it is switched on and not denied.
    pub(super) fn granted_settings(&self, capability: Capability) -> Option<&CapabilitySettings> {
        self.settings_even_if_denied(capability).filter(|_| !self.denied.contains_key(&capability))
    }

    /// The statements about a capability, if it is switched on, even if it is denied.
    pub(super) fn settings_even_if_denied(
        &self,
        capability: Capability,
    ) -> Option<&CapabilitySettings> {
        self.settings.get(&capability).filter(|settings| settings.granted.is_some())
    }

    /// Every entry about a capability in the files, with its text.
    pub(crate) fn entries_with_text(
        &self,
        capability: Capability,
    ) -> Vec<(&SourceLocation, String)> {
        match capability {
            Capability::State
            | Capability::Schedule
            | Capability::Notify
            | Capability::Progress
            | Capability::Ui
            | Capability::Process => {
                let settings = self.settings.get(&capability).into_iter();
                settings.filter_map(|s| Some((s.granted.as_ref()?, s.to_toml()))).collect()
            }
            Capability::OpenUrl => self.open_url.iter().map(|e| (&e.place, e.to_toml())).collect(),
            Capability::Packages => {
                let text = |entry: &PackageEntry| toml_string(&entry.pattern.to_string());
                self.packages.iter().map(|entry| (&entry.place, text(entry))).collect()
            }
            Capability::Scratch => self.scratch.iter().map(|e| (&e.place, e.to_string())).collect(),
            Capability::Listen => self.listen.iter().map(|e| (&e.place, e.to_toml())).collect(),
        }
    }

    /// The places of all entries about capabilities.
    pub(crate) fn entry_places(&self) -> impl Iterator<Item = &SourceLocation> {
        let entries =
            Capability::ALL.into_iter().flat_map(|capability| self.entries_with_text(capability));
        entries.map(|(place, _)| place).chain(self.denied.values())
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
        let mut texts = self.entries_with_text(capability).into_iter().map(|(_, text)| text);
        match has_list_value(capability) {
            false => texts.next(),
            true => {
                let list = toml_list(texts);
                (list != "[]").then_some(list)
            }
        }
    }

    /// Whether the lists of one file are within the limits for reading.
    pub(super) fn is_within_limits(&self) -> bool {
        let pages = self.open_url.iter().map(|entry| entry.allow.len());
        self.packages.len() <= PACKAGES_MAX
            && self.scratch.len() <= SCRATCHES_MAX
            && self.listen.len() <= LISTENS_MAX
            && pages.max().is_none_or(|pages| pages <= PATTERNS_MAX)
    }

    /// Refuses entries that conflict with each other or with `fs` entries.
    pub(crate) fn check_conflicts(&self, fs: &[FsEntry]) -> Result<(), SourceError> {
        self.check_scratch(fs)?;
        self.check_listen()?;
        match self.granted_settings(Capability::Process) {
            Some(_) => fs.iter().try_for_each(check_process_folder),
            None => Ok(()),
        }
    }

    fn check_scratch(&self, fs: &[FsEntry]) -> Result<(), SourceError> {
        for (index, entry) in self.scratch.iter().enumerate() {
            let place = || entry.place.clone();
            let mount = Path::new(&entry.mount);
            let others = self.scratch[..index].iter();
            if let Some(other) = others.clone().find(|other| other.name == entry.name) {
                let name = quoted(&entry.name);
                let message = format!("the scratch {name} is granted at {} already", other.place);
                return Err(place().into_error(message).with_hint("leave out one of the two"));
            }
            let scratches = others.map(|other| (other.mount.as_str(), &other.place));
            let folders = fs.iter().map(|other| (other.mount.guest.as_str(), &other.place));
            let mut mounts = scratches.chain(folders);
            if let Some((guest, at)) = mounts.find(|(g, _)| are_nested(Path::new(g), mount)) {
                let (mount, guest) = (quoted(&entry.mount), quoted(guest));
                let message =
                    format!("the mount {mount} lies in or around the mount {guest} of {at}");
                let error = place().into_error(message);
                return Err(error.with_hint("give each its own folder under /"));
            }
        }
        Ok(())
    }

    fn check_listen(&self) -> Result<(), SourceError> {
        for (index, entry) in self.listen.iter().enumerate() {
            let mut others = self.listen[..index].iter();
            let conflict =
                others.find_map(|other| Some((entry.conflict_with(other)?, &other.place)));
            if let Some((does, at)) = conflict {
                let message = format!("the entry at {at} {does}");
                let error = entry.place.clone().into_error(message);
                return Err(error.with_hint("leave out one of the two, or change its port or path"));
            }
        }
        Ok(())
    }
}

/// Refuses a folder with properties that cannot be enforced for a native program, which sees the
/// folder at its host path.
fn check_process_folder(entry: &FsEntry) -> Result<(), SourceError> {
    let mount = &entry.mount;
    let own = mount.host.file_name().map(|name| Path::new("/").join(name));
    let guest = Path::new(&mount.guest);
    let moves = guest != mount.host && Some(guest) != own.as_deref();
    let key = match () {
        () if moves => "mount",
        () if !mount.deny.is_empty() => "deny",
        () if mount.quota_bytes.is_some() => "quota",
        () => return Ok(()),
    };
    let message = format!("\"{key}\" cannot be kept beside \"process\"");
    let error = entry.place.clone().into_error(message);
    Err(error.with_hint("a program of this machine sees the folder as it is: leave the key out"))
}

/// Whether the key of a capability has a list as its value.
fn has_list_value(capability: Capability) -> bool {
    match capability {
        Capability::State
        | Capability::Schedule
        | Capability::Notify
        | Capability::Progress
        | Capability::OpenUrl
        | Capability::Ui
        | Capability::Process => false,
        Capability::Packages | Capability::Scratch | Capability::Listen => true,
    }
}

/// Reads a list of a bounded length.
pub(super) fn read_bounded_list<'d, T>(
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

/// The entries of two files, without duplicates.
fn merge_without_duplicates<T: Clone>(
    own: &[T],
    theirs: impl Iterator<Item = T>,
    repeats: impl Fn(&T, &T) -> bool,
) -> Vec<T> {
    let is_new = |entry: &T| !own.iter().any(|other| repeats(entry, other));
    own.iter().cloned().chain(theirs.filter(is_new)).collect()
}
