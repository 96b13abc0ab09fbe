//! Scratches: named temporary file systems of a session, shared by the plugins that are granted
//! them.

use std::fmt;

use sallyport_contract::PluginName;

use crate::{
    document::TomlItem,
    fix::toml_string,
    folder::read_path,
    limits::read_in_range,
    source::{SourceError, SourceLocation, quoted},
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

impl ScratchEntry {
    pub(crate) fn from_toml(item: TomlItem<'_>) -> Result<Self, SourceError> {
        let place = item.place();
        item.read_section(|section| {
            let name = section.read_required("name", read_scratch_name)?;
            let mount = section.read_optional("mount", read_scratch_mount)?;
            let bytes = |item: TomlItem<'_>| item.read_byte_size().map(|ByteSize(bytes)| bytes);
            let quota_bytes = section.read_optional("quota", |item| {
                read_in_range(item, bytes, &(1..=SCRATCH_QUOTA_BYTES_MAX), ByteSize)
            })?;
            let mount = mount.unwrap_or_else(|| format!("/{name}"));
            Ok(Self { name, mount, quota_bytes, place })
        })
    }

    /// Whether another entry has the same values.
    pub(crate) fn is_duplicate_of(&self, other: &Self) -> bool {
        (&self.name, &self.mount, self.quota_bytes)
            == (&other.name, &other.mount, other.quota_bytes)
    }
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

impl fmt::Display for ScratchEntry {
    /// The entry as TOML.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, mount) = (toml_string(&self.name), toml_string(&self.mount));
        write!(f, "{{ name = {name}, mount = {mount}")?;
        if let Some(bytes) = self.quota_bytes {
            write!(f, ", quota = \"{}\"", ByteSize(bytes))?;
        }
        f.write_str(" }")
    }
}
