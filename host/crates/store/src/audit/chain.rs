//! Adding to the log: under the database's write lock, from where the log ends at that moment, so
//! that processes that write at once make one chain.
//!
//! A log that does not end as it should is not continued as if nothing were wrong: a record that
//! says so comes first, in a commit of its own. Until that commit the head stays as it was, so a
//! process that is killed in between leaves the finding to the next one.

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
use crate::{database, error::StoreError};

/// How often a log is mended before it is given up. Two processes that find it broken at once may
/// see each other's work half done; nobody else changes it while it is written.
const MENDS_MAX: usize = 3;

/// Writes what `add` pushes, all or nothing. Returns what was wrong with the log before.
///
/// # Errors
///
/// The database, the key or the head cannot be read or written; or what was written is not there.
/// Nothing was added then, or it cannot be told.
pub(super) fn extend(
    connection: &Connection,
    folder: &Path,
    add: impl FnOnce(&mut Extension<'_>) -> Result<(), StoreError>,
) -> Result<Vec<Problem>, StoreError> {
    let (mut extension, problems) = begin_sound(connection, folder)?;
    add(&mut extension)?;
    extension.finish()?;
    Ok(problems)
}

fn begin_sound<'c>(
    connection: &'c Connection,
    folder: &'c Path,
) -> Result<(Extension<'c>, Vec<Problem>), StoreError> {
    let mut found = Vec::new();
    for _ in 0..=MENDS_MAX {
        let extension = Extension::begin(connection, folder)?;
        let problems = extension.inspect()?;
        if problems.is_empty() {
            return Ok((extension, found));
        }
        extension.mend(&problems)?;
        found.extend(problems);
    }
    Err(damaged(folder, "somebody changes it all the time".to_owned()))
}

/// Looks whether the log ends where the head says, and with which key.
///
/// # Errors
///
/// The database, the key or the head cannot be read.
pub(super) fn look(
    connection: &Connection,
    folder: &Path,
) -> Result<(Option<AuditKey>, Option<Problem>), StoreError> {
    let transaction = begin(connection, folder)?;
    let key = AuditKey::load(folder)?;
    let end = row::end(&transaction).map_err(database::failed(folder))?;
    let problem = Head::read(folder, key.as_ref())?.compare(end);
    Ok((key, problem))
}

/// The end of the log while it is being written. Dropped, it leaves the log as it was.
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
    fn begin(connection: &'c Connection, folder: &'c Path) -> Result<Self, StoreError> {
        let transaction = begin(connection, folder)?;
        let key = AuditKey::load_or_create(folder)?;
        let head = Head::read(folder, Some(&key))?;
        let end = row::end(&transaction).map_err(database::failed(folder))?;
        Ok(Self { folder, connection, transaction, key, head, begin: end, end })
    }

    /// The database, for what has to happen together with a record.
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
        // A log whose end was cut goes on past the cut, so that the gap stays.
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

    /// What is wrong with the end of the log: the last record, and whether it is the last.
    fn inspect(&self) -> Result<Vec<Problem>, StoreError> {
        let last = check_last(&self.transaction, &self.key);
        let last = last.map_err(database::failed(self.folder))?;
        Ok(self.head.compare(self.end).into_iter().chain(last).collect())
    }

    fn mend(mut self, problems: &[Problem]) -> Result<(), StoreError> {
        self.push(&Remark::Broken { problems: problems.to_vec() }.line())?;
        self.commit()
    }

    fn finish(self) -> Result<(), StoreError> {
        if self.end == self.begin {
            return Ok(());
        }
        Head { last: self.begin, next: self.end }.write(self.folder, &self.key)?;
        self.commit()
    }

    /// Another process may write as soon as this one has committed. If it did, it has taken care
    /// of the head.
    fn commit(self) -> Result<(), StoreError> {
        let Self { folder, connection, transaction, key, end: written, .. } = self;
        transaction.commit().map_err(database::failed(folder))?;
        let transaction = begin(connection, folder)?;
        if row::end(&transaction).map_err(database::failed(folder))? == written {
            return Head { last: written, next: written }.write(folder, &key);
        }
        if contains(&transaction, written).map_err(database::failed(folder))? {
            return Ok(());
        }
        Err(damaged(folder, "what was written is not there".to_owned()))
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

    /// Or a crash behind the commit would look like records that somebody added.
    #[test]
    fn the_head_names_a_record_before_it_is_committed() {
        let parent = TempDir::new().unwrap();
        let folder = &private::folder(&parent.path().join("store")).unwrap();
        let connection = &database::open(folder).unwrap();
        let head = || {
            let key = AuditKey::load(folder).unwrap();
            match Head::read(folder, key.as_ref()).unwrap() {
                Found::Head(head) => (head.last.seq, head.next.seq),
                other => panic!("{other:?}"),
            }
        };
        extend(connection, folder, |extension| extension.push("{}")).unwrap();
        assert_eq!(head(), (1, 1));
        let failed = extend(connection, folder, |extension| {
            extension.push("{}")?;
            extension.push("{}")?;
            extension.connection().execute_batch(NO_COMMIT).unwrap();
            Ok(())
        });
        assert!(failed.is_err());
        assert_eq!(head(), (1, 3));
        assert_eq!(look(connection, folder).unwrap().1, None);
        extend(connection, folder, |extension| extension.push("{}")).unwrap();
        assert_eq!(head(), (2, 2));
    }
}
