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
use crate::atomic_file::{self, WriteLock};

/// The file, in the state folder.
pub const TRUST_FILE: &str = "trusted.json";

/// The trusted project files.
#[derive(Debug)]
pub struct TrustedProjects {
    file: PathBuf,
    digests: ProjectDigests,
}

/// Canonical paths of project files, with the digests of their contents.
type ProjectDigests = BTreeMap<PathBuf, String>;

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
        let digests = read_digests(&file)?;
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
    pub fn add(self, file: &Path, digest: String) -> Result<(), ConfigError> {
        let name = canonical_path(file)?;
        self.update_file(|digests| drop(digests.insert(name, digest)))
    }

    /// Stops trusting a file. Returns whether it was trusted.
    ///
    /// # Errors
    ///
    /// The list cannot be written.
    pub fn remove(self, file: &Path) -> Result<bool, ConfigError> {
        // The file may be gone; its path still counts.
        let name = canonical_path(file).unwrap_or_else(|_| file.to_owned());
        self.update_file(|digests| digests.remove(&name).is_some())
    }

    /// Changes the list. It is read again first, because another process may have changed it. The
    /// file is replaced as a whole, so that a reader never sees half of it.
    fn update_file<T>(
        &self,
        change: impl FnOnce(&mut ProjectDigests) -> T,
    ) -> Result<T, ConfigError> {
        let unwritable = |source| ConfigError::Unwritable { path: self.file.clone(), source };
        let folder = self.file.parent().unwrap_or(Path::new("/"));
        // The session store shares this folder and requires it to be private.
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(unwritable)?;
        let _lock = WriteLock::take(&self.file).map_err(unwritable)?;
        let mut digests = read_digests(&self.file)?;
        let result = change(&mut digests);
        let text =
            serde_json::to_string_pretty(&digests).map_err(|error| unwritable(error.into()))?;
        atomic_file::replace_file(&self.file, text.as_bytes(), atomic_file::PRIVATE_MODE)
            .map_err(unwritable)?;
        Ok(result)
    }
}

fn read_digests(file: &Path) -> Result<ProjectDigests, ConfigError> {
    let text = super::read_config_file(file, false)?;
    match text.is_empty() {
        true => Ok(ProjectDigests::new()),
        false => serde_json::from_str(&text).map_err(|error| ConfigError::Unreadable {
            path: file.to_owned(),
            source: io::Error::new(io::ErrorKind::InvalidData, error),
        }),
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

    /// The last of two processes that changed the list at the same time overwrote the other.
    #[test]
    fn files_that_are_trusted_at_once_are_all_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let (state, digest) = (folder.path().join("state"), content_digest("a"));
        let file = |number: usize| folder.path().join(format!("{number}.toml"));
        let known = |number: usize| {
            fs::write(file(number), "a").unwrap();
            TrustedProjects::read(&state).unwrap()
        };
        let lists: Vec<_> = (0..8).map(known).collect();
        std::thread::scope(|scope| {
            for (number, list) in lists.into_iter().enumerate() {
                let (file, digest) = (file(number), digest.clone());
                scope.spawn(move || list.add(&file, digest).unwrap());
            }
        });
        let trusted = TrustedProjects::read(&state).unwrap();
        assert!((0..8).all(|number| trusted.is_trusted(&file(number), &digest)));
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
