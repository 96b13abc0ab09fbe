//! The policy that is currently in force, re-read when a file of any tier changes.
//!
//! A thread of its own reads and parses the files, so nobody else waits for a lock: the policy in
//! force is an immutable snapshot that is replaced as a whole. The thread looks for changes every
//! 100 ms (`CHECK_INTERVAL`), which bounds how long a running guest keeps a revoked grant. A
//! decision about a call or a request compares the stamps of the files itself and asks the thread
//! only after a change, because waking a thread costs more than looking at three files. Stamps are
//! compared instead of subscribing to changes, because that also works on network file systems, for
//! editors that replace a file, and for a file or a folder that does not exist yet.
//!
//! A file with a mistake is rejected as a whole. The previous policy then stays in force, and the
//! change is reported.

use std::{
    fmt, io,
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::Duration,
};

use arc_swap::ArcSwap;
use sallyport_policy::{MachineFacts, Policy, PolicyFile, PolicyTier, SecretSource, SourceError};
use sallyport_untrusted_file::{self as untrusted_file, FileStamp};
use tokio::sync::oneshot;

use crate::config::{PolicyFiles, PolicyPath};

/// Size limit of a policy file. The parser's own limit is lower.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// How often the files are checked. A revoked grant is gone for a running guest after this time and
/// the time to read the files; `docs/policy.md` promises half a second.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

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
    /// The files cannot be watched for changes.
    #[error("cannot start the thread that watches the policy: {0}")]
    Watcher(io::Error),
}

impl PolicyLoadError {
    /// Returns a suggested fix.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Unreadable { .. } => Some("check the path and its permissions".to_owned()),
            Self::Mistake(error) => error.hint.clone(),
            Self::Watcher(_) => Some("check the limit of processes and threads".to_owned()),
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
    shared: Arc<SharedPolicy>,
    /// Asks the watcher for a check. The watcher ends when this is dropped.
    checks: Sender<oneshot::Sender<()>>,
}

/// The state that the store and its watcher share.
struct SharedPolicy {
    files: PolicyFiles,
    state: ArcSwap<CheckedPolicy>,
}

/// The policy in force after a check of the files.
struct CheckedPolicy {
    snapshot: PolicySnapshot,
    /// The files that were checked. They belong to the snapshot unless they contain a mistake.
    stamps: Vec<Option<FileStamp>>,
}

/// A policy with the number of its edition. Grants from an older edition are void.
#[derive(Debug, Clone)]
pub struct PolicySnapshot {
    /// Increases with every change.
    pub revision: u64,
    /// The policy.
    pub policy: Arc<Policy>,
}

impl PolicyStore {
    /// Reads the files for the first time, and watches them until the store is dropped.
    ///
    /// # Errors
    ///
    /// A named file is missing, a file cannot be read or contains a mistake, or no thread can be
    /// started.
    pub fn open(files: PolicyFiles, on_change: OnChange) -> Result<Self, PolicyLoadError> {
        // Stamps come first, so that a change between the two reads is noticed later.
        let stamps = file_stamps(&files.files);
        let policy = Arc::new(read_all_files(&files, true)?);
        let snapshot = PolicySnapshot { revision: 0, policy };
        let state = ArcSwap::from_pointee(CheckedPolicy { snapshot, stamps });
        let shared = Arc::new(SharedPolicy { files, state });
        let (checks, requests) = channel();
        let watched = Arc::clone(&shared);
        thread::Builder::new()
            .name("policy-watcher".to_owned())
            .spawn(move || watched.watch_files(&requests, &on_change))
            .map_err(PolicyLoadError::Watcher)?;
        Ok(Self { shared, checks })
    }

    /// The files that the policy is read from.
    pub fn files(&self) -> &PolicyFiles {
        &self.shared.files
    }

    /// The policy in force, as of the last check of the files. Neither waits nor reads anything.
    pub fn current(&self) -> PolicySnapshot {
        self.shared.state.load().snapshot.clone()
    }

    /// The edition of the policy in force. Cheaper than [`current`](Self::current).
    pub fn revision(&self) -> u64 {
        self.shared.state.load().snapshot.revision
    }

    /// Checks the files, and returns the policy in force after it. If they have changed, it waits
    /// until they are read and parsed.
    ///
    /// # Panics
    ///
    /// The watcher has ended, which is a bug. Nothing may be decided under a policy that is no
    /// longer watched.
    pub async fn check_files(&self) -> PolicySnapshot {
        if self.shared.changed_stamps().is_none() {
            return self.current();
        }
        let (done, checked) = oneshot::channel();
        // A failure to send drops `done`, which the next line notices.
        let _ = self.checks.send(done);
        checked.await.expect("the policy is watched");
        self.current()
    }
}

impl SharedPolicy {
    fn watch_files(&self, requests: &Receiver<oneshot::Sender<()>>, on_change: &OnChange) {
        loop {
            let request = requests.recv_timeout(CHECK_INTERVAL);
            if matches!(request, Err(RecvTimeoutError::Disconnected)) {
                return;
            }
            let change = self.changed_stamps().map(|stamps| self.reload(stamps));
            if let Ok(done) = request {
                // The one who asked may have gone.
                let _ = done.send(());
            }
            if let Some(change) = change {
                // A panic of the receiver has been reported. Without the watcher, a running guest
                // would keep revoked grants.
                let _ = panic::catch_unwind(AssertUnwindSafe(|| on_change(&change)));
            }
        }
    }

    /// Returns the present stamps of the files if they differ from those of the last check.
    fn changed_stamps(&self) -> Option<Vec<Option<FileStamp>>> {
        let stamps = file_stamps(&self.files.files);
        (stamps != self.state.load().stamps).then_some(stamps)
    }

    fn panic_error(&self) -> PolicyLoadError {
        let source = io::Error::other("the program panicked, which is a bug");
        PolicyLoadError::Unreadable { path: self.files.user_file().to_owned(), source }
    }

    /// Reads files with these stamps. A panic counts as a mistake, because the watcher must go on.
    fn reload(&self, stamps: Vec<Option<FileStamp>>) -> PolicyChange {
        let previous = self.state.load().snapshot.clone();
        let read_files = AssertUnwindSafe(|| read_all_files(&self.files, false));
        let read = panic::catch_unwind(read_files);
        let (snapshot, change) = match read.unwrap_or_else(|_| Err(self.panic_error())) {
            Ok(policy) => {
                let revision = previous.revision + 1;
                (PolicySnapshot { revision, policy: Arc::new(policy) }, PolicyChange::Reloaded)
            }
            Err(error) => (previous, PolicyChange::Refused(error)),
        };
        self.state.store(Arc::new(CheckedPolicy { snapshot, stamps }));
        change
    }
}

fn file_stamps(files: &[PolicyPath]) -> Vec<Option<FileStamp>> {
    files.iter().map(|file| FileStamp::read(&file.path).ok()).collect()
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
#[path = "policy_store_tests.rs"]
mod tests;
