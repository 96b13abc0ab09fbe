//! Detects the type of a file.

use std::path::Path;

/// The kinds of files that models accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaKind {
    /// UTF-8 text, with its media type.
    Text(&'static str),
    /// A picture, with its media type.
    Image(&'static str),
    /// A sound, with its media type.
    Audio(&'static str),
}

/// Largest text, in bytes: about 130,000 tokens, which fills the context of most models.
const TEXT_BYTES_MAX: u64 = 512 << 10;

/// Largest picture, in bytes. Models scale down larger ones and refuse much larger ones.
const IMAGE_BYTES_MAX: u64 = 10 << 20;

/// Largest sound, in bytes. Base64 adds a third, which gives the largest body that all providers
/// accept.
pub(super) const AUDIO_BYTES_MAX: u64 = 15 << 20;

impl MediaKind {
    /// Media type, such as `image/png`.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Text(media_type) | Self::Image(media_type) | Self::Audio(media_type) => {
                media_type
            }
        }
    }

    /// The kind, in the plural.
    pub(super) fn plural_name(self) -> &'static str {
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

/// Detects the type of a file from its first bytes, and from its name if these are ambiguous.
///
/// Returns `None` for bytes that are neither text nor a known format.
pub fn detect_media(path: &Path, bytes: &[u8]) -> Option<MediaKind> {
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or("").to_ascii_lowercase();
    detect_by_magic(bytes, &extension)
        .or_else(|| is_text(bytes).then(|| MediaKind::Text(text_media_type(&extension))))
}

fn detect_by_magic(bytes: &[u8], extension: &str) -> Option<MediaKind> {
    match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => {
            Some(MediaKind::Image("image/png"))
        }
        [0xff, 0xd8, 0xff, ..] => Some(MediaKind::Image("image/jpeg")),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(MediaKind::Image("image/gif")),
        [b'R', b'I', b'F', b'F', _, _, _, _, kind @ ..] => detect_riff(kind),
        [b'f', b'L', b'a', b'C', ..] => Some(MediaKind::Audio("audio/flac")),
        [b'O', b'g', b'g', b'S', ..] => Some(MediaKind::Audio("audio/ogg")),
        [b'I', b'D', b'3', 2..=4, ..] => Some(MediaKind::Audio("audio/mpeg")),
        // A frame without a tag has few fixed bits, so the name has to match too.
        [0xff, 0xe2..=0xe7 | 0xf2..=0xf7 | 0xfa..=0xff, ..] if extension == "mp3" => {
            Some(MediaKind::Audio("audio/mpeg"))
        }
        _ => None,
    }
}

fn detect_riff(kind: &[u8]) -> Option<MediaKind> {
    match kind {
        [b'W', b'E', b'B', b'P', ..] => Some(MediaKind::Image("image/webp")),
        [b'W', b'A', b'V', b'E', ..] => Some(MediaKind::Audio("audio/wav")),
        _ => None,
    }
}

/// Whether the bytes are UTF-8 without NUL, which only binary files contain.
fn is_text(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| !text.contains('\0'))
}

/// Every type begins with `text/` because a model's adapter recognises readable files by it.
fn text_media_type(extension: &str) -> &'static str {
    match extension {
        "md" | "markdown" => "text/markdown",
        "csv" => "text/csv",
        "htm" | "html" => "text/html",
        _ => "text/plain",
    }
}
