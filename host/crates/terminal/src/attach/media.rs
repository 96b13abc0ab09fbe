//! What kind of file it is.

use std::path::Path;

/// The kinds of files that models take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Media {
    /// Text in UTF-8, with its media type.
    Text(&'static str),
    /// A picture.
    Image(&'static str),
    /// A sound.
    Audio(&'static str),
}

/// Largest text: about 130,000 tokens, which already fills the memory of most models.
const TEXT_BYTES_MAX: u64 = 512 << 10;

/// Largest picture: models shrink what is larger before they look at it, and refuse what is much
/// larger.
const IMAGE_BYTES_MAX: u64 = 10 << 20;

/// Largest sound: in a request it grows by a third, to the largest body that all providers take.
pub(super) const AUDIO_BYTES_MAX: u64 = 15 << 20;

impl Media {
    /// Media type, such as `image/png`.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Text(media_type) | Self::Image(media_type) | Self::Audio(media_type) => {
                media_type
            }
        }
    }

    /// The kind, in the plural.
    pub(super) fn plural(self) -> &'static str {
        match self {
            Self::Text(_) => "texts",
            Self::Image(_) => "pictures",
            Self::Audio(_) => "sounds",
        }
    }

    pub(super) fn bytes_max(self) -> u64 {
        match self {
            Self::Text(_) => TEXT_BYTES_MAX,
            Self::Image(_) => IMAGE_BYTES_MAX,
            Self::Audio(_) => AUDIO_BYTES_MAX,
        }
    }
}

/// Returns what a file is, from its first bytes and, where these leave it open, from its name.
/// `None` is for bytes that are neither text nor known.
pub fn media(path: &Path, bytes: &[u8]) -> Option<Media> {
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or("").to_ascii_lowercase();
    by_magic(bytes, &extension)
        .or_else(|| is_text(bytes).then(|| Media::Text(text_type(&extension))))
}

fn by_magic(bytes: &[u8], extension: &str) -> Option<Media> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Media::Image("image/png")),
        [0xff, 0xd8, 0xff, ..] => Some(Media::Image("image/jpeg")),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Media::Image("image/gif")),
        [b'R', b'I', b'F', b'F', _, _, _, _, kind @ ..] => riff(kind),
        [b'f', b'L', b'a', b'C', ..] => Some(Media::Audio("audio/flac")),
        [b'O', b'g', b'g', b'S', ..] => Some(Media::Audio("audio/ogg")),
        [b'I', b'D', b'3', 2..=4, ..] => Some(Media::Audio("audio/mpeg")),
        // A frame without a tag begins with few fixed bits, so that the name has to agree.
        [0xff, 0xe2..=0xe7 | 0xf2..=0xf7 | 0xfa..=0xff, ..] if extension == "mp3" => {
            Some(Media::Audio("audio/mpeg"))
        }
        _ => None,
    }
}

fn riff(kind: &[u8]) -> Option<Media> {
    match kind {
        [b'W', b'E', b'B', b'P', ..] => Some(Media::Image("image/webp")),
        [b'W', b'A', b'V', b'E', ..] => Some(Media::Audio("audio/wav")),
        _ => None,
    }
}

/// UTF-8 without what only binary files hold.
fn is_text(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| !text.contains('\0'))
}

/// All of them begin with `text/`, since that is how a model's adapter knows what it can read out.
fn text_type(extension: &str) -> &'static str {
    match extension {
        "md" | "markdown" => "text/markdown",
        "csv" => "text/csv",
        "htm" | "html" => "text/html",
        _ => "text/plain",
    }
}
