//! Copying a folder with SQLite into an empty database.
//!
//! Everything is copied in one transaction. A copy that is cut short leaves nothing, so it can be
//! made again; programs that use the database meanwhile wait, and see all of it. The folder is only
//! read. The transaction also stores a hash of what was copied, because a program that is killed after
//! its commit cannot say that it is done: the next one recognises the home by it.

use std::path::Path;

use deadpool_postgres::Transaction;
use futures::future;
use rusqlite::{Connection, OpenFlags, Row, types::Value};
use tokio_postgres::types::ToSql;

use super::{
    PostgresStore,
    copy_tables::{Out, TABLES, TableCopy},
    error::PgError,
    values,
    words::IndexedWords,
};
use crate::{
    audit::chain::key::{self, AuditKey},
    database_report::{CopiedRows, HomeCopy},
    error::StoreError,
    private_files,
    sqlite::{database::FILE, migration, transaction_error},
};

/// Rows that are sent before the server's answers are awaited.
const ROWS_IN_FLIGHT: usize = 100;

/// The head of the log, next to the database in SQLite.
const HEAD_FILE: &str = "audit.head";

/// Longest file of a head.
const HEAD_BYTES_MAX: usize = 512;

impl PostgresStore {
    /// Copies a folder with SQLite into this database, on the current thread, which may wait.
    pub(crate) fn copy_from(&self, folder: &Path) -> Result<HomeCopy, StoreError> {
        let handle = self.database.handle().ok_or_else(|| self.closed_error())?;
        handle.block_on(copy_folder(self, folder))
    }
}

/// Copies a folder with SQLite into a database that has nothing yet.
async fn copy_folder(store: &PostgresStore, folder: &Path) -> Result<HomeCopy, StoreError> {
    let source = open_source(folder)?;
    copy_key(folder, &store.folder)?;
    let shown = store.database.shown().to_owned();
    let path = folder.join(FILE);
    let copied = copy_in(store, &source, folder).await;
    let copied = copied.map_err(|error| match error {
        CopyError::Source(error) => transaction_error::from_sql(path, &error),
        CopyError::Target(error) => error.into_store_error(&shown),
    })?;
    copy_head(store, folder).await?;
    Ok(copied)
}

/// Why a copy failed.
enum CopyError {
    Source(rusqlite::Error),
    Target(PgError),
}

/// Opens the folder's database without changing it.
fn open_source(folder: &Path) -> Result<Connection, StoreError> {
    let path = folder.join(FILE);
    private_files::check_private_file(&path)?;
    if !path.is_file() {
        let message = "there is nothing to copy".to_owned();
        return Err(StoreError::Database { path, message });
    }
    let failed = |error| transaction_error::from_sql(path.clone(), &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(&path, flags).map_err(failed)?;
    match migration::read_schema_version(&connection).map_err(failed)? {
        migration::NEWEST => Ok(connection),
        found if found > migration::NEWEST => {
            Err(StoreError::NewerSchema { path, found, known: migration::NEWEST })
        }
        _ => {
            let message = "it has an older form; use it once, as with `session list`".to_owned();
            Err(StoreError::Database { path, message })
        }
    }
}

/// Gives this machine the key of the log, unless it has one, which then has to be the same.
fn copy_key(from: &Path, to: &Path) -> Result<(), StoreError> {
    let Some(own) = AuditKey::load(from)? else { return Ok(()) };
    match AuditKey::load(to)? {
        Some(known) if known.id() == own.id() => Ok(()),
        Some(_) => {
            let path = to.join(key::FILE);
            let message = "it is the key of another audit; move it away".to_owned();
            Err(StoreError::Database { path, message })
        }
        None => {
            let bytes = private_files::read_private_file(&from.join(key::FILE), blake3::KEY_LEN)?;
            private_files::replace_file(&to.join(key::FILE), &bytes.unwrap_or_default())
        }
    }
}

/// Gives this machine the head of the log. Both have the same seal, because the key is the same.
async fn copy_head(store: &PostgresStore, from: &Path) -> Result<(), StoreError> {
    let bytes = private_files::read_private_file(&from.join(HEAD_FILE), HEAD_BYTES_MAX)?;
    let Some(bytes) = bytes else { return Ok(()) };
    let id = store
        .database
        .id()
        .await
        .map_err(|error| error.into_store_error(store.database.shown()))?;
    let path = store.folder.join(format!("audit-{id}.head"));
    // One that is there is newer: the database was used since it was filled.
    if path.exists() { Ok(()) } else { private_files::replace_file(&path, &bytes) }
}

async fn copy_in(
    store: &PostgresStore,
    source: &Connection,
    folder: &Path,
) -> Result<HomeCopy, CopyError> {
    // All queries see the same state, whatever other programs write meanwhile.
    let source = source.unchecked_transaction().map_err(CopyError::Source)?;
    let mut client = store.database.client().await.map_err(CopyError::Target)?;
    let target = client.transaction().await.map_err(target_error)?;
    lock_tables(&target).await.map_err(target_error)?;
    if let Some(what) = find_rows(&target).await.map_err(CopyError::Target)? {
        let copied = read_copied_home(&target).await.map_err(target_error)?;
        if copied.is_some() && copied == Some(hash_home(&source).map_err(CopyError::Source)?) {
            return Ok(HomeCopy::CopiedBefore);
        }
        let database = store.database.shown().to_owned();
        return Err(CopyError::Target(StoreError::NotEmpty { database, what }.into()));
    }
    let copied = copy_tables(&source, &target).await?;
    replace_key(&target, folder).await.map_err(CopyError::Target)?;
    target.commit().await.map_err(target_error)?;
    Ok(HomeCopy::Copied(copied))
}

/// Copies all tables, and stores the hash of what was copied.
async fn copy_tables(
    source: &Connection,
    target: &Transaction<'_>,
) -> Result<Vec<CopiedRows>, CopyError> {
    let (mut copied, mut hash) = (Vec::new(), HomeHash::default());
    for table in TABLES {
        let rows = copy_table(source, target, table, &mut hash).await?;
        copied.push(CopiedRows { what: table.what, rows });
    }
    let sql = "UPDATE store SET copied_home = $1";
    target.execute(sql, &[&hash.into_text()]).await.map_err(target_error)?;
    Ok(copied)
}

/// Stores which key the log has.
async fn replace_key(target: &Transaction<'_>, folder: &Path) -> Result<(), PgError> {
    target.batch_execute("DELETE FROM audit_key").await?;
    if let Some(key) = AuditKey::load(folder)? {
        target.execute("INSERT INTO audit_key (id) VALUES ($1)", &[&key.id()]).await?;
    }
    Ok(())
}

fn target_error(error: tokio_postgres::Error) -> CopyError {
    CopyError::Target(error.into())
}

/// Lets no other program write until the copy is done.
async fn lock_tables(target: &Transaction<'_>) -> Result<(), tokio_postgres::Error> {
    for table in TABLES {
        target.batch_execute(&format!("LOCK TABLE {} IN EXCLUSIVE MODE", table.table)).await?;
    }
    Ok(())
}

/// Looks for rows, and returns how many of which kind a database has; `None` for an empty one.
async fn find_rows(target: &Transaction<'_>) -> Result<Option<String>, PgError> {
    for table in TABLES {
        let sql = format!("SELECT count(*) FROM {}", table.table);
        let rows: i64 = target.query_one(&sql, &[]).await?.try_get(0)?;
        if rows > 0 {
            return Ok(Some(format!("{rows} {}", table.what)));
        }
    }
    Ok(None)
}

/// Returns the hash of the home that the database was filled from.
async fn read_copied_home(
    target: &Transaction<'_>,
) -> Result<Option<String>, tokio_postgres::Error> {
    target.query_one("SELECT copied_home FROM store", &[]).await?.try_get(0)
}

/// The hash of all rows of a home.
#[derive(Default)]
struct HomeHash(blake3::Hasher);

impl HomeHash {
    fn begin_table(&mut self, table: &TableCopy) {
        self.add_bytes(0, table.table.as_bytes());
    }

    fn add_row(&mut self, row: &[Value]) {
        for value in row {
            match value {
                Value::Null => self.add_bytes(1, &[]),
                Value::Integer(number) => self.add_bytes(2, &number.to_le_bytes()),
                Value::Real(number) => self.add_bytes(3, &number.to_le_bytes()),
                Value::Text(text) => self.add_bytes(4, text.as_bytes()),
                Value::Blob(bytes) => self.add_bytes(5, bytes),
            }
        }
    }

    /// Adds bytes so that no others have the same hash: with their kind and their length.
    fn add_bytes(&mut self, kind: u8, bytes: &[u8]) {
        self.0.update(&[kind]).update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
    }

    fn into_text(self) -> String {
        self.0.finalize().to_hex().to_string()
    }
}

/// Returns the hash that a copy of this home stores.
fn hash_home(source: &Connection) -> rusqlite::Result<String> {
    let mut hash = HomeHash::default();
    for table in TABLES {
        hash.begin_table(table);
        let mut statement = source.prepare(table.select)?;
        let columns = statement.column_count();
        let mut rows = statement.query(())?;
        while let Some(row) = rows.next()? {
            hash.add_row(&read_values(row, columns)?);
        }
    }
    Ok(hash.into_text())
}

fn read_values(row: &Row<'_>, columns: usize) -> rusqlite::Result<Vec<Value>> {
    (0..columns).map(|at| row.get(at)).collect()
}

/// Copies one table, and returns the number of its rows.
async fn copy_table(
    source: &Connection,
    target: &Transaction<'_>,
    table: &TableCopy,
    hash: &mut HomeHash,
) -> Result<u64, CopyError> {
    hash.begin_table(table);
    let insert = target.prepare(&table.insert_sql()).await.map_err(target_error)?;
    let mut statement = source.prepare(table.select).map_err(CopyError::Source)?;
    let columns = statement.column_count();
    let mut rows = statement.query(()).map_err(CopyError::Source)?;
    let (mut copied, mut has_more) = (0, true);
    while has_more {
        let mut batch = Vec::with_capacity(ROWS_IN_FLIGHT);
        while batch.len() < ROWS_IN_FLIGHT && has_more {
            match rows.next().map_err(CopyError::Source)? {
                Some(row) => {
                    let values = read_values(row, columns).map_err(CopyError::Source)?;
                    hash.add_row(&values);
                    batch.push(table.outs.iter().map(|out| out.value(&values)).collect::<Vec<_>>());
                }
                None => has_more = false,
            }
        }
        let inserts = batch.iter().map(|row| {
            let row: Vec<&(dyn ToSql + Sync)> = row.iter().map(|value| &**value as _).collect();
            let insert = &insert;
            async move { target.execute(insert, &row).await }
        });
        for done in future::join_all(inserts).await {
            copied += done.map_err(target_error)?;
        }
    }
    continue_keys(source, target, table).await?;
    Ok(copied)
}

/// Lets new keys begin after all that were ever given.
async fn continue_keys(
    source: &Connection,
    target: &Transaction<'_>,
    table: &TableCopy,
) -> Result<(), CopyError> {
    let Some(sql) = table.last_key else { return Ok(()) };
    let last: Option<i64> =
        source.query_row(sql, (), |row| row.get(0)).map_err(CopyError::Source)?;
    let Some(last) = last.filter(|last| *last > 0) else { return Ok(()) };
    let sql = format!("SELECT setval(pg_get_serial_sequence('{}', 'key'), $1)", table.table);
    target.query(&sql, &[&last]).await.map(drop).map_err(target_error)
}

/// A value for a statement.
type CopiedValue = Box<dyn ToSql + Sync>;

impl Out {
    /// Makes the value of a column from those of a row in SQLite.
    fn value(&self, row: &[Value]) -> CopiedValue {
        match self {
            Self::Number(at) => Box::new(number(&row[*at])),
            Self::Flag(at) => Box::new(number(&row[*at]).map(|number| number != 0)),
            Self::Text(at) => {
                Box::new(text(&row[*at]).map(|text| values::escape(text).into_owned()))
            }
            Self::Bytes(at) => Box::new(bytes(&row[*at])),
            Self::Hash(places) => {
                let texts: Vec<&str> =
                    places.iter().map(|at| text(&row[*at]).unwrap_or_default()).collect();
                Box::new(values::hash_key(&texts))
            }
            Self::WordText(at) => Box::new(words(&row[*at]).text),
            Self::Words(at) => Box::new(words(&row[*at]).vector),
            Self::WordCount(at) => Box::new(words(&row[*at]).count),
        }
    }
}

fn number(value: &Value) -> Option<i64> {
    if let Value::Integer(number) = value { Some(*number) } else { None }
}

fn text(value: &Value) -> Option<&str> {
    if let Value::Text(text) = value { Some(text) } else { None }
}

fn bytes(value: &Value) -> Option<Vec<u8>> {
    if let Value::Blob(bytes) = value { Some(bytes.clone()) } else { None }
}

fn words(value: &Value) -> IndexedWords {
    text(value)
        .map_or_else(IndexedWords::default, |text| IndexedWords::from_indexed(text.to_owned()))
}
