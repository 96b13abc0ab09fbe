//! Errors of attaching a file.

use std::io;

/// The reason why a file cannot be attached. Names are paths as they were written, escaped already.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// No file has this path.
    #[error("there is no file {0}")]
    Missing(String),
    /// It is a folder.
    #[error("{0} is a folder")]
    Folder(String),
    /// It is a pipe, a device or a socket.
    #[error("{0} is not a regular file")]
    NotRegular(String),
    /// It cannot be read.
    #[error("cannot read {name}: {source}")]
    Unreadable {
        /// The path.
        name: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// It contains no bytes.
    #[error("{0} is empty")]
    Empty(String),
    /// It exceeds the limit for its kind.
    #[error("{name} is too large: {kind} may have up to {bytes_max} bytes")]
    TooLarge {
        /// The path.
        name: String,
        /// The kind of file, in the plural.
        kind: &'static str,
        /// The limit, in bytes.
        bytes_max: u64,
    },
    /// The files of a message exceed this limit together, in bytes.
    #[error("the files of one message may have up to {0} bytes together")]
    TotalTooLarge(u64),
    /// A message has more files than this.
    #[error("one message may have up to {0} files")]
    TooMany(usize),
    /// It is neither text nor a supported picture or sound.
    #[error("{0} has a type that no model accepts")]
    UnknownKind(String),
    /// A sound file was expected.
    #[error("{name} is not a sound file: it is {media_type}")]
    NotAudio {
        /// The path.
        name: String,
        /// Its media type.
        media_type: &'static str,
    },
}

impl AttachError {
    /// Returns a hint for the user on how to fix it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Missing(_) => "paths are relative to the current folder, or begin with / or ~/",
            Self::Folder(_) => "name the files in it",
            Self::NotRegular(_) => "copy its content to a file first",
            Self::Unreadable { .. } => "check its permissions",
            Self::Empty(_) => "attach a file that is not empty",
            Self::TooLarge { kind: "texts", .. } => {
                "attach the part that matters, or let a tool read the file"
            }
            Self::TooLarge { .. } => "make it smaller first",
            Self::TotalTooLarge(_) | Self::TooMany(_) => "split them over several messages",
            Self::UnknownKind(_) => {
                "text has to be UTF-8; PNG, JPEG, GIF, WebP, WAV, MP3, FLAC and Ogg are known too"
            }
            Self::NotAudio { .. } => "use WAV, MP3, FLAC or Ogg here, and --attach for other files",
        }
    }
}
