//! `process`: a plugin that runs as a native program.

use std::path::Path;

use super::{
    Capability, CapabilityKind, HeldCapability, kind::GrantedEntries, settings::SettingSpec,
    table::CapabilityTable,
};
use crate::{folder::FsEntry, source::SourceError};

const NETWORK: &str = "network";
/// The flag that lets it run if the kernel cannot sandbox it.
pub(crate) const UNSANDBOXED: &str = "unwalled";

/// How a plugin runs as a native program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessGrant {
    /// Whether it has network access.
    pub network: bool,
    /// Whether it may run if the kernel cannot sandbox it.
    pub unsandboxed: bool,
}

/// The capability.
pub(crate) struct Process;

static SETTINGS: [SettingSpec; 2] = [SettingSpec::flag(NETWORK), SettingSpec::flag(UNSANDBOXED)];

impl CapabilityKind for Process {
    fn word(&self) -> &'static str {
        "process"
    }

    fn settings(&self) -> &'static [SettingSpec] {
        &SETTINGS
    }

    fn danger(&self) -> Option<&'static str> {
        Some("run as a program of this machine")
    }

    fn action_phrase(&self, _detail: Option<&str>) -> String {
        "run as a program of this machine".to_owned()
    }

    fn check_conflicts(
        &self,
        table: &CapabilityTable,
        folders: &[FsEntry],
    ) -> Result<(), SourceError> {
        let of = Capability::Process;
        match table.denied_at(of).is_none() && table.grants(of).next().is_some() {
            true => folders.iter().try_for_each(check_folder),
            false => Ok(()),
        }
    }

    fn hold(&self, granted: &GrantedEntries<'_>) -> Option<HeldCapability> {
        let settings = granted.settings()?;
        let network = settings.is_flag_set(NETWORK);
        let unsandboxed = settings.is_flag_set(UNSANDBOXED);
        let network_text = if network { "with" } else { "without" };
        let sandbox_text =
            if unsandboxed { ", without walls where the kernel has none" } else { "" };
        let action = self.action_phrase(None);
        let line = format!("{action}, {network_text} network{sandbox_text}");
        let grant = ProcessGrant { network, unsandboxed };
        Some(HeldCapability::new(grant, vec![line], self.danger()))
    }
}

/// Refuses a folder with properties that cannot be enforced for a native program, which sees the
/// folder at its host path.
fn check_folder(entry: &FsEntry) -> Result<(), SourceError> {
    let mount = &entry.mount;
    let own = mount.host.file_name().map(|name| Path::new("/").join(name));
    let guest = Path::new(&mount.guest);
    let moves = guest != mount.host && Some(guest) != own.as_deref();
    let key = match () {
        () if moves => "mount",
        () if !mount.deny.is_empty() => "deny",
        () if mount.quota_bytes.is_some() => "quota",
        () => return Ok(()),
    };
    let message = format!("\"{key}\" cannot be kept beside \"process\"");
    let error = entry.place.clone().into_error(message);
    Err(error.with_hint("a program of this machine sees the folder as it is: leave the key out"))
}
