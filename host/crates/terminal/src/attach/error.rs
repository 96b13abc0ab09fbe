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
    #[error("{name} is of a kind that no model takes")]
    UnknownKind {
        /// The path as it was written.
        name: String,
    },
    /// A sound was wanted.
    #[error("{name} is no sound but {media_type}")]
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
                "paths begin in the folder that the program was started in, at / or at ~/"
            }
            Self::Folder { .. } => "name the files in it that matter",
            Self::NotRegular { .. } => "copy what it holds into a file first",
            Self::Unreadable { .. } => "see whether you may read it",
            Self::Empty { .. } => "attach a file that holds something",
            Self::TooLarge { kind: "texts", .. } => {
                "attach the part that matters, or let a tool read the file"
            }
            Self::TooLarge { .. } => "make it smaller first",
            Self::TooLargeTogether { .. } | Self::TooMany { .. } => {
                "send them with several messages"
            }
            Self::UnknownKind { .. } => {
                "text has to be UTF-8; PNG, JPEG, GIF, WebP, WAV, MP3, FLAC and Ogg are known too"
            }
            Self::NoSound { .. } => "WAV, MP3, FLAC and Ogg are known; attach others as files",
        }
    }
}
