//! The chain of the audit, whatever database keeps it: the key, the links, the head outside of the
//! database, the remarks of the log about itself, and the walk that checks all of it.

pub(crate) mod head;
pub(crate) mod key;
pub(crate) mod link;
pub(crate) mod remark;
pub(crate) mod walk;

use self::link::ChainLink;

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
}

impl From<AuditRow> for super::AuditEntry {
    fn from(row: AuditRow) -> Self {
        let text = String::from_utf8_lossy(&row.text).into_owned();
        let record = serde_json::from_str(&text).ok();
        Self { seq: row.link.seq, hash: row.link.hash.to_string(), text, record }
    }
}
