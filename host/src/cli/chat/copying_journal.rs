//! In-memory records of the current session.

use std::sync::{Arc, Mutex, PoisonError};

use sallyport_contract::BoxFuture;
use sallyport_session::{Journal, JournalError, JournalRecord};

/// All records of a session so far. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct SharedRecords(Arc<Mutex<Vec<JournalRecord>>>);

impl SharedRecords {
    /// Wraps existing records.
    pub(super) fn from_records(records: Vec<JournalRecord>) -> Self {
        Self(Arc::new(Mutex::new(records)))
    }

    /// Returns a copy of the records. Large contents are shared.
    pub(super) fn to_vec(&self) -> Vec<JournalRecord> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A journal that also keeps its records in memory.
pub(super) struct CopyingJournal {
    pub(super) inner: Box<dyn Journal>,
    pub(super) records: SharedRecords,
    /// Number of records in a failed write. The next write repeats them, so they are not added
    /// again.
    pub(super) failed_count: usize,
}

impl Journal for CopyingJournal {
    fn write_records(
        &mut self,
        records: Vec<JournalRecord>,
    ) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(async move {
            let new = records[self.failed_count.min(records.len())..].to_vec();
            self.records.0.lock().unwrap_or_else(PoisonError::into_inner).extend(new);
            let count = records.len();
            let written = self.inner.write_records(records).await;
            self.failed_count = if written.is_ok() { 0 } else { count };
            written
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A journal whose first writes fail.
    struct Failing(usize);

    impl Journal for Failing {
        fn write_records(
            &mut self,
            _records: Vec<JournalRecord>,
        ) -> BoxFuture<'_, Result<(), JournalError>> {
            let fails = self.0 > 0;
            self.0 = self.0.saturating_sub(1);
            let error = JournalError { message: "full".to_owned() };
            Box::pin(std::future::ready(if fails { Err(error) } else { Ok(()) }))
        }
    }

    fn note(text: &str) -> JournalRecord {
        JournalRecord::Note { text: text.to_owned() }
    }

    #[tokio::test]
    async fn records_that_come_again_are_copied_once() {
        let records = SharedRecords::from_records(vec![note("before")]);
        let inner = Box::new(Failing(2));
        let mut journal = CopyingJournal { inner, records: records.clone(), failed_count: 0 };
        let all = [note("a"), note("b"), note("c"), note("d")];
        assert!(journal.write_records(all[..1].to_vec()).await.is_err());
        assert!(journal.write_records(all[..3].to_vec()).await.is_err());
        assert!(journal.write_records(all[..3].to_vec()).await.is_ok());
        assert!(journal.write_records(all[3..].to_vec()).await.is_ok());
        assert_eq!(records.to_vec(), [&[note("before")], &all[..]].concat());
    }
}
