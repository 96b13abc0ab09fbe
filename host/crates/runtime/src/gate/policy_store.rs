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
//! A file with a mistake is rejected as a whole and reported. Its previous text then stays in force
//! with the present text of the other files, because otherwise a broken file of a project would keep
//! grants in force that the user revokes in another file.

use std::{
    ffi::OsString,
    fmt, fs, io,
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

use crate::config::{ForeignFile, PolicyFiles, PolicyPath};

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
    /// The new text of a file cannot be used. Its previous text stays in force.
    Refused(PolicyLoadError),
    /// A project's file is ignored, as at the start.
    Ignored(ForeignFile),
}

impl fmt::Display for PolicyChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reloaded => f.write_str("the policy has changed and is in force"),
            Self::Refused(error) => {
                write!(f, "Policy file not reloaded, its previous text stays in force: {error}")
            }
            Self::Ignored(foreign) => write!(f, "{foreign}"),
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
    /// The last usable text of each file, parsed. `None` grants nothing and tightens nothing.
    parsed_files: ParsedFiles,
}

/// One entry for each file, in the order of the files.
type ParsedFiles = Vec<Option<PolicyFile>>;

/// The result of reading changed files.
struct ReloadedPolicy {
    policy: Arc<Policy>,
    parsed_files: ParsedFiles,
    /// The files that were not used, and why.
    remarks: Vec<PolicyChange>,
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
        let read_file = |file: &PolicyPath| load_policy_file(&files, file, file.is_named);
        let parsed_files: ParsedFiles =
            files.files.iter().map(read_file).collect::<Result<_, _>>()?;
        let policy = Arc::new(combine_parsed_files(&files, &parsed_files)?);
        let snapshot = PolicySnapshot { revision: 0, policy };
        let state = ArcSwap::from_pointee(CheckedPolicy { snapshot, stamps, parsed_files });
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

    /// Parses the policy as if the user's file contained `user_text`, and the other files what is in
    /// force of them. Writes nothing.
    ///
    /// # Errors
    ///
    /// The text contains a mistake, alone or together with the other files.
    pub(crate) fn parse_proposed_text(&self, user_text: &str) -> Result<Policy, PolicyLoadError> {
        let files = &self.shared.files;
        let mut parsed_files = self.shared.state.load().parsed_files.clone();
        for (file, parsed) in files.files.iter().zip(&mut parsed_files) {
            if file.tier == PolicyTier::User {
                *parsed = Some(parse_policy_file(file, user_text, files.home.as_deref())?);
            }
        }
        combine_parsed_files(files, &parsed_files)
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
            let changes = self.changed_stamps().map(|stamps| self.reload(stamps));
            if let Ok(done) = request {
                // The one who asked may have gone.
                let _ = done.send(());
            }
            for change in changes.into_iter().flatten() {
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

    /// Reads files with these stamps, and returns what is reported about it. A panic counts as a
    /// mistake, because the watcher must go on.
    fn reload(&self, stamps: Vec<Option<FileStamp>>) -> Vec<PolicyChange> {
        let previous = self.state.load_full();
        let read_files = AssertUnwindSafe(|| self.read_changed_files(&previous));
        let reloaded = panic::catch_unwind(read_files).unwrap_or_else(|_| ReloadedPolicy {
            policy: Arc::clone(&previous.snapshot.policy),
            parsed_files: previous.parsed_files.clone(),
            remarks: vec![PolicyChange::Refused(self.panic_error())],
        });
        let ReloadedPolicy { policy, parsed_files, remarks: mut changes } = reloaded;
        let mut snapshot = previous.snapshot.clone();
        // Nothing has changed if the only other text was refused.
        if changes.is_empty() || *policy != *snapshot.policy {
            snapshot = PolicySnapshot { revision: snapshot.revision + 1, policy };
            changes.insert(0, PolicyChange::Reloaded);
        }
        self.state.store(Arc::new(CheckedPolicy { snapshot, stamps, parsed_files }));
        changes
    }

    /// Reads all files. One that cannot be used keeps its previous text.
    fn read_changed_files(&self, previous: &CheckedPolicy) -> ReloadedPolicy {
        let mut remarks = Vec::new();
        let mut parsed_files = ParsedFiles::new();
        for (file, known) in self.files.files.iter().zip(&previous.parsed_files) {
            if let Some(foreign) = find_foreign_project(file) {
                remarks.push(PolicyChange::Ignored(foreign));
                parsed_files.push(None);
                continue;
            }
            parsed_files.push(load_policy_file(&self.files, file, false).unwrap_or_else(|error| {
                remarks.push(PolicyChange::Refused(error));
                known.clone()
            }));
        }
        match combine_parsed_files(&self.files, &parsed_files) {
            Ok(policy) => ReloadedPolicy { policy: Arc::new(policy), parsed_files, remarks },
            Err(error) => {
                remarks.push(PolicyChange::Refused(error));
                let (policy, parsed_files) = self.combine_one_by_one(previous, parsed_files);
                ReloadedPolicy { policy, parsed_files, remarks }
            }
        }
    }

    /// Replaces one file after another, for files that conflict with each other. Those that are
    /// valid with the previous text of the others are used.
    fn combine_one_by_one(
        &self,
        previous: &CheckedPolicy,
        parsed_files: ParsedFiles,
    ) -> (Arc<Policy>, ParsedFiles) {
        let mut policy = Arc::clone(&previous.snapshot.policy);
        let mut used_files = previous.parsed_files.clone();
        for (index, parsed) in parsed_files.into_iter().enumerate() {
            let mut candidate = used_files.clone();
            if let Some(place) = candidate.get_mut(index) {
                *place = parsed;
            }
            if let Ok(combined) = combine_parsed_files(&self.files, &candidate) {
                (policy, used_files) = (Arc::new(combined), candidate);
            }
        }
        (policy, used_files)
    }
}

fn file_stamps(files: &[PolicyPath]) -> Vec<Option<FileStamp>> {
    files.iter().map(|file| FileStamp::read(&file.path).ok()).collect()
}

/// Parses the policy as if the user's file contained `user_text`. Writes nothing.
///
/// # Errors
///
/// The text contains a mistake, alone or together with the other files.
pub fn parse_proposed_policy(
    files: &PolicyFiles,
    user_text: &str,
) -> Result<Policy, PolicyLoadError> {
    let parse_file = |file: &PolicyPath| -> Result<Option<PolicyFile>, PolicyLoadError> {
        match file.tier {
            PolicyTier::User => {
                Ok(Some(parse_policy_file(file, user_text, files.home.as_deref())?))
            }
            PolicyTier::Admin | PolicyTier::Project => load_policy_file(files, file, false),
        }
    };
    let parsed_files: Result<ParsedFiles, PolicyLoadError> =
        files.files.iter().map(parse_file).collect();
    combine_parsed_files(files, &parsed_files?)
}

/// Checks whether a text is valid as the user's file, regardless of the other files.
///
/// # Errors
///
/// The text contains a mistake.
pub(super) fn check_user_text(files: &PolicyFiles, text: &str) -> Result<(), PolicyLoadError> {
    let is_user = |file: &&PolicyPath| file.tier == PolicyTier::User;
    if let Some(file) = files.files.iter().find(is_user) {
        parse_policy_file(file, text, files.home.as_deref())?;
    }
    Ok(())
}

/// Reads and parses a file. A named file must exist at the start. If it vanishes later, it grants
/// nothing, like a file that never existed.
fn load_policy_file(
    files: &PolicyFiles,
    file: &PolicyPath,
    must_exist: bool,
) -> Result<Option<PolicyFile>, PolicyLoadError> {
    // It is ignored, of which a warning tells.
    if find_foreign_project(file).is_some() {
        return Ok(None);
    }
    let text = read_policy_file(file, must_exist)?;
    let parsed = text.map(|text| parse_policy_file(file, &text, files.home.as_deref()));
    Ok(parsed.transpose()?)
}

/// A project's file that another user could have placed since the start.
fn find_foreign_project(file: &PolicyPath) -> Option<ForeignFile> {
    if file.tier != PolicyTier::Project || !file.path.exists() {
        return None;
    }
    // The project's folder contains a folder with the file.
    let project = file.path.ancestors().take(3).last()?;
    ForeignFile::find(project, &file.path)
}

fn combine_parsed_files(
    files: &PolicyFiles,
    parsed_files: &[Option<PolicyFile>],
) -> Result<Policy, PolicyLoadError> {
    let home = files.home.as_deref();
    let policy = Policy::from_files(parsed_files.iter().flatten().cloned().collect())?;
    let protected_files = [files.host_files.as_slice(), &secret_files(&policy)].concat();
    let machine_facts = MachineFacts {
        host_paths: &protected_files,
        home,
        resolve_links: &resolve_links,
        find_links: &find_links,
    };
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

/// Most links on the way to a path. The system follows no more.
const LINKS_MAX: usize = 40;

/// Returns the places of the links on the way to a path: in the path itself, and in their targets.
fn find_links(path: &Path) -> Vec<PathBuf> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let steps = |path: &Path| -> Vec<OsString> {
        path.components().rev().map(|step| step.as_os_str().to_owned()).collect()
    };
    let (mut found, mut left, mut place) = (Vec::new(), steps(&path), PathBuf::new());
    while let Some(step) = left.pop() {
        if step == ".." {
            place.pop();
            continue;
        }
        let next = place.join(&step);
        match fs::read_link(&next) {
            Ok(target) if found.len() < LINKS_MAX => {
                left.extend(steps(&target));
                found.push(next);
            }
            Ok(_) | Err(_) => place = next,
        }
    }
    found
}

#[cfg(test)]
#[path = "policy_store_tests.rs"]
mod tests;
