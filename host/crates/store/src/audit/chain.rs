//! Appending to the log.
//!
//! A writer holds the database's write lock and continues from the current end of the log, so
//! concurrent processes write one chain.
//!
//! A log that does not end as it should is not continued silently: a record of the damage comes
//! first, in a commit of its own. The head is not written before that commit, so if the process is
//! killed in between, the next one finds the damage again.

use std::path::Path;

use rusqlite::{Connection, Transaction};

use super::{
    head::{Found, Head},
    key::AuditKey,
    link::Link,
    problem::Problem,
    remark::{Remark, Start},
    row::{self, Row},
};
use crate::{
    database::{self, Durability},
    error::StoreError,
};

/// How often the writer inspects a log again, after mending it, before it gives up. Two processes
/// that find it broken at the same time may see each other's half-finished work; no other process
/// changes the log while it is written.
const MENDS_MAX: usize = 3;

/// The result of appending to the log.
#[derive(Debug)]
pub(super) struct Extended {
    /// The last record that was added, or the last record of the log if none was added.
    pub(super) end: Link,
    /// What was wrong with the log before.
    pub(super) problems: Vec<Problem>,
}

/// Writes all records that `add` pushes, or none. Does not write the head; see [`advance_head`].
///
/// # Errors
///
/// The database, the key or the head cannot be read or written, or the records are missing after
/// the commit. Either nothing was added, or it is unknown whether anything was.
pub(super) fn extend(
    connection: &Connection,
    folder: &Path,
    durability: Durability,
    add: impl FnOnce(&mut Extension<'_>) -> Result<(), StoreError>,
) -> Result<Extended, StoreError> {
    let (mut extension, problems) = begin_sound(connection, folder, durability)?;
    add(&mut extension)?;
    let end = extension.finish()?;
    Ok(Extended { end, problems })
}

/// Advances the head to a record that is on the disk.
///
/// Another process may have written further records and a newer head meanwhile, so the head never
/// moves back.
///
/// # Errors
///
/// The database, the key or the head cannot be read or written.
pub(super) fn advance_head(
    connection: &Connection,
    folder: &Path,
    last: Link,
) -> Result<(), StoreError> {
    let _locked = begin(connection, folder)?;
    // A missing key, or a foreign file instead of the head, is reported by the next check of the
    // log.
    let Some(key) = AuditKey::load(folder)? else { return Ok(()) };
    match Head::read(folder, Some(&key))? {
        Found::Head(head) if head.last.seq >= last.seq => Ok(()),
        Found::Foreign => Ok(()),
        Found::Head(_) | Found::Nothing => Head { last }.write(folder, &key),
    }
}

/// Waits until every record in the log is on the disk, and advances the head to the last one. Costs
/// nothing if the head names the last record already.
///
/// # Errors
///
/// As [`extend`] and [`advance_head`].
pub(super) fn settle(connection: &Connection, folder: &Path) -> Result<Vec<Problem>, StoreError> {
    let (extension, problems) = begin_sound(connection, folder, Durability::Durable)?;
    let end = extension.end;
    if extension.head.last() == end {
        return Ok(problems);
    }
    extension.commit_all()?;
    advance_head(connection, folder, end)?;
    Ok(problems)
}

fn begin_sound<'c>(
    connection: &'c Connection,
    folder: &'c Path,
    mut durability: Durability,
) -> Result<(Extension<'c>, Vec<Problem>), StoreError> {
    let mut found = Vec::new();
    for _ in 0..=MENDS_MAX {
        let extension = Extension::begin(connection, folder, durability)?;
        let problems = extension.inspect()?;
        if problems.is_empty() {
            return Ok((extension, found));
        }
        if durability == Durability::Behind {
            // Mending writes the head, and the head may only name records that are on the disk.
            durability = Durability::Durable;
            continue;
        }
        extension.mend(&problems)?;
        found.extend(problems);
    }
    Err(damaged(folder, "somebody changes it all the time".to_owned()))
}

/// Checks whether the log still contains the record that the head names, and loads the key.
///
/// # Errors
///
/// The database, the key or the head cannot be read.
pub(super) fn look(
    connection: &Connection,
    folder: &Path,
) -> Result<(Option<AuditKey>, Option<Problem>), StoreError> {
    let failed = database::failed(folder);
    let transaction = begin(connection, folder)?;
    let key = AuditKey::load(folder)?;
    let end = row::end(&transaction).map_err(failed)?;
    let problem = Head::read(folder, key.as_ref())?.compare(&transaction, end).map_err(failed)?;
    Ok((key, problem))
}

/// The end of the log while it is being written. Dropping it leaves the log as it was.
pub(super) struct Extension<'c> {
    folder: &'c Path,
    connection: &'c Connection,
    transaction: Transaction<'c>,
    key: AuditKey,
    head: Found,
    begin: Link,
    end: Link,
}

impl<'c> Extension<'c> {
    fn begin(
        connection: &'c Connection,
        folder: &'c Path,
        durability: Durability,
    ) -> Result<Self, StoreError> {
        database::set_durability(connection, durability).map_err(database::failed(folder))?;
        let transaction = begin(connection, folder)?;
        let key = AuditKey::load_or_create(folder)?;
        let end = row::end(&transaction).map_err(database::failed(folder))?;
        let mut head = Head::read(folder, Some(&key))?;
        if head == Found::Nothing && end == Link::GENESIS {
            // Written before the first record, because a crash right after that record would
            // otherwise look like a removed head.
            let first = Head { last: Link::GENESIS };
            first.write(folder, &key)?;
            head = Found::Head(first);
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
    pub(super) fn push(&mut self, line: &str) -> Result<(), StoreError> {
        // A log whose end was cut off continues after the cut, so that the gap stays visible.
        let seq = self.end.seq.max(self.head.last().seq).saturating_add(1);
        let number = i64::try_from(seq).map_err(|_| {
            damaged(self.folder, "there is no number after its last one".to_owned())
        })?;
        let link = self.key.link(&self.end.hash, seq, line.as_bytes());
        let sql = "INSERT INTO audit (seq, text, hash) VALUES (?1, ?2, ?3)";
        self.transaction
            .execute(sql, (number, line, link.hash.as_bytes()))
            .map_err(database::failed(self.folder))?;
        self.end = link;
        Ok(())
    }

    /// Checks the end of the log: whether the last record is intact, and whether it is the last
    /// one.
    fn inspect(&self) -> Result<Vec<Problem>, StoreError> {
        let failed = database::failed(self.folder);
        let misfit = self.head.compare(&self.transaction, self.end).map_err(failed)?;
        let last = check_last(&self.transaction, &self.key).map_err(failed)?;
        Ok(misfit.into_iter().chain(last).collect())
    }

    fn mend(mut self, problems: &[Problem]) -> Result<(), StoreError> {
        self.push(&Remark::Broken { problems: problems.to_vec() }.line())?;
        let (connection, folder) = (self.connection, self.folder);
        let last = self.commit()?;
        let _locked = begin(connection, folder)?;
        // Overwrites any head: the record that was just written states what was wrong with it.
        Head { last }.write(folder, &AuditKey::load_or_create(folder)?)
    }

    fn finish(self) -> Result<Link, StoreError> {
        if self.end == self.begin { Ok(self.end) } else { self.commit() }
    }

    /// Commits a write even though nothing was added, because only a commit makes the earlier ones
    /// durable.
    fn commit_all(self) -> Result<Link, StoreError> {
        database::touch(&self.transaction).map_err(database::failed(self.folder))?;
        self.commit()
    }

    fn commit(self) -> Result<Link, StoreError> {
        let Self { folder, connection, transaction, end: written, .. } = self;
        let failed = database::failed(folder);
        transaction.commit().map_err(failed)?;
        let is_there = written == Link::GENESIS || contains(connection, written).map_err(failed)?;
        is_there
            .then_some(written)
            .ok_or_else(|| damaged(folder, "what was written is not there".to_owned()))
    }
}

fn begin<'c>(connection: &'c Connection, folder: &Path) -> Result<Transaction<'c>, StoreError> {
    database::begin(connection).map_err(database::failed(folder))
}

fn contains(connection: &Connection, link: Link) -> rusqlite::Result<bool> {
    let sql = "SELECT count(*) FROM audit WHERE seq = ?1 AND hash = ?2";
    let number = i64::try_from(link.seq).unwrap_or(i64::MAX);
    connection.query_row(sql, (number, link.hash.as_bytes()), |row| Ok(row.get::<_, i64>(0)? > 0))
}

fn check_last(connection: &Connection, key: &AuditKey) -> rusqlite::Result<Option<Problem>> {
    let rows = row::last(connection, 2)?;
    let Some(last) = rows.first() else { return Ok(None) };
    let previous = match rows.get(1) {
        Some(Row { link, .. }) => *link,
        None => Start::find(connection, last.link.seq)?.link,
    };
    let fits = key.hash(&previous.hash, last.link.seq, &last.text) == last.link.hash;
    let what = "the last one, and changed, or written with another key".to_owned();
    Ok((!fits).then_some(Problem { seq: last.link.seq, what }))
}

fn damaged(folder: &Path, message: String) -> StoreError {
    StoreError::Damaged { path: folder.join(database::FILE), message }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::private;

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
        let folder = &private::folder(&parent.path().join("store")).unwrap();
        let connection = &database::open(folder).unwrap();
        let head = || {
            let key = AuditKey::load(folder).unwrap();
            match Head::read(folder, key.as_ref()).unwrap() {
                Found::Head(head) => head.last.seq,
                other => panic!("{other:?}"),
            }
        };
        let push = |durability, fails: bool| {
            extend(connection, folder, durability, |extension| {
                extension.push("{}")?;
                if fails {
                    extension.connection().execute_batch(NO_COMMIT).unwrap();
                }
                Ok(())
            })
        };
        push(Durability::Behind, false).unwrap();
        assert_eq!(head(), 0, "written behind");
        let end = push(Durability::Durable, false).unwrap().end;
        assert_eq!((end.seq, head()), (2, 0), "between the commit and the head");
        advance_head(connection, folder, end).unwrap();
        assert_eq!(head(), 2);
        assert!(push(Durability::Durable, true).is_err());
        assert_eq!(head(), 2);
        push(Durability::Behind, false).unwrap();
        assert_eq!(look(connection, folder).unwrap().1, None);
        settle(connection, folder).unwrap();
        assert_eq!(head(), 3);
        advance_head(connection, folder, end).unwrap();
        assert_eq!(head(), 3, "it never goes back");
    }
}
