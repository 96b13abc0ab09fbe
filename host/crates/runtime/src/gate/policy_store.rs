//! The policy that is currently in force, re-read when a file of any tier changes.
//!
//! A changed policy takes effect at the next host call of a running guest. Every decision therefore
//! starts here, and the check is cheap: it compares file stamps, at most once per millisecond. A
//! file with a mistake is rejected as a whole. The previous policy then stays in force, and the
//! change is reported.

use std::{
    fmt, fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use sallyport_policy::{MachineFacts, Policy, PolicyFile, PolicyTier, SecretSource, SourceError};
use sallyport_untrusted_file as untrusted_file;

use crate::config::{PolicyFiles, PolicyPath};

/// Size limit of a policy file. The parser's own limit is lower.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Shortest time between two checks of the files. A guest that makes a million host calls should
/// not cause a million checks, and a delay of a millisecond is not noticeable.
const CHECK_INTERVAL_MIN: Duration = Duration::from_millis(1);

/// Why the policy cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum PolicyLoadError {
    /// A file cannot be read, or a named one is missing.
    #[error("cannot read {path}: {source}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A file contains a mistake.
    #[error(transparent)]
    Mistake(#[from] SourceError),
}

impl PolicyLoadError {
    /// Returns a suggested fix.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unreadable { .. } => Some("check the path and its permissions".to_owned()),
            Self::Mistake(error) => error.hint.clone(),
        }
    }
}

/// A change of the files while the program runs.
#[derive(Debug)]
pub enum PolicyChange {
    /// A new policy is in force.
    Reloaded,
    /// The new text cannot be used. The old policy stays in force.
    Refused(PolicyLoadError),
}

impl fmt::Display for PolicyChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reloaded => f.write_str("the policy has changed and is in force"),
            Self::Refused(error) => {
                write!(f, "Policy not reloaded, the old one stays in force: {error}")
            }
        }
    }
}

/// Receives every change.
pub type OnChange = Box<dyn Fn(&PolicyChange) + Send + Sync>;

/// The policy in force, and the files that it comes from.
pub struct PolicyStore {
    files: PolicyFiles,
    on_change: OnChange,
    state: Mutex<PolicyStoreState>,
}

struct PolicyStoreState {
    policy: Arc<Policy>,
    revision: u64,
    stamps: Vec<Option<FileStamp>>,
    checked_at: Instant,
}

/// A policy with the number of its edition. Grants from an older edition are void.
#[derive(Debug, Clone)]
pub struct PolicySnapshot {
    /// Increases with every change.
    pub revision: u64,
    /// The policy.
    pub policy: Arc<Policy>,
}

/// The metadata of a file that show a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    inode: (u64, u64),
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl PolicyStore {
    /// Reads the files for the first time.
    ///
    /// # Errors
    ///
    /// A named file is missing, or a file cannot be read or contains a mistake.
    pub fn open(files: PolicyFiles, on_change: OnChange) -> Result<Self, PolicyLoadError> {
        // Stamps come first, so that a change between the two reads is noticed later.
        let stamps = file_stamps(&files.files);
        let policy = Arc::new(read_all_files(&files, true)?);
        let state = PolicyStoreState { policy, revision: 0, stamps, checked_at: Instant::now() };
        Ok(Self { files, on_change, state: Mutex::new(state) })
    }

    /// The files that the policy is read from.
    pub fn files(&self) -> &PolicyFiles {
        &self.files
    }

    /// The policy in force, after a check of the files.
    pub fn current(&self) -> PolicySnapshot {
        let mut state = self.lock_state();
        let now = Instant::now();
        if now.duration_since(state.checked_at) >= CHECK_INTERVAL_MIN {
            state.checked_at = now;
            let stamps = file_stamps(&self.files.files);
            if stamps != state.stamps {
                state.stamps = stamps;
                let change = self.reload(&mut state);
                let snapshot = state.snapshot();
                // The lock is released first because the callback may ask for the policy.
                drop(state);
                (self.on_change)(&change);
                return snapshot;
            }
        }
        state.snapshot()
    }

    fn reload(&self, state: &mut PolicyStoreState) -> PolicyChange {
        match read_all_files(&self.files, false) {
            Ok(policy) => {
                state.policy = Arc::new(policy);
                state.revision += 1;
                PolicyChange::Reloaded
            }
            Err(error) => PolicyChange::Refused(error),
        }
    }

    /// Every field is replaced as a whole, so a panic elsewhere leaves the state usable.
    fn lock_state(&self) -> MutexGuard<'_, PolicyStoreState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PolicyStoreState {
    fn snapshot(&self) -> PolicySnapshot {
        PolicySnapshot { revision: self.revision, policy: Arc::clone(&self.policy) }
    }
}

fn file_stamps(files: &[PolicyPath]) -> Vec<Option<FileStamp>> {
    files.iter().map(|file| file_stamp(&file.path)).collect()
}

fn file_stamp(path: &Path) -> Option<FileStamp> {
    let info = fs::metadata(path).ok()?;
    Some(FileStamp {
        inode: (info.dev(), info.ino()),
        bytes: info.size(),
        modified: (info.mtime(), info.mtime_nsec()),
        changed: (info.ctime(), info.ctime_nsec()),
    })
}

/// Reads all files. A named file must exist at the start. If it vanishes later, it grants nothing,
/// like a file that never existed.
fn read_all_files(files: &PolicyFiles, is_start: bool) -> Result<Policy, PolicyLoadError> {
    combine_policy_files(files, |file| read_policy_file(file, is_start && file.is_named))
}

/// Parses the policy as if the user's file contained `users`. Writes nothing.
///
/// # Errors
///
/// The text contains a mistake, alone or together with the other files.
pub fn parse_proposed_policy(
    files: &PolicyFiles,
    user_text: &str,
) -> Result<Policy, PolicyLoadError> {
    combine_policy_files(files, |file| match file.tier {
        PolicyTier::User => Ok(Some(user_text.to_owned())),
        PolicyTier::Admin | PolicyTier::Project => read_policy_file(file, false),
    })
}

fn combine_policy_files(
    files: &PolicyFiles,
    text: impl Fn(&PolicyPath) -> Result<Option<String>, PolicyLoadError>,
) -> Result<Policy, PolicyLoadError> {
    let home = files.home.as_deref();
    let mut parsed = Vec::new();
    for file in &files.files {
        if let Some(text) = text(file)? {
            parsed.push(parse_policy_file(file, &text, home)?);
        }
    }
    let policy = Policy::from_files(parsed)?;
    let protected_files = [files.host_files.as_slice(), &secret_files(&policy)].concat();
    let machine_facts =
        MachineFacts { host_paths: &protected_files, home, resolve_links: &resolve_links };
    policy.check_guarded_folders(&machine_facts)?;
    Ok(policy)
}

/// The files that contain secrets. A folder granted to a plugin must not contain them.
fn secret_files(policy: &Policy) -> Vec<PathBuf> {
    let files = policy.secret_sources().filter_map(|(_, source)| match source {
        SecretSource::File(path) => Some(path.clone()),
        SecretSource::Env(_) | SecretSource::Keyring { .. } => None,
    });
    files.collect()
}

/// Parses a file. Rules name only the file's base name, because a model may read why a call was
/// refused but must not learn a path of the host. A mistake is for the operator, and names the full
/// path.
fn parse_policy_file(
    file: &PolicyPath,
    text: &str,
    home: Option<&Path>,
) -> Result<PolicyFile, SourceError> {
    let parsed = Policy::parse_file(file.tier, &short_name(file), text, home);
    parsed.map_err(|error| SourceError { file: file.path.display().to_string(), ..error })
}

fn short_name(file: &PolicyPath) -> String {
    let name = file.path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    match file.tier {
        PolicyTier::User => name.into_owned(),
        PolicyTier::Admin => format!("admin {name}"),
        PolicyTier::Project => format!("project {name}"),
    }
}

fn read_policy_file(
    file: &PolicyPath,
    must_exist: bool,
) -> Result<Option<String>, PolicyLoadError> {
    let path = &file.path;
    let read = match file.tier {
        PolicyTier::Project => untrusted_file::read_own_text(path, FILE_BYTES_MAX),
        PolicyTier::Admin | PolicyTier::User => untrusted_file::read_text(path, FILE_BYTES_MAX),
    };
    match read {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !must_exist => Ok(None),
        Err(source) => Err(PolicyLoadError::Unreadable { path: path.to_owned(), source }),
    }
}

/// Resolves the links of a path. The part that does not exist yet is appended unchanged.
fn resolve_links(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let existing =
        path.ancestors().find_map(|ancestor| Some((ancestor, ancestor.canonicalize().ok()?)));
    match existing {
        Some((ancestor, real)) => real.join(path.strip_prefix(ancestor).unwrap_or(Path::new(""))),
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRANT: &str = "[plugin.a]\nenv = ['TZ']\n";

    fn standing(folder: &Path, is_named: bool) -> Result<PolicyStore, PolicyLoadError> {
        let path = folder.join("policy.toml");
        let files = vec![PolicyPath { tier: PolicyTier::User, path, is_named }];
        let files = PolicyFiles { files, host_files: Vec::new(), home: None, foreign: Vec::new() };
        PolicyStore::open(files, Box::new(|_| {}))
    }

    fn plugins(standing: &PolicyStore) -> usize {
        std::thread::sleep(CHECK_INTERVAL_MIN * 2);
        standing.current().policy.plugin_names().count()
    }

    #[test]
    fn a_change_is_seen_and_a_broken_one_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy.toml");
        let standing = standing(folder.path(), false).unwrap();
        assert_eq!(plugins(&standing), 0, "no file grants nothing");
        fs::write(&path, GRANT).unwrap();
        assert_eq!(plugins(&standing), 1);
        fs::write(&path, "[plugin.a\n").unwrap();
        assert_eq!(plugins(&standing), 1, "the old one stays");
        fs::write(&path, "").unwrap();
        assert_eq!(plugins(&standing), 0);
        fs::write(&path, GRANT).unwrap();
        assert_eq!(plugins(&standing), 1);
        fs::remove_file(&path).unwrap();
        assert_eq!(plugins(&standing), 0, "a file that is gone grants nothing");
    }

    #[test]
    fn a_named_file_has_to_be_there() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(standing(folder.path(), true), Err(PolicyLoadError::Unreadable { .. })));
    }

    #[test]
    fn links_of_a_path_are_followed_as_far_as_it_exists() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        fs::create_dir(base.join("target")).unwrap();
        std::os::unix::fs::symlink("target", base.join("link")).unwrap();
        assert_eq!(resolve_links(&base.join("link/new/file")), base.join("target/new/file"));
        assert_eq!(resolve_links(&base.join("link")), base.join("target"));
        assert!(resolve_links(Path::new("relative")).is_absolute());
    }
}
