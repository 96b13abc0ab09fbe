//! Fetches values concurrently, with a timeout.
//!
//! A file may be on a disk that does not answer, and a keyring may ask the user first. Values are
//! therefore fetched by separate threads. A thread that hangs is abandoned, but a late value is
//! still accepted.

use std::{
    collections::VecDeque,
    fs, io,
    os::unix::fs::MetadataExt,
    sync::{Arc, Mutex, PoisonError, mpsc::Sender},
    thread,
};

use sallyport_contract::Secret;
use sallyport_policy::SecretSource;

use super::SecretProblem;

/// Most threads that fetch at the same time.
const FETCHERS_MAX: usize = 16;

/// Reads the value of a secret from its source.
pub(super) type SecretReader =
    Arc<dyn Fn(&SecretSource) -> Result<Secret, SecretProblem> + Send + Sync>;

/// A secret to fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SecretFetchRequest {
    pub(super) name: String,
    pub(super) source: SecretSource,
}

/// The result of a fetch.
#[derive(Debug)]
pub(super) struct SecretFetchResult {
    pub(super) request: SecretFetchRequest,
    /// The stamp of the file before the value was read.
    pub(super) stamp: Option<SecretFileStamp>,
    pub(super) value: Result<Secret, SecretProblem>,
}

/// The metadata of a file that show a change.
pub(super) type SecretFileStamp = [i64; 6];

/// The stamp of a value's file; `None` without one.
pub(super) fn secret_file_stamp(source: &SecretSource) -> Option<SecretFileStamp> {
    let SecretSource::File(path) = source else { return None };
    let info = fs::symlink_metadata(path).ok()?;
    let (device, inode) = (info.dev().cast_signed(), info.ino().cast_signed());
    Some([device, inode, info.mtime(), info.mtime_nsec(), info.ctime(), info.ctime_nsec()])
}

/// Starts to fetch values, which are sent as they arrive.
///
/// # Errors
///
/// No thread could be started, so nothing is fetched. If only some start, they do all the work.
pub(super) fn start_fetching(
    read: &SecretReader,
    wanted: &[SecretFetchRequest],
    results: &Sender<SecretFetchResult>,
) -> io::Result<()> {
    let queue: Arc<Mutex<VecDeque<_>>> = Arc::new(Mutex::new(wanted.iter().cloned().collect()));
    for started in 0..wanted.len().min(FETCHERS_MAX) {
        let (read, queue, results) = (Arc::clone(read), Arc::clone(&queue), results.clone());
        let work = move || fetch_from_queue(&read, &queue, &results);
        let spawned = thread::Builder::new().name("secrets".to_owned()).spawn(work);
        if let (Err(error), 0) = (spawned, started) {
            return Err(error);
        }
    }
    Ok(())
}

fn fetch_from_queue(
    read: &SecretReader,
    queue: &Mutex<VecDeque<SecretFetchRequest>>,
    results: &Sender<SecretFetchResult>,
) {
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    while let Some(wanted) = next() {
        let (stamp, value) = (secret_file_stamp(&wanted.source), read(&wanted.source));
        // The receiver may be gone.
        let _ = results.send(SecretFetchResult { request: wanted, stamp, value });
    }
}
