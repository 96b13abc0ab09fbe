//! The accepted versions of plugins in full, for the user who is asked about a change.
//!
//! The lock decides alone whether a plugin has changed. A snapshot that is missing, or that does not
//! fit the lock, only makes the question less exact.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use sallyport_contract::{PluginName, ToolDescriptor};
use sallyport_untrusted_file as untrusted_file;
use serde::{Deserialize, Serialize};

use super::PluginPin;
use crate::atomic_file;

/// The file in the state folder.
pub(super) const SNAPSHOT_FILE: &str = "accepted-plugins.json";

/// Size limit of the file. A definition of a tool has at most some KiB.
const FILE_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// One version of a plugin, as far as versions are compared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginSnapshot {
    /// The plugin's name.
    pub(crate) name: String,
    /// Its version.
    pub(crate) version: String,
    /// BLAKE3 digest of its component.
    pub(crate) digest: String,
    /// Size of its component in bytes, if it is one.
    pub(crate) size_bytes: Option<u64>,
    /// The interfaces that it imports.
    pub(crate) imports: BTreeSet<String>,
    /// What its manifest requests.
    pub(crate) requests: BTreeSet<String>,
    /// What it may do, under the policy of the moment.
    pub(crate) permissions: BTreeSet<String>,
    /// Its tools, in its own order.
    pub(crate) tools: Vec<ToolDescriptor>,
}

/// A plugin that is accepted as it is now.
#[derive(Debug, Clone)]
pub struct AcceptedPlugin {
    /// Its name.
    pub name: PluginName,
    /// What later versions are compared with.
    pub pin: PluginPin,
    /// What a user is shown of a difference.
    pub snapshot: PluginSnapshot,
}

/// The snapshots, by plugin.
pub(super) type Snapshots = BTreeMap<PluginName, PluginSnapshot>;

/// Reads the snapshots. A file that cannot be read is as good as none.
pub(super) fn read_snapshots(path: &Path) -> Snapshots {
    let text = untrusted_file::read_text(path, FILE_BYTES_MAX).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Writes the snapshots. Without them, a question about a change is less exact, and nothing else
/// depends on them, so a failure is not reported.
pub(super) fn write_snapshots(path: &Path, snapshots: &Snapshots) {
    if let Ok(text) = serde_json::to_string(snapshots) {
        let _ = atomic_file::replace_file(path, text.as_bytes(), atomic_file::PRIVATE_MODE);
    }
}
