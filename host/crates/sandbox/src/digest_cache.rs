//! The digests of components that were read at an earlier start, so that a start reads no component
//! whose file has not changed.
//!
//! A digest applies as long as the stamp of its file stays the same. A wrong one could not run
//! anything else than what was accepted: what runs is the code compiled for the digest, and bytes
//! that are compiled are hashed again.

use std::{
    collections::BTreeMap,
    io::Read,
    path::{Path, PathBuf},
    sync::Mutex,
    time::SystemTime,
};

use sallyport_untrusted_file::FileStamp;
use serde::{Deserialize, Serialize};

use crate::{
    cache::{open_private, write_atomically},
    component::ComponentFile,
    error::LoadError,
    mutex::lock_mutex,
};

/// Name of the file in the cache folder.
const FILE_NAME: &str = "digests";

/// Some 300 bytes are stored for each component; at most this much of a file is read.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The digests that are known, by the absolute path of the component.
pub(crate) struct DigestCache {
    /// `None` stores nothing.
    file: Option<PathBuf>,
    digests: Mutex<Option<KnownDigests>>,
}

#[derive(Default)]
struct KnownDigests {
    by_path: BTreeMap<String, KnownDigest>,
    has_changed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct KnownDigest {
    stamp: FileStamp,
    digest: String,
}

impl DigestCache {
    pub(crate) fn new(folder: Option<&Path>) -> Self {
        let file = folder.map(|folder| folder.join(FILE_NAME));
        Self { file, digests: Mutex::default() }
    }

    /// Opens a component; reads it only if its digest is not known.
    pub(crate) fn open_component(&self, path: &Path) -> Result<ComponentFile, LoadError> {
        self.open_component_at(path, SystemTime::now())
    }

    fn open_component_at(&self, path: &Path, now: SystemTime) -> Result<ComponentFile, LoadError> {
        let stamp = FileStamp::read(path).ok();
        if let Some(stamp) = stamp
            && let Some(digest) = self.find_digest(path, stamp)
        {
            return Ok(ComponentFile::with_known_digest(path, stamp.size_bytes(), digest));
        }
        let file = ComponentFile::read(path)?;
        // The stamp was read first, so contents that are newer than it are not stored under it.
        if let Some(stamp) = stamp.filter(|stamp| stamp.is_settled(now)) {
            self.insert_digest(path, KnownDigest { stamp, digest: file.digest().to_owned() });
        }
        Ok(file)
    }

    /// The digest of a component, if it is known from an earlier start. Does not read the component.
    pub(crate) fn cached_digest(&self, path: &Path) -> Option<String> {
        self.find_digest(path, FileStamp::read(path).ok()?)
    }

    fn find_digest(&self, path: &Path, stamp: FileStamp) -> Option<String> {
        let key = absolute_text(path)?;
        let mut digests = lock_mutex(&self.digests);
        let known = self.get_or_read(&mut digests).by_path.get(&key)?;
        (known.stamp == stamp).then(|| known.digest.clone())
    }

    fn insert_digest(&self, path: &Path, digest: KnownDigest) {
        let Some(key) = absolute_text(path) else { return };
        let mut digests = lock_mutex(&self.digests);
        let known = self.get_or_read(&mut digests);
        known.by_path.insert(key, digest);
        known.has_changed = true;
    }

    fn get_or_read<'a>(&self, digests: &'a mut Option<KnownDigests>) -> &'a mut KnownDigests {
        digests.get_or_insert_with(|| {
            let by_path = self.file.as_deref().and_then(read_digests).unwrap_or_default();
            KnownDigests { by_path, has_changed: false }
        })
    }

    /// Stores the digests, without those of files that are gone.
    pub(crate) fn save(&self) {
        let mut digests = lock_mutex(&self.digests);
        let (Some(file), Some(known)) = (&self.file, digests.as_mut()) else { return };
        if !std::mem::take(&mut known.has_changed) {
            return;
        }
        known.by_path.retain(|path, _| Path::new(path).exists());
        if let Ok(text) = serde_json::to_vec(&known.by_path) {
            let _ = write_atomically(file, &text);
        }
    }
}

/// Reads the stored digests. A file that is damaged or not private counts as none.
fn read_digests(file: &Path) -> Option<BTreeMap<String, KnownDigest>> {
    let mut text = Vec::new();
    open_private(file).ok()?.take(FILE_BYTES_MAX).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// The absolute path, if it is text.
fn absolute_text(path: &Path) -> Option<String> {
    std::path::absolute(path).ok()?.to_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::{fs, time::Duration};

    use super::*;

    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";
    /// The same with an empty custom section named `a`.
    const OTHER: &[u8] = b"\0asm\x0d\0\x01\0\0\x02\x01a";

    /// A time at which no change that a test makes is recent.
    fn later() -> SystemTime {
        SystemTime::now() + Duration::from_secs(3600)
    }

    /// Changes a file again and again until its stamp shows it, because the clock of a file system
    /// stands still for a few milliseconds.
    fn change(path: &Path, change: impl Fn()) {
        let before = FileStamp::read(path).ok();
        while FileStamp::read(path).ok() == before {
            change();
        }
    }

    /// Opens a component as a start at this time would. Returns whether it was read, and its digest.
    fn open_at(now: SystemTime, folder: &Path, path: &Path) -> (bool, String) {
        let digests = DigestCache::new(Some(folder));
        let file = digests.open_component_at(path, now).unwrap();
        digests.save();
        (file.is_read(), file.digest().to_owned())
    }

    #[test]
    fn a_component_is_read_again_only_after_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.wasm");
        let open = || open_at(later(), folder.path(), &path);
        fs::write(&path, EMPTY).unwrap();
        for _ in 0..2 {
            let recent = open_at(SystemTime::UNIX_EPOCH, folder.path(), &path);
            assert!(recent.0, "the file may still change unseen");
        }
        let digest = open().1;
        assert_eq!(open(), (false, digest.clone()));

        // The time of modification stays the same.
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        change(&path, || fs::write(&path, OTHER).unwrap());
        let (is_read, other) = open();
        assert!(is_read && other != digest);
        let file = fs::File::options().write(true).open(&path).unwrap();
        change(&path, || file.set_modified(modified).unwrap());
        assert_eq!(open(), (true, other.clone()));
        assert_eq!(open(), (false, other));
    }

    #[test]
    fn bytes_that_no_longer_have_the_digest_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.wasm");
        fs::write(&path, EMPTY).unwrap();
        open_at(later(), folder.path(), &path);
        let file = DigestCache::new(Some(folder.path())).open_component(&path).unwrap();
        assert!(!file.is_read());
        assert_eq!(*file.bytes().unwrap(), EMPTY);
        fs::write(&path, OTHER).unwrap();
        let error = file.bytes().unwrap_err();
        assert!(matches!(error, LoadError::Changed { .. }), "{error}");
        fs::remove_file(&path).unwrap();
        assert!(file.bytes().is_err());
    }

    #[test]
    fn a_list_that_is_damaged_or_not_private_counts_as_none() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.wasm");
        let open = || open_at(later(), folder.path(), &path);
        fs::write(&path, EMPTY).unwrap();
        let list = folder.path().join(FILE_NAME);
        let rows: [&dyn Fn(); 4] = [
            &|| fs::write(&list, "{").unwrap(),
            &|| fs::write(&list, "").unwrap(),
            &|| fs::remove_file(&list).unwrap(),
            &|| fs::set_permissions(&list, fs::Permissions::from_mode(0o666)).unwrap(),
        ];
        for spoil in rows {
            open();
            assert!(!open().0);
            spoil();
            assert!(open().0);
        }
    }
}
