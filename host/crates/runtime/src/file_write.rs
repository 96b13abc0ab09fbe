//! The file that a call of the `files` plugin would write, for the user who approves or sees it.
//!
//! It is read only for the user: neither the plugin nor the model receives any of it. If it cannot
//! be read, there is no diff, and the call itself reports why.

use std::path::{Component, Path, PathBuf};

use sallyport_contract::RequestedCall;
use sallyport_policy::FsMount;
use serde::Deserialize;

use crate::registry::Registry;

/// Name of the tool.
const WRITE_TOOL: &str = "files.write";

/// Largest file that is compared, in bytes. Longer diffs are not read by anyone.
const FILE_BYTES_MAX: u64 = 256 << 10;

/// The arguments of the tool.
#[derive(Debug, Deserialize)]
struct WriteArguments {
    path: String,
    text: String,
    mode: Option<String>,
}

/// A file before and after a call that writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileWrite {
    /// Its path on the host.
    pub path: PathBuf,
    /// The text in it now; `None` if there is no such file.
    pub old: Option<String>,
    /// The text that the call would leave in it.
    pub new: String,
}

/// Returns what a call would write, if its plugin may access the file.
pub fn file_write(call: &RequestedCall, registry: &Registry) -> Option<FileWrite> {
    if call.tool.to_string() != WRITE_TOOL {
        return None;
    }
    let arguments: WriteArguments = serde_json::from_str(&call.arguments).ok()?;
    let path = host_file(call, &arguments.path, registry)?;
    let old = match path.exists() {
        true => Some(read_text(&path)?),
        false => None,
    };
    let new = match (arguments.mode.as_deref(), &old) {
        (Some("overwrite"), _) | (_, None) => arguments.text,
        (Some("append"), Some(old)) => format!("{old}{}", arguments.text),
        // The tool refuses to create a file that exists.
        (_, Some(_)) => return None,
    };
    Some(FileWrite { path, old, new })
}

/// Returns the file on the host that the plugin of a call knows under a path. A path that leaves
/// its folder, by `..` or by a link, and a path that is denied to the plugin have none.
pub fn host_file(call: &RequestedCall, guest_path: &str, registry: &Registry) -> Option<PathBuf> {
    let entry = registry.find_plugin(call.tool.plugin.as_str()).ok()?;
    host_path(entry.session_grant(&call.context).fs(), guest_path)
}

fn read_text(file: &Path) -> Option<String> {
    String::from_utf8(sallyport_untrusted_file::read_bytes(file, FILE_BYTES_MAX).ok()?).ok()
}

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
    let file = real_path(&folder.join(&relative))?;
    let real_relative = file.strip_prefix(&folder).ok()?;
    mount.deny.find_denying_pattern(real_relative).is_none().then_some(file)
}

/// The path without links. The file itself need not exist, but its folder has to.
fn real_path(file: &Path) -> Option<PathBuf> {
    match file.symlink_metadata() {
        Ok(_) => file.canonicalize().ok(),
        Err(_) => Some(file.parent()?.canonicalize().ok()?.join(file.file_name()?)),
    }
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
        std::os::unix::fs::symlink("nowhere", folder.join("broken")).unwrap();
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
            ("/notes/broken", None),
            ("/notes/../outside", None),
            ("/notes/x.key", None),
            ("/notes/to-key", None),
            ("/notes/missing", Some("missing")),
            ("/notes/no/missing", None),
            ("/notes/new.key", None),
            ("/other/a.md", None),
        ];
        for (path, want) in rows {
            assert_eq!(host_path(&mounts, path), want.map(|name| folder.join(name)), "{path}");
        }
    }
}
