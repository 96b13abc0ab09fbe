//! The space used in a folder of the host, and the turns in which it is changed.
//!
//! All runs that use the same folder share its usage, even if they belong to different plugins. A
//! folder with a quota is measured when a run first changes it; from then on every change is added
//! or subtracted. It is measured again when another guest begins to use it, or a stateful guest its
//! next run, because the user may have changed it. That waits while a file is open: an open file
//! may no longer have a name.

use std::{
    collections::HashMap,
    io,
    os::fd::OwnedFd,
    sync::{
        Arc, Mutex, MutexGuard, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use rustix::fs::fstat;

use super::{convert::file_identity, measure::measure_folder};
use crate::mutex::lock_mutex;

/// The least that a name in a folder counts, in bytes, so that even empty files use up the quota.
/// It is the block size of most file systems.
pub(super) const ENTRY_BYTES: u64 = 4096;

/// Most bytes that one run may add to a folder without a quota. A large download fits, but the disk
/// does not fill up by accident.
const ADDED_BYTES_STANDARD: u64 = 1 << 30;

/// The bytes that a file of this length counts.
pub(super) fn quota_cost(length: u64) -> u64 {
    length.max(ENTRY_BYTES)
}

/// The shelves in use, by the identity of their folder: several paths may lead to one.
#[derive(Debug, Default)]
pub(crate) struct FolderUsageTable(Mutex<HashMap<FileIdentity, Weak<FolderUsage>>>);

/// The state of one folder, shared by runs.
#[derive(Debug, Default)]
pub(crate) struct FolderUsage {
    write_lock: Mutex<()>,
    state: Mutex<FolderUsageState>,
}

#[derive(Debug, Default)]
struct FolderUsageState {
    /// `None` until it is needed.
    used_bytes: Option<u64>,
    /// Whether at least the used bytes are used, and maybe more: measuring stops at the quota of
    /// the plugin that needs it, and another plugin can have a larger one.
    is_partly_measured: bool,
    /// The files that runs hold open, and how often. Removing the last name of an open file frees
    /// no space.
    open_files: HashMap<FileIdentity, u32>,
}

/// Device and inode: the identity of a file, independent of its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FileIdentity(pub(super) u64, pub(super) u64);

/// The right to change a folder and its account. Only one exists at a time, so a checked entry is
/// the one that is changed, and the charge matches the change.
#[derive(Debug)]
pub(crate) struct FolderWriteGuard<'a>(
    #[expect(dead_code, reason = "held until it is dropped")] MutexGuard<'a, ()>,
);

/// One run's share of the usage of a folder.
#[derive(Debug)]
pub(crate) struct QuotaAccount {
    usage: Arc<FolderUsage>,
    /// The bytes that this run has added, for folders without a quota.
    added_bytes: AtomicU64,
}

/// The limit is reached, or the folder cannot be measured.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct QuotaError {
    pub(super) limit_bytes: u64,
}

impl FolderUsageTable {
    /// The usage of an open folder.
    pub(crate) fn folder_usage(&self, folder: &OwnedFd) -> io::Result<Arc<FolderUsage>> {
        let key = file_identity(&fstat(folder)?);
        let mut table = lock_mutex(&self.0);
        if let Some(usage) = table.get(&key).and_then(Weak::upgrade) {
            return Ok(usage);
        }
        table.retain(|_, usage| usage.strong_count() > 0);
        let usage = Arc::default();
        table.insert(key, Arc::downgrade(&usage));
        Ok(usage)
    }

    /// Makes a change of an open folder that belongs to no run, while no run changes the folder.
    pub(crate) fn change_folder(
        &self,
        folder: &OwnedFd,
        change: &dyn Fn() -> io::Result<()>,
    ) -> io::Result<()> {
        let usage = self.folder_usage(folder)?;
        let _write_guard = usage.lock_for_write();
        let result = change();
        usage.forget_size();
        result
    }
}

impl QuotaAccount {
    pub(super) fn new(usage: Arc<FolderUsage>) -> Self {
        Self { usage, added_bytes: AtomicU64::new(0) }
    }

    /// Begins another run of the same guest. The folder is measured again: the user may have
    /// changed it since.
    pub(super) fn begin_run(&self) {
        self.added_bytes.store(0, Ordering::Relaxed);
        let mut state = lock_mutex(&self.usage.state);
        if state.open_files.is_empty() {
            state.used_bytes = None;
        }
    }

    /// Waits until no other run changes the folder.
    pub(super) fn lock_for_write(&self) -> FolderWriteGuard<'_> {
        self.usage.lock_for_write()
    }

    /// Charges bytes.
    pub(super) fn charge_bytes(
        &self,
        _write_guard: &FolderWriteGuard<'_>,
        bytes: u64,
        quota_bytes: Option<u64>,
        root: &OwnedFd,
    ) -> Result<(), QuotaError> {
        let added = self.added_bytes.load(Ordering::Relaxed);
        let (used, limit_bytes) = match quota_bytes {
            Some(limit) => (self.usage.used_bytes(root, limit)?, limit),
            None => (added, ADDED_BYTES_STANDARD),
        };
        if bytes > 0 && used.saturating_add(bytes) > limit_bytes {
            return Err(QuotaError { limit_bytes });
        }
        self.added_bytes.store(added.saturating_add(bytes), Ordering::Relaxed);
        self.usage.add_bytes(bytes);
        Ok(())
    }

    /// Refunds bytes, whether they were charged or in the folder before.
    pub(super) fn refund_bytes(&self, _write_guard: &FolderWriteGuard<'_>, bytes: u64) {
        let less = |added: u64| Some(added.saturating_sub(bytes));
        // The closure always returns a value, so this cannot fail.
        let _ = self.added_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        self.usage.subtract_bytes(bytes);
    }

    /// Refunds a file whose last name was removed. A file that is still open keeps its space until
    /// the folder is measured again.
    pub(super) fn refund_removed_file(
        &self,
        write_guard: &FolderWriteGuard<'_>,
        file: FileIdentity,
        bytes: u64,
    ) {
        if !lock_mutex(&self.usage.state).open_files.contains_key(&file) {
            self.refund_bytes(write_guard, bytes);
        }
    }

    /// Counts one more open file.
    pub(super) fn add_open_file(&self, file: FileIdentity) {
        *lock_mutex(&self.usage.state).open_files.entry(file).or_insert(0) += 1;
    }

    /// Counts one open file less.
    pub(super) fn remove_open_file(&self, file: FileIdentity) {
        let mut state = lock_mutex(&self.usage.state);
        if let Some(handles) = state.open_files.get_mut(&file) {
            *handles -= 1;
            if *handles == 0 {
                state.open_files.remove(&file);
            }
        }
    }
}

impl FolderUsage {
    pub(crate) fn lock_for_write(&self) -> FolderWriteGuard<'_> {
        FolderWriteGuard(lock_mutex(&self.write_lock))
    }

    /// Has the folder measured again, because the host itself has changed it. The size of open files
    /// without a name is known to the account alone, so it is kept as long as there is one.
    pub(crate) fn forget_size(&self) {
        let mut state = lock_mutex(&self.state);
        if state.open_files.is_empty() {
            state.used_bytes = None;
        }
    }

    fn used_bytes(&self, root: &OwnedFd, limit_bytes: u64) -> Result<u64, QuotaError> {
        if let Some(used) = self.known_bytes(limit_bytes) {
            return Ok(used);
        }
        let measured = measure_folder(root, limit_bytes).ok_or(QuotaError { limit_bytes })?;
        let mut state = lock_mutex(&self.state);
        // An open file without a name is not measured, but can be in what was known before.
        let used = measured.max(state.used_bytes.unwrap_or(0));
        state.used_bytes = Some(used);
        state.is_partly_measured = measured > limit_bytes;
        Ok(used)
    }

    /// The used bytes, if they are known well enough to compare them with a limit.
    fn known_bytes(&self, limit_bytes: u64) -> Option<u64> {
        let state = lock_mutex(&self.state);
        state.used_bytes.filter(|used| !state.is_partly_measured || *used > limit_bytes)
    }

    fn add_bytes(&self, bytes: u64) {
        let mut state = lock_mutex(&self.state);
        state.used_bytes = state.used_bytes.map(|used| used.saturating_add(bytes));
    }

    fn subtract_bytes(&self, bytes: u64) {
        let mut state = lock_mutex(&self.state);
        state.used_bytes = state.used_bytes.map(|used| used.saturating_sub(bytes));
    }
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
        let table = FolderUsageTable::default();
        let (one, two) = (table.folder_usage(&root).unwrap(), table.folder_usage(&root).unwrap());
        let (one, two) = (QuotaAccount::new(one), QuotaAccount::new(two));
        assert_eq!(one.charge_bytes(&one.lock_for_write(), 5_000, Some(20_000), &root), Ok(()));
        assert_eq!(
            two.charge_bytes(&two.lock_for_write(), 5_001, Some(20_000), &root),
            Err(QuotaError { limit_bytes: 20_000 })
        );
        assert_eq!(two.charge_bytes(&two.lock_for_write(), 5_000, Some(20_000), &root), Ok(()));
        one.refund_bytes(&one.lock_for_write(), 4_000);
        assert_eq!(two.charge_bytes(&two.lock_for_write(), 4_000, Some(20_000), &root), Ok(()));
        assert_eq!(
            two.charge_bytes(&two.lock_for_write(), 0, Some(1), &root),
            Ok(()),
            "what does not grow always fits"
        );
        drop((one, two));
        assert_eq!(table.folder_usage(&root).unwrap().used_bytes(&root, 20_000), Ok(10_000));
    }

    #[test]
    fn a_size_that_a_smaller_quota_measured_in_part_is_not_all_that_is_used() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c", "d"] {
            fs::write(folder.path().join(name), [0; 10_000]).unwrap();
        }
        let root = root(folder.path());
        let usage = FolderUsageTable::default().folder_usage(&root).unwrap();
        let (small, large) = (QuotaAccount::new(Arc::clone(&usage)), QuotaAccount::new(usage));
        let charge = |account: &QuotaAccount, bytes, quota_bytes| {
            account.charge_bytes(&account.lock_for_write(), bytes, Some(quota_bytes), &root)
        };
        assert_eq!(charge(&small, 1, 5_000), Err(QuotaError { limit_bytes: 5_000 }));
        assert_eq!(charge(&large, 2_001, 42_000), Err(QuotaError { limit_bytes: 42_000 }));
        assert_eq!(charge(&large, 2_000, 42_000), Ok(()));
        assert_eq!(charge(&large, 1, 42_000), Err(QuotaError { limit_bytes: 42_000 }));
        small.refund_bytes(&small.lock_for_write(), 10_000);
        assert_eq!(charge(&small, 1, 5_000), Err(QuotaError { limit_bytes: 5_000 }));
    }

    #[test]
    fn one_run_at_a_time_has_its_turn() {
        let usage = Arc::<FolderUsage>::default();
        let (one, two) =
            (QuotaAccount::new(Arc::clone(&usage)), QuotaAccount::new(Arc::clone(&usage)));
        let write_guard = one.lock_for_write();
        assert!(usage.write_lock.try_lock().is_err());
        drop(write_guard);
        drop(two.lock_for_write());
        assert!(usage.write_lock.try_lock().is_ok());
    }

    #[test]
    fn without_a_quota_each_run_has_its_own_room() {
        let folder = tempfile::tempdir().unwrap();
        let root = root(folder.path());
        let usage = FolderUsageTable::default().folder_usage(&root).unwrap();
        let (one, two) = (QuotaAccount::new(Arc::clone(&usage)), QuotaAccount::new(usage));
        let full = Err(QuotaError { limit_bytes: ADDED_BYTES_STANDARD });
        assert_eq!(
            one.charge_bytes(&one.lock_for_write(), ADDED_BYTES_STANDARD, None, &root),
            Ok(())
        );
        assert_eq!(one.charge_bytes(&one.lock_for_write(), 1, None, &root), full);
        assert_eq!(
            two.charge_bytes(&two.lock_for_write(), ADDED_BYTES_STANDARD + 1, None, &root),
            full
        );
        assert_eq!(
            two.charge_bytes(&two.lock_for_write(), ADDED_BYTES_STANDARD, None, &root),
            Ok(())
        );
    }

    #[test]
    fn another_run_measures_again_unless_a_file_is_open() {
        let folder = tempfile::tempdir().unwrap();
        let root = root(folder.path());
        let account = QuotaAccount::new(FolderUsageTable::default().folder_usage(&root).unwrap());
        let (file, full) = (FileIdentity(1, 2), Err(QuotaError { limit_bytes: 20_000 }));
        account.add_open_file(file);
        assert_eq!(
            account.charge_bytes(&account.lock_for_write(), 20_000, Some(20_000), &root),
            Ok(())
        );
        account.begin_run();
        assert_eq!(
            account.charge_bytes(&account.lock_for_write(), 1, Some(20_000), &root),
            full,
            "it may lie in a file that has no name any more"
        );
        account.remove_open_file(file);
        account.begin_run();
        assert_eq!(
            account.charge_bytes(&account.lock_for_write(), 20_000, Some(20_000), &root),
            Ok(())
        );
        account.begin_run();
        assert_eq!(
            account.charge_bytes(&account.lock_for_write(), ADDED_BYTES_STANDARD, None, &root),
            Ok(())
        );
        assert!(account.charge_bytes(&account.lock_for_write(), 1, None, &root).is_err());
        account.begin_run();
        assert_eq!(
            account.charge_bytes(&account.lock_for_write(), ADDED_BYTES_STANDARD, None, &root),
            Ok(())
        );
    }

    #[test]
    fn a_removed_file_is_not_free_while_it_is_open() {
        let account = QuotaAccount::new(Arc::default());
        account.usage.add_bytes(0);
        lock_mutex(&account.usage.state).used_bytes = Some(100_000);
        let file = FileIdentity(1, 2);
        account.add_open_file(file);
        account.add_open_file(file);
        account.remove_open_file(file);
        account.refund_removed_file(&account.lock_for_write(), file, 60_000);
        assert_eq!(lock_mutex(&account.usage.state).used_bytes, Some(100_000));
        account.remove_open_file(file);
        account.refund_removed_file(&account.lock_for_write(), file, 60_000);
        assert_eq!(lock_mutex(&account.usage.state).used_bytes, Some(40_000));
    }
}
