//! A connection to the database file, set up the same way for all parts of the store.

use std::{
    error::Error,
    fs, io,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use rusqlite::{
    Connection, OpenFlags, Row, Transaction, TransactionBehavior, config::DbConfig, types::Type,
};
use sallyport_contract::PluginName;

use super::{audit, memories, migration, transaction_error};
use crate::{error::StoreError, private_files};

/// The database, within the folder.
pub(crate) const FILE: &str = "store.sqlite3";

/// How long to wait for another process's write. A write takes well under a millisecond, a
/// checkpoint a few; a process that holds the lock for longer hangs.
const BUSY_WAIT: Duration = Duration::from_secs(5);

/// How long to wait before opening a new database again. SQLite waits for locks by itself, except
/// when two processes change the journal mode.
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// Pages of the write-ahead log after which they are moved into the database.
///
/// Moving them costs about one command in sixty a wait for the disk. A longer log would cost every
/// command more than that, because the first process that opens the database reads the whole log.
const LOG_PAGES_MAX: u32 = 100;

/// Size from which a write-ahead log is truncated when the database is opened; about as many pages.
/// SQLite itself would continue the same log from command to command: each command takes up, and
/// moves, the log that the one before has left.
pub(crate) const LOG_BYTES_MAX: u64 = LOG_PAGES_MAX as u64 * 4096;

/// Opens the database, creates it if it is missing, and migrates it to the newest schema.
///
/// # Errors
///
/// The file is not private, is not a database, has a newer schema, or cannot be opened.
pub(crate) fn open_database(folder: &Path) -> Result<Connection, StoreError> {
    let begun = Instant::now();
    loop {
        match open_once(folder) {
            Err(StoreError::Busy { .. }) if begun.elapsed() < BUSY_WAIT => {
                thread::sleep(BUSY_PAUSE)
            }
            opened => return opened,
        }
    }
}

fn open_once(folder: &Path) -> Result<Connection, StoreError> {
    let path = folder.join(FILE);
    if is_missing_or_empty(&path) && audit::has_existing_log(folder) {
        return Err(StoreError::DatabaseMissing { path });
    }
    private_files::ensure_private_file(&path)?;
    let failed = |error| transaction_error::from_sql(path.clone(), &error);
    let mut connection = connect_database(&path).map_err(failed)?;
    let found = migration::read_schema_version(&connection).map_err(failed)?;
    if !(0..=migration::NEWEST).contains(&found) {
        return Err(StoreError::NewerSchema { path, found, known: migration::NEWEST });
    }
    configure_connection(&connection).map_err(failed)?;
    if found < migration::NEWEST {
        // Durable: the files next to the database show that it existed, so it must not be lost
        // alone.
        set_durability(&connection, Durability::Durable).map_err(failed)?;
        migration::run_migrations(&mut connection).map_err(failed)?;
        set_durability(&connection, Durability::Deferred).map_err(failed)?;
    }
    truncate_long_wal(&connection, folder);
    Ok(connection)
}

/// Whether the database is missing or empty.
fn is_missing_or_empty(path: &Path) -> bool {
    fs::metadata(path).map_or_else(
        |error| error.kind() == io::ErrorKind::NotFound,
        |info| info.is_file() && info.len() == 0,
    )
}

/// Truncates a long write-ahead log, unless another process is using it.
fn truncate_long_wal(connection: &Connection, folder: &Path) {
    let log = folder.join(format!("{FILE}-wal"));
    let is_long = fs::metadata(log).is_ok_and(|log| log.len() > LOG_BYTES_MAX);
    if is_long && connection.busy_timeout(Duration::ZERO).is_ok() {
        truncate_wal(connection);
        let _ = connection.busy_timeout(BUSY_WAIT);
    }
}

fn connect_database(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    memories::register_vector_functions();
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_WAIT)?;
    // A checkpoint on every exit would cost each command a wait for the disk.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true)?;
    // The store has neither triggers nor views. One in the file was added to make a record vanish
    // or read differently.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    Ok(connection)
}

/// When a commit counts as complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// The commit survives the end of the process. A power failure may lose it and all later ones,
    /// until the system has written it to the disk or a durable commit has followed.
    Deferred,
    /// The commit is on the disk, and so is every commit before it, including those of other
    /// processes.
    Durable,
}

/// Sets the durability of this connection's commits, from the next one on. Must not be called
/// within a transaction.
pub(crate) fn set_durability(
    connection: &Connection,
    durability: Durability,
) -> rusqlite::Result<()> {
    let synchronous = match durability {
        Durability::Deferred => "NORMAL",
        Durability::Durable => "FULL",
    };
    connection.pragma_update(None, "synchronous", synchronous)
}

/// Writes a value that does not change, so that the next commit is not empty.
pub(crate) fn write_unchanged_value(connection: &Connection) -> rusqlite::Result<()> {
    migration::rewrite_schema_version(connection)
}

fn configure_connection(connection: &Connection) -> rusqlite::Result<()> {
    set_durability(connection, Durability::Deferred)?;
    // Otherwise removed data would stay readable in the file until it is overwritten.
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES_MAX)?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))
}

/// Takes the write lock and begins a transaction.
pub(crate) fn begin_transaction(connection: &Connection) -> rusqlite::Result<Transaction<'_>> {
    Transaction::new_unchecked(connection, TransactionBehavior::Immediate)
}

/// Truncates the write-ahead log, because it still contains removed data. While another process
/// reads the log, it stays and is overwritten in time.
pub(crate) fn truncate_wal(connection: &Connection) {
    let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()));
}

/// Reads the name of a plugin. An invalid name was not written by this program.
pub(crate) fn read_plugin_name(row: &Row<'_>, column: &str) -> rusqlite::Result<PluginName> {
    let text: String = row.get(column)?;
    text.parse().map_err(|error| foreign_value_error(row, column, error))
}

/// The error for a value that this program would not have written.
pub(crate) fn foreign_value_error(
    row: &Row<'_>,
    column: &str,
    error: impl Into<Box<dyn Error + Send + Sync>>,
) -> rusqlite::Error {
    let index = row.as_ref().column_index(column).unwrap_or_default();
    rusqlite::Error::FromSqlConversionFailure(index, Type::Text, error.into())
}
