//! Reads the files to attach.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use sallyport_contract::text;

use super::{
    error::AttachError,
    files::{FileSource, PathKind},
    media::{AUDIO_BYTES_MAX, MediaKind, detect_media},
};

/// Most bytes of all files in a message. Base64 adds a third, which gives the largest request that
/// all providers accept.
const TOTAL_BYTES_MAX: u64 = AUDIO_BYTES_MAX;

/// Most files in a message. More than that is probably a folder named by accident.
const FILES_MAX: usize = 32;

/// Most characters of a path that an error quotes.
const NAME_CHARS_MAX: usize = 200;

/// A file that goes with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalAttachment {
    /// Name of the file, without its folder.
    pub name: String,
    /// Media type, such as `image/png`.
    pub media_type: &'static str,
    /// Contents of the file.
    pub data: Vec<u8>,
}

/// Reads a file to attach.
///
/// # Errors
///
/// The file cannot be read, is too large, or is of a kind that no model accepts.
pub fn attach_file(files: &dyn FileSource, path: &Path) -> Result<LocalAttachment, AttachError> {
    let name = || display_path(path);
    match files.path_kind(path) {
        PathKind::File => {}
        PathKind::Folder => return Err(AttachError::Folder(name())),
        PathKind::Other => return Err(AttachError::NotRegular(name())),
        PathKind::Missing => return Err(AttachError::Missing(name())),
    }
    // Read one byte more than the largest limit, to detect larger files.
    let data = files
        .read_file(path, AUDIO_BYTES_MAX + 1)
        .map_err(|source| AttachError::Unreadable { name: name(), source })?;
    if data.is_empty() {
        return Err(AttachError::Empty(name()));
    }
    let media = detect_kind(path, &data)?;
    if data.len() as u64 > media.bytes_max() {
        let (kind, bytes_max) = (media.plural_name(), media.bytes_max());
        return Err(AttachError::TooLarge { name: name(), kind, bytes_max });
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(LocalAttachment { name, media_type: media.media_type(), data })
}

/// Reads a sound file to attach.
///
/// # Errors
///
/// As [`attach_file`], or the file is not a sound.
pub fn attach_audio(files: &dyn FileSource, path: &Path) -> Result<LocalAttachment, AttachError> {
    let attached = attach_file(files, path)?;
    match attached.media_type.starts_with("audio/") {
        true => Ok(attached),
        false => {
            Err(AttachError::NotAudio { name: display_path(path), media_type: attached.media_type })
        }
    }
}

/// Reads several files, each once.
///
/// # Errors
///
/// As [`attach_file`], or there are too many files, or they are too large together.
pub fn attach_files(
    files: &dyn FileSource,
    paths: &[PathBuf],
) -> Result<Vec<LocalAttachment>, AttachError> {
    let paths: Vec<_> = {
        let mut seen = BTreeSet::new();
        paths.iter().filter(|path| seen.insert(*path)).collect()
    };
    if paths.len() > FILES_MAX {
        return Err(AttachError::TooMany(FILES_MAX));
    }
    let mut all = Vec::new();
    let mut bytes_left = TOTAL_BYTES_MAX;
    for path in paths {
        let attached = attach_file(files, path)?;
        bytes_left = bytes_left
            .checked_sub(attached.data.len() as u64)
            .ok_or(AttachError::TotalTooLarge(TOTAL_BYTES_MAX))?;
        all.push(attached);
    }
    Ok(all)
}

/// Detects the type of a file. One that was cut at the largest limit may end within a character.
fn detect_kind(path: &Path, data: &[u8]) -> Result<MediaKind, AttachError> {
    let complete_chars = match std::str::from_utf8(data) {
        Err(error) if error.error_len().is_none() && data.len() as u64 > AUDIO_BYTES_MAX => {
            &data[..error.valid_up_to()]
        }
        _ => data,
    };
    detect_media(path, complete_chars).ok_or_else(|| AttachError::UnknownKind(display_path(path)))
}

fn display_path(path: &Path) -> String {
    text::escape_excerpt(&path.to_string_lossy(), NAME_CHARS_MAX)
}
