//! The project configurations that the user trusts: a file in the state folder, next to the audit.
//!
//! Trust covers a file with its contents. It ends when the contents change: a stranger may have
//! changed them.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use super::ConfigError;
use crate::atomic_file;

/// The file, in the state folder.
pub const TRUST_FILE: &str = "trusted.json";

/// The trusted project files.
#[derive(Debug)]
pub struct TrustedProjects {
    file: PathBuf,
    /// Canonical paths of project files, with the digests of their contents.
    digests: BTreeMap<PathBuf, String>,
}

/// The digest of a file's contents: BLAKE3, in hexadecimal.
pub fn content_digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

impl TrustedProjects {
    /// Reads the trusted files; empty if none were stored.
    ///
    /// # Errors
    ///
    /// The stored list cannot be read, or is not valid JSON.
    pub fn read(state: &Path) -> Result<Self, ConfigError> {
        let file = state.join(TRUST_FILE);
        let text = super::read_config_file(&file, false)?;
        let digests = match text.is_empty() {
            true => BTreeMap::new(),
            false => serde_json::from_str(&text).map_err(|error| ConfigError::Unreadable {
                path: file.clone(),
                source: io::Error::new(io::ErrorKind::InvalidData, error),
            })?,
        };
        Ok(Self { file, digests })
    }

    /// Whether a file with this content is trusted.
    pub fn is_trusted(&self, file: &Path, digest: &str) -> bool {
        canonical_path(file).is_ok_and(|name| self.digests.get(&name).is_some_and(|d| d == digest))
    }

    /// Trusts a file with these contents.
    ///
    /// # Errors
    ///
    /// The path of the file cannot be resolved, or the list cannot be written.
    pub fn add(mut self, file: &Path, digest: String) -> Result<(), ConfigError> {
        let name = canonical_path(file)?;
        self.digests.insert(name, digest);
        self.write_file()
    }

    /// Stops trusting a file. Returns whether it was trusted.
    ///
    /// # Errors
    ///
    /// The list cannot be written.
    pub fn remove(mut self, file: &Path) -> Result<bool, ConfigError> {
        // The file may be gone; its path still counts.
        let name = canonical_path(file).unwrap_or_else(|_| file.to_owned());
        let was_trusted = self.digests.remove(&name).is_some();
        self.write_file()?;
        Ok(was_trusted)
    }

    /// Replaces the file as a whole, so that a reader never sees half of it.
    fn write_file(&self) -> Result<(), ConfigError> {
        let unwritable = |source| ConfigError::Unwritable { path: self.file.clone(), source };
        let folder = self.file.parent().unwrap_or(Path::new("/"));
        let text = serde_json::to_string_pretty(&self.digests)
            .map_err(|error| unwritable(error.into()))?;
        // The session store shares this folder and requires it to be private.
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(unwritable)?;
        atomic_file::replace_file(&self.file, text.as_bytes(), atomic_file::PRIVATE_MODE)
            .map_err(unwritable)
    }
}

fn canonical_path(file: &Path) -> Result<PathBuf, ConfigError> {
    file.canonicalize().map_err(|source| ConfigError::Unreadable { path: file.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_is_in_a_file_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let (state, file) = (folder.path().join("state"), folder.path().join("p.toml"));
        fs::write(&file, "a").unwrap();
        let covers =
            |text| TrustedProjects::read(&state).unwrap().is_trusted(&file, &content_digest(text));
        assert!(!covers("a"));
        TrustedProjects::read(&state).unwrap().add(&file, content_digest("a")).unwrap();
        assert!(covers("a") && !covers("b"));
        assert!(TrustedProjects::read(&state).unwrap().remove(&file).unwrap());
        assert!(!covers("a"));
        assert!(!TrustedProjects::read(&state).unwrap().remove(&file).unwrap());
    }

    #[test]
    fn a_broken_list_trusts_nobody() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["{", "[]", "{\"a\": 1}", "\0"] {
            fs::write(folder.path().join(TRUST_FILE), text).unwrap();
            assert!(TrustedProjects::read(folder.path()).is_err(), "{text}");
        }
    }
}
