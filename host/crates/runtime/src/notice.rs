//! Notices: reports of a host about itself, as data. The embedding program formats or ignores them.

use std::{path::PathBuf, sync::Arc};

use sallyport_contract::PluginName;

use crate::{config::ForeignFile, gate::MessageSink};

/// A report for the operator or the user. No notice stops the host.
#[derive(Debug, Clone)]
pub enum HostNotice {
    /// A file of a project is ignored: another user could have put it there.
    ForeignFile(ForeignFile),
    /// The sandbox lacks something, such as a folder for compiled components.
    Sandbox(String),
    /// The lock file is missing although plugins were accepted before.
    LockLost {
        /// Its expected path.
        path: PathBuf,
    },
    /// The configuration has settings for a plugin that does not exist.
    UnusedSettings {
        /// The name in the configuration.
        plugin: PluginName,
        /// A plugin whose name is similar.
        suggestion: Option<String>,
    },
    /// Components are being compiled.
    Compiling {
        /// The number of compiled components.
        done: usize,
        /// The number of components to compile.
        total: usize,
        /// The names of the components that are not compiled yet.
        waiting: Vec<String>,
    },
    /// The host no longer waits for components to compile.
    CompilingEnded,
    /// Plugins that are still being compiled are left out.
    StillCompiling(Vec<PluginName>),
    /// The embedding model has no key, so memories are searched by words alone.
    EmbeddingUnavailable {
        /// The reason.
        why: String,
        /// How to fix it.
        hint: Option<String>,
    },
    /// A problem.
    Warning(String),
    /// Information that the user may act on, such as a page that could not be opened.
    Info(String),
}

/// Receives notices. It is called from any thread and must not block.
pub type NoticeSink = Arc<dyn Fn(HostNotice) + Send + Sync>;

/// Returns a function that reports sentences as warnings.
pub fn warning_reporter(notices: &NoticeSink) -> MessageSink {
    let notices = Arc::clone(notices);
    Arc::new(move |text| notices(HostNotice::Warning(text.to_owned())))
}

/// Drops every notice.
pub fn no_notices() -> NoticeSink {
    Arc::new(|_| {})
}
