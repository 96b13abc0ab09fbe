//! Fetching values: several at a time, and none is waited for without end.
//!
//! A file may lie on a disk that does not answer, and a keyring may ask somebody first. So values are
//! fetched by threads of their own. One that hangs is left behind; what it brings in the end is still
//! taken.

use std::{
    collections::VecDeque,
    fs, io,
    os::unix::fs::MetadataExt,
    sync::{Arc, Mutex, PoisonError, mpsc::Sender},
    thread,
};

use sallyport_contract::Secret;
use sallyport_policy::SecretSource;

use super::Problem;

/// Most threads that fetch at once.
const FETCHERS_MAX: usize = 16;

/// Looks where the value of a secret lies.
pub(super) type Read = Arc<dyn Fn(&SecretSource) -> Result<Secret, Problem> + Send + Sync>;

/// A secret whose value is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) name: String,
    pub(super) source: SecretSource,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Brought {
    pub(super) wanted: Wanted,
    /// The file, as it was before the value was read.
    pub(super) stamp: Option<Stamp>,
    pub(super) value: Result<Secret, Problem>,
}

/// What of a file tells that it has changed.
pub(super) type Stamp = [i64; 6];

/// The stamp of the file that a value is in; nothing where there is none.
pub(super) fn stamp(source: &SecretSource) -> Option<Stamp> {
    let SecretSource::File(path) = source else { return None };
    let info = fs::symlink_metadata(path).ok()?;
    let (device, inode) = (info.dev().cast_signed(), info.ino().cast_signed());
    Some([device, inode, info.mtime(), info.mtime_nsec(), info.ctime(), info.ctime_nsec()])
}

/// Begins to fetch values, which are sent as they come.
///
/// # Errors
///
/// The system has no thread left, so nothing is fetched. Where there are some, those do all the work.
pub(super) fn begin(read: &Read, wanted: &[Wanted], brings: &Sender<Brought>) -> io::Result<()> {
    let queue: Arc<Mutex<VecDeque<_>>> = Arc::new(Mutex::new(wanted.iter().cloned().collect()));
    for started in 0..wanted.len().min(FETCHERS_MAX) {
        let (read, queue, brings) = (Arc::clone(read), Arc::clone(&queue), brings.clone());
        let work = move || fetch_all(&read, &queue, &brings);
        let spawned = thread::Builder::new().name("secrets".to_owned()).spawn(work);
        if let (Err(error), 0) = (spawned, started) {
            return Err(error);
        }
    }
    Ok(())
}

fn fetch_all(read: &Read, queue: &Mutex<VecDeque<Wanted>>, brings: &Sender<Brought>) {
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    while let Some(wanted) = next() {
        let (stamp, value) = (stamp(&wanted.source), read(&wanted.source));
        // Nobody may be interested any more.
        let _ = brings.send(Brought { wanted, stamp, value });
    }
}
