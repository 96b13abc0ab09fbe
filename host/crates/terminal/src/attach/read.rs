//! Reading files that are attached.

use std::{collections::BTreeSet, path::Path};

use sallyport_contract::text;

use super::{
    error::AttachError,
    files::{Files, Found},
    media::{AUDIO_BYTES_MAX, Media, media},
    mention::Mention,
};

/// Most bytes of all files of a message: base64 makes a third more of them, and that is the largest
/// request that all providers take.
const TOGETHER_BYTES_MAX: u64 = AUDIO_BYTES_MAX;

/// Most files of a message. Beyond it a person has named a folder's content by accident.
const FILES_MAX: usize = 32;

/// Most characters of a path that an error quotes.
const NAME_CHARS_MAX: usize = 200;

/// A file that goes with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    /// The file's name, without its folder.
    pub name: String,
    /// Media type, such as `image/png`.
    pub media_type: &'static str,
    /// The bytes of the file.
    pub data: Vec<u8>,
}

/// Reads a file to attach.
///
/// # Errors
///
/// The file cannot be read, is too large, or is of a kind that no model takes.
pub fn attach(files: &dyn Files, path: &Path) -> Result<Attached, AttachError> {
    let name = || shown(path);
    match files.find(path) {
        Found::File => {}
        Found::Folder => return Err(AttachError::Folder { name: name() }),
        Found::Other => return Err(AttachError::NotRegular { name: name() }),
        Found::Nothing => return Err(AttachError::Missing { name: name() }),
    }
    // One byte more than the largest kind may have, to notice what is larger.
    let data = files
        .read(path, AUDIO_BYTES_MAX + 1)
        .map_err(|source| AttachError::Unreadable { name: name(), source })?;
    if data.is_empty() {
        return Err(AttachError::Empty { name: name() });
    }
    let media = kind(path, &data)?;
    if data.len() as u64 > media.bytes_max() {
        let (kind, bytes_max) = (media.plural(), media.bytes_max());
        return Err(AttachError::TooLarge { name: name(), kind, bytes_max });
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Attached { name, media_type: media.media_type(), data })
}

/// Reads a sound to attach.
///
/// # Errors
///
/// As [`attach`], and the file is no sound.
pub fn attach_audio(files: &dyn Files, path: &Path) -> Result<Attached, AttachError> {
    let attached = attach(files, path)?;
    match attached.media_type.starts_with("audio/") {
        true => Ok(attached),
        false => Err(AttachError::NoSound { name: shown(path), media_type: attached.media_type }),
    }
}

/// Reads all files that a line mentions, each once.
///
/// # Errors
///
/// As [`attach`], and there are too many, or they are too large together.
pub fn attach_all(files: &dyn Files, mentions: &[Mention]) -> Result<Vec<Attached>, AttachError> {
    let paths: Vec<_> = {
        let mut seen = BTreeSet::new();
        mentions.iter().map(|mention| &mention.path).filter(|path| seen.insert(*path)).collect()
    };
    if paths.len() > FILES_MAX {
        return Err(AttachError::TooMany { count_max: FILES_MAX });
    }
    let mut all = Vec::new();
    let mut bytes_left = TOGETHER_BYTES_MAX;
    for path in paths {
        let attached = attach(files, path)?;
        bytes_left = bytes_left
            .checked_sub(attached.data.len() as u64)
            .ok_or(AttachError::TooLargeTogether { bytes_max: TOGETHER_BYTES_MAX })?;
        all.push(attached);
    }
    Ok(all)
}

/// A file that was cut at the largest limit may end within a letter.
fn kind(path: &Path, data: &[u8]) -> Result<Media, AttachError> {
    let whole = match std::str::from_utf8(data) {
        Err(error) if error.error_len().is_none() && data.len() as u64 > AUDIO_BYTES_MAX => {
            &data[..error.valid_up_to()]
        }
        _ => data,
    };
    media(path, whole).ok_or_else(|| AttachError::UnknownKind { name: shown(path) })
}

fn shown(path: &Path) -> String {
    text::excerpt(&path.to_string_lossy(), NAME_CHARS_MAX)
}
