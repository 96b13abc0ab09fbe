//! `sallyport.lock`: the component, tools and requests of each plugin that the user accepted.
//!
//! A plugin is pinned when it is first used. Any later change of its component, of the tool
//! definitions that a model receives, or of its requests blocks it until the user has seen and
//! accepted the difference. The file contains enough to name the difference, and grants nothing. A
//! second file contains what the user accepted in full, to show what exactly differs.

mod pin;
mod requests;
mod snapshot;

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use sallyport_contract::PluginName;
use sallyport_untrusted_file as untrusted_file;
use serde::{Deserialize, Serialize};

use crate::atomic_file::{self, WriteLock};

use snapshot::{SNAPSHOT_FILE, Snapshots, read_snapshots, write_snapshots};

pub use pin::PluginPin;
pub use requests::manifest_requests;
pub use snapshot::{AcceptedPlugin, PluginSnapshot};

/// Version of the file format.
const VERSION: u32 = 1;

/// A file in the state folder which records that plugins were accepted. Without it, a deleted lock
/// would look like one that was never written.
const ACCEPTED_MARKER: &str = "plugins.accepted";

/// Size limit of the file. A thousand plugins with hundreds of tools each stay below it.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

const HEADER: &str = "\
# The components, tools and requests of the plugins that you accepted. Written by sallyport;
# `sallyport plugin accept NAME` accepts a change.
";

/// Why the lock cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The file cannot be read or written.
    #[error("cannot use {path}: {source}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file is not a valid lock.
    #[error("{path} is broken: {message}", path = path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// Description of the mistake.
        message: String,
    },
}

impl LockError {
    /// Returns a suggested fix.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::File { .. } => "check the path and its permissions",
            Self::Broken { .. } => "restore it; without it, every plugin counts as new",
        }
    }
}

/// How a plugin compares to its accepted version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PinComparison {
    /// The plugin is new.
    New,
    /// The plugin is unchanged.
    Same,
    /// The plugin has changed; one sentence per difference.
    Changed(Vec<String>),
}

/// The lock. Every change re-reads the file first, because other processes write to it too. One that
/// belongs to a change of the plugin folder begins with [`begin_change`](Self::begin_change).
#[derive(Debug)]
pub struct LockFile {
    path: PathBuf,
    marker: PathBuf,
    snapshots: PathBuf,
    is_lost: bool,
    pins: Mutex<Pins>,
}

type Pins = BTreeMap<PluginName, PluginPin>;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LockFileContents {
    version: u32,
    #[serde(default)]
    plugin: BTreeMap<String, PluginPin>,
}

impl LockFile {
    /// Reads the file. A missing file counts as empty. A marker in the state folder shows whether
    /// the file existed before.
    ///
    /// # Errors
    ///
    /// The file cannot be read or parsed.
    pub fn read(path: &Path, state: &Path) -> Result<Self, LockError> {
        let pins = Mutex::new(read_lock_file(path)?);
        let marker = state.join(ACCEPTED_MARKER);
        let is_lost = marker.is_file() && !path.exists();
        let snapshots = state.join(SNAPSHOT_FILE);
        Ok(Self { path: path.to_owned(), marker, snapshots, is_lost, pins })
    }

    /// Whether the file existed and is gone, so that the accepted plugins are unknown.
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Compares a plugin with its accepted version.
    pub fn compare_plugin(&self, plugin: &PluginName, current: &PluginPin) -> PinComparison {
        match self.pins().get(plugin) {
            None => PinComparison::New,
            Some(accepted) if accepted == current => PinComparison::Same,
            Some(accepted) => PinComparison::Changed(accepted.differences(current)),
        }
    }

    /// The accepted version of a plugin, if it was recorded.
    pub fn accepted_version(&self, plugin: &PluginName) -> Option<PluginSnapshot> {
        let snapshot = read_snapshots(&self.snapshots).remove(plugin)?;
        self.pins().get(plugin)?.describes(&snapshot).then_some(snapshot)
    }

    /// Accepts plugins as they are now. Entries of other processes in the file are kept.
    ///
    /// # Errors
    ///
    /// The file cannot be read or written. No plugin was accepted then.
    pub fn accept_plugins(
        &self,
        plugins: impl IntoIterator<Item = AcceptedPlugin>,
    ) -> Result<(), LockError> {
        self.begin_change()?.accept_plugins(plugins)
    }

    /// Accepts plugins like [`accept_plugins`](Self::accept_plugins), except those that another
    /// process has accepted in another form since this lock was read: much time can have passed, and
    /// nobody has seen how the two differ. Returns their differences.
    ///
    /// # Errors
    ///
    /// The file cannot be read or written. No plugin was accepted then.
    pub fn accept_unless_changed(
        &self,
        plugins: impl IntoIterator<Item = AcceptedPlugin>,
    ) -> Result<BTreeMap<PluginName, Vec<String>>, LockError> {
        let compared = self.pins().clone();
        let mut changed = BTreeMap::new();
        self.begin_change()?.update_file(|pins, snapshots| {
            for AcceptedPlugin { name, pin, snapshot } in plugins {
                let present = pins.get(&name).filter(|present| **present != pin);
                match present.filter(|present| compared.get(&name) != Some(*present)) {
                    Some(present) => {
                        changed.insert(name, present.differences(&pin));
                    }
                    None => {
                        pins.insert(name.clone(), pin);
                        snapshots.insert(name, snapshot);
                    }
                }
            }
        })?;
        Ok(changed)
    }

    /// Removes a plugin.
    ///
    /// # Errors
    ///
    /// The file cannot be read or written. No plugin was removed then.
    pub fn remove_plugin(&self, plugin: &PluginName) -> Result<(), LockError> {
        self.begin_change()?.remove_plugin(plugin)
    }

    /// Waits until nobody else changes the file, and keeps others out until the result is dropped. In
    /// between, change the file only through the result.
    ///
    /// # Errors
    ///
    /// The folder of the file cannot be created or opened.
    pub fn begin_change(&self) -> Result<LockFileWriter<'_>, LockError> {
        let write_lock = WriteLock::take(&self.path).map_err(|source| self.file_error(source))?;
        Ok(LockFileWriter { lock: self, _write_lock: write_lock })
    }

    fn file_error(&self, source: io::Error) -> LockError {
        LockError::File { path: self.path.clone(), source }
    }

    fn pins(&self) -> MutexGuard<'_, Pins> {
        self.pins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lock, while nobody else changes it. Whoever changes the plugin folder too holds it from before
/// that, so that the two do not differ when two commands run at once.
#[derive(Debug)]
pub struct LockFileWriter<'l> {
    lock: &'l LockFile,
    _write_lock: WriteLock,
}

/// What the lock says about a plugin at one moment.
#[derive(Debug)]
pub struct LockFileEntry {
    name: PluginName,
    pin: Option<PluginPin>,
    snapshot: Option<PluginSnapshot>,
}

impl LockFileWriter<'_> {
    /// Accepts plugins as they are now.
    ///
    /// # Errors
    ///
    /// The file cannot be read or written. No plugin was accepted then.
    pub fn accept_plugins(
        &self,
        plugins: impl IntoIterator<Item = AcceptedPlugin>,
    ) -> Result<(), LockError> {
        self.update_file(|pins, snapshots| {
            for AcceptedPlugin { name, pin, snapshot } in plugins {
                pins.insert(name.clone(), pin);
                snapshots.insert(name, snapshot);
            }
        })
    }

    /// Removes a plugin.
    ///
    /// # Errors
    ///
    /// The file cannot be read or written. No plugin was removed then.
    pub fn remove_plugin(&self, plugin: &PluginName) -> Result<(), LockError> {
        self.update_file(|pins, snapshots| {
            pins.remove(plugin);
            snapshots.remove(plugin);
        })
    }

    /// Returns what the file says about a plugin.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn entry(&self, plugin: &PluginName) -> Result<LockFileEntry, LockError> {
        let pin = read_lock_file(&self.lock.path)?.remove(plugin);
        let snapshot = read_snapshots(&self.lock.snapshots).remove(plugin);
        Ok(LockFileEntry { name: plugin.clone(), pin, snapshot })
    }

    /// Makes the file say again what it said about a plugin before.
    ///
    /// # Errors
    ///
    /// The file cannot be read or written. The plugin is then accepted as it was last accepted.
    pub fn restore_entry(&self, entry: LockFileEntry) -> Result<(), LockError> {
        let LockFileEntry { name, pin, snapshot } = entry;
        self.update_file(|pins, snapshots| {
            match pin {
                Some(pin) => pins.insert(name.clone(), pin),
                None => pins.remove(&name),
            };
            match snapshot {
                Some(snapshot) => snapshots.insert(name, snapshot),
                None => snapshots.remove(&name),
            };
        })
    }

    fn update_file(&self, change: impl FnOnce(&mut Pins, &mut Snapshots)) -> Result<(), LockError> {
        let lock = self.lock;
        let mut pins = read_lock_file(&lock.path)?;
        let mut snapshots = read_snapshots(&lock.snapshots);
        change(&mut pins, &mut snapshots);
        check_written(write_lock_file(&lock.path, &pins), &lock.path, &pins)
            .map_err(|source| lock.file_error(source))?;
        write_snapshots(&lock.snapshots, &snapshots);
        if !lock.marker.exists() {
            // Without the marker, a later loss of the lock goes unnoticed; nothing else depends on
            // it.
            let _ = atomic_file::create_file(&lock.marker, b"");
        }
        *lock.pins() = pins;
        Ok(())
    }
}

fn read_lock_file(path: &Path) -> Result<Pins, LockError> {
    let text = match untrusted_file::read_text(path, FILE_BYTES_MAX) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Pins::new()),
        Err(source) => return Err(LockError::File { path: path.to_owned(), source }),
    };
    let broken = |message: String| LockError::Broken { path: path.to_owned(), message };
    let contents: LockFileContents =
        toml::from_str(&text).map_err(|error| broken(syntax_message(&text, &error)))?;
    if contents.version != VERSION {
        return Err(broken(format!("its version {} is not {VERSION}", contents.version)));
    }
    let entries = contents.plugin.into_iter().map(|(name, pin)| {
        let name: PluginName = name.parse().map_err(|error| broken(format!("{error}")))?;
        Ok((name, pin))
    });
    entries.collect()
}

/// The place and the message, without the excerpt of several lines that the library adds.
fn syntax_message(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    format!("line {}: {}", before.matches('\n').count() + 1, error.message())
}

fn write_lock_file(path: &Path, pins: &Pins) -> io::Result<()> {
    let plugin = pins.iter().map(|(name, pin)| (name.to_string(), pin.clone())).collect();
    let contents = LockFileContents { version: VERSION, plugin };
    let text = toml::to_string(&contents).map_err(io::Error::other)?;
    atomic_file::replace_file(path, [HEADER, &text].concat().as_bytes(), atomic_file::PRIVATE_MODE)
}

/// Returns the error of a write, unless the file says what was to be written: a file can be in place
/// although its folder cannot be synced. If the power fails then, the plugins of the old list count as
/// accepted, and none that is in the new one alone runs.
fn check_written(result: io::Result<()>, path: &Path, pins: &Pins) -> io::Result<()> {
    result.or_else(|error| match read_lock_file(path) {
        Ok(present) if present == *pins => Ok(()),
        _ => Err(error),
    })
}

#[cfg(test)]
mod tests;
