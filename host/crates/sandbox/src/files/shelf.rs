//! The room in a folder of the host, and the turns in which it is changed.
//!
//! All runs that have the same folder share its shelf, whichever plugin they belong to. With a quota
//! the folder is measured when a run first changes something in it; from then on every change is
//! added and taken off, until the last run that has the folder ends. A guest that lives on has it
//! measured again in its next run, unless some file is still open: that may have no name any more.

use std::{
    collections::HashMap,
    io,
    os::fd::OwnedFd,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use rustix::fs::fstat;

use super::{convert::file_key, measure::measure};

/// What each name in a folder counts at least, so that a million empty files end too. It is the
/// block that most file systems spend on one.
pub(super) const ENTRY_BYTES: u64 = 4096;

/// What one run may add to a folder without a quota: a large download fits, the disk is not filled
/// in passing. A `quota` takes its place.
const ADDED_BYTES_STANDARD: u64 = 1 << 30;

/// What a file of this length counts.
pub(super) fn cost(length: u64) -> u64 {
    length.max(ENTRY_BYTES)
}

/// The shelves in use, by what their folder is, whatever path leads to it.
#[derive(Debug, Default)]
pub(crate) struct Shelves(Mutex<HashMap<FileKey, Weak<Shelf>>>);

/// The state of one folder that runs share.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    turn: Mutex<()>,
    book: Mutex<Book>,
}

#[derive(Debug, Default)]
struct Book {
    /// `None` until somebody needs to know.
    used_bytes: Option<u64>,
    /// Files that runs hold open, and how often. What such a file takes up is not free when its last
    /// name is removed.
    open: HashMap<FileKey, u32>,
}

/// Device and inode: what a file is, whatever it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FileKey(pub(super) u64, pub(super) u64);

/// The right to change a folder and its account: what was looked at is what is changed, and what is
/// charged is what came of it. Only one is held at a time.
#[derive(Debug)]
pub(crate) struct Turn<'a>(
    #[expect(dead_code, reason = "held until it is dropped")] MutexGuard<'a, ()>,
);

/// One run's use of a shelf.
#[derive(Debug)]
pub(crate) struct Account {
    shelf: Arc<Shelf>,
    /// What this run has added, for folders without a quota.
    added_bytes: AtomicU64,
}

/// There is no room, or nobody can say how much is used.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full {
    pub(super) limit_bytes: u64,
}

impl Shelves {
    /// The shelf of an open folder.
    pub(crate) fn of(&self, folder: &OwnedFd) -> io::Result<Arc<Shelf>> {
        let key = file_key(&fstat(folder)?);
        let mut shelves = lock(&self.0);
        if let Some(shelf) = shelves.get(&key).and_then(Weak::upgrade) {
            return Ok(shelf);
        }
        shelves.retain(|_, shelf| shelf.strong_count() > 0);
        let shelf = Arc::default();
        shelves.insert(key, Arc::downgrade(&shelf));
        Ok(shelf)
    }
}

impl Account {
    pub(super) fn on(shelf: Arc<Shelf>) -> Self {
        Self { shelf, added_bytes: AtomicU64::new(0) }
    }

    /// Another run of the same guest begins: the person may have changed the folder meanwhile.
    pub(super) fn begin_run(&self) {
        self.added_bytes.store(0, Ordering::Relaxed);
        let mut book = lock(&self.shelf.book);
        if book.open.is_empty() {
            book.used_bytes = None;
        }
    }

    /// Waits until nobody else changes the folder.
    pub(super) fn turn(&self) -> Turn<'_> {
        self.shelf.turn()
    }

    /// Charges bytes.
    pub(super) fn charge(
        &self,
        _turn: &Turn<'_>,
        bytes: u64,
        quota_bytes: Option<u64>,
        root: &OwnedFd,
    ) -> Result<(), Full> {
        let added = self.added_bytes.load(Ordering::Relaxed);
        let (used, limit_bytes) = match quota_bytes {
            Some(limit) => (self.shelf.used_bytes(root, limit)?, limit),
            None => (added, ADDED_BYTES_STANDARD),
        };
        if bytes > 0 && used.saturating_add(bytes) > limit_bytes {
            return Err(Full { limit_bytes });
        }
        self.added_bytes.store(added.saturating_add(bytes), Ordering::Relaxed);
        self.shelf.add(bytes);
        Ok(())
    }

    /// Gives back what was charged, or what was there before.
    pub(super) fn refund(&self, _turn: &Turn<'_>, bytes: u64) {
        let less = |added: u64| Some(added.saturating_sub(bytes));
        // The closure never declines, so there is no error to look at.
        let _ = self.added_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        self.shelf.take_off(bytes);
    }

    /// Gives back what a file took up whose last name was removed, unless it is still open: then it
    /// still takes it up, until the folder is measured anew.
    pub(super) fn refund_removed(&self, turn: &Turn<'_>, file: FileKey, bytes: u64) {
        if !lock(&self.shelf.book).open.contains_key(&file) {
            self.refund(turn, bytes);
        }
    }

    /// Counts one more open file.
    pub(super) fn opened(&self, file: FileKey) {
        *lock(&self.shelf.book).open.entry(file).or_insert(0) += 1;
    }

    /// Counts one open file less.
    pub(super) fn closed(&self, file: FileKey) {
        let mut book = lock(&self.shelf.book);
        if let Some(handles) = book.open.get_mut(&file) {
            *handles -= 1;
            if *handles == 0 {
                book.open.remove(&file);
            }
        }
    }
}

impl Shelf {
    pub(super) fn turn(&self) -> Turn<'_> {
        Turn(lock(&self.turn))
    }

    fn used_bytes(&self, root: &OwnedFd, limit_bytes: u64) -> Result<u64, Full> {
        if let Some(used) = lock(&self.book).used_bytes {
            return Ok(used);
        }
        let used = measure(root, limit_bytes).ok_or(Full { limit_bytes })?;
        lock(&self.book).used_bytes = Some(used);
        Ok(used)
    }

    fn add(&self, bytes: u64) {
        let mut book = lock(&self.book);
        book.used_bytes = book.used_bytes.map(|used| used.saturating_add(bytes));
    }

    fn take_off(&self, bytes: u64) {
        let mut book = lock(&self.book);
        book.used_bytes = book.used_bytes.map(|used| used.saturating_sub(bytes));
    }
}

/// Each change of what is locked here is whole by itself, so a panic elsewhere leaves it sound.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    fn root(folder: &Path) -> OwnedFd {
        fs::File::open(folder).unwrap().into()
    }

    #[test]
    fn runs_share_the_room_of_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("old"), [0; 10_000]).unwrap();
        let root = root(folder.path());
        let shelves = Shelves::default();
        let (one, two) = (shelves.of(&root).unwrap(), shelves.of(&root).unwrap());
        let (one, two) = (Account::on(one), Account::on(two));
        assert_eq!(one.charge(&one.turn(), 5_000, Some(20_000), &root), Ok(()));
        assert_eq!(
            two.charge(&two.turn(), 5_001, Some(20_000), &root),
            Err(Full { limit_bytes: 20_000 })
        );
        assert_eq!(two.charge(&two.turn(), 5_000, Some(20_000), &root), Ok(()));
        one.refund(&one.turn(), 4_000);
        assert_eq!(two.charge(&two.turn(), 4_000, Some(20_000), &root), Ok(()));
        assert_eq!(
            two.charge(&two.turn(), 0, Some(1), &root),
            Ok(()),
            "what does not grow always fits"
        );
        drop((one, two));
        assert_eq!(shelves.of(&root).unwrap().used_bytes(&root, 20_000), Ok(10_000));
    }

    #[test]
    fn one_run_at_a_time_has_its_turn() {
        let shelf = Arc::<Shelf>::default();
        let (one, two) = (Account::on(Arc::clone(&shelf)), Account::on(Arc::clone(&shelf)));
        let turn = one.turn();
        assert!(shelf.turn.try_lock().is_err());
        drop(turn);
        drop(two.turn());
        assert!(shelf.turn.try_lock().is_ok());
    }

    #[test]
    fn without_a_quota_each_run_has_its_own_room() {
        let folder = tempfile::tempdir().unwrap();
        let root = root(folder.path());
        let shelf = Shelves::default().of(&root).unwrap();
        let (one, two) = (Account::on(Arc::clone(&shelf)), Account::on(shelf));
        let full = Err(Full { limit_bytes: ADDED_BYTES_STANDARD });
        assert_eq!(one.charge(&one.turn(), ADDED_BYTES_STANDARD, None, &root), Ok(()));
        assert_eq!(one.charge(&one.turn(), 1, None, &root), full);
        assert_eq!(two.charge(&two.turn(), ADDED_BYTES_STANDARD + 1, None, &root), full);
        assert_eq!(two.charge(&two.turn(), ADDED_BYTES_STANDARD, None, &root), Ok(()));
    }

    #[test]
    fn another_run_measures_again_unless_a_file_is_open() {
        let folder = tempfile::tempdir().unwrap();
        let root = root(folder.path());
        let account = Account::on(Shelves::default().of(&root).unwrap());
        let (file, full) = (FileKey(1, 2), Err(Full { limit_bytes: 20_000 }));
        account.opened(file);
        assert_eq!(account.charge(&account.turn(), 20_000, Some(20_000), &root), Ok(()));
        account.begin_run();
        assert_eq!(
            account.charge(&account.turn(), 1, Some(20_000), &root),
            full,
            "it may lie in a file that has no name any more"
        );
        account.closed(file);
        account.begin_run();
        assert_eq!(account.charge(&account.turn(), 20_000, Some(20_000), &root), Ok(()));
        account.begin_run();
        assert_eq!(account.charge(&account.turn(), ADDED_BYTES_STANDARD, None, &root), Ok(()));
        assert!(account.charge(&account.turn(), 1, None, &root).is_err());
        account.begin_run();
        assert_eq!(account.charge(&account.turn(), ADDED_BYTES_STANDARD, None, &root), Ok(()));
    }

    #[test]
    fn a_removed_file_is_not_free_while_it_is_open() {
        let account = Account::on(Arc::default());
        account.shelf.add(0);
        lock(&account.shelf.book).used_bytes = Some(100_000);
        let file = FileKey(1, 2);
        account.opened(file);
        account.opened(file);
        account.closed(file);
        account.refund_removed(&account.turn(), file, 60_000);
        assert_eq!(lock(&account.shelf.book).used_bytes, Some(100_000));
        account.closed(file);
        account.refund_removed(&account.turn(), file, 60_000);
        assert_eq!(lock(&account.shelf.book).used_bytes, Some(40_000));
    }
}
