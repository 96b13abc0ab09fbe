//! Folders that are too sensitive to grant by accident: the whole machine, the kernel's own files,
//! keys, and the files that Sallyport itself depends on.
//!
//! A plugin that can write to the policy, the plugins or the cache can grant itself anything. So an
//! entry that reaches such a folder needs an explicit `sensitive = true`.

use std::path::{Path, PathBuf};

use crate::{
    folder::{FsAccess, FsEntry},
    policy::Policy,
    source::{SourceError, quoted},
};

/// System folders. Granting one of them or a parent is guarded; single files below them can be
/// granted.
const SYSTEM_FOLDERS: [&str; 3] = ["/dev", "/proc", "/sys"];

/// Folders of the user that contain keys. Everything in them is guarded too.
const KEY_FOLDERS: [&str; 4] = [".ssh", ".gnupg", ".aws", ".kube"];

/// The folder of a project's own policy, which applies to the plugins.
const PROJECT_FOLDER: &str = ".sallyport";

/// Facts about the machine that the check needs. The caller provides them; this crate does no I/O.
pub struct MachineFacts<'a> {
    /// Files and folders that the host itself depends on.
    pub host_paths: &'a [PathBuf],
    /// The user's home folder.
    pub home: Option<&'a Path>,
    /// Resolves the links of a path, as far as the path exists.
    pub resolve_links: &'a dyn Fn(&Path) -> PathBuf,
    /// Returns the places of the links on the way to a path, without links in them.
    pub find_links: &'a dyn Fn(&Path) -> Vec<PathBuf>,
}

impl Policy {
    /// Refuses grants that reach a guarded folder without `sensitive = true`. Also refuses a grant
    /// inside a folder that a plugin can write to, because that plugin could replace the inner path
    /// with a link.
    ///
    /// # Errors
    ///
    /// The first such grant, with its place.
    pub fn check_guarded_folders(&self, around: &MachineFacts<'_>) -> Result<(), SourceError> {
        let keys = around.home.into_iter().flat_map(|home| KEY_FOLDERS.map(|name| home.join(name)));
        // Whoever can replace a link on the way decides what the host finds there.
        let guarded_paths = around.host_paths.iter().cloned().chain(keys).flat_map(|path| {
            let links = (around.find_links)(&path);
            links.into_iter().chain([(around.resolve_links)(&path)])
        });
        let guarded_paths: Vec<PathBuf> = guarded_paths.collect();
        let resolved_path = |entry: &FsEntry| (around.resolve_links)(&entry.mount.host);
        for entry in self.fs_entries() {
            let path = resolved_path(entry);
            if let Some(folder) = find_guarded_folder(&path, entry.mount.access, &guarded_paths)
                && !entry.is_sensitive
            {
                return Err(guarded_folder_error(entry, &folder));
            }
            let writable =
                self.fs_entries().filter(|other| other.mount.access == FsAccess::ReadWrite);
            let outer = writable.map(|other| (other, resolved_path(other)));
            let outer =
                outer.into_iter().find(|(_, outer)| path.starts_with(outer) && path != *outer);
            if let Some((other, _)) = outer {
                return Err(inside_writable_error(entry, other));
            }
        }
        Ok(())
    }
}

/// The guarded folder that a path equals, contains, or is in.
fn find_guarded_folder(
    path: &Path,
    access: FsAccess,
    guarded_paths: &[PathBuf],
) -> Option<PathBuf> {
    let around = |folder: &PathBuf| folder.starts_with(path);
    let system = SYSTEM_FOLDERS.map(PathBuf::from);
    if let Some(folder) = system.iter().find(|folder| around(folder)) {
        return Some(folder.clone());
    }
    // Single kernel files can be read; write access and the files of a process are guarded.
    let within = system.into_iter().find(|folder| path.starts_with(folder));
    if let Some(folder) = within.filter(|_| access == FsAccess::ReadWrite || is_process_path(path))
    {
        return Some(folder);
    }
    if let Some(folder) = path.ancestors().find(|folder| folder.ends_with(PROJECT_FOLDER)) {
        return Some(folder.to_owned());
    }
    guarded_paths.iter().find(|folder| around(folder) || path.starts_with(folder)).cloned()
}

fn is_process_path(path: &Path) -> bool {
    let below = path.strip_prefix("/proc").ok().and_then(|below| below.iter().next());
    below.and_then(|name| name.to_str()).is_some_and(|name| {
        name == "self" || name == "thread-self" || name.bytes().all(|b| b.is_ascii_digit())
    })
}

fn inside_writable_error(entry: &FsEntry, outer: &FsEntry) -> SourceError {
    let (path, other) = (quoted(&entry.path_text), quoted(&outer.path_text));
    let place = &outer.place;
    let message = format!("{path} lies in {other} of {place}, which a plugin can write to");
    let hint = "that plugin could put a link in its place: grant folders beside each other";
    entry.place.clone().into_error(message).with_hint(hint)
}

fn guarded_folder_error(entry: &FsEntry, folder: &Path) -> SourceError {
    let (path, folder) = (quoted(&entry.path_text), quoted(&folder.to_string_lossy()));
    let error =
        entry.place.clone().into_error(format!("{path} reaches the guarded folder {folder}"));
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
        let policy = Policy::from_user_file("policy.toml", &text, home).unwrap();
        let own = ["/home/a/.config/sallyport".into()];
        // One link: /link leads to the keys.
        let resolved_path = |path: &Path| match path.strip_prefix("/link") {
            Ok(below) => Path::new("/home/a/.ssh").join(below).components().collect(),
            Err(_) => path.to_owned(),
        };
        let result = policy.check_guarded_folders(&MachineFacts {
            host_paths: &own,
            home,
            resolve_links: &resolved_path,
            find_links: &|path| match path.starts_with("/home/a/.config/sallyport") {
                true => vec!["/srv/links/sallyport".into()],
                false => Vec::new(),
            },
        });
        assert_eq!(result.is_err(), refused, "{path}: {result:?}");
        if let Err(error) = result {
            assert!(error.to_string().starts_with("policy.toml:2:7: "), "{error}");
        }
    }

    #[test]
    fn guarded_folders_have_to_be_named_twice() {
        let guarded = [
            "/",
            "/link",
            "/proc/self",
            "/proc/12/environ",
            "/proc",
            "/home",
            "~",
            "~/.ssh",
            "~/.ssh/keys",
            "~/.config",
            "~/.config/sallyport",
            "~/.config/sallyport/x",
            "/srv/project/.sallyport",
            "/srv/project/.sallyport/sub",
            // A link of the configuration lies in it.
            "/srv/links",
        ];
        for path in guarded {
            check(path, "", true);
            check(path, ", sensitive = false", true);
            check(path, ", sensitive = true", false);
        }
        for path in ["/proc/meminfo", "~/notes", "/srv/other", "~/.sshx", "~/.config/other"] {
            check(path, "", false);
        }
    }

    #[test]
    fn a_folder_below_a_writable_one_is_refused_whoever_holds_it() {
        let entry = |path: &str, access: &str| {
            format!("fs = [{{ path = '{path}', mount = '/x', access = '{access}' }}]\n")
        };
        let rows = [
            ("/w", "read-write", "/w/sub", true),
            ("/w", "read", "/w/sub", false),
            ("/w", "read-write", "/w", false),
            ("/w/sub", "read-write", "/w", false),
            ("/w", "read-write", "/v", false),
        ];
        for (outer, access, inner, refused) in rows {
            let (outer, inner) = (entry(outer, access), entry(inner, "read"));
            let text = format!("[plugin.a]\n{outer}[plugin.b]\n{inner}");
            let policy = Policy::from_user_file("policy.toml", &text, None).unwrap();
            let resolved_path = |path: &Path| path.to_owned();
            let result = policy.check_guarded_folders(&MachineFacts {
                host_paths: &[],
                home: None,
                resolve_links: &resolved_path,
                find_links: &|_| Vec::new(),
            });
            assert_eq!(result.is_err(), refused, "{text}: {result:?}");
        }
    }
    /// A native program writes to its folders like any other plugin, or more easily.
    #[test]
    fn the_folders_of_a_program_are_guarded_too() {
        let rows =
            [("/srv/tasks", false), ("/home/a/.config/sallyport/plugins", true), ("/", true)];
        for (path, refused) in rows {
            let entry = format!("{{ path = '{path}', mount = '{path}', access = 'read-write' }}");
            for process in ["process = true", "process = { unwalled = true }"] {
                let text = format!("[plugin.a]\n{process}\nfs = [{entry}]");
                let policy = Policy::from_user_file("policy.toml", &text, None).unwrap();
                let own = ["/home/a/.config/sallyport".into()];
                let resolved_path = |path: &Path| path.to_owned();
                let result = policy.check_guarded_folders(&MachineFacts {
                    host_paths: &own,
                    home: None,
                    resolve_links: &resolved_path,
                    find_links: &|_| Vec::new(),
                });
                assert_eq!(result.is_err(), refused, "{text}: {result:?}");
            }
        }
    }
}
