//! Files that go with a message: those of the flags, and those that a line mentions.

use sallyport_model::{Attachment, UserMessage};
use sallyport_runtime::config::Settings;
use sallyport_terminal::attach::{
    AttachError, Attached, Disk, Mention, attach_all, attach_audio, mentions,
};

use super::{
    args::FileArgs,
    exit::{Exit, Failure},
};

/// Where files are looked for.
pub(super) fn disk(settings: &Settings) -> Disk {
    Disk {
        // Without a folder of its own, the program reaches what is named from the root.
        folder: std::env::current_dir().unwrap_or_else(|_| "/".into()),
        home: settings.env.get("HOME").map(Into::into),
    }
}

/// The files that the flags name.
///
/// # Errors
///
/// One cannot be read, or is nothing that a model takes.
pub(super) fn named(args: &FileArgs, disk: &Disk) -> Result<Vec<Attachment>, Failure> {
    let mentions: Vec<Mention> =
        args.attach.iter().map(|path| Mention { span: 0..0, path: path.clone() }).collect();
    let mut files = attach_all(disk, &mentions)?;
    if let Some(path) = &args.audio {
        files.push(attach_audio(disk, path)?);
    }
    Ok(files.into_iter().map(attachment).collect())
}

/// A line with the files that it mentions, and what looked like one and is none.
///
/// # Errors
///
/// One cannot be read, is nothing that a model takes, or there are too many.
pub(super) fn message(text: &str, disk: &Disk) -> Result<(UserMessage, Vec<String>), AttachError> {
    let found = mentions(text, disk);
    let files = attach_all(disk, &found.files)?;
    let attachments = files.into_iter().map(attachment).collect();
    Ok((UserMessage { text: found.text, attachments, ..UserMessage::default() }, found.told))
}

fn attachment(Attached { name, media_type, data }: Attached) -> Attachment {
    Attachment { name, media_type: media_type.to_owned(), data: data.into() }
}

impl From<AttachError> for Failure {
    fn from(error: AttachError) -> Self {
        Self::new(Exit::Usage, error.to_string()).with_hint(error.hint())
    }
}
