//! A connection to the database file, set up the one way that all parts of the store need it.

use std::{
    error::Error,
    fs, io,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use rusqlite::{
    Connection, OpenFlags, Row, Transaction, TransactionBehavior, config::DbConfig, types::Type,
};
use sallyport_contract::PluginName;

use crate::{audit, error::StoreError, memories, migration, private};

/// The database, within the folder.
pub(crate) const FILE: &str = "store.sqlite3";

/// How long to wait for another process's write. One takes well under a millisecond, moving the log
/// into the database a few; a process that holds it for longer hangs.
const BUSY_WAIT: Duration = Duration::from_secs(5);

/// How long to leave a new database to whoever sets it up. The database waits for a lock by itself,
/// but not where two change the way in which it is written to.
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// Pages of the log of writes after which they are moved into the database. Moving them costs one
/// command in some sixty a wait for the disk; a longer log would cost every command more than that,
/// since whoever opens the database first reads it.
const LOG_PAGES_MAX: u32 = 100;

/// Size of the log of writes from which whoever opens the database begins a new one: about as many
/// pages. The database itself would only write the same one on from command to command, since each
/// takes up, and moves, what the one before has left.
pub(crate) const LOG_BYTES_MAX: u64 = LOG_PAGES_MAX as u64 * 4096;

/// Opens the database, makes it if it is missing, and brings it to the newest form.
///
/// # Errors
///
/// The file is not private, not a database, of a newer form, or cannot be opened.
pub(crate) fn open(folder: &Path) -> Result<Connection, StoreError> {
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
    if is_gone(&path) && audit::was_begun(folder) {
        return Err(StoreError::Gone { path });
    }
    private::ensure(&path)?;
    let failed = |error| StoreError::of_sql(path.clone(), &error);
    let mut connection = connect(&path).map_err(failed)?;
    let found = migration::form(&connection).map_err(failed)?;
    if !(0..=migration::NEWEST).contains(&found) {
        return Err(StoreError::Newer { path, found, known: migration::NEWEST });
    }
    set_up(&connection).map_err(failed)?;
    if found < migration::NEWEST {
        // What is kept beside the database tells that there was one, so it may not be lost alone.
        set_durability(&connection, Durability::Durable).map_err(failed)?;
        migration::run(&mut connection).map_err(failed)?;
        set_durability(&connection, Durability::Behind).map_err(failed)?;
    }
    shorten_log_of_writes(&connection, folder);
    Ok(connection)
}

/// Whether there is no database, or an empty file in its place.
fn is_gone(path: &Path) -> bool {
    fs::metadata(path).map_or_else(
        |error| error.kind() == io::ErrorKind::NotFound,
        |info| info.is_file() && info.len() == 0,
    )
}

/// Begins a new log of writes where there is a long one. Who is not alone with it leaves it to others.
fn shorten_log_of_writes(connection: &Connection, folder: &Path) {
    let log = folder.join(format!("{FILE}-wal"));
    let is_long = fs::metadata(log).is_ok_and(|log| log.len() > LOG_BYTES_MAX);
    if is_long && connection.busy_timeout(Duration::ZERO).is_ok() {
        forget_log_of_writes(connection);
        let _ = connection.busy_timeout(BUSY_WAIT);
    }
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    memories::register();
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_WAIT)?;
    // Moving the log on every exit would cost each command a wait for the disk.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true)?;
    // The store has neither triggers nor views. One that stands in the file was put there to make
    // a record vanish or read differently.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    Ok(connection)
}

/// When a commit counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// It outlives the process. A failure of the power may take it, with all later ones, until the
    /// system has written it or a durable commit has followed.
    Behind,
    /// It is on the disk, and so is every commit before it, whoever made it.
    Durable,
}

/// Says when commits of this connection count as done, from the next one on. Not within one.
pub(crate) fn set_durability(
    connection: &Connection,
    durability: Durability,
) -> rusqlite::Result<()> {
    let synchronous = match durability {
        Durability::Behind => "NORMAL",
        Durability::Durable => "FULL",
    };
    connection.pragma_update(None, "synchronous", synchronous)
}

/// Writes something that changes nothing, for the sake of the commit that follows.
pub(crate) fn touch(connection: &Connection) -> rusqlite::Result<()> {
    migration::restate(connection)
}

fn set_up(connection: &Connection) -> rusqlite::Result<()> {
    set_durability(connection, Durability::Behind)?;
    // Or what is removed would stay readable in the file until something else takes its place.
    connection.pragma_update(None, "secure_delete", true)?;
    connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES_MAX)?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))
}

/// Turns what the database says into an error of ours, for use with `map_err`.
pub(crate) fn failed(folder: &Path) -> impl Fn(rusqlite::Error) -> StoreError + Copy {
    move |error| StoreError::of_sql(PathBuf::from(folder).join(FILE), &error)
}

/// Begins to write, as the only one that does.
pub(crate) fn begin(connection: &Connection) -> rusqlite::Result<Transaction<'_>> {
    Transaction::new_unchecked(connection, TransactionBehavior::Immediate)
}

/// The log of writes still holds what was removed. While another process reads it, it has to stay,
/// and is written over in time.
pub(crate) fn forget_log_of_writes(connection: &Connection) {
    let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()));
}

/// The database's numbers have a sign. Moments that do not fit are 300 million years away, and
/// nobody counts so far.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The number that was written with [`signed`]. Somebody else wrote one that is below zero.
pub(crate) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// Reads the name of a plugin. What is none was not written by this program.
pub(crate) fn plugin_name(row: &Row<'_>, column: &str) -> rusqlite::Result<PluginName> {
    let text: String = row.get(column)?;
    text.parse().map_err(|error| foreign(row, column, error))
}

/// A value that is not what this program writes there.
pub(crate) fn foreign(
    row: &Row<'_>,
    column: &str,
    error: impl Into<Box<dyn Error + Send + Sync>>,
) -> rusqlite::Error {
    let index = row.as_ref().column_index(column).unwrap_or_default();
    rusqlite::Error::FromSqlConversionFailure(index, Type::Text, error.into())
}
