//! Reading a session, a page at a time, so that a long one is not in memory twice.

use std::collections::VecDeque;

use rusqlite::Connection;

use super::{
    TransactionError, body,
    record::StoredRecord,
    session::{self, SessionRow, StoredUsage},
};
use crate::{
    database::{self, from_sql_integer, to_sql_integer},
    error::StoreError,
    store::HostStore,
};

/// Most records per page.
const PAGE_RECORDS_MAX: u32 = 256;

/// Bytes of bodies after which a page ends. A single body may be far longer.
const PAGE_BYTES: usize = 1 << 20;

/// The records of a session.
#[derive(Debug)]
pub struct SessionRecords<'s> {
    store: &'s HostStore,
    id: String,
    key: i64,
    page: VecDeque<StoredRecord>,
    /// The number of the next record to read.
    next: u64,
    /// The number after the last record.
    end: u64,
}

impl<'s> SessionRecords<'s> {
    pub(super) fn new(store: &'s HostStore, row: SessionRow) -> Self {
        let SessionRow { key, session } = row;
        Self { store, id: session.id, key, page: VecDeque::new(), next: 0, end: session.records }
    }

    fn next_record(&mut self) -> Result<Option<StoredRecord>, StoreError> {
        if self.page.is_empty() && self.next < self.end {
            let failed = database::map_database_error(self.store.folder());
            self.page = self.store.with_connection(|connection| {
                self.read_page(connection).map_err(|refusal| refusal.into_store_error(failed))
            })?;
            self.next += self.page.len() as u64;
        }
        Ok(self.page.pop_front())
    }

    fn read_page(
        &self,
        connection: &Connection,
    ) -> Result<VecDeque<StoredRecord>, TransactionError> {
        let mut statement = connection.prepare(
            "SELECT seq, at_ms, kind, turns, tokens, cost_micro_usd, hash, text
             FROM record JOIN body ON body.key = record.body
             WHERE session = ?1 AND seq >= ?2 AND seq < ?3 ORDER BY seq LIMIT ?4",
        )?;
        let range =
            (self.key, to_sql_integer(self.next), to_sql_integer(self.end), PAGE_RECORDS_MAX);
        let mut rows = statement.query(range)?;
        let (mut page, mut bytes) = (VecDeque::new(), 0);
        while bytes < PAGE_BYTES
            && let Some(row) = rows.next()?
        {
            let expected = self.next + page.len() as u64;
            let record = read_record(row)?.filter(|record| record.seq == expected);
            // Return the records before it first; the next page reports the error.
            let Some(record) = record else { break };
            bytes += record.body.len();
            page.push_back(record);
        }
        if page.is_empty() {
            return Err(self.missing_record_error(connection));
        }
        Ok(page)
    }

    /// Why the next record is missing: the session was removed, or the file is damaged.
    fn missing_record_error(&self, connection: &Connection) -> TransactionError {
        match session::find_session_row(connection, &self.id) {
            Ok(row) if row.key == self.key => {
                let message = format!("record {} of session {} is not whole", self.next, self.id);
                let path = self.store.folder().join(database::FILE);
                StoreError::Damaged { path, message }.into()
            }
            Ok(_) => session::missing_session_error(&self.id).into(),
            Err(refusal) => refusal,
        }
    }
}

impl Iterator for SessionRecords<'_> {
    type Item = Result<StoredRecord, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        let record = self.next_record();
        if record.is_err() {
            self.end = self.next;
        }
        record.transpose()
    }
}

/// Reads a record; `None` if its body does not match its hash.
fn read_record(row: &rusqlite::Row<'_>) -> rusqlite::Result<Option<StoredRecord>> {
    let Some(body) = body::read_verified_text(row)? else { return Ok(None) };
    Ok(Some(StoredRecord {
        seq: from_sql_integer(row.get("seq")?),
        kind: row.get("kind")?,
        body,
        at_ms: from_sql_integer(row.get("at_ms")?),
        used: StoredUsage::from_row(row)?,
    }))
}
