//! `sallyport.lock`: which component, tools and requests of each plugin the user has agreed to.
//!
//! A plugin is pinned when it is first used. From then on a change of its component, of what it
//! tells a model about its tools, or of what it requests stops it until the user has seen the
//! difference and agreed. The file holds enough to show that difference, and nothing that grants.

mod pin;

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use rustix::fs::{FlockOperation, flock};
use sallyport_contract::PluginName;
use sallyport_untrusted_file as untrusted_file;
use serde::{Deserialize, Serialize};

use crate::whole_file;

pub use pin::Pin;

/// The form of the file.
const VERSION: u32 = 1;

/// A file in the state folder that says that plugins have been agreed to: without it, a lock that was
/// removed would read like one that was never written.
const TRACE: &str = "plugins.accepted";

/// Longest file that is read: a thousand plugins with hundreds of tools each stay below it.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

const HEAD: &str = "\
# Which components, tools and requests of plugins have been agreed to. Written by sallyport;
# `sallyport plugin accept NAME` agrees to a change.
";

/// Why the lock cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The file cannot be read or written.
    #[error("cannot use {path}: {source}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file is not one of ours.
    #[error("{path} is broken: {message}", path = path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
}

impl LockError {
    /// What can be done about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::File { .. } => "check the path and its permissions",
            Self::Broken { .. } => "restore it; without it, every plugin counts as new",
        }
    }
}

/// How a plugin stands to what was agreed to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Match {
    /// It was never seen.
    New,
    /// It is what was agreed to.
    Same,
    /// It has changed; what, a sentence each.
    Changed(Vec<String>),
}

/// The lock. Clones of its contents are never kept: the file is the truth between processes.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    trace: PathBuf,
    is_lost: bool,
    pins: Mutex<Pins>,
}

type Pins = BTreeMap<PluginName, Pin>;

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    version: u32,
    #[serde(default)]
    plugin: BTreeMap<String, Pin>,
}

impl Lock {
    /// Reads the file; one that is not there is an empty one. Whether there was one before is known
    /// by a trace in the state folder.
    ///
    /// # Errors
    ///
    /// The file cannot be read or understood.
    pub fn read(path: &Path, state: &Path) -> Result<Self, LockError> {
        let pins = Mutex::new(read(path)?);
        let trace = state.join(TRACE);
        let is_lost = trace.is_file() && !path.exists();
        Ok(Self { path: path.to_owned(), trace, is_lost, pins })
    }

    /// Whether there was a file, and it is gone: what was agreed to is not known any more.
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Compares a plugin with what was agreed to.
    pub fn compare(&self, plugin: &PluginName, present: &Pin) -> Match {
        match self.pins().get(plugin) {
            None => Match::New,
            Some(agreed) if agreed == present => Match::Same,
            Some(agreed) => Match::Changed(agreed.differences(present)),
        }
    }

    /// Agrees to plugins as they are now. Other processes' entries in the file are kept.
    ///
    /// # Errors
    ///
    /// The file cannot be read or written; nothing was agreed to.
    pub fn accept(
        &self,
        plugins: impl IntoIterator<Item = (PluginName, Pin)>,
    ) -> Result<(), LockError> {
        self.change(|pins| pins.extend(plugins))
    }

    /// Forgets a plugin.
    ///
    /// # Errors
    ///
    /// The file cannot be read or written; nothing was forgotten.
    pub fn forget(&self, plugin: &PluginName) -> Result<(), LockError> {
        self.change(|pins| {
            pins.remove(plugin);
        })
    }

    fn change(&self, change: impl FnOnce(&mut Pins)) -> Result<(), LockError> {
        let failed = |source| LockError::File { path: self.path.clone(), source };
        let folder = self.path.parent().unwrap_or(Path::new("."));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        // Held until the file is replaced, so that two processes do not undo each other.
        let held = File::open(folder).map_err(failed)?;
        flock(&held, FlockOperation::LockExclusive).map_err(|error| failed(error.into()))?;
        let mut pins = read(&self.path)?;
        change(&mut pins);
        write(&self.path, &pins).map_err(failed)?;
        if !self.trace.exists() {
            // Without it, a loss goes unnoticed; nothing else depends on it.
            let _ = whole_file::create(&self.trace, b"");
        }
        *self.pins() = pins;
        Ok(())
    }

    fn pins(&self) -> MutexGuard<'_, Pins> {
        self.pins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(path: &Path) -> Result<Pins, LockError> {
    let text = match untrusted_file::read_text(path, FILE_BYTES_MAX) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Pins::new()),
        Err(source) => return Err(LockError::File { path: path.to_owned(), source }),
    };
    let broken = |message: String| LockError::Broken { path: path.to_owned(), message };
    let contents: Contents = toml::from_str(&text).map_err(|error| broken(error.to_string()))?;
    if contents.version != VERSION {
        return Err(broken(format!("its version {} is not {VERSION}", contents.version)));
    }
    let named = contents.plugin.into_iter().map(|(name, pin)| {
        let name: PluginName = name.parse().map_err(|error| broken(format!("{error}")))?;
        Ok((name, pin))
    });
    named.collect()
}

fn write(path: &Path, pins: &Pins) -> io::Result<()> {
    let plugin = pins.iter().map(|(name, pin)| (name.to_string(), pin.clone())).collect();
    let contents = Contents { version: VERSION, plugin };
    let text = toml::to_string(&contents).map_err(io::Error::other)?;
    whole_file::replace(path, [HEAD, &text].concat().as_bytes(), whole_file::PRIVATE_MODE)
}

#[cfg(test)]
mod tests;
