//! Folders and files that a plugin may see.
//!
//! This module compares names only. The code that opens a folder has to detect links that lead out
//! of it.

use std::{
    fmt,
    path::{Component, Path, PathBuf},
};

use crate::{
    document::{TomlItem, TomlSection},
    glob::GlobSet,
    limits::read_in_range,
    source::{HintedError, SourceError, SourceLocation, quoted},
    toml_text::toml_string,
    unit::ByteSize,
};

/// The largest quota, in bytes: larger than any disk, and small enough that sums do not overflow.
const QUOTA_BYTES_MAX: u64 = 1 << 50;

/// The access to a folder, ordered from less to more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FsAccess {
    /// Read only.
    Read,
    /// Read and write.
    ReadWrite,
}

/// A folder or file of the host as a plugin sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FsMount {
    /// Its path on the host. Never shown to a model or a guest.
    pub host: PathBuf,
    /// Its path in the guest.
    pub guest: String,
    /// The guest's access to it.
    pub access: FsAccess,
    /// Paths, relative to the mount, that do not exist for the guest regardless of its access.
    pub deny: GlobSet,
    /// The most that the guest may store in it, in bytes; `None` is unlimited.
    pub quota_bytes: Option<u64>,
}

/// An entry of a policy's `fs` list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FsEntry {
    /// The path as the policy writes it: a fix repeats it, with `~` for the home folder.
    pub(crate) path_text: String,
    pub(crate) mount: FsMount,
    /// Whether the operator marked the entry `sensitive`.
    pub(crate) is_sensitive: bool,
    pub(crate) place: SourceLocation,
}

/// Why a path was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FsPathError {
    #[error("{} is not an absolute path", quoted(path))]
    Relative { path: String },
    #[error("{} goes upwards with `..`", quoted(path))]
    Upwards { path: String },
    #[error("{} holds a control character", quoted(path))]
    Control { path: String },
    #[error("{} cannot be used here, as there is no home folder", quoted(path))]
    NoHome { path: String },
}

impl FsMount {
    /// Returns a mount without denied files and without a quota.
    pub(crate) fn new_plain(host: PathBuf, guest: String, access: FsAccess) -> Self {
        Self { host, guest, access, deny: GlobSet::empty(), quota_bytes: None }
    }
}

impl FsAccess {
    const WORDS: [(&str, Self); 2] = [("read", Self::Read), ("read-write", Self::ReadWrite)];

    /// The word that policies use for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::ReadWrite => "read-write",
        }
    }

    pub(crate) fn from_toml(item: TomlItem<'_>) -> Result<Self, SourceError> {
        item.read_choice(&Self::WORDS)
    }
}

impl HintedError for FsPathError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Relative { .. } => Some("begin it with / (or, in a policy, with ~/)".to_owned()),
            Self::Upwards { .. } => Some("write the path without detours".to_owned()),
            Self::Control { .. } => None,
            Self::NoHome { .. } => Some("write the path from / on".to_owned()),
        }
    }
}

/// Returns an absolute path in normal form: no `.`, no doubled or trailing slashes.
///
/// # Errors
///
/// A path that is relative, contains `..`, or contains a control character.
pub(crate) fn normalize_path(path: &str) -> Result<PathBuf, FsPathError> {
    reject_detours(path)?;
    if !path.starts_with('/') {
        return Err(FsPathError::Relative { path: path.to_owned() });
    }
    Ok(Path::new(path).components().collect())
}

fn reject_detours(path: &str) -> Result<(), FsPathError> {
    if path.chars().any(char::is_control) {
        return Err(FsPathError::Control { path: path.to_owned() });
    }
    if Path::new(path).components().any(|part| part == Component::ParentDir) {
        return Err(FsPathError::Upwards { path: path.to_owned() });
    }
    Ok(())
}

/// Returns a policy's path in normal form, with a leading `~` replaced by the home folder.
pub(crate) fn normalize_host_path(path: &str, home: Option<&Path>) -> Result<PathBuf, FsPathError> {
    let below = match path.strip_prefix('~') {
        Some("") => "",
        Some(rest) if rest.starts_with('/') => rest.trim_start_matches('/'),
        Some(_) | None => return normalize_path(path),
    };
    reject_detours(path)?;
    let home = home.ok_or_else(|| FsPathError::NoHome { path: path.to_owned() })?;
    Ok(home.join(below).components().collect())
}

impl FsEntry {
    pub(crate) fn from_toml(item: TomlItem<'_>, home: Option<&Path>) -> Result<Self, SourceError> {
        let place = item.place();
        item.read_section(|section| {
            let (written, host) = section.read_required("path", |item| {
                let place = item.place();
                let written = item.read_string()?;
                let host = normalize_host_path(&written, home)
                    .map_err(|parse_error| place.into_hinted_error(&parse_error))?;
                Ok((written, host))
            })?;
            let access = section.read_required("access", FsAccess::from_toml)?;
            let guest = match section.read_optional("mount", read_path)? {
                Some(guest) => guest,
                None => default_mount(&host, &place)?,
            };
            let guest = guest.to_string_lossy().into_owned();
            let deny =
                section.read_optional("deny", GlobSet::from_toml)?.unwrap_or_else(GlobSet::empty);
            let quota_bytes = read_quota(section, access)?;
            let is_sensitive =
                section.read_optional("sensitive", TomlItem::read_bool)?.unwrap_or(false);
            let mount = FsMount { host, guest, access, deny, quota_bytes };
            Ok(Self { path_text: written, mount, is_sensitive, place })
        })
    }

    /// Whether another entry has the same mount. The administrator may grant what the user has
    /// granted already.
    pub(crate) fn has_same_mount(&self, other: &Self) -> bool {
        self.mount == other.mount
    }
}

fn read_quota(section: &mut TomlSection<'_>, access: FsAccess) -> Result<Option<u64>, SourceError> {
    let Some(item) = section.take_item("quota") else { return Ok(None) };
    if access == FsAccess::Read {
        let error = item.place().into_error("\"quota\" has no effect on a folder for reading only");
        return Err(error.with_hint("leave it out, or write access = \"read-write\""));
    }
    let bytes = |item: TomlItem<'_>| item.read_byte_size().map(|ByteSize(bytes)| bytes);
    read_in_range(item, bytes, &(1..=QUOTA_BYTES_MAX), ByteSize).map(Some)
}

/// Reads an absolute path.
pub(crate) fn read_path(item: TomlItem<'_>) -> Result<PathBuf, SourceError> {
    let place = item.place();
    normalize_path(&item.read_string()?)
        .map_err(|parse_error| place.into_hinted_error(&parse_error))
}

/// The default mount of a folder: its own name under `/`.
fn default_mount(host: &Path, place: &SourceLocation) -> Result<PathBuf, SourceError> {
    let name = host.file_name().ok_or_else(|| {
        let error = place.clone().into_error("a folder without a name needs a \"mount\"");
        error.with_hint("add the path at which the plugin sees it: mount = \"/data\"")
    })?;
    Ok(Path::new("/").join(name))
}

/// Why two entries of one plugin conflict.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FsEntryConflict {
    #[error("the mount {} lies in or around the mount {} of {place}", quoted(mount), quoted(other))]
    Mounts { mount: String, other: String, place: SourceLocation },
    #[error(
        "the path {} lies in or around {} of {place}, which has another access",
        quoted(path),
        quoted(other)
    )]
    Access { path: String, other: String, place: SourceLocation },
    #[error(
        "the path {} lies in or around {} of {place}, which has another quota",
        quoted(path),
        quoted(other)
    )]
    Quota { path: String, other: String, place: SourceLocation },
}

impl HintedError for FsEntryConflict {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Mounts { .. } => "give each its own folder under /".to_owned(),
            Self::Access { .. } => {
                "a link could carry a file from one to the other: give both the same access"
                    .to_owned()
            }
            Self::Quota { .. } => "a file counts in both: give both the same quota".to_owned(),
        })
    }
}

/// Returns why a new entry conflicts with the others. `written` is its path as the policy writes
/// it.
pub(crate) fn find_conflict<'a>(
    others: impl IntoIterator<Item = &'a FsEntry>,
    written: &str,
    mount: &FsMount,
) -> Option<FsEntryConflict> {
    others.into_iter().find_map(|other| {
        let place = || other.place.clone();
        if are_nested(Path::new(&other.mount.guest), Path::new(&mount.guest)) {
            let (mount, other) = (mount.guest.clone(), other.mount.guest.clone());
            return Some(FsEntryConflict::Mounts { mount, other, place: place() });
        }
        if !are_nested(&other.mount.host, &mount.host) {
            return None;
        }
        let (path, other_path) = (written.to_owned(), other.path_text.clone());
        if other.mount.access != mount.access {
            return Some(FsEntryConflict::Access { path, other: other_path, place: place() });
        }
        let differ = other.mount.quota_bytes != mount.quota_bytes;
        differ.then(|| FsEntryConflict::Quota { path, other: other_path, place: place() })
    })
}

/// Whether one path equals or contains the other.
pub(crate) fn are_nested(a: &Path, b: &Path) -> bool {
    a.starts_with(b) || b.starts_with(a)
}

/// Returns an entry of a `fs` list as TOML. `written` is its path as the policy writes it.
pub(crate) fn fs_entry_toml(written: &str, mount: &FsMount) -> String {
    let (path, guest) = (toml_string(written), toml_string(&mount.guest));
    let mut text =
        format!("path = {path}, mount = {guest}, access = \"{}\"", mount.access.as_str());
    if !mount.deny.is_empty() {
        text += &format!(", deny = {}", mount.deny);
    }
    if let Some(bytes) = mount.quota_bytes {
        text += &format!(", quota = \"{}\"", ByteSize(bytes));
    }
    format!("{{ {text} }}")
}

impl fmt::Display for FsEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = fs_entry_toml(&self.path_text, &self.mount);
        match text.strip_suffix(" }") {
            Some(open) if self.is_sensitive => write!(f, "{open}, sensitive = true }}"),
            Some(_) | None => f.write_str(&text),
        }
    }
}
