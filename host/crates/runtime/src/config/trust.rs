//! Which projects' configuration the user trusts: a file in the state folder, beside the audit.
//!
//! What is trusted is a file with its content. When the content changes, whoever changed it is a
//! stranger again.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use super::ConfigError;
use crate::whole_file;

/// The file, in the state folder.
pub const FILE: &str = "trusted.json";

/// The projects that are trusted.
#[derive(Debug)]
pub struct Trust {
    file: PathBuf,
    /// Files of projects by their true names, with the digests of what they hold.
    digests: BTreeMap<PathBuf, String>,
}

/// What stands for the content of a file.
pub fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

impl Trust {
    /// Reads what is trusted; nothing where there is no file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or was not written by this program.
    pub fn read(state: &Path) -> Result<Self, ConfigError> {
        let file = state.join(FILE);
        let text = super::read(&file, false)?;
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
    pub fn covers(&self, file: &Path, digest: &str) -> bool {
        true_name(file).is_ok_and(|name| self.digests.get(&name).is_some_and(|d| d == digest))
    }

    /// Trusts a file with this content from now on.
    ///
    /// # Errors
    ///
    /// The file has no true name, or what is trusted cannot be written.
    pub fn add(mut self, file: &Path, digest: String) -> Result<(), ConfigError> {
        let name = true_name(file)?;
        self.digests.insert(name, digest);
        self.write()
    }

    /// Trusts a file no longer. Returns whether it was trusted.
    ///
    /// # Errors
    ///
    /// What is trusted cannot be written.
    pub fn remove(mut self, file: &Path) -> Result<bool, ConfigError> {
        // The file may be gone; its name still counts.
        let name = true_name(file).unwrap_or_else(|_| file.to_owned());
        let was_trusted = self.digests.remove(&name).is_some();
        self.write()?;
        Ok(was_trusted)
    }

    /// Writes a new file and puts it in the place of the old one, so that no half of it is ever
    /// read.
    fn write(&self) -> Result<(), ConfigError> {
        let unwritable = |source| ConfigError::Unwritable { path: self.file.clone(), source };
        let folder = self.file.parent().unwrap_or(Path::new("/"));
        let text = serde_json::to_string_pretty(&self.digests)
            .map_err(|error| unwritable(error.into()))?;
        // The store, which shares the folder, wants it to be private.
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(unwritable)?;
        whole_file::replace(&self.file, text.as_bytes(), whole_file::PRIVATE_MODE)
            .map_err(unwritable)
    }
}

fn true_name(file: &Path) -> Result<PathBuf, ConfigError> {
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
        let covers = |text| Trust::read(&state).unwrap().covers(&file, &digest(text));
        assert!(!covers("a"));
        Trust::read(&state).unwrap().add(&file, digest("a")).unwrap();
        assert!(covers("a") && !covers("b"));
        assert!(Trust::read(&state).unwrap().remove(&file).unwrap());
        assert!(!covers("a"));
        assert!(!Trust::read(&state).unwrap().remove(&file).unwrap());
    }

    #[test]
    fn a_broken_list_trusts_nobody() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["{", "[]", "{\"a\": 1}", "\0"] {
            fs::write(folder.path().join(FILE), text).unwrap();
            assert!(Trust::read(folder.path()).is_err(), "{text}");
        }
    }
}
