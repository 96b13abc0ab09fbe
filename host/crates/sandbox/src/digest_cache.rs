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
        let stamp = FileStamp::read(path).ok();
        if let Some(stamp) = stamp
            && let Some(digest) = self.find_digest(path, stamp)
        {
            return Ok(ComponentFile::with_known_digest(path, stamp.size_bytes(), digest));
        }
        let file = ComponentFile::read(path)?;
        // The stamp was read first, so contents that are newer than it are not stored under it.
        if let Some(stamp) = stamp.filter(FileStamp::is_settled) {
            self.insert_digest(path, KnownDigest { stamp, digest: file.digest().to_owned() });
        }
        Ok(file)
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
    use std::{fs, thread, time::Duration};

    use super::*;

    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";
    /// The same with an empty custom section named `a`.
    const OTHER: &[u8] = b"\0asm\x0d\0\x01\0\0\x02\x01a";

    /// Writes a file and waits until its stamp is settled.
    fn write_settled(path: &Path, bytes: &[u8]) {
        fs::write(path, bytes).unwrap();
        while !FileStamp::read(path).unwrap().is_settled() {
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Opens a component as the next start would. Returns whether it was read, and its digest.
    fn open_at_next_start(folder: &Path, path: &Path) -> (bool, String) {
        let digests = DigestCache::new(Some(folder));
        let file = digests.open_component(path).unwrap();
        digests.save();
        (file.is_read(), file.digest().to_owned())
    }

    #[test]
    fn a_component_is_read_again_only_after_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.wasm");
        fs::write(&path, EMPTY).unwrap();
        let (_, digest) = open_at_next_start(folder.path(), &path);
        assert!(open_at_next_start(folder.path(), &path).0, "the file may still change unseen");
        write_settled(&path, EMPTY);
        assert_eq!(open_at_next_start(folder.path(), &path), (true, digest.clone()));
        assert_eq!(open_at_next_start(folder.path(), &path), (false, digest.clone()));

        // Length and time of modification stay the same.
        let modified = fs::metadata(&path).unwrap().modified().unwrap();
        write_settled(&path, OTHER);
        let other = open_at_next_start(folder.path(), &path).1;
        fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
        assert_eq!(open_at_next_start(folder.path(), &path), (true, other.clone()));
        assert_ne!(other, digest);
    }

    #[test]
    fn bytes_that_no_longer_have_the_digest_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.wasm");
        write_settled(&path, EMPTY);
        open_at_next_start(folder.path(), &path);
        let file = DigestCache::new(Some(folder.path())).open_component(&path).unwrap();
        assert!(!file.is_read());
        assert_eq!(*file.bytes().unwrap(), EMPTY);
        fs::write(&path, OTHER).unwrap();
        let error = file.bytes().unwrap_err().to_string();
        assert!(error.contains("changed while it was loaded"), "{error}");
        fs::remove_file(&path).unwrap();
        assert!(file.bytes().is_err());
    }

    #[test]
    fn a_list_that_is_damaged_or_not_private_counts_as_none() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.wasm");
        write_settled(&path, EMPTY);
        let list = folder.path().join(FILE_NAME);
        let rows: [&dyn Fn(); 4] = [
            &|| fs::write(&list, "{").unwrap(),
            &|| fs::write(&list, "").unwrap(),
            &|| fs::remove_file(&list).unwrap(),
            &|| fs::set_permissions(&list, fs::Permissions::from_mode(0o666)).unwrap(),
        ];
        for spoil in rows {
            open_at_next_start(folder.path(), &path);
            assert!(!open_at_next_start(folder.path(), &path).0);
            spoil();
            assert!(open_at_next_start(folder.path(), &path).0);
        }
    }
}
