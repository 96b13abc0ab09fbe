//! Errors of the store. The operator has to fix each of them.

use std::{io, path::PathBuf};

/// Why the store cannot be used, or why one operation failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system refused access to a file or folder.
    #[error("cannot {verb} {path}: {source}", path = path.display())]
    File {
        /// What was tried: `open`, `create`, `read`, `write`.
        verb: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// Another user could read, write or replace a file or folder.
    #[error("{path} is not private: {why}", path = path.display())]
    NotPrivate {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
        /// The mode that it should have, written in octal as for `chmod`.
        mode: u32,
    },
    /// The database was written by a newer program. It was not changed.
    #[error("{path} has the form {found}, this program knows forms up to {known}", path = path.display())]
    NewerSchema {
        /// The database.
        path: PathBuf,
        /// Its schema version.
        found: i64,
        /// The newest schema version that this program knows.
        known: i64,
    },
    /// Another process held the database for too long.
    #[error("{path} is in use by another process", path = path.display())]
    Busy {
        /// The database.
        path: PathBuf,
    },
    /// The disk is full.
    #[error("no room left to write {path}", path = path.display())]
    Full {
        /// The database.
        path: PathBuf,
    },
    /// The folder had a database, and it is missing or empty now. It is not recreated, because the
    /// loss would then go unnoticed.
    #[error(
        "{path} is missing or empty, and there was one: with it are gone all sessions, timers and \
         the audit",
        path = path.display()
    )]
    DatabaseMissing {
        /// The database.
        path: PathBuf,
    },
    /// The file is not a database, or is damaged.
    #[error("{path} is damaged: {message}", path = path.display())]
    Damaged {
        /// The database, or the audit's key.
        path: PathBuf,
        /// A description of the damage.
        message: String,
    },
    /// The database failed in another way.
    #[error("{path} cannot be used: {message}", path = path.display())]
    Database {
        /// The database.
        path: PathBuf,
        /// The database's message.
        message: String,
    },
    /// The server of the database cannot be reached, or the connection to it is lost. Nothing was
    /// written.
    #[error("{database} cannot be reached: {message}")]
    Unreachable {
        /// The address, without its password.
        database: String,
        /// The reason.
        message: String,
    },
    /// The server of the database refused.
    #[error("{database} refused: {message}")]
    Refused {
        /// The address, without its password.
        database: String,
        /// The server's message.
        message: String,
    },
    /// The server of the database takes no changes: it is a standby, or was set so.
    #[error("{database} can only be read: {message}")]
    ReadOnly {
        /// The address, without its password.
        database: String,
        /// The server's message.
        message: String,
    },
    /// The connection was lost at the moment of the commit.
    #[error(
        "the connection to {database} was lost, and it is unknown whether the change was written"
    )]
    OutcomeUnknown {
        /// The address, without its password.
        database: String,
    },
    /// The address of the database cannot be read.
    #[error("the address of the database cannot be used: {why}")]
    InvalidAddress {
        /// The reason, without the address.
        why: String,
    },
    /// This program was built without PostgreSQL.
    #[error("this program was built without PostgreSQL, and cannot use {database}")]
    NoPostgres {
        /// The address, without its password.
        database: String,
    },
    /// The log in a database was begun with another key.
    #[error("the audit in {database} was begun with another key than {path}", path = path.display())]
    OtherAuditKey {
        /// The address, without its password.
        database: String,
        /// The key of this machine.
        path: PathBuf,
    },
    /// A database that should be empty has data that do not come from the store that is copied.
    #[error("{database} has data of its own: {what}")]
    NotEmpty {
        /// The address, without its password.
        database: String,
        /// What was found.
        what: String,
    },
    /// A text is too long.
    #[error("{what} of {bytes} bytes is too long, at most {bytes_max} are taken")]
    TooLong {
        /// The kind of text.
        what: &'static str,
        /// Its length in bytes.
        bytes: usize,
        /// The most bytes that are accepted.
        bytes_max: usize,
    },
    /// A vector is empty or zero, has a number that is not finite, or has too many numbers.
    #[error("{dimensions} numbers that a model made of a text cannot be compared with others")]
    InvalidVector {
        /// How many numbers there are.
        dimensions: usize,
    },
    /// A text is not the head of an audit.
    #[error("{text:?} is not the head of an audit")]
    InvalidHead {
        /// The start of the text.
        text: String,
    },
    /// A text cannot be the id of a session.
    #[error("{text:?} cannot be the id of a session")]
    InvalidSessionId {
        /// The text.
        text: String,
    },
    /// A session with this id exists already.
    #[error("there is a session {id} already")]
    SessionExists {
        /// The id.
        id: String,
    },
    /// No session has this id, or an id with this prefix.
    #[error("there is no session {id:?}")]
    SessionNotFound {
        /// The start of the requested id.
        id: String,
    },
    /// Several sessions have an id with this prefix.
    #[error("{prefix:?} is the start of several sessions' ids")]
    AmbiguousSessionPrefix {
        /// The prefix.
        prefix: String,
        /// The first few of the ids.
        candidates: Vec<String>,
    },
    /// Another process has added to the session meanwhile. Nothing was written.
    #[error(
        "another process went on with session {id}: it has {found} records by now, not {expected}"
    )]
    ConcurrentAppend {
        /// The session.
        id: String,
        /// The number of records that the writer expected.
        expected: u64,
        /// The number of records in the session.
        found: u64,
    },
    /// A session has reached its maximum number of records.
    #[error("session {id} is full, it can have {records_max} records")]
    SessionFull {
        /// The session.
        id: String,
        /// The maximum.
        records_max: u64,
    },
    /// Too many questions wait for an answer.
    #[error("{count_max} questions wait for an answer already")]
    TooManyQuestions {
        /// The most that may wait.
        count_max: usize,
    },
    /// A user has too many tasks.
    #[error("{count_max} tasks are kept already")]
    TooManyTasks {
        /// The most that are kept.
        count_max: usize,
    },
    /// Too many requests with an idempotency key are running.
    #[error("{count_max} requests with a key are running already")]
    TooManyKeys {
        /// The most that are kept of a user.
        count_max: usize,
    },
    /// A session has fewer records than requested.
    #[error("session {id} has {found} records, not {wanted}")]
    TooFewRecords {
        /// The session.
        id: String,
        /// The requested number.
        wanted: u64,
        /// The number of records in the session.
        found: u64,
    },
}

/// # Errors
///
/// The text is longer than `bytes_max`.
pub(crate) fn check_length(
    what: &'static str,
    text: &str,
    bytes_max: usize,
) -> Result<(), StoreError> {
    match text.len() {
        bytes if bytes > bytes_max => Err(StoreError::TooLong { what, bytes, bytes_max }),
        _ => Ok(()),
    }
}

impl StoreError {
    /// Whether the change may have been written although it failed.
    pub fn may_have_written(&self) -> bool {
        // A database that fails in its own way tells nobody how far it came.
        matches!(
            self,
            Self::OutcomeUnknown { .. }
                | Self::Database { .. }
                | Self::Damaged { .. }
                | Self::File { .. }
        )
    }

    /// Returns what the user can do about the error.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::File { .. } | Self::Database { .. } => {
                Some("check the folder, its owner and its permissions".into())
            }
            Self::NotPrivate { path, mode, .. } => {
                Some(format!("make it your own and run: chmod {mode:o} {}", path.display()))
            }
            Self::NewerSchema { .. } => Some("use the newer program that wrote it".into()),
            Self::Busy { .. } => Some("try again, or end the process that holds it".into()),
            Self::Full { .. } => Some("free some space, then start again".into()),
            Self::Damaged { path, .. } => {
                Some(format!("restore {0}, or move it away and keep it", path.display()))
            }
            Self::DatabaseMissing { path } => {
                let folder = path.parent().unwrap_or(path).display();
                Some(format!("restore it from a backup; to begin anew, move {folder} away"))
            }
            Self::Unreachable { .. } => Some(
                "check that the server runs, and the address in [store] of sallyport.toml".into(),
            ),
            Self::Refused { .. } => Some(
                "check the rights of the database's user; the log of the server says more".into(),
            ),
            Self::ReadOnly { .. } => Some(
                "name the primary server in [store] of sallyport.toml, or turn \
                 default_transaction_read_only off"
                    .into(),
            ),
            Self::OutcomeUnknown { .. } => Some("look whether it is there, then try again".into()),
            Self::InvalidAddress { .. } => Some(
                "write it as postgres://USER:PASSWORD@HOST:PORT/DATABASE, in one place under [store]"
                    .into(),
            ),
            Self::NoPostgres { .. } => Some("build it with the feature `postgres`".into()),
            Self::OtherAuditKey { path, .. } => Some(format!(
                "copy audit.key from the machine that uses this database already to {}",
                path.display()
            )),
            Self::NotEmpty { .. } => Some(
                "name an empty database; if these data are a copy of an earlier state of this home, \
                 drop the schema sallyport to copy it again"
                    .into(),
            ),
            Self::TooLong { .. } | Self::SessionExists { .. } | Self::TooFewRecords { .. } => None,
            Self::InvalidVector { .. } => Some("use another model for embeddings".into()),
            Self::InvalidSessionId { .. } => {
                Some("use ASCII letters, digits and the signs - _ . alone".into())
            }
            Self::SessionNotFound { .. } => Some("list the sessions to see which there are".into()),
            Self::AmbiguousSessionPrefix { candidates, .. } => {
                Some(format!("give more of it: {}", candidates.join(", ")))
            }
            Self::ConcurrentAppend { .. } => Some("take the session up again, or fork it".into()),
            Self::TooManyQuestions { .. } => Some("answer some of them".into()),
            Self::TooManyKeys { .. } => Some("wait until some of them end".into()),
            Self::TooManyTasks { .. } => Some("wait until some of them expire".into()),
            Self::SessionFull { .. } => Some("begin a new session".into()),
            Self::InvalidHead { .. } => {
                Some("write it as NUMBER:HASH, as a check printed it".into())
            }
        }
    }
}
