//! Digests of scripts and their programs.

use std::{
    fmt,
    fs::File,
    io::{self, Read},
};

use serde::{Deserialize, Serialize};

/// Maximum size of a program, in bytes. Programs with a bundled runtime are a third of it.
pub(crate) const PROGRAM_BYTES_MAX: u64 = 256 << 20;

/// A BLAKE3 hash, in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ScriptDigest(String);

impl ScriptDigest {
    /// Returns the digest of these bytes.
    pub fn hash_bytes(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).to_string())
    }

    /// Returns the digest of an open file, from its current position; `None` if it is larger than a
    /// program may be.
    pub(crate) fn hash_program(file: &mut File) -> io::Result<Option<Self>> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(file.take(PROGRAM_BYTES_MAX + 1))?;
        let fits = hasher.count() <= PROGRAM_BYTES_MAX;
        Ok(fits.then(|| Self::from_hasher(&hasher)))
    }

    /// Returns the digest of what was hashed so far.
    pub(crate) fn from_hasher(hasher: &blake3::Hasher) -> Self {
        Self(hasher.finalize().to_string())
    }

    /// Returns the digest as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ScriptDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
