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
    switch::Switch,
};
use crate::{
    document::{Item, Section},
    fix::{toml_list, toml_string},
    folder::{FsEntry, are_nested},
    source::{Place, SourceError, quoted},
    tier::Tier,
};

/// The capabilities in one plugin's table, whether or not the plugin requests them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Capabilities {
    /// The capabilities that are switched on or off.
    pub(super) switches: BTreeMap<Capability, Switch>,
    /// One entry for each file that grants it.
    pub(crate) open_url: Vec<OpenUrlEntry>,
    pub(crate) packages: Vec<PackageEntry>,
    pub(crate) scratch: Vec<ScratchEntry>,
    pub(crate) listen: Vec<ListenGrant>,
    /// The denied capabilities, with the places of their denials.
    denied: BTreeMap<Capability, Place>,
    /// The denied capabilities that only a project denies.
    withheld: BTreeSet<Capability>,
}

impl Capabilities {
    /// No statement about any capability.
    pub(crate) fn none() -> Self {
        Self {
            switches: BTreeMap::new(),
            open_url: Vec::new(),
            packages: Vec::new(),
            scratch: Vec::new(),
            listen: Vec::new(),
            denied: BTreeMap::new(),
            withheld: BTreeSet::new(),
        }
    }

    /// Takes every key of a capability out of a plugin's table.
    pub(crate) fn read(section: &mut Section<'_>, tier: Tier) -> Result<Self, SourceError> {
        let mut table = Self::none();
        for capability in Capability::ALL {
            if let Some(item) = section.take(capability.word()) {
                table.read_one(capability, item, tier)?;
            }
        }
        Ok(table)
    }

    fn read_one(
        &mut self,
        capability: Capability,
        item: Item<'_>,
        tier: Tier,
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
                let item = if item.is_true() { tier.granting(item)? } else { item };
                let switch = Switch::read(capability, item, tier)?;
                self.switches.insert(capability, switch);
            }
            Capability::OpenUrl => self.open_url.push(OpenUrlEntry::read(tier.granting(item)?)?),
            Capability::Packages => {
                self.packages = bounded(tier.granting(item)?, PACKAGES_MAX, PackageEntry::read)?;
            }
            Capability::Scratch => {
                self.scratch = bounded(tier.granting(item)?, SCRATCHES_MAX, ScratchEntry::read)?;
            }
            Capability::Listen => {
                self.listen = bounded(tier.granting(item)?, LISTENS_MAX, ListenGrant::read)?;
            }
        }
        Ok(())
    }

    /// Adds the statements of another file: a grant in one file is enough, and so is a denial.
    pub(crate) fn join(&mut self, tier: Tier, other: Self) {
        for (capability, theirs) in other.switches {
            let own = self.switches.entry(capability).or_insert_with(Switch::none);
            match tier {
                Tier::Admin | Tier::User => own.join(theirs),
                Tier::Project => own.tighten(theirs),
            }
        }
        self.open_url.extend(other.open_url);
        self.packages.extend(other.packages);
        let scratch = other.scratch.into_iter();
        self.scratch = added(&self.scratch, scratch, ScratchEntry::repeats);
        let listen = other.listen.into_iter();
        self.listen = added(&self.listen, listen, ListenGrant::repeats);
        for (capability, place) in other.denied {
            if tier == Tier::Project && !self.denied.contains_key(&capability) {
                self.withheld.insert(capability);
            }
            self.denied.entry(capability).or_insert(place);
        }
    }

    /// The place where a capability is denied, if it is.
    pub(crate) fn denied_at(&self, capability: Capability) -> Option<&Place> {
        self.denied.get(&capability)
    }

    /// Whether only a project denies a capability.
    pub(super) fn is_withheld(&self, capability: Capability) -> bool {
        self.withheld.contains(&capability)
    }

    /// The statements about a capability, if it is switched on and not denied.
    pub(super) fn granted(&self, capability: Capability) -> Option<&Switch> {
        self.switched_on(capability).filter(|_| !self.denied.contains_key(&capability))
    }

    /// The statements about a capability, if it is switched on, even if it is denied.
    pub(super) fn switched_on(&self, capability: Capability) -> Option<&Switch> {
        self.switches.get(&capability).filter(|switch| switch.granted.is_some())
    }

    /// Every entry about a capability in the files, with its text.
    pub(crate) fn entries(&self, capability: Capability) -> Vec<(&Place, String)> {
        match capability {
            Capability::State
            | Capability::Schedule
            | Capability::Notify
            | Capability::Progress
            | Capability::Ui
            | Capability::Process => {
                let switch = self.switches.get(&capability).into_iter();
                switch.filter_map(|s| Some((s.granted.as_ref()?, s.text()))).collect()
            }
            Capability::OpenUrl => self.open_url.iter().map(|e| (&e.place, e.text())).collect(),
            Capability::Packages => {
                let text = |entry: &PackageEntry| toml_string(&entry.pattern.to_string());
                self.packages.iter().map(|entry| (&entry.place, text(entry))).collect()
            }
            Capability::Scratch => self.scratch.iter().map(|e| (&e.place, e.to_string())).collect(),
            Capability::Listen => self.listen.iter().map(|e| (&e.place, e.text())).collect(),
        }
    }

    /// The places of all entries about capabilities.
    pub(crate) fn places(&self) -> impl Iterator<Item = &Place> {
        let entries = Capability::ALL.into_iter().flat_map(|capability| self.entries(capability));
        entries.map(|(place, _)| place).chain(self.denied.values())
    }

    /// The keys of one file with their values, as TOML.
    pub(crate) fn lines(&self) -> Vec<(&'static str, String)> {
        let line = |capability: Capability| Some((capability.word(), self.value(capability)?));
        Capability::ALL.into_iter().filter_map(line).collect()
    }

    fn value(&self, capability: Capability) -> Option<String> {
        if self.denied.contains_key(&capability) {
            return Some("false".to_owned());
        }
        let mut texts = self.entries(capability).into_iter().map(|(_, text)| text);
        match is_list(capability) {
            false => texts.next(),
            true => {
                let list = toml_list(texts);
                (list != "[]").then_some(list)
            }
        }
    }

    /// Whether the lists of one file are within the limits for reading.
    pub(super) fn is_bounded(&self) -> bool {
        let pages = self.open_url.iter().map(|entry| entry.allow.len());
        self.packages.len() <= PACKAGES_MAX
            && self.scratch.len() <= SCRATCHES_MAX
            && self.listen.len() <= LISTENS_MAX
            && pages.max().is_none_or(|pages| pages <= PATTERNS_MAX)
    }

    /// Refuses entries that conflict with each other or with `fs` entries.
    pub(crate) fn check(&self, fs: &[FsEntry]) -> Result<(), SourceError> {
        self.check_scratch(fs)?;
        self.check_listen()?;
        match self.granted(Capability::Process) {
            Some(_) => fs.iter().try_for_each(check_of_process),
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
                return Err(place().error(message).with_hint("leave out one of the two"));
            }
            let scratches = others.map(|other| (other.mount.as_str(), &other.place));
            let folders = fs.iter().map(|other| (other.mount.guest.as_str(), &other.place));
            let mut mounts = scratches.chain(folders);
            if let Some((guest, at)) = mounts.find(|(g, _)| are_nested(Path::new(g), mount)) {
                let (mount, guest) = (quoted(&entry.mount), quoted(guest));
                let message =
                    format!("the mount {mount} lies in or around the mount {guest} of {at}");
                let error = place().error(message);
                return Err(error.with_hint("give each its own folder under /"));
            }
        }
        Ok(())
    }

    fn check_listen(&self) -> Result<(), SourceError> {
        for (index, entry) in self.listen.iter().enumerate() {
            let mut others = self.listen[..index].iter();
            let conflict = others.find_map(|other| Some((entry.conflict(other)?, &other.place)));
            if let Some((does, at)) = conflict {
                let message = format!("the entry at {at} {does}");
                let error = entry.place.clone().error(message);
                return Err(error.with_hint("leave out one of the two, or change its port or path"));
            }
        }
        Ok(())
    }
}

/// Refuses a folder with properties that cannot be enforced for a native program, which sees the
/// folder at its host path.
fn check_of_process(entry: &FsEntry) -> Result<(), SourceError> {
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
    let error = entry.place.clone().error(message);
    Err(error.with_hint("a program of this machine sees the folder as it is: leave the key out"))
}

/// Whether the key of a capability has a list as its value.
fn is_list(capability: Capability) -> bool {
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
pub(super) fn bounded<'d, T>(
    item: Item<'d>,
    most: usize,
    read: impl FnMut(Item<'d>) -> Result<T, SourceError>,
) -> Result<Vec<T>, SourceError> {
    let (place, label) = (item.place(), item.label().to_owned());
    let list = item.list(read)?;
    match list.len() <= most {
        true => Ok(list),
        false => Err(place.error(format!("{label} holds more than {most} entries"))),
    }
}

/// The entries of two files, without duplicates.
fn added<T: Clone>(
    own: &[T],
    theirs: impl Iterator<Item = T>,
    repeats: impl Fn(&T, &T) -> bool,
) -> Vec<T> {
    let is_new = |entry: &T| !own.iter().any(|other| repeats(entry, other));
    own.iter().cloned().chain(theirs.filter(is_new)).collect()
}
