//! The key of the audit. Without it, no valid record can be made.
//!
//! The key keeps out anyone who has the database but not the key: another program with a copy, a
//! backup, a repair tool. The programs of this user can read the key; to detect their changes, keep
//! the head that `verify` prints somewhere else.

use std::{fs::File, io::Read, path::Path};

use blake3::{Hash, Hasher, KEY_LEN};

use super::link::ChainLink;
use crate::{error::StoreError, private_files};

/// The key, within the folder.
pub(crate) const FILE: &str = "audit.key";

/// The source of random bytes.
const RANDOM: &str = "/dev/urandom";

/// The purpose from which the seal key is derived, so that a seal never equals a record's hash.
const SEAL_PURPOSE: &str = "sallyport audit 1: seal of the head";

/// The purpose from which the id of the key is derived.
#[cfg(feature = "postgres")]
const ID_PURPOSE: &str = "sallyport audit 1: id of the key";

/// The key, and the seal key that is derived from it.
pub(crate) struct AuditKey {
    chain: [u8; KEY_LEN],
    seal: [u8; KEY_LEN],
}

impl AuditKey {
    /// Reads the key; `None` when there is none yet.
    ///
    /// # Errors
    ///
    /// The file is not private, not readable, or not a key.
    pub(crate) fn load(folder: &Path) -> Result<Option<Self>, StoreError> {
        let path = folder.join(FILE);
        let Some(bytes) = private_files::read_private_file(&path, KEY_LEN)? else {
            return Ok(None);
        };
        let damaged = |_| StoreError::Damaged { path, message: "it is not a key".to_owned() };
        bytes.try_into().map(Self::from_chain_key).map(Some).map_err(damaged)
    }

    /// Reads the key, or creates one. The caller must hold the database's write lock.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load), or the key cannot be written.
    pub(crate) fn load_or_create(folder: &Path) -> Result<Self, StoreError> {
        match Self::load(folder)? {
            Some(key) => Ok(key),
            None => Self::create(folder),
        }
    }

    /// Creates the key, and waits for the disk: without the key, no record can be checked.
    fn create(folder: &Path) -> Result<Self, StoreError> {
        let mut bytes = [0; KEY_LEN];
        let filled = File::open(RANDOM).and_then(|mut random| random.read_exact(&mut bytes));
        filled.map_err(|source| StoreError::File { verb: "read", path: RANDOM.into(), source })?;
        private_files::replace_file(&folder.join(FILE), &bytes)?;
        Ok(Self::from_chain_key(bytes))
    }

    fn from_chain_key(chain: [u8; KEY_LEN]) -> Self {
        Self { chain, seal: blake3::derive_key(SEAL_PURPOSE, &chain) }
    }

    /// The id of the key, which reveals nothing of the key itself.
    #[cfg(feature = "postgres")]
    pub(crate) fn id(&self) -> String {
        Hash::from_bytes(blake3::derive_key(ID_PURPOSE, &self.chain)).to_string()
    }

    /// Computes the hash of a record that follows `previous`. Every part except the last has a
    /// fixed length, so no two records hash the same input.
    pub(crate) fn hash_record(&self, previous: &Hash, seq: u64, text: &[u8]) -> Hash {
        let mut hasher = Hasher::new_keyed(&self.chain);
        hasher.update(previous.as_bytes()).update(&seq.to_le_bytes()).update(text);
        hasher.finalize()
    }

    /// Computes the link of a record that follows `previous`.
    pub(crate) fn link_record(&self, previous: &Hash, seq: u64, text: &[u8]) -> ChainLink {
        ChainLink { seq, hash: self.hash_record(previous, seq, text) }
    }

    /// Computes the seal of the head's text.
    pub(crate) fn seal_head(&self, text: &[u8]) -> Hash {
        blake3::keyed_hash(&self.seal, text)
    }
}
