//! Why something cannot be kept or read back. All of it is the operator's to mend.

use std::{io, path::PathBuf};

use rusqlite::ErrorCode;

/// Why the store cannot be used, or could not do one thing.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system refuses a file or folder.
    #[error("cannot {verb} {path}: {source}", path = path.display())]
    File {
        /// What was tried: `open`, `create`, `read`, `write`.
        verb: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A file or folder could be read, written or swapped by somebody else.
    #[error("{path} is not private: {why}", path = path.display())]
    NotPrivate {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
        /// The mode that it should have, in the digits of `chmod`.
        mode: u32,
    },
    /// The database was written by a newer program. It was not touched.
    #[error("{path} has the form {found}, this program knows forms up to {known}", path = path.display())]
    Newer {
        /// The database.
        path: PathBuf,
        /// The number of its form.
        found: i64,
        /// The newest form that is known here.
        known: i64,
    },
    /// Another process held the database for too long.
    #[error("{path} is in use by another process", path = path.display())]
    Busy {
        /// The database.
        path: PathBuf,
    },
    /// There is no room left to write.
    #[error("no room left to write {path}", path = path.display())]
    Full {
        /// The database.
        path: PathBuf,
    },
    /// There was a database in the folder, and it is missing or empty now. It is not made anew, or
    /// nobody would notice what is lost.
    #[error(
        "{path} is missing or empty, and there was one: with it are gone all sessions, timers and \
         the audit",
        path = path.display()
    )]
    Gone {
        /// The database.
        path: PathBuf,
    },
    /// The file is not a database, or no longer a whole one.
    #[error("{path} is damaged: {message}", path = path.display())]
    Damaged {
        /// The database, or the audit's key.
        path: PathBuf,
        /// What was noticed.
        message: String,
    },
    /// The database failed in another way.
    #[error("{path} cannot be used: {message}", path = path.display())]
    Database {
        /// The database.
        path: PathBuf,
        /// What it says.
        message: String,
    },
    /// A text is too long.
    #[error("{what} of {bytes} bytes is too long, at most {bytes_max} are taken")]
    TooLong {
        /// Which text.
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// The most that is taken.
        bytes_max: usize,
    },
    /// What is meant to be a vector points nowhere, has numbers that are none, or too many.
    #[error("{dimensions} numbers that a model made of a text cannot be compared with others")]
    NoVector {
        /// How many numbers there are.
        dimensions: usize,
    },
    /// What is meant to be the head of the audit at an earlier time is none.
    #[error("{text:?} is not the head of an audit")]
    NoHead {
        /// The start of what was given.
        text: String,
    },
    /// A text cannot be the id of a session.
    #[error("{text:?} cannot be the id of a session")]
    NoSessionId {
        /// The text.
        text: String,
    },
    /// There is a session of this id.
    #[error("there is a session {id} already")]
    SessionExists {
        /// The id.
        id: String,
    },
    /// There is no session of this id, or none whose id begins like this.
    #[error("there is no session {id:?}")]
    NoSession {
        /// The start of what was asked for.
        id: String,
    },
    /// The ids of several sessions begin like this.
    #[error("{prefix:?} is the start of several sessions' ids")]
    SessionUnclear {
        /// What was asked for.
        prefix: String,
        /// The first few of them.
        candidates: Vec<String>,
    },
    /// Another process has added to the session meanwhile. Nothing was written.
    #[error(
        "another process went on with session {id}: it has {found} records by now, not {expected}"
    )]
    WentOn {
        /// The session.
        id: String,
        /// How many records the writer knows of.
        expected: u64,
        /// How many there are.
        found: u64,
    },
    /// A session has too many records for more.
    #[error("session {id} is full, it can have {records_max} records")]
    SessionFull {
        /// The session.
        id: String,
        /// The most that one may have.
        records_max: u64,
    },
    /// A session has fewer records than were asked for.
    #[error("session {id} has {found} records, not {wanted}")]
    TooFewRecords {
        /// The session.
        id: String,
        /// How many were asked for.
        wanted: u64,
        /// How many there are.
        found: u64,
    },
}

impl StoreError {
    /// What can be done about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::File { .. } | Self::Database { .. } => {
                Some("check the folder, its owner and its permissions".into())
            }
            Self::NotPrivate { path, mode, .. } => {
                Some(format!("make it your own and run: chmod {mode:o} {}", path.display()))
            }
            Self::Newer { .. } => Some("use the newer program that wrote it".into()),
            Self::Busy { .. } => Some("try again, or end the process that holds it".into()),
            Self::Full { .. } => Some("free some space, then start again".into()),
            Self::Damaged { path, .. } => {
                Some(format!("restore {0}, or move it away and keep it", path.display()))
            }
            Self::Gone { path } => {
                let folder = path.parent().unwrap_or(path).display();
                Some(format!("restore it from a backup; to begin anew, move {folder} away"))
            }
            Self::TooLong { .. } | Self::SessionExists { .. } | Self::TooFewRecords { .. } => None,
            Self::NoVector { .. } => Some("use another model for embeddings".into()),
            Self::NoSessionId { .. } => {
                Some("use ASCII letters, digits and the signs - _ . alone".into())
            }
            Self::NoSession { .. } => Some("list the sessions to see which there are".into()),
            Self::SessionUnclear { candidates, .. } => {
                Some(format!("give more of it: {}", candidates.join(", ")))
            }
            Self::WentOn { .. } => Some("take the session up again, or fork it".into()),
            Self::SessionFull { .. } => Some("begin a new session".into()),
            Self::NoHead { .. } => Some("write it as NUMBER:HASH, as a check printed it".into()),
        }
    }

    /// Sorts what the database says, so that people read the cause instead of a code.
    pub(crate) fn of_sql(path: PathBuf, error: &rusqlite::Error) -> Self {
        let message = error.to_string();
        // A value that is not what this program writes there.
        if let rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::IntegralValueOutOfRange(..) = error
        {
            return Self::Damaged { path, message };
        }
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path },
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Damaged { path, message }
            }
            _ => Self::Database { path, message },
        }
    }
}
