//! The file that a call of the `files` plugin would overwrite, for its approval card.
//!
//! It is read only for the user: neither the plugin nor the model receives any of it. If it cannot
//! be read, the card has no diff, and the call itself reports why.

use std::path::{Component, Path, PathBuf};

use sallyport_contract::RequestedCall;
use sallyport_policy::FsMount;
use sallyport_runtime::registry::Registry;
use sallyport_terminal::card::FileChange;
use serde::Deserialize;

/// Name of the tool.
const WRITE_TOOL: &str = "files.write";

/// Largest file that is compared, in bytes. Longer diffs are not read on a card.
const FILE_BYTES_MAX: u64 = 256 << 10;

/// The arguments of the tool.
#[derive(Debug, Deserialize)]
struct WriteArguments {
    path: String,
    text: String,
    mode: Option<String>,
}

/// Returns what a call would change in a file that exists, if the call's plugin may access it.
pub(super) fn file_change(call: &RequestedCall, registry: &Registry) -> Option<FileChange> {
    if call.tool.to_string() != WRITE_TOOL {
        return None;
    }
    let arguments: WriteArguments = serde_json::from_str(&call.arguments).ok()?;
    let (entry, _) = registry.find_tool(&call.tool).ok()?;
    let file = host_path(entry.grant().fs(), &arguments.path)?;
    let bytes = sallyport_untrusted_file::read_bytes(&file, FILE_BYTES_MAX).ok()?;
    let old = String::from_utf8(bytes).ok()?;
    match arguments.mode.as_deref() {
        Some("overwrite") => Some(FileChange { old, new: arguments.text }),
        Some("append") => Some(FileChange { new: format!("{old}{}", arguments.text), old }),
        // The tool refuses to create a file that exists.
        _ => None,
    }
}

/// Returns the place of a guest's path on the host. A path that leaves its folder, by `..` or by a
/// link, and a path that is denied to the guest have none.
fn host_path(mounts: &[FsMount], guest_path: &str) -> Option<PathBuf> {
    let guest_path = Path::new("/").join(guest_path);
    if guest_path.components().any(|component| component == Component::ParentDir) {
        return None;
    }
    let inside = mounts
        .iter()
        .filter_map(|mount| Some((mount, guest_path.strip_prefix(&mount.guest).ok()?.to_owned())));
    let (mount, relative) = inside.max_by_key(|(mount, _)| mount.guest.len())?;
    if mount.deny.find_denying_pattern(&relative).is_some() {
        return None;
    }
    let folder = mount.host.canonicalize().ok()?;
    let file = folder.join(&relative).canonicalize().ok()?;
    let real_relative = file.strip_prefix(&folder).ok()?;
    mount.deny.find_denying_pattern(real_relative).is_none().then_some(file)
}

#[cfg(test)]
mod tests {
    use sallyport_policy::{FsAccess, GlobSet};

    use super::*;

    #[test]
    fn only_files_inside_the_granted_folder_are_read() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().canonicalize().unwrap().join("notes");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("a.md"), "a").unwrap();
        std::fs::write(home.path().join("outside"), "o").unwrap();
        std::os::unix::fs::symlink("../outside", folder.join("out")).unwrap();
        std::os::unix::fs::symlink("a.md", folder.join("in")).unwrap();
        std::fs::write(folder.join("x.key"), "k").unwrap();
        std::os::unix::fs::symlink("x.key", folder.join("to-key")).unwrap();
        let mounts = [FsMount {
            host: folder.clone(),
            guest: "/notes".to_owned(),
            access: FsAccess::ReadWrite,
            deny: GlobSet::parse(["*.key"]).unwrap(),
            quota_bytes: None,
        }];
        let rows = [
            ("/notes/a.md", Some("a.md")),
            ("notes/a.md", Some("a.md")),
            ("/notes/in", Some("a.md")),
            ("/notes/out", None),
            ("/notes/../outside", None),
            ("/notes/x.key", None),
            ("/notes/to-key", None),
            ("/notes/missing", None),
            ("/other/a.md", None),
        ];
        for (path, want) in rows {
            assert_eq!(host_path(&mounts, path), want.map(|name| folder.join(name)), "{path}");
        }
    }
}
