//! Appending to the log.
//!
//! A writer holds the database's write lock and continues from the current end of the log, so
//! concurrent processes write one chain.
//!
//! A log that does not end as it should is not continued silently: a record of the damage comes
//! first, in a commit of its own. The head is not written before that commit, so if the process is
//! killed in between, the next one finds the damage again.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, Transaction};

use super::row;
use crate::{
    audit::{
        AuditProblem,
        chain::{
            AuditRow, REPAIRS_MAX, RESTLESS,
            head::{AuditHead, HeadFileContent, LogView},
            key::AuditKey,
            link::ChainLink,
            remark::{AuditRemark, ChainStart},
        },
    },
    error::StoreError,
    sqlite::{
        database::{self, Durability},
        transaction_error::TransactionError,
    },
};

/// The head, within the folder.
const HEAD_FILE: &str = "audit.head";

/// The result of appending to the log.
#[derive(Debug)]
pub(super) struct AppendResult {
    /// The last record that was added, or the last record of the log if none was added.
    pub(super) end: ChainLink,
    /// What was wrong with the log before.
    pub(super) problems: Vec<AuditProblem>,
}

/// Writes all records that `add` pushes, or none. Does not write the head; see [`advance_head`].
///
/// # Errors
///
/// The database, the key or the head cannot be read or written, or the records are missing after
/// the commit. Either nothing was added, or it is unknown whether anything was.
pub(super) fn append_records(
    connection: &Connection,
    folder: &Path,
    durability: Durability,
    add: impl FnOnce(&mut ChainAppender<'_>) -> Result<(), TransactionError>,
) -> Result<AppendResult, TransactionError> {
    let (mut appender, problems) = open_intact_appender(connection, folder, durability)?;
    add(&mut appender)?;
    let end = appender.finish_append()?;
    Ok(AppendResult { end, problems })
}

/// Advances the head to a record that is on the disk.
///
/// # Errors
///
/// The database, the key or the head cannot be read or written.
pub(super) fn advance_head(
    connection: &Connection,
    folder: &Path,
    last: ChainLink,
) -> Result<(), TransactionError> {
    let _locked = database::begin_transaction(connection)?;
    let key = AuditKey::load(folder)?;
    Ok(AuditHead { last }.advance_file(&head_path(folder), key.as_ref())?)
}

/// Waits until every record in the log is on the disk, and advances the head to the last one. Costs
/// nothing if the head names the last record already.
///
/// # Errors
///
/// As [`append_records`] and [`advance_head`].
pub(super) fn sync_and_advance_head(
    connection: &Connection,
    folder: &Path,
) -> Result<Vec<AuditProblem>, TransactionError> {
    let (appender, problems) = open_intact_appender(connection, folder, Durability::Durable)?;
    let end = appender.end;
    if appender.head.last_link() == end {
        return Ok(problems);
    }
    appender.commit_earlier_records()?;
    advance_head(connection, folder, end)?;
    Ok(problems)
}

fn open_intact_appender<'c>(
    connection: &'c Connection,
    folder: &'c Path,
    mut durability: Durability,
) -> Result<(ChainAppender<'c>, Vec<AuditProblem>), TransactionError> {
    let mut found = Vec::new();
    for _ in 0..=REPAIRS_MAX {
        let appender = ChainAppender::begin(connection, folder, durability)?;
        let problems = appender.find_end_problems()?;
        if problems.is_empty() {
            return Ok((appender, found));
        }
        if durability == Durability::Deferred {
            // Mending writes the head, and the head may only name records that are on the disk.
            durability = Durability::Durable;
            continue;
        }
        appender.append_problem_record(&problems)?;
        found.extend(problems);
    }
    Err(damaged_error(folder, RESTLESS.to_owned()).into())
}

/// Checks whether the log still contains the record that the head names, and loads the key.
///
/// # Errors
///
/// The database, the key or the head cannot be read.
pub(super) fn load_key_and_check_head(
    connection: &Connection,
    folder: &Path,
) -> Result<(Option<AuditKey>, Option<AuditProblem>), TransactionError> {
    let transaction = database::begin_transaction(connection)?;
    let key = AuditKey::load(folder)?;
    let end = row::read_last_link(&transaction)?;
    let problem = AuditHead::read_file(&head_path(folder), key.as_ref())?
        .compare_with_log::<Connection>(&transaction, end)?;
    Ok((key, problem))
}

/// The end of the log while it is being written. Dropping it leaves the log as it was.
pub(super) struct ChainAppender<'c> {
    folder: &'c Path,
    connection: &'c Connection,
    transaction: Transaction<'c>,
    key: AuditKey,
    head: HeadFileContent,
    begin: ChainLink,
    end: ChainLink,
}

impl<'c> ChainAppender<'c> {
    fn begin(
        connection: &'c Connection,
        folder: &'c Path,
        durability: Durability,
    ) -> Result<Self, TransactionError> {
        database::set_durability(connection, durability)?;
        let transaction = database::begin_transaction(connection)?;
        let key = AuditKey::load_or_create(folder)?;
        let end = row::read_last_link(&transaction)?;
        let mut head = AuditHead::read_file(&head_path(folder), Some(&key))?;
        if head == HeadFileContent::Nothing && end == ChainLink::GENESIS {
            // Written before the first record, because a crash right after that record would
            // otherwise look like a removed head.
            let first = AuditHead { last: ChainLink::GENESIS };
            first.write_file(&head_path(folder), &key)?;
            head = HeadFileContent::Head(first);
        }
        Ok(Self { folder, connection, transaction, key, head, begin: end, end })
    }

    /// The database, for changes that must be committed together with a record.
    pub(super) fn connection(&self) -> &Connection {
        &self.transaction
    }

    /// The key of the chain.
    pub(super) fn key(&self) -> &AuditKey {
        &self.key
    }

    /// Adds a record.
    ///
    /// # Errors
    ///
    /// The database refuses it.
    pub(super) fn push_record(&mut self, line: &str) -> Result<(), TransactionError> {
        // A log whose end was cut off continues after the cut, so that the gap stays visible.
        let seq = self.end.seq.max(self.head.last_link().seq).saturating_add(1);
        let number = i64::try_from(seq).map_err(|_| {
            damaged_error(self.folder, "there is no number after its last one".to_owned())
        })?;
        let link = self.key.link_record(&self.end.hash, seq, line.as_bytes());
        let sql = "INSERT INTO audit (seq, text, hash) VALUES (?1, ?2, ?3)";
        let mut statement = self.transaction.prepare_cached(sql)?;
        statement.execute((number, line, link.hash.as_bytes()))?;
        self.end = link;
        Ok(())
    }

    /// Checks the end of the log: whether the last record is intact, and whether it is the last
    /// one.
    fn find_end_problems(&self) -> Result<Vec<AuditProblem>, TransactionError> {
        let head_problem = self.head.compare_with_log::<Connection>(&self.transaction, self.end)?;
        let last = check_last_record(&self.transaction, &self.key)?;
        Ok(head_problem.into_iter().chain(last).collect())
    }

    fn append_problem_record(mut self, problems: &[AuditProblem]) -> Result<(), TransactionError> {
        self.push_record(&AuditRemark::Broken { problems: problems.to_vec() }.render_line())?;
        let (connection, folder) = (self.connection, self.folder);
        let last = self.commit()?;
        let _locked = database::begin_transaction(connection)?;
        // Overwrites any head: the record that was just written states what was wrong with it.
        Ok(AuditHead { last }.write_file(&head_path(folder), &AuditKey::load_or_create(folder)?)?)
    }

    fn finish_append(self) -> Result<ChainLink, TransactionError> {
        if self.end == self.begin { Ok(self.end) } else { self.commit() }
    }

    /// Commits a write even though nothing was added, because only a commit makes the earlier ones
    /// durable.
    fn commit_earlier_records(self) -> Result<ChainLink, TransactionError> {
        database::write_unchanged_value(&self.transaction)?;
        self.commit()
    }

    fn commit(self) -> Result<ChainLink, TransactionError> {
        let Self { folder, connection, transaction, end: written, .. } = self;
        transaction.commit()?;
        let is_there = written == ChainLink::GENESIS || contains_link(connection, written)?;
        if !is_there {
            return Err(damaged_error(folder, "what was written is not there".to_owned()).into());
        }
        Ok(written)
    }
}

fn contains_link(connection: &Connection, link: ChainLink) -> rusqlite::Result<bool> {
    let sql = "SELECT count(*) FROM audit WHERE seq = ?1 AND hash = ?2";
    let number = i64::try_from(link.seq).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_row((number, link.hash.as_bytes()), |row| Ok(row.get::<_, i64>(0)? > 0))
}

fn check_last_record(
    connection: &Connection,
    key: &AuditKey,
) -> rusqlite::Result<Option<AuditProblem>> {
    let rows = row::read_last_rows(connection, 2)?;
    let Some(last) = rows.first() else { return Ok(None) };
    let previous = match rows.get(1) {
        Some(AuditRow { link, .. }) => *link,
        None => row::find_start(connection, last.link.seq)?.link,
    };
    Ok(last.check_as_last(key, &previous))
}

impl LogView for Connection {
    type Error = rusqlite::Error;

    fn read_link(&self, seq: u64) -> rusqlite::Result<Option<ChainLink>> {
        row::read_link(self, seq)
    }

    fn find_start(&self) -> rusqlite::Result<ChainStart> {
        row::find_start(self, row::read_first_seq(self)?.unwrap_or(1))
    }
}

fn head_path(folder: &Path) -> PathBuf {
    folder.join(HEAD_FILE)
}

fn damaged_error(folder: &Path, message: String) -> StoreError {
    StoreError::Damaged { path: folder.join(database::FILE), message }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::private_files;

    /// Makes the commit fail that it is part of.
    const NO_COMMIT: &str = "
        PRAGMA defer_foreign_keys = ON;
        CREATE TEMP TABLE parent (id INTEGER PRIMARY KEY);
        CREATE TEMP TABLE child (id INTEGER REFERENCES parent (id));
        INSERT INTO child VALUES (1);
    ";

    /// Or a crash in between would look like records that were cut off.
    #[test]
    fn the_head_names_no_record_that_is_not_on_the_disk() {
        let parent = TempDir::new().unwrap();
        let folder = &private_files::ensure_private_folder(&parent.path().join("store")).unwrap();
        let connection = &database::open_database(folder).unwrap();
        let head = || {
            let key = AuditKey::load(folder).unwrap();
            match AuditHead::read_file(&head_path(folder), key.as_ref()).unwrap() {
                HeadFileContent::Head(head) => head.last.seq,
                other => panic!("{other:?}"),
            }
        };
        let push = |durability, fails: bool| {
            append_records(connection, folder, durability, |appender| {
                appender.push_record("{}")?;
                if fails {
                    appender.connection().execute_batch(NO_COMMIT).unwrap();
                }
                Ok(())
            })
        };
        push(Durability::Deferred, false).unwrap();
        assert_eq!(head(), 0, "written behind");
        let end = push(Durability::Durable, false).unwrap().end;
        assert_eq!((end.seq, head()), (2, 0), "between the commit and the head");
        advance_head(connection, folder, end).unwrap();
        assert_eq!(head(), 2);
        assert!(push(Durability::Durable, true).is_err());
        assert_eq!(head(), 2);
        push(Durability::Deferred, false).unwrap();
        assert_eq!(load_key_and_check_head(connection, folder).unwrap().1, None);
        sync_and_advance_head(connection, folder).unwrap();
        assert_eq!(head(), 3);
        advance_head(connection, folder, end).unwrap();
        assert_eq!(head(), 3, "it never goes back");
    }
}
