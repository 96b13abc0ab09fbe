//! Writes a message in the user's own editor.

use std::{
    fs::{self, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::ExitStatus,
};

use super::history::remove_control_chars;

/// Longest message that is read back, in bytes. Longer text should be attached as a file.
const MESSAGE_BYTES_MAX: u64 = 1 << 20;

/// Errors of editing a message. The message stays unchanged.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExternalEditorError {
    #[error("no editor is configured: set VISUAL or EDITOR to its command")]
    NoProgram,
    #[error("cannot start {program}: {source}")]
    Start { program: String, source: io::Error },
    #[error("{program} ended with {status}, so the message is unchanged")]
    ExitedWithError { program: String, status: ExitStatus },
    #[error("cannot pass the message to the editor: {0}")]
    File(#[from] io::Error),
    #[error("the message is longer than {bytes_max} bytes: attach it as a file")]
    TooLong { bytes_max: u64 },
}

/// The user's editor, and the folder of its temporary files.
#[derive(Debug, Clone)]
pub(super) struct ExternalEditor {
    /// Command from `$VISUAL` or `$EDITOR`.
    pub(super) command: Option<String>,
    /// A private folder.
    pub(super) folder: Option<PathBuf>,
}

impl ExternalEditor {
    /// Opens a text in the user's editor and returns the edited text.
    ///
    /// # Errors
    ///
    /// No editor is configured, it cannot be started, it failed, or the text cannot be read back.
    pub(super) fn edit_text(&self, text: &str) -> Result<String, ExternalEditorError> {
        let words = self.command.as_deref().and_then(shlex::split).unwrap_or_default();
        let (Some((program, arguments)), Some(folder)) = (words.split_first(), &self.folder) else {
            return Err(ExternalEditorError::NoProgram);
        };
        let file = MessageFile::create_file(folder, text)?;
        let status = run_editor(program, arguments, &file.0)
            .map_err(|source| ExternalEditorError::Start { program: program.clone(), source })?;
        if !status.success() {
            return Err(ExternalEditorError::ExitedWithError { program: program.clone(), status });
        }
        file.read_text()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the user configured the program and starts it with a key"
)]
fn run_editor(program: &str, arguments: &[String], file: &Path) -> io::Result<ExitStatus> {
    std::process::Command::new(program).args(arguments).arg(file).status()
}

/// A message in a file, which is deleted on drop.
struct MessageFile(PathBuf);

impl MessageFile {
    fn create_file(folder: &Path, text: &str) -> io::Result<Self> {
        let path = folder.join(format!("message-{}.md", std::process::id()));
        // Remove the file of an earlier process with the same id.
        let _ = fs::remove_file(&path);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        let message = Self(path);
        file.write_all(text.as_bytes())?;
        Ok(message)
    }

    fn read_text(&self) -> Result<String, ExternalEditorError> {
        let mut text = String::new();
        let file = sallyport_untrusted_file::open_regular(&self.0)?;
        file.take(MESSAGE_BYTES_MAX + 1).read_to_string(&mut text)?;
        if text.len() as u64 > MESSAGE_BYTES_MAX {
            return Err(ExternalEditorError::TooLong { bytes_max: MESSAGE_BYTES_MAX });
        }
        Ok(remove_control_chars(&text).trim_end().to_owned())
    }
}

impl Drop for MessageFile {
    fn drop(&mut self) {
        // The error can be ignored because the folder is private.
        let _ = fs::remove_file(&self.0);
    }
}
