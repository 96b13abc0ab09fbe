//! The chain of the audit, whatever database keeps it: the key, the links, the head outside of the
//! database, the remarks of the log about itself, and the walk that checks all of it.

pub(crate) mod head;
pub(crate) mod key;
pub(crate) mod link;
pub(crate) mod remark;
pub(crate) mod walk;

use self::{key::AuditKey, link::ChainLink};
use super::AuditProblem;

/// How often the writer inspects a log again, after mending it, before it gives up. Two processes
/// that find it broken at the same time may see each other's half-finished work; no other process
/// changes the log while it is written.
pub(crate) const REPAIRS_MAX: usize = 3;

/// Why a writer gives up after [`REPAIRS_MAX`].
pub(crate) const RESTLESS: &str = "another program keeps changing it";

/// A row of the log as it is stored, unverified.
#[derive(Debug)]
pub(crate) struct AuditRow {
    /// The record's number and its stored hash.
    pub(crate) link: ChainLink,
    /// The record.
    pub(crate) text: Vec<u8>,
}

impl AuditRow {
    /// The text; empty if it is not valid UTF-8.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.text).unwrap_or_default()
    }

    /// Checks the last record of a log, which follows `previous`.
    pub(crate) fn check_as_last(
        &self,
        key: &AuditKey,
        previous: &ChainLink,
    ) -> Option<AuditProblem> {
        let fits = key.hash_record(&previous.hash, self.link.seq, &self.text) == self.link.hash;
        let what = "the last one, and changed, or written with another key".to_owned();
        (!fits).then_some(AuditProblem { seq: self.link.seq, what })
    }
}

impl From<AuditRow> for super::AuditEntry {
    fn from(row: AuditRow) -> Self {
        let text = String::from_utf8_lossy(&row.text).into_owned();
        let record = serde_json::from_str(&text).ok();
        Self { seq: row.link.seq, hash: row.link.hash.to_string(), text, record }
    }
}
