//! Remarks of the log about itself: it was found broken, or old records were removed.
//!
//! A remark is stored in an ordinary record, under a key that no other record has, so it is
//! protected like every other record.

use std::time::SystemTime;

use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::{
    link::Link,
    problem::Problem,
    record::{self, AuditKind, AuditRecord, Who},
    row::{COLUMNS, Row},
};

/// The key of a remark in its record. It occurs nowhere else: inside a text, its quotes would be
/// escaped.
const KEY: &str = "\"log\":";

/// A remark of the log about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Remark {
    /// The log did not end as it should.
    Broken {
        /// The problems that were found.
        problems: Vec<Problem>,
    },
    /// Records were removed from the start of the log.
    Pruned {
        /// How many so far, including earlier removals.
        records: u64,
        /// The last record that was removed, which the first remaining one follows.
        through: Link,
        /// The problems among the removed records, which no later check can find.
        problems: Vec<Problem>,
    },
}

/// The start of the log.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    /// The link that the first record follows.
    pub(super) link: Link,
    /// How many records were removed before it.
    pub(super) pruned: u64,
}

#[derive(Serialize)]
struct Remarked<'a> {
    #[serde(flatten)]
    record: AuditRecord,
    log: &'a Remark,
}

#[derive(Deserialize)]
struct MaybeRemarked {
    log: Option<Remark>,
}

impl Remark {
    /// Returns the remark in a record, if the record contains one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let remarked = text.contains(KEY).then(|| serde_json::from_str::<MaybeRemarked>(text));
        remarked?.ok()?.log
    }

    /// Renders the record that contains the remark.
    pub(super) fn line(&self) -> String {
        let kind = match self {
            Self::Broken { .. } => AuditKind::Trouble,
            Self::Pruned { .. } => AuditKind::Checkpoint,
        };
        let mut record = AuditRecord::new(kind, now_ms(), Who::of_process(""));
        record.message = Some(self.message());
        record::line(&Remarked { record, log: self })
    }

    fn message(&self) -> String {
        match self {
            Self::Broken { problems } => {
                let whats: Vec<&str> = problems.iter().map(|problem| &*problem.what).collect();
                format!("the audit was found broken: {}", whats.join("; "))
            }
            Self::Pruned { records, through, .. } => {
                format!("{records} records up to number {} were removed", through.seq)
            }
        }
    }
}

impl Start {
    /// The start of a log from which nothing was removed.
    const GENESIS: Self = Self { link: Link::GENESIS, pruned: 0 };

    /// Finds the start of a log whose first record has this number: right after the last removal.
    /// Without a remark about a removal, the log starts at the beginning.
    pub(super) fn find(connection: &Connection, first_seq: u64) -> rusqlite::Result<Self> {
        if first_seq <= 1 {
            return Ok(Self::GENESIS);
        }
        let sql =
            format!("SELECT {COLUMNS} FROM audit WHERE instr(text, ?1) > 0 ORDER BY seq DESC");
        let mut statement = connection.prepare(&sql)?;
        for row in statement.query_map([KEY], Row::read)? {
            if let Some(Remark::Pruned { records, through, .. }) = Remark::parse(row?.text()) {
                return Ok(Self { link: through, pruned: records });
            }
        }
        Ok(Self::GENESIS)
    }
}

fn now_ms() -> u64 {
    let elapsed = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}
