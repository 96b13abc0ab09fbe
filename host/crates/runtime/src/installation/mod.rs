//! Installs a plugin into a plugin folder, and removes it.
//!
//! A plugin is copied first, next to where it will be: what the user is shown, what is accepted and
//! what runs later are then the same bytes, whatever happens to the source meanwhile. One rename
//! puts the copy in place, so a plugin is never there in part.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use sallyport_contract::PluginName;
use sallyport_untrusted_file as untrusted_file;
use tempfile::TempDir;
use thiserror::Error;

use crate::{
    atomic_file::sync_folder,
    clock::now_ms,
    lock::LockError,
    registry::{MANIFEST, is_wasm_file},
    script::DEFINITION_FILE,
};

/// Most files, and most bytes, that a plugin may consist of. A component alone has at most 64 MiB.
const FILES_MAX: usize = 1_000;
const BYTES_MAX: u64 = 128 * 1024 * 1024;

/// Deepest folder inside a plugin's folder.
const DEPTH_MAX: usize = 16;

/// Start of the name of the folder that a plugin is copied into. It holds no plugin itself, so
/// nothing loads what a killed installation left.
const STAGING_PREFIX: &str = ".sallyport-staging-";

/// Start of its name once it holds a plugin that cannot be put back. It stays until the user removes
/// it.
const KEPT_PREFIX: &str = ".sallyport-kept-";

/// How long a staging folder stays when nothing in it changes. Nobody lets the question whether to
/// install a plugin wait for a day.
const STAGING_AGE_MAX_MS: u64 = 24 * 60 * 60 * 1000;

/// Why a plugin was not installed or removed.
#[derive(Debug, Error)]
pub enum InstallationError {
    /// The list of accepted plugins cannot be used, so nothing is changed.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// Something failed when the plugin folder was changed already.
    #[error(
        "{error}; and {} cannot be put back as it was: {undo_error}{}",
        path.display(),
        kept_text(kept.as_deref())
    )]
    NotUndone {
        /// What is installed, or was.
        path: PathBuf,
        /// What failed.
        error: Box<InstallationError>,
        /// Why the folder stays as it is.
        undo_error: io::Error,
        /// Where the plugin is that was installed before, if there was one.
        kept: Option<PathBuf>,
    },
    /// The source, or something in it, cannot be a plugin.
    #[error("{} {reason}", path.display())]
    Source {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it, after its name.
        reason: String,
    },
    /// A file or folder cannot be read or written.
    #[error("cannot {action} {}: {error}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
}

impl InstallationError {
    fn source(path: &Path, reason: impl Into<String>) -> Self {
        Self::Source { path: path.to_owned(), reason: reason.into() }
    }

    fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::File { action, path, error }
    }
}

/// Says where a plugin is that could not be put back.
fn kept_text(kept: Option<&Path>) -> String {
    kept.map_or_else(String::new, |kept| format!("; what was there is kept in {}", kept.display()))
}

/// A copy of a plugin that is not installed yet. It is removed when it is dropped.
#[derive(Debug)]
pub struct StagedPlugin {
    staging: TempDir,
    folder: PathBuf,
    plugin_dir: PathBuf,
}

impl StagedPlugin {
    /// Copies a plugin into a plugin folder, which is created if it is missing. The source is a
    /// component, a folder with one, or the folder of a script.
    ///
    /// # Errors
    ///
    /// The source is no plugin, is too large, contains something other than files and folders, or
    /// cannot be read; the folder cannot be written.
    pub fn copy_plugin(source: &Path, plugin_dir: &Path) -> Result<Self, InstallationError> {
        let files = plugin_files(source)?;
        fs::create_dir_all(plugin_dir)
            .map_err(InstallationError::file("create the folder", plugin_dir))?;
        remove_old_staging(plugin_dir, now_ms());
        let staging = tempfile::Builder::new()
            .prefix(STAGING_PREFIX)
            .tempdir_in(plugin_dir)
            .map_err(InstallationError::file("write in", plugin_dir))?;
        let folder = staging.path().join(folder_name(source)?);
        copy_files(&files, &folder)?;
        Ok(Self { staging, folder, plugin_dir: plugin_dir.to_owned() })
    }

    /// The folder with the copy, for the loader.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder that the plugin will be installed in.
    pub fn target(&self, name: &PluginName) -> PathBuf {
        self.plugin_dir.join(name.as_str())
    }

    /// Puts the plugin in place, in one step, and then calls `accept`, which writes to the list of
    /// accepted plugins. A plugin that is there already is replaced.
    ///
    /// # Errors
    ///
    /// The plugin folder cannot be written, or `accept` fails. What was installed before stays, unless
    /// the error says otherwise.
    pub fn install(
        self,
        name: &PluginName,
        accept: impl FnOnce() -> Result<(), LockError>,
    ) -> Result<PathBuf, InstallationError> {
        let target = self.target(name);
        let is_replaced = target.symlink_metadata().is_ok();
        if let Err(error) = self.put_in_place(&target, is_replaced) {
            let failure = InstallationError::file("write", &target)(error);
            return Err(match target.symlink_metadata() {
                Err(undo_error) if is_replaced => self.not_undone(target, failure, undo_error),
                _ => failure,
            });
        }
        let written =
            sync_folder(&self.plugin_dir).map_err(InstallationError::file("write", &target));
        let Err(failure) = written.and_then(|()| accept().map_err(InstallationError::Lock)) else {
            // What is left of it is harmless, because no plugin is loaded from it.
            let _ = self.staging.close();
            return Ok(target);
        };
        Err(match self.take_back(&target, is_replaced) {
            Ok(()) => failure,
            Err(undo_error) if is_replaced => self.not_undone(target, failure, undo_error),
            Err(undo_error) => InstallationError::NotUndone {
                path: target,
                error: Box::new(failure),
                undo_error,
                kept: None,
            },
        })
    }

    /// A plugin that is replaced is in the staging folder then.
    fn put_in_place(&self, target: &Path, is_replaced: bool) -> io::Result<()> {
        match is_replaced {
            true => exchange_folders(&self.folder, target),
            false => fs::rename(&self.folder, target),
        }
    }

    /// Keeps the staging folder, because the plugin that was replaced is in it and cannot be put back.
    fn not_undone(
        self,
        path: PathBuf,
        failure: InstallationError,
        undo_error: io::Error,
    ) -> InstallationError {
        let kept = Some(keep_for_user(self.staging.keep()));
        InstallationError::NotUndone { path, error: Box::new(failure), undo_error, kept }
    }

    /// Makes the plugin folder what it was before. It need not be on the disk at once: what comes
    /// back after a power failure is not accepted.
    fn take_back(&self, target: &Path, is_replaced: bool) -> io::Result<()> {
        match is_replaced {
            true => exchange_folders(&self.folder, target),
            false => fs::rename(target, &self.folder),
        }
    }
}

/// Removes an installed plugin: its folder, or its file. A link is removed, and not what it leads
/// to. `forget` removes it from the list of accepted plugins, after it is out of the way.
///
/// # Errors
///
/// It cannot be removed, or `forget` fails. It stays then, unless the error says otherwise. Once it is
/// forgotten, some of its files may be left in a place that no plugin is loaded from.
pub fn remove_plugin_files(
    installed: &Path,
    forget: impl FnOnce() -> Result<(), LockError>,
) -> Result<(), InstallationError> {
    let failed = || InstallationError::file("remove", installed);
    installed.symlink_metadata().map_err(failed())?;
    let plugin_dir = installed.parent().unwrap_or(Path::new("."));
    remove_old_staging(plugin_dir, now_ms());
    let aside = PlaceAside::beside(installed, plugin_dir).map_err(failed())?;
    fs::rename(installed, &aside.path).map_err(failed())?;
    let written = sync_folder(plugin_dir).map_err(failed());
    let Err(failure) = written.and_then(|()| forget().map_err(InstallationError::Lock)) else {
        aside.discard();
        return Ok(());
    };
    Err(match fs::rename(&aside.path, installed) {
        Ok(()) => failure,
        Err(undo_error) => InstallationError::NotUndone {
            path: installed.to_owned(),
            error: Box::new(failure),
            undo_error,
            kept: Some(aside.keep()),
        },
    })
}

/// Where a plugin is while it is removed. No part of it is loaded from there.
struct PlaceAside {
    path: PathBuf,
    /// The folder that it is in. A file needs none, so it can be removed from a full disk.
    staging: Option<TempDir>,
}

impl PlaceAside {
    fn beside(installed: &Path, plugin_dir: &Path) -> io::Result<Self> {
        if !installed.is_dir() {
            let name = installed.file_name().unwrap_or_default().to_string_lossy();
            let path = plugin_dir.join(format!("{STAGING_PREFIX}{name}.removed"));
            return Ok(Self { path, staging: None });
        }
        let staging = tempfile::Builder::new().prefix(STAGING_PREFIX).tempdir_in(plugin_dir)?;
        Ok(Self { path: staging.path().join("removed"), staging: Some(staging) })
    }

    /// Removes what is there. What is left of it is harmless, because no plugin is loaded from it.
    fn discard(self) {
        let _ = match self.staging {
            Some(staging) => staging.close(),
            None => fs::remove_file(&self.path),
        };
    }

    /// Leaves it there, and returns where that is.
    fn keep(self) -> PathBuf {
        keep_for_user(self.staging.map_or(self.path, TempDir::keep))
    }
}

/// Gives something a name under which [`remove_old_staging`] leaves it. Returns where it is.
fn keep_for_user(staging: PathBuf) -> PathBuf {
    let name = staging.file_name().unwrap_or_default().to_string_lossy();
    let name = name.replacen(STAGING_PREFIX, KEPT_PREFIX, 1);
    let kept = staging.with_file_name(name);
    match fs::rename(&staging, &kept) {
        Ok(()) => kept,
        Err(_) => staging,
    }
}

/// Removes what installations and removals that were killed have left. One that cannot be removed is
/// harmless, because no plugin is loaded from it.
fn remove_old_staging(plugin_dir: &Path, now_ms: u64) {
    for entry in fs::read_dir(plugin_dir).into_iter().flatten().flatten() {
        let is_staging = entry.file_name().to_string_lossy().starts_with(STAGING_PREFIX);
        let Ok(data) = entry.metadata() else { continue };
        // The time of the change counts, because a file keeps the time when it was written.
        let changed_ms = u64::try_from(data.ctime()).unwrap_or_default().saturating_mul(1000);
        if is_staging && now_ms.saturating_sub(changed_ms) > STAGING_AGE_MAX_MS {
            let _ = match data.is_dir() {
                true => fs::remove_dir_all(entry.path()),
                false => fs::remove_file(entry.path()),
            };
        }
    }
}

/// Returns the entry of a plugin folder that a plugin's file belongs to: its folder, or the file
/// itself. `None` if it is in none of the folders.
pub fn installed_entry(file: &Path, plugin_dirs: &[PathBuf]) -> Option<PathBuf> {
    plugin_dirs.iter().find_map(|plugin_dir| {
        let inside = file.strip_prefix(plugin_dir).ok()?;
        Some(plugin_dir.join(inside.components().next()?))
    })
}

/// A file of a plugin: where it is, and its place in the plugin's folder.
struct PluginFile {
    from: PathBuf,
    to: PathBuf,
}

/// The files that make a plugin. Of a component's folder these are the component, the manifest and
/// a page about it; of a script's folder all files, because its program may need them.
fn plugin_files(source: &Path) -> Result<Vec<PluginFile>, InstallationError> {
    let is_folder = fs::metadata(source).map_err(InstallationError::file("read", source))?.is_dir();
    if is_folder && source.join(DEFINITION_FILE).exists() {
        let mut files = Vec::new();
        collect_files(source, Path::new(""), &mut files)?;
        return Ok(files);
    }
    let (folder, components) = match is_folder {
        true => (source, component_files(source)?),
        false => (source.parent().unwrap_or(Path::new("")), vec![source.to_owned()]),
    };
    if components.is_empty() {
        return Err(InstallationError::source(source, "contains no .wasm file; build it first"));
    }
    let beside = [MANIFEST, "README.md"].map(|name| folder.join(name));
    let files = components.into_iter().chain(beside.into_iter().filter(|path| path.exists()));
    Ok(files.filter_map(|from| Some(PluginFile { to: from.file_name()?.into(), from })).collect())
}

fn component_files(folder: &Path) -> Result<Vec<PathBuf>, InstallationError> {
    let failed = || InstallationError::file("read", folder);
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed())? {
        let path = entry.map_err(failed())?.path();
        if is_wasm_file(&path) {
            files.push(path);
        }
    }
    Ok(files)
}

fn collect_files(
    source: &Path,
    inside: &Path,
    files: &mut Vec<PluginFile>,
) -> Result<(), InstallationError> {
    let folder = source.join(inside);
    let failed = || InstallationError::file("read", &folder);
    for entry in fs::read_dir(&folder).map_err(failed())? {
        let entry = entry.map_err(failed())?;
        let to = inside.join(entry.file_name());
        let kind = entry.file_type().map_err(failed())?;
        if kind.is_dir() && to.components().count() < DEPTH_MAX {
            collect_files(source, &to, files)?;
        } else if kind.is_file() {
            files.push(PluginFile { from: entry.path(), to });
        } else {
            let reason = "is not a file, or too deep; a plugin consists of files and folders";
            return Err(InstallationError::source(&entry.path(), reason));
        }
        if files.len() > FILES_MAX {
            let reason = format!("has more than {FILES_MAX} files, which no plugin needs");
            return Err(InstallationError::source(source, reason));
        }
    }
    Ok(())
}

/// The name of the copy's folder. A component without a manifest is named after it.
fn folder_name(source: &Path) -> Result<PathBuf, InstallationError> {
    let full = fs::canonicalize(source).map_err(InstallationError::file("read", source))?;
    let name = if full.is_dir() { full.file_name() } else { full.file_stem() };
    name.map(PathBuf::from)
        .ok_or_else(|| InstallationError::source(source, "has no name that a plugin could have"))
}

fn copy_files(files: &[PluginFile], folder: &Path) -> Result<(), InstallationError> {
    fs::create_dir(folder).map_err(InstallationError::file("create the folder", folder))?;
    let mut bytes_left = BYTES_MAX;
    for file in files {
        let bytes = untrusted_file::read_bytes(&file.from, bytes_left)
            .map_err(InstallationError::file("read", &file.from))?;
        bytes_left -= bytes.len() as u64;
        let mode = fs::metadata(&file.from).map_or(0, |data| data.permissions().mode());
        let to = folder.join(&file.to);
        write_file(&to, &bytes, mode & 0o100 != 0)
            .map_err(InstallationError::file("write", &to))?;
    }
    Ok(())
}

/// Writes a file to the disk. Only its owner may change it.
fn write_file(to: &Path, bytes: &[u8], is_program: bool) -> io::Result<()> {
    to.parent().map_or(Ok(()), fs::create_dir_all)?;
    let mode = if is_program { 0o755 } else { 0o644 };
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(to)?;
    io::Write::write_all(&mut file, bytes)?;
    file.sync_all()
}

/// Makes two folders change their places, in one step where the file system can. If it cannot, the
/// installed one may end up beside the place of the new one.
fn exchange_folders(new: &Path, installed: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if renameat_with(CWD, new, CWD, installed, RenameFlags::EXCHANGE).is_ok() {
        return Ok(());
    }
    let aside = new.with_extension("replaced");
    fs::rename(installed, &aside)?;
    fs::rename(new, installed).inspect_err(|_| {
        // The plugin that was there is better than none.
        let _ = fs::rename(&aside, installed);
    })?;
    // The new one is in place, whether or not it can be taken back.
    let _ = fs::rename(&aside, new);
    Ok(())
}

#[cfg(test)]
mod tests;
