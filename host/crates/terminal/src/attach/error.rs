//! Errors of attaching a file.

use std::io;

/// The reason why a file cannot be attached. Names are escaped already.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// There is no such file.
    #[error("there is no file {name}")]
    Missing {
        /// The path as it was written.
        name: String,
    },
    /// It is a folder.
    #[error("{name} is a folder")]
    Folder {
        /// The path as it was written.
        name: String,
    },
    /// It is a pipe, a device or a socket.
    #[error("{name} is not a regular file")]
    NotRegular {
        /// The path as it was written.
        name: String,
    },
    /// It cannot be read.
    #[error("cannot read {name}: {source}")]
    Unreadable {
        /// The path as it was written.
        name: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// It contains no bytes.
    #[error("{name} is empty")]
    Empty {
        /// The path as it was written.
        name: String,
    },
    /// It exceeds the limit for its kind.
    #[error("{name} is too large: {kind} may have up to {bytes_max} bytes")]
    TooLarge {
        /// The path as it was written.
        name: String,
        /// The kind of file, in the plural.
        kind: &'static str,
        /// The limit, in bytes.
        bytes_max: u64,
    },
    /// The files of a message exceed the limit together.
    #[error("the files of one message may have up to {bytes_max} bytes together")]
    TotalTooLarge {
        /// The limit, in bytes.
        bytes_max: u64,
    },
    /// A message has too many files.
    #[error("one message may have up to {count_max} files")]
    TooMany {
        /// The most files in a message.
        count_max: usize,
    },
    /// It is neither text nor a supported picture or sound.
    #[error("{name} has a type that no model accepts")]
    UnknownKind {
        /// The path as it was written.
        name: String,
    },
    /// A sound file was expected.
    #[error("{name} is not a sound file: it is {media_type}")]
    NotAudio {
        /// The path as it was written.
        name: String,
        /// Its media type.
        media_type: &'static str,
    },
}

impl AttachError {
    /// Returns a hint for the user on how to fix it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Missing { .. } => {
                "paths are relative to the current folder, or begin with / or ~/"
            }
            Self::Folder { .. } => "name the files in it",
            Self::NotRegular { .. } => "copy its content to a file first",
            Self::Unreadable { .. } => "check its permissions",
            Self::Empty { .. } => "attach a file that is not empty",
            Self::TooLarge { kind: "texts", .. } => {
                "attach the part that matters, or let a tool read the file"
            }
            Self::TooLarge { .. } => "make it smaller first",
            Self::TotalTooLarge { .. } | Self::TooMany { .. } => "split them over several messages",
            Self::UnknownKind { .. } => {
                "text has to be UTF-8; PNG, JPEG, GIF, WebP, WAV, MP3, FLAC and Ogg are known too"
            }
            Self::NotAudio { .. } => "use WAV, MP3, FLAC or Ogg here, and --attach for other files",
        }
    }
}
