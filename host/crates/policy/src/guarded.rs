//! Folders that hold too much to be granted in passing: the whole machine, the kernel's own files,
//! keys, and what Sallyport itself lives from.
//!
//! A plugin that can write to the policy, the plugins or the cache can give itself anything. So an
//! entry that reaches such a folder has to say it twice: `sensitive = true`.

use std::path::{Path, PathBuf};

use crate::{
    folder::FsEntry,
    policy::Policy,
    source::{SourceError, quoted},
};

/// Folders of the system. What is around them is guarded; single files below them can be granted.
const SYSTEM: [&str; 3] = ["/dev", "/proc", "/sys"];

/// Folders of the user that hold keys. What is in them is guarded too.
const KEYS: [&str; 4] = [".ssh", ".gnupg", ".aws", ".kube"];

impl Policy {
    /// Refuses grants that reach a guarded folder without saying so twice. `own` are the folders
    /// that the host itself lives from.
    ///
    /// # Errors
    ///
    /// The first such grant, with its place.
    pub fn guard(&self, own: &[PathBuf], home: Option<&Path>) -> Result<(), SourceError> {
        let keys = home.into_iter().flat_map(|home| KEYS.map(|name| home.join(name)));
        let closed: Vec<PathBuf> = own.iter().cloned().chain(keys).collect();
        let entries = self.mounted().filter(|entry| !entry.is_sensitive);
        for entry in entries {
            if let Some(folder) = reached(&entry.mount.host, &closed) {
                return Err(refusal(entry, &folder));
            }
        }
        Ok(())
    }
}

/// The guarded folder that a path is, holds, or lies in.
fn reached(path: &Path, closed: &[PathBuf]) -> Option<PathBuf> {
    let around = |folder: &PathBuf| folder.starts_with(path);
    let system = SYSTEM.map(PathBuf::from).into_iter().find(around);
    system.or_else(|| closed.iter().find(|f| around(f) || path.starts_with(f)).cloned())
}

fn refusal(entry: &FsEntry, folder: &Path) -> SourceError {
    let (path, folder) = (quoted(&entry.written), quoted(&folder.to_string_lossy()));
    let error = entry.place.clone().error(format!("{path} reaches the guarded folder {folder}"));
    error.with_hint("name a smaller folder, or add sensitive = true to say that you mean it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, more: &str, refused: bool) {
        let text = format!(
            "[plugin.a]\nfs = [{{ path = '{path}', mount = '/x', access = 'read'{more} }}]"
        );
        let home = Some(Path::new("/home/a"));
        let policy = Policy::parse("policy.toml", &text, home).unwrap();
        let result = policy.guard(&["/home/a/.config/sallyport".into()], home);
        assert_eq!(result.is_err(), refused, "{path}: {result:?}");
        if let Err(error) = result {
            assert!(error.to_string().starts_with("policy.toml:2:7: "), "{error}");
        }
    }

    #[test]
    fn guarded_folders_have_to_be_named_twice() {
        let guarded = [
            "/",
            "/proc",
            "/home",
            "~",
            "~/.ssh",
            "~/.ssh/keys",
            "~/.config",
            "~/.config/sallyport",
            "~/.config/sallyport/x",
        ];
        for path in guarded {
            check(path, "", true);
            check(path, ", sensitive = false", true);
            check(path, ", sensitive = true", false);
        }
        for path in ["/proc/meminfo", "~/notes", "/srv", "~/.sshx", "~/.config/other"] {
            check(path, "", false);
        }
    }
}
