//! Scratches: named temporary file systems of a session, shared by the plugins that are granted
//! them.

use std::{collections::BTreeMap, path::Path};

use sallyport_contract::{PluginName, text::shell_word};

use super::{
    Capability, CapabilityKind, HeldCapability, RequestedCapability,
    kind::{CapabilityEntry, EntryValue, GrantedEntries, ValueShape, entry_values},
    table::CapabilityTable,
};
use crate::{
    document::{TomlItem, TomlSection},
    folder::{FsEntry, are_nested, read_path},
    limits::read_in_range,
    source::{SourceError, SourceLocation, quoted},
    tier::PolicyTier,
    toml_text::toml_string,
    unit::ByteSize,
};

/// Default quota of a scratch: a data set to compute on, in memory or on a small disk.
pub const SCRATCH_QUOTA_DEFAULT_BYTES: u64 = 64 << 20;

/// The largest quota of a scratch: it is deleted after the session, so larger data belongs
/// elsewhere.
const SCRATCH_QUOTA_BYTES_MAX: u64 = 64 << 30;

/// Most scratches of one plugin.
pub(super) const SCRATCHES_MAX: usize = 16;

/// A scratch as a plugin sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScratchGrant {
    /// Its name.
    pub name: String,
    /// Its path in the guest.
    pub mount: String,
    /// The total size of its files, in bytes; the same for every plugin that shares it.
    pub quota_bytes: u64,
}

/// An entry of a policy's `scratch` list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScratchEntry {
    pub(crate) name: String,
    pub(crate) mount: String,
    pub(crate) quota_bytes: Option<u64>,
    pub(crate) place: SourceLocation,
}

/// The capability.
pub(crate) struct Scratch;

impl CapabilityKind for Scratch {
    fn word(&self) -> &'static str {
        "scratch"
    }

    fn shape(&self) -> ValueShape {
        ValueShape::List(SCRATCHES_MAX)
    }

    fn action_phrase(&self, detail: Option<&str>) -> String {
        format!("use the scratch {}", detail.unwrap_or_default())
    }

    fn read_request_detail(
        &self,
        section: &mut TomlSection<'_>,
    ) -> Result<Option<String>, SourceError> {
        section.read_required("name", read_scratch_name).map(Some)
    }

    fn read_entry(
        &self,
        item: TomlItem<'_>,
        _tier: PolicyTier,
    ) -> Result<CapabilityEntry, SourceError> {
        let place = item.place();
        item.read_section(|section| {
            let name = section.read_required("name", read_scratch_name)?;
            let mount = section.read_optional("mount", read_scratch_mount)?;
            let bytes = |item: TomlItem<'_>| item.read_byte_size().map(|ByteSize(bytes)| bytes);
            let quota_bytes = section.read_optional("quota", |item| {
                read_in_range(item, bytes, &(1..=SCRATCH_QUOTA_BYTES_MAX), ByteSize)
            })?;
            let mount = mount.unwrap_or_else(|| format!("/{name}"));
            let entry = ScratchEntry { name, mount, quota_bytes, place: place.clone() };
            Ok(CapabilityEntry::new(entry, place))
        })
    }

    fn is_about(&self, entry: &CapabilityEntry, detail: Option<&str>) -> bool {
        entry.value().is_some_and(|entry: &ScratchEntry| Some(entry.name.as_str()) == detail)
    }

    fn check_conflicts(
        &self,
        table: &CapabilityTable,
        folders: &[FsEntry],
    ) -> Result<(), SourceError> {
        let entries: Vec<&ScratchEntry> = entry_values(table.grants(Capability::Scratch)).collect();
        for (index, entry) in entries.iter().enumerate() {
            let place = || entry.place.clone();
            let mount = Path::new(&entry.mount);
            let others = entries[..index].iter();
            if let Some(other) = others.clone().find(|other| other.name == entry.name) {
                let name = quoted(&entry.name);
                let message = format!("the scratch {name} is granted at {} already", other.place);
                return Err(place().into_error(message).with_hint("leave out one of the two"));
            }
            let scratches = others.map(|other| (other.mount.as_str(), &other.place));
            let folders = folders.iter().map(|other| (other.mount.guest.as_str(), &other.place));
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

    /// All plugins that share a scratch get the lowest quota that any of them states.
    fn hold(&self, granted: &GrantedEntries<'_>) -> Option<HeldCapability> {
        let grant = |entry: &ScratchEntry| ScratchGrant {
            name: entry.name.clone(),
            mount: entry.mount.clone(),
            quota_bytes: granted
                .context
                .scratch_quota(&entry.name)
                .unwrap_or(SCRATCH_QUOTA_DEFAULT_BYTES),
        };
        let grants: Vec<_> = granted.values().iter().map(grant).collect();
        let lines = grants.iter().map(ScratchGrant::permission_line).collect();
        Some(HeldCapability::new(grants, lines, self.danger()))
    }

    fn satisfies(&self, held: &HeldCapability, detail: Option<&str>) -> bool {
        let grants: Option<&Vec<ScratchGrant>> = held.value();
        grants.into_iter().flatten().any(|grant| Some(grant.name.as_str()) == detail)
    }

    /// The requested scratches that no file grants, each with a free mount.
    fn missing_entries(
        &self,
        table: &CapabilityTable,
        folders: &[FsEntry],
        requests: &[&RequestedCapability],
    ) -> Vec<CapabilityEntry> {
        let known: Vec<&ScratchEntry> = entry_values(table.grants(Capability::Scratch)).collect();
        let folders = folders.iter().map(|entry| entry.mount.guest.clone());
        let scratches = known.iter().map(|entry| entry.mount.clone());
        let mut taken: Vec<String> = folders.chain(scratches).collect();
        let mut names: Vec<&str> = known.iter().map(|entry| entry.name.as_str()).collect();
        let mut new = Vec::new();
        for name in requests.iter().filter_map(|request| request.detail.as_deref()) {
            if names.contains(&name) {
                continue;
            }
            let mounts = [format!("/{name}"), format!("/scratch-{name}")];
            let is_free = |mount: &String| {
                taken.iter().all(|other| !are_nested(other.as_ref(), mount.as_ref()))
            };
            if let Some(mount) = mounts.into_iter().find(is_free) {
                names.push(name);
                taken.push(mount.clone());
                let place = SourceLocation::unwritten();
                let name = name.to_owned();
                let entry = ScratchEntry { name, mount, quota_bytes: None, place };
                new.push(CapabilityEntry::proposed(entry));
            }
        }
        new
    }

    fn item_noun(&self) -> &'static str {
        "scratch"
    }

    fn grant_flags(&self, detail: Option<&str>) -> String {
        format!("--scratch {}", shell_word(detail.unwrap_or_default()))
    }
}

impl ScratchGrant {
    fn permission_line(&self) -> String {
        let Self { name, mount, quota_bytes } = self;
        format!("use the scratch {name}, seen as {mount}, up to {}", ByteSize(*quota_bytes))
    }
}

/// The quotas of scratches, from the tables of all plugins. A scratch that several plugins share
/// gets the lowest quota that any of them states.
pub(crate) fn shared_scratch_quotas<'t>(
    tables: impl Iterator<Item = &'t CapabilityTable>,
) -> BTreeMap<String, u64> {
    let mut quotas = BTreeMap::new();
    for entry in tables.flat_map(|table| entry_values(table.grants(Capability::Scratch))) {
        let ScratchEntry { name, quota_bytes: Some(bytes), .. } = entry else { continue };
        let least = quotas.entry(name.clone()).or_insert(*bytes);
        *least = (*bytes).min(*least);
    }
    quotas
}

/// Reads the name of a scratch, which follows the rules for plugin names.
pub(crate) fn read_scratch_name(item: TomlItem<'_>) -> Result<String, SourceError> {
    let place = item.place();
    let name = item.read_string()?;
    match name.parse::<PluginName>() {
        Ok(_) => Ok(name),
        Err(_) => {
            let error = place.into_error(format!("{} is not the name of a scratch", quoted(&name)));
            Err(error.with_hint("use lower-case letters, digits, '-' and '_', like \"sandbox\""))
        }
    }
}

fn read_scratch_mount(item: TomlItem<'_>) -> Result<String, SourceError> {
    let place = item.place();
    let mount = read_path(item)?.to_string_lossy().into_owned();
    match mount.as_str() {
        "/" => Err(place.into_error("a scratch cannot be the root of all folders")),
        _ => Ok(mount),
    }
}

impl EntryValue for ScratchEntry {
    fn to_toml(&self) -> String {
        let (name, mount) = (toml_string(&self.name), toml_string(&self.mount));
        let quota = self.quota_bytes.map(|bytes| format!(", quota = \"{}\"", ByteSize(bytes)));
        format!("{{ name = {name}, mount = {mount}{} }}", quota.unwrap_or_default())
    }
}
