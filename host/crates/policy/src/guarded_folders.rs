//! Folders that are too sensitive to grant by accident: the whole machine, the kernel's own files,
//! keys, and the files that Sallyport itself depends on.
//!
//! A plugin that can write to the policy, the plugins or the cache can grant itself anything. So an
//! entry that reaches such a folder needs an explicit `sensitive = true`.

use std::path::{Path, PathBuf};

use crate::{
    folder::{FsAccess, FsEntry, FsMount},
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
    /// with a link, and folders of one plugin that overlap through a link and are treated differently.
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
        self.plugin_tables()
            .try_for_each(|tables| check_linked_overlaps(&tables.effective.fs, around))
    }
}

/// Refuses two folders of one plugin that are inside each other through a link, unless a file is
/// treated alike in both. Paths that are inside each other as they are written are compared when the
/// policy is parsed, and share what they deny: that is right only where no link leads elsewhere
/// between the two.
fn check_linked_overlaps(
    entries: &[FsEntry],
    around: &MachineFacts<'_>,
) -> Result<(), SourceError> {
    let resolved: Vec<(&FsEntry, PathBuf)> =
        entries.iter().map(|entry| (entry, (around.resolve_links)(&entry.mount.host))).collect();
    for (index, (entry, path)) in resolved.iter().enumerate() {
        for (other, other_path) in &resolved[..index] {
            let (inner, written) = (
                find_inner_path(path, other_path),
                find_inner_path(&entry.mount.host, &other.mount.host),
            );
            if inner.is_some()
                && inner != written
                && let Some(difference) = find_difference(&entry.mount, &other.mount)
            {
                return Err(linked_overlap_error(entry, other, difference));
            }
        }
    }
    Ok(())
}

/// Where in the outer one of two folders the inner one is, and whether that is the first.
fn find_inner_path<'a>(first: &'a Path, second: &'a Path) -> Option<(&'a Path, bool)> {
    let is_first = first.starts_with(second);
    let (inner, outer) = if is_first { (first, second) } else { (second, first) };
    inner.strip_prefix(outer).ok().map(|path| (path, is_first))
}

/// How a file that is in two folders would be treated differently, and what to do about it.
fn find_difference(mount: &FsMount, other: &FsMount) -> Option<(&'static str, &'static str)> {
    if mount.access != other.access {
        return Some((
            "their access differs",
            "a file in both could be changed through one of them: give both the same access, or \
             grant only one of them",
        ));
    }
    if mount.quota_bytes != other.quota_bytes {
        return Some((
            "their quota differs",
            "a file counts in both: give both the same quota, or grant only one of them",
        ));
    }
    let has_denied = !mount.deny.is_empty() || !other.deny.is_empty();
    has_denied.then_some((
        "at least one has a \"deny\" list",
        "what one denies could be reached through the other: write both paths without the link, or \
         grant only one of them",
    ))
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

fn linked_overlap_error(
    entry: &FsEntry,
    other: &FsEntry,
    (difference, hint): (&str, &str),
) -> SourceError {
    let (path, outer) = (quoted(&entry.path_text), quoted(&other.path_text));
    let place = &other.place;
    let message = format!(
        "{path} and {outer} of {place} are inside each other through a symbolic link, and \
         {difference}"
    );
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

    #[test]
    fn folders_of_a_plugin_that_overlap_through_a_link_are_treated_alike() {
        let links = [
            ("/to-parent", "/srv"),
            ("/to-folder", "/srv/a"),
            ("/to-sub", "/srv/a/sub"),
            ("/srv/link", "/srv/a"),
        ];
        let resolve_links = |path: &Path| {
            let followed: Option<PathBuf> = links.iter().find_map(|(link, target)| {
                Some(Path::new(target).join(path.strip_prefix(link).ok()?).components().collect())
            });
            followed.unwrap_or_else(|| path.to_owned())
        };
        let (read, write) = ("access = 'read'", "access = 'read-write'");
        let deny = "access = 'read', deny = ['**/.env']";
        let quota = "access = 'read-write', quota = '1MiB'";
        let rows = [
            (("/srv/a", read), ("/to-parent", read), None),
            (("/srv/a", read), ("/to-sub", read), None),
            (("/srv/a", write), ("/to-folder", write), None),
            (("/srv/a", quota), ("/to-folder", quota), None),
            (("/srv/a", write), ("/to-parent", read), Some("access")),
            (("/to-parent", read), ("/srv/a", write), Some("access")),
            (("/srv/a", read), ("/to-sub", write), Some("access")),
            (("/to-parent", read), ("/to-sub", write), Some("access")),
            (("/srv/a", write), ("/to-folder/", read), Some("access")),
            (("/srv/a", quota), ("/to-folder", write), Some("quota")),
            (("/srv/a", deny), ("/to-parent", read), Some("deny")),
            (("/srv/a", read), ("/to-sub", deny), Some("deny")),
            (("/srv/a", deny), ("/to-folder", deny), Some("deny")),
            // Beside each other, whatever the links are.
            (("/srv/b", deny), ("/to-sub", write), None),
            // As they are written, and a link leads to another place in the same folder.
            (("/srv", deny), ("/srv/link", read), Some("deny")),
            (("/srv/link", read), ("/srv", read), None),
            // As they are written, which the parser has compared.
            (("/srv", deny), ("/srv/a", read), None),
            (("/to-parent", deny), ("/to-parent/a", read), None),
        ];
        let entry = |(path, more): (&str, &str), mount: &str| {
            format!("{{ path = '{path}', mount = '{mount}', {more} }}")
        };
        let check = |text: &str| {
            let policy = Policy::from_user_file("policy.toml", text, None).unwrap();
            policy.check_guarded_folders(&MachineFacts {
                host_paths: &[],
                home: None,
                resolve_links: &resolve_links,
                find_links: &|_| Vec::new(),
            })
        };
        for (first, second, difference) in rows {
            let (one, two) = (entry(first, "/x"), entry(second, "/y"));
            let result = check(&format!("[plugin.a]\nfs = [{one},\n{two}]"));
            assert_eq!(result.is_err(), difference.is_some(), "{one} {two}: {result:?}");
            if let (Err(error), Some(difference)) = (result, difference) {
                let message = error.to_string();
                assert!(message.starts_with("policy.toml:3:1: "), "{message}");
                assert!(message.contains("of policy.toml:2 are inside each other"), "{message}");
                assert!(message.contains(difference), "{message}");
                assert!(error.hint.is_some_and(|hint| hint.contains("grant only one")));
            }
        }
        // Of two plugins, each has what it was granted.
        let (one, two) = (entry(("/srv/a", write), "/x"), entry(("/to-folder", read), "/x"));
        assert_eq!(check(&format!("[plugin.a]\nfs = [{one}]\n[plugin.b]\nfs = [{two}]")), Ok(()));
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
