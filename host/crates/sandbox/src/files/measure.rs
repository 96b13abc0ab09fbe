//! Measures the size of a folder's contents. Files count by their length, so a sparse file counts
//! in full.

use std::{collections::HashSet, os::fd::OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat};

use super::{
    convert::{file_identity, file_type_of},
    folder_usage::{ENTRY_BYTES, FileIdentity, quota_cost},
    resolve::DEPTH_MAX,
};

/// Most entries that are measured: about a second of work. Only a quota of gigabytes needs this
/// many.
const ENTRIES_MAX: usize = 500_000;

/// Returns the size of a folder's contents in bytes. It stops as soon as the sum exceeds
/// `enough_bytes`. Returns `None` if the folder is too deep or has too many entries.
pub(super) fn measure_folder(root: &OwnedFd, enough_bytes: u64) -> Option<u64> {
    let mut sum = FolderSizeSum::default();
    let mut open = vec![Dir::read_from(root).ok()?];
    while let Some(folder) = open.last_mut() {
        let Some(entry) = folder.read() else {
            open.pop();
            continue;
        };
        // An entry that cannot be read counts nothing.
        let Ok(entry) = entry else { continue };
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let Ok(parent) = folder.fd() else { continue };
        let Ok(stat) = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
        sum.add_entry(&stat)?;
        if sum.bytes > enough_bytes {
            break;
        }
        if file_type_of(&stat) == FileType::Directory {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            if let Ok(below) = openat(parent, name, flags, Mode::empty()).and_then(Dir::new) {
                open.push(below);
            }
            if open.len() > DEPTH_MAX {
                return None;
            }
        }
    }
    Some(sum.bytes)
}

/// The sum so far.
#[derive(Default)]
struct FolderSizeSum {
    bytes: u64,
    entries: usize,
    /// Files with several names, whose bytes count only once.
    linked: HashSet<FileIdentity>,
}

impl FolderSizeSum {
    /// Adds an entry. Returns `None` if there are too many.
    fn add_entry(&mut self, stat: &Stat) -> Option<()> {
        self.entries += 1;
        let is_new = stat.st_nlink < 2 || self.linked.insert(file_identity(stat));
        let bytes = if is_new { entry_cost(stat) } else { ENTRY_BYTES };
        self.bytes = self.bytes.saturating_add(bytes);
        (self.entries <= ENTRIES_MAX).then_some(())
    }
}

/// The size that an entry counts, in bytes.
pub(super) fn entry_cost(stat: &Stat) -> u64 {
    match file_type_of(stat) {
        FileType::RegularFile => quota_cost(u64::try_from(stat.st_size).unwrap_or(0)),
        _ => ENTRY_BYTES,
    }
}

/// The length of an open file, in bytes.
pub(super) fn file_length(file: &OwnedFd) -> rustix::io::Result<u64> {
    Ok(u64::try_from(fstat(file)?.st_size).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn every_name_counts_and_every_file_counts_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("sub")).unwrap();
        fs::write(path("sub/empty"), "").unwrap();
        fs::write(path("large"), [0; 50_000]).unwrap();
        fs::hard_link(path("large"), path("sub/again")).unwrap();
        symlink("/", path("out")).unwrap();
        fs::File::create(path("sparse")).unwrap().set_len(1 << 40).unwrap();
        let root = OwnedFd::from(fs::File::open(folder.path()).unwrap());
        let want = 4 * ENTRY_BYTES + 50_000 + (1 << 40);
        assert_eq!(measure_folder(&root, u64::MAX), Some(want));
        assert!(measure_folder(&root, 10_000) > Some(10_000));
    }

    #[test]
    fn what_is_too_deep_cannot_be_measured() {
        let folder = tempfile::tempdir().unwrap();
        let root = OwnedFd::from(fs::File::open(folder.path()).unwrap());
        let deep = |depth| vec!["d"; depth].join("/");
        fs::create_dir_all(folder.path().join(deep(DEPTH_MAX - 1))).unwrap();
        assert_eq!(measure_folder(&root, u64::MAX), Some((DEPTH_MAX as u64 - 1) * ENTRY_BYTES));
        fs::create_dir_all(folder.path().join(deep(DEPTH_MAX))).unwrap();
        assert_eq!(measure_folder(&root, u64::MAX), None);
    }
}
