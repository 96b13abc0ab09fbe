//! Writes the user's policy file, only after an answer "always" or a command of the operator.
//!
//! The text is edited, not regenerated: comments and order remain. The file is replaced as a whole,
//! so a crash leaves either the old one or the new one.

use std::{io, path::Path};

use sallyport_policy::{RuleText, edit};
use sallyport_untrusted_file as untrusted_file;

/// Size limit of a policy that is edited. The parser's own limit is lower.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

use crate::atomic_file::{self, WriteLock};

/// Why a policy file was not written.
#[derive(Debug, thiserror::Error)]
pub enum PolicyWriteError {
    /// The file cannot be read or replaced.
    #[error("{0}")]
    File(#[from] io::Error),
    /// The text cannot be edited.
    #[error("{0}")]
    Text(#[from] edit::EditError),
}

/// Adds a rule, unless the file contains it already.
///
/// # Errors
///
/// The file cannot be read, edited or replaced.
pub fn add_rule(path: &Path, rule: &RuleText) -> Result<(), PolicyWriteError> {
    let _lock = WriteLock::take(path)?;
    let text = read_policy(path)?;
    let changed = edit::add_rule(&text, rule)?;
    if changed != text {
        write_policy(path, &changed)?;
    }
    Ok(())
}

/// Reads the file. A missing file counts as empty.
///
/// # Errors
///
/// The file exists and cannot be read.
pub fn read_policy(path: &Path) -> io::Result<String> {
    match untrusted_file::read_text(path, FILE_BYTES_MAX) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        result => result,
    }
}

/// Replaces the file as a whole. Whoever read it first holds a [`WriteLock`] since then, so that no
/// other answer is lost. A symbolic link is followed, so that a policy stored elsewhere
/// stays there. The permissions do not change.
///
/// # Errors
///
/// The folder cannot be created or written to.
pub fn write_policy(path: &Path, text: &str) -> io::Result<()> {
    atomic_file::replace_user_file(path, text)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use sallyport_contract::Decision;

    use super::*;

    #[test]
    fn answers_that_are_written_at_once_are_all_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config/policy.toml");
        let rule = |number: usize| RuleText {
            tool: format!("plugin-{number}.tool"),
            net: None,
            page: None,
            digest: None,
            decision: Decision::Allow,
            message: None,
        };
        thread::scope(|scope| {
            for number in 0..16 {
                let (path, rule) = (&path, rule(number));
                scope.spawn(move || add_rule(path, &rule).unwrap());
            }
        });
        let text = read_policy(&path).unwrap();
        for number in 0..16 {
            assert!(text.contains(&format!("\"plugin-{number}.tool\"")), "{number}: {text}");
        }
    }
}
