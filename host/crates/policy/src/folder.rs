//! Folders and files that a plugin may see.
//!
//! Everything here compares names only. Opening a folder, and noticing that a name is a link to
//! somewhere else, is the business of whoever opens it.

use std::{
    fmt,
    path::{Component, Path, PathBuf},
};

use crate::{
    document::Item,
    fix::toml_string,
    source::{Mistake, Place, SourceError, quoted},
};

/// What may be done with a folder. The order matters: less comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// Look.
    Read,
    /// Look and change.
    ReadWrite,
}

/// A folder or file of the host as a plugin sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FsMount {
    /// Where it is on the host. Never shown to a model or a guest.
    pub host: PathBuf,
    /// Where the guest finds it.
    pub guest: String,
    /// What the guest may do with it.
    pub access: Access,
}

/// An entry of a policy's `fs` list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FsEntry {
    /// The path as the policy has it, so that a fix repeats it and a home folder stays `~`.
    pub(crate) written: String,
    pub(crate) mount: FsMount,
    /// Whether the operator said that a guarded folder is meant.
    pub(crate) is_sensitive: bool,
    pub(crate) place: Place,
}

/// Why a path was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PathError {
    #[error("{} is not an absolute path", quoted(path))]
    Relative { path: String },
    #[error("{} goes upwards with `..`", quoted(path))]
    Upwards { path: String },
    #[error("{} holds a control character", quoted(path))]
    Control { path: String },
    #[error("{} cannot be used here, as there is no home folder", quoted(path))]
    NoHome { path: String },
}

impl Access {
    const WORDS: [(&str, Self); 2] = [("read", Self::Read), ("read-write", Self::ReadWrite)];

    /// The word that policies use for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::ReadWrite => "read-write",
        }
    }

    pub(crate) fn read(item: Item<'_>) -> Result<Self, SourceError> {
        item.choice(&Self::WORDS)
    }
}

impl Mistake for PathError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Relative { .. } => Some("begin it with / (or, in a policy, with ~/)".to_owned()),
            Self::Upwards { .. } => Some("write the path without detours".to_owned()),
            Self::Control { .. } => None,
            Self::NoHome { .. } => Some("write the path from / on".to_owned()),
        }
    }
}

/// Returns an absolute path in its plain form: no `.`, no doubled or trailing slashes.
///
/// # Errors
///
/// A path that is relative, goes upwards or holds a control character.
pub(crate) fn plain_path(path: &str) -> Result<PathBuf, PathError> {
    refuse_detours(path)?;
    if !path.starts_with('/') {
        return Err(PathError::Relative { path: path.to_owned() });
    }
    Ok(Path::new(path).components().collect())
}

fn refuse_detours(path: &str) -> Result<(), PathError> {
    if path.chars().any(char::is_control) {
        return Err(PathError::Control { path: path.to_owned() });
    }
    if Path::new(path).components().any(|part| part == Component::ParentDir) {
        return Err(PathError::Upwards { path: path.to_owned() });
    }
    Ok(())
}

/// Returns a path of a policy in its plain form, with a leading `~` replaced by the home folder.
fn host_path(path: &str, home: Option<&Path>) -> Result<PathBuf, PathError> {
    let below = match path.strip_prefix('~') {
        Some("") => "",
        Some(rest) if rest.starts_with('/') => rest.trim_start_matches('/'),
        Some(_) | None => return plain_path(path),
    };
    refuse_detours(path)?;
    let home = home.ok_or_else(|| PathError::NoHome { path: path.to_owned() })?;
    Ok(home.join(below).components().collect())
}

impl FsEntry {
    pub(crate) fn read(item: Item<'_>, home: Option<&Path>) -> Result<Self, SourceError> {
        let place = item.place();
        item.section(|section| {
            let (written, host) = section.required("path", |item| {
                let place = item.place();
                let written = item.string()?;
                let host = host_path(&written, home).map_err(|mistake| place.mistake(&mistake))?;
                Ok((written, host))
            })?;
            let access = section.required("access", Access::read)?;
            let guest = match section.optional("mount", read_path)? {
                Some(guest) => guest,
                None => own_mount(&host, &place)?,
            };
            let guest = guest.to_string_lossy().into_owned();
            let is_sensitive = section.optional("sensitive", Item::boolean)?.unwrap_or(false);
            Ok(Self { written, mount: FsMount { host, guest, access }, is_sensitive, place })
        })
    }
}

/// Reads an absolute path.
pub(crate) fn read_path(item: Item<'_>) -> Result<PathBuf, SourceError> {
    let place = item.place();
    plain_path(&item.string()?).map_err(|mistake| place.mistake(&mistake))
}

/// The mount of a folder for which none is given: its own name under `/`.
fn own_mount(host: &Path, place: &Place) -> Result<PathBuf, SourceError> {
    let name = host.file_name().ok_or_else(|| {
        let error = place.clone().error("a folder without a name needs a \"mount\"");
        error.with_hint("add the path at which the plugin sees it: mount = \"/data\"")
    })?;
    Ok(Path::new("/").join(name))
}

/// Why two entries of one plugin cannot stand together.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Conflict {
    #[error("the mount {} lies in or around the mount {} of {place}", quoted(mount), quoted(other))]
    Mounts { mount: String, other: String, place: Place },
    #[error(
        "the path {} lies in or around {} of {place}, which has another access",
        quoted(path),
        quoted(other)
    )]
    Access { path: String, other: String, place: Place },
}

impl Mistake for Conflict {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Mounts { .. } => "give each its own folder under /".to_owned(),
            Self::Access { .. } => {
                "a link could carry a file from one to the other: give both the same access"
                    .to_owned()
            }
        })
    }
}

/// Returns why a new entry cannot stand beside the others. `written` is its path in their words.
pub(crate) fn conflict<'a>(
    others: impl IntoIterator<Item = &'a FsEntry>,
    written: &str,
    mount: &FsMount,
) -> Option<Conflict> {
    others.into_iter().find_map(|other| {
        let place = || other.place.clone();
        if are_nested(Path::new(&other.mount.guest), Path::new(&mount.guest)) {
            let (mount, other) = (mount.guest.clone(), other.mount.guest.clone());
            return Some(Conflict::Mounts { mount, other, place: place() });
        }
        let differ = other.mount.access != mount.access;
        (differ && are_nested(&other.mount.host, &mount.host)).then(|| Conflict::Access {
            path: written.to_owned(),
            other: other.written.clone(),
            place: place(),
        })
    })
}

/// Whether one path is the other or lies in it.
pub(crate) fn are_nested(a: &Path, b: &Path) -> bool {
    a.starts_with(b) || b.starts_with(a)
}

/// Returns an entry of a `fs` list as TOML.
pub(crate) fn entry_text(written: &str, guest: &str, access: Access) -> String {
    let (path, mount) = (toml_string(written), toml_string(guest));
    format!("{{ path = {path}, mount = {mount}, access = \"{}\" }}", access.word())
}

impl fmt::Display for FsEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = entry_text(&self.written, &self.mount.guest, self.mount.access);
        match text.strip_suffix(" }") {
            Some(open) if self.is_sensitive => write!(f, "{open}, sensitive = true }}"),
            Some(_) | None => f.write_str(&text),
        }
    }
}
