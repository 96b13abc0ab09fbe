//! Attached files, from the flags and from the mentions in a line.

use sallyport_model::{FileAttachment, UserInputMessage};
use sallyport_runtime::config::HostSettings;
use sallyport_terminal::attach::{
    AttachError, LocalAttachment, LocalFiles, attach_audio, attach_files, find_mentions,
};

use super::{
    args::FileArgs,
    exit::{CommandFailure, ExitStatus},
};

/// Returns the folders in which files are searched.
pub(super) fn search_folders(settings: &HostSettings) -> LocalFiles {
    LocalFiles {
        // Without a current folder, relative paths start at the root.
        folder: std::env::current_dir().unwrap_or_else(|_| "/".into()),
        home: settings.env.get("HOME").map(Into::into),
    }
}

/// Reads the files that the flags name.
///
/// # Errors
///
/// A file cannot be read, or no model accepts its type.
pub(super) fn read_flag_files(
    args: &FileArgs,
    local_files: &LocalFiles,
) -> Result<Vec<FileAttachment>, CommandFailure> {
    let mut files = attach_files(local_files, &args.attach)?;
    if let Some(path) = &args.audio {
        files.push(attach_audio(local_files, path)?);
    }
    Ok(files.into_iter().map(to_attachment).collect())
}

/// Parses a line with the files that it mentions. Also returns the words that look like a mention
/// but are not.
///
/// # Errors
///
/// A file cannot be read, no model accepts its type, or there are too many files.
pub(super) fn parse_message(
    text: &str,
    local_files: &LocalFiles,
) -> Result<(UserInputMessage, Vec<String>), AttachError> {
    let found = find_mentions(text, local_files);
    let files = attach_files(local_files, &found.files)?;
    let attachments = files.into_iter().map(to_attachment).collect();
    Ok((
        UserInputMessage { text: found.text, attachments, ..UserInputMessage::default() },
        found.notes,
    ))
}

fn to_attachment(LocalAttachment { name, media_type, data }: LocalAttachment) -> FileAttachment {
    FileAttachment { name, media_type: media_type.to_owned(), data: data.into() }
}

impl From<AttachError> for CommandFailure {
    fn from(error: AttachError) -> Self {
        Self::new(ExitStatus::Usage, error.to_string()).with_hint(error.hint())
    }
}
