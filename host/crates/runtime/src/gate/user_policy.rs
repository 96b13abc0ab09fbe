//! Writes the user's policy file, only after an answer "always" or a command of the operator.
//!
//! The text is edited, not regenerated: comments and order remain. The file is replaced as a whole,
//! so a crash leaves either the old one or the new one.

use std::{io, path::Path};

use sallyport_policy::{RuleText, edit};
use sallyport_untrusted_file as untrusted_file;

/// Size limit of a policy that is edited. The parser's own limit is lower.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

use super::policy_store::{PolicyLoadError, check_user_text};
use crate::{
    atomic_file::{self, WriteLock},
    config::PolicyFiles,
};

/// Why a policy file was not written.
#[derive(Debug, thiserror::Error)]
pub enum PolicyWriteError {
    /// The file cannot be read or replaced.
    #[error("{0}")]
    File(#[from] io::Error),
    /// The text cannot be edited.
    #[error("{0}")]
    Text(#[from] edit::EditError),
    /// The file would not be valid as a whole.
    #[error("{0}")]
    Invalid(#[from] PolicyLoadError),
}

/// Adds a rule to the user's file, unless it contains the rule already.
///
/// # Errors
///
/// The file cannot be read, edited or replaced, or would not be valid: it may have as many rules as a
/// file can have. The file is unchanged then.
pub fn add_rule(files: &PolicyFiles, rule: &RuleText) -> Result<(), PolicyWriteError> {
    let path = files.user_file();
    let _lock = WriteLock::take(path)?;
    let text = read_policy(path)?;
    let changed = edit::add_rule(&text, rule)?;
    if changed != text {
        check_user_text(files, &changed)?;
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
/// stays there. The mode and the group do not change.
///
/// # Errors
///
/// The folder cannot be created or written to.
pub fn write_policy(path: &Path, text: &str) -> io::Result<()> {
    atomic_file::replace_user_file(path, text)
}

#[cfg(test)]
mod tests {
    use std::{fs, thread};

    use sallyport_contract::Decision;
    use sallyport_policy::PolicyTier;

    use super::*;
    use crate::config::PolicyPath;

    fn files_with_user(path: &Path) -> PolicyFiles {
        let user = PolicyPath { tier: PolicyTier::User, path: path.to_owned(), is_named: false };
        PolicyFiles { files: vec![user], host_files: Vec::new(), home: None, foreign: Vec::new() }
    }

    fn rule(number: usize) -> RuleText {
        RuleText {
            tool: format!("plugin-{number}.tool"),
            net: None,
            page: None,
            digest: None,
            decision: Decision::Allow,
            message: None,
        }
    }

    /// One rule too many made a file invalid as a whole.
    #[test]
    fn a_rule_that_would_make_the_file_invalid_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("policy.toml");
        let files = files_with_user(&path);
        let full: String = (0..2000).map(|number| rule(number).to_string()).collect();
        fs::write(&path, &full).unwrap();
        let error = add_rule(&files, &rule(2000)).unwrap_err().to_string();
        assert!(error.contains("more than 2000 rules"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), full);
        add_rule(&files, &rule(7)).unwrap();
        let long = format!("#{}\n", "x".repeat((1 << 20) - 20));
        fs::write(&path, &long).unwrap();
        let error = add_rule(&files, &rule(0)).unwrap_err().to_string();
        assert!(error.contains("longer than"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), long);
    }

    #[test]
    fn answers_that_are_written_at_once_are_all_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config/policy.toml");
        let files = files_with_user(&path);
        thread::scope(|scope| {
            for number in 0..16 {
                let (files, rule) = (&files, rule(number));
                scope.spawn(move || add_rule(files, &rule).unwrap());
            }
        });
        let text = read_policy(&path).unwrap();
        for number in 0..16 {
            assert!(text.contains(&format!("\"plugin-{number}.tool\"")), "{number}: {text}");
        }
    }
}
