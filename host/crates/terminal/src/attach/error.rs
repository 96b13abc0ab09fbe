//! Why a file cannot be attached.

use std::io;

/// Why a file cannot be attached. Names are escaped already.
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
        /// What the system says.
        source: io::Error,
    },
    /// It holds nothing.
    #[error("{name} is empty")]
    Empty {
        /// The path as it was written.
        name: String,
    },
    /// It is larger than files of its kind may be.
    #[error("{name} is too large: {kind} may have up to {bytes_max} bytes")]
    TooLarge {
        /// The path as it was written.
        name: String,
        /// The kind of file, in the plural.
        kind: &'static str,
        /// The limit.
        bytes_max: u64,
    },
    /// All files of a message together are too large.
    #[error("the files of one message may have up to {bytes_max} bytes together")]
    TooLargeTogether {
        /// The limit.
        bytes_max: u64,
    },
    /// A message has too many files.
    #[error("one message may have up to {count_max} files")]
    TooMany {
        /// The limit.
        count_max: usize,
    },
    /// It is neither text nor a picture or sound that is known here.
    #[error("{name} has a type that no model accepts")]
    UnknownKind {
        /// The path as it was written.
        name: String,
    },
    /// A sound was wanted.
    #[error("{name} is not a sound file: it is {media_type}")]
    NoSound {
        /// The path as it was written.
        name: String,
        /// What it is.
        media_type: &'static str,
    },
}

impl AttachError {
    /// What to do about it.
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
            Self::TooLargeTogether { .. } | Self::TooMany { .. } => {
                "split them over several messages"
            }
            Self::UnknownKind { .. } => {
                "text has to be UTF-8; PNG, JPEG, GIF, WebP, WAV, MP3, FLAC and Ogg are known too"
            }
            Self::NoSound { .. } => "use WAV, MP3, FLAC or Ogg here, and --attach for other files",
        }
    }
}
