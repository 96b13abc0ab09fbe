//! What a host reports about itself, as data. Whoever embeds it finds the words, or ignores it.

use std::{path::PathBuf, sync::Arc};

use sallyport_contract::PluginName;

use crate::config::ForeignFile;

/// Something that the operator or the user may want to know. None of it stops anything.
#[derive(Debug, Clone)]
pub enum HostNotice {
    /// A file of a project is ignored, because somebody else can have put it there.
    ForeignFile(ForeignFile),
    /// The sandbox lacks something, such as a folder for compiled components.
    Sandbox(String),
    /// The lock file is missing although plugins were accepted before.
    LockLost {
        /// Where it should be.
        path: PathBuf,
    },
    /// The configuration has settings for a plugin that does not exist.
    UnusedSettings {
        /// The name in the configuration.
        plugin: PluginName,
        /// A plugin whose name is similar.
        near: Option<String>,
    },
    /// Components are being compiled.
    Compiling {
        /// How many are done.
        done: usize,
        /// How many have to be compiled.
        total: usize,
        /// The names of those that are not done.
        waiting: Vec<String>,
    },
    /// No component is waited for any more.
    CompilingEnded,
    /// Plugins are left out because they are still being compiled.
    StillCompiling(Vec<PluginName>),
    /// Memories are found by words alone, because there is no key for the model of vectors.
    MemoriesByWords {
        /// Why.
        why: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// Something is wrong.
    Warning(String),
    /// The user may act on it: a page that could not be opened, for example.
    Info(String),
}

/// Receives notices. It is called from any thread and must not block.
pub type NoticeSink = Arc<dyn Fn(HostNotice) + Send + Sync>;

/// Drops every notice.
pub fn no_notices() -> NoticeSink {
    Arc::new(|_| {})
}
