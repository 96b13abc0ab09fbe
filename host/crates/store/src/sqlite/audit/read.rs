//! Reading the log, a page at a time, so that neither a long log nor a slow reader blocks the
//! writers.

use std::collections::VecDeque;

use super::row::{self, COLUMNS};
use crate::{
    audit::{AuditEntry, AuditFilter, chain::AuditRow},
    error::StoreError,
    sqlite::SqliteStore,
};

/// Rows per page.
const PAGE_ROWS: u32 = 256;

/// The records that pass a filter.
pub(crate) struct AuditEntryReader<'s> {
    store: &'s SqliteStore,
    filter: AuditFilter,
    page: VecDeque<AuditRow>,
    /// The number at which the next page starts; `None` after the last page.
    next: Option<i64>,
    left: usize,
}

impl<'s> AuditEntryReader<'s> {
    pub(crate) fn new(store: &'s SqliteStore, filter: AuditFilter) -> Self {
        let next = Some(if filter.newest_first { i64::MAX } else { i64::MIN });
        let left = filter.limit.unwrap_or(usize::MAX);
        Self { store, filter, page: VecDeque::new(), next, left }
    }

    fn next_row(&mut self) -> Result<Option<AuditRow>, StoreError> {
        if self.page.is_empty() {
            self.load_next_page()?;
        }
        Ok(self.page.pop_front())
    }

    fn load_next_page(&mut self) -> Result<(), StoreError> {
        let Some(from) = self.next.take() else { return Ok(()) };
        let (compare, order) = if self.filter.newest_first { ("<=", "DESC") } else { (">=", "") };
        let sql = format!(
            "SELECT {COLUMNS} FROM audit WHERE seq {compare} ?1 AND seq > ?3 ORDER BY seq {order} \
             LIMIT ?2"
        );
        let after = self.filter.after_seq.map(|seq| i64::try_from(seq).unwrap_or(i64::MAX));
        let after = after.unwrap_or(i64::MIN);
        self.store.with_connection(|connection| {
            let mut statement = connection.prepare(&sql)?;
            let mut rows = statement.query((from, PAGE_ROWS, after))?;
            while let Some(row) = rows.next()? {
                let seq: i64 = row.get("seq")?;
                let step = if self.filter.newest_first { -1 } else { 1 };
                self.next = seq.checked_add(step);
                self.page.push_back(row::read_row(row)?);
            }
            Ok(())
        })
    }
}

impl Iterator for AuditEntryReader<'_> {
    type Item = Result<AuditEntry, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.left > 0 {
            let entry = match self.next_row() {
                Ok(row) => AuditEntry::from(row?),
                Err(error) => {
                    self.left = 0;
                    return Some(Err(error));
                }
            };
            if entry.record.as_ref().is_none_or(|record| self.filter.accepts_record(record)) {
                self.left -= 1;
                return Some(Ok(entry));
            }
        }
        None
    }
}
