//! Remarks of the log about itself: it was found broken, or old records were removed.
//!
//! A remark is stored in an ordinary record, under a key that no other record has, so it is
//! protected like every other record.

use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::{
    link::ChainLink,
    row::{AuditRow, COLUMNS},
};
use crate::{
    audit::{
        AuditProblem,
        record::{self, AuditKind, AuditRecord, HostUser},
    },
    sqlite,
};

/// The key of a remark in its record. It occurs nowhere else: inside a text, its quotes would be
/// escaped.
const KEY: &str = "\"log\":";

/// A remark of the log about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum AuditRemark {
    /// The log did not end as it should.
    Broken {
        /// The problems that were found.
        problems: Vec<AuditProblem>,
    },
    /// Records were removed from the start of the log.
    Pruned {
        /// How many so far, including earlier removals.
        records: u64,
        /// The last record that was removed, which the first remaining one follows.
        through: ChainLink,
        /// The problems among the removed records, which no later check can find.
        problems: Vec<AuditProblem>,
    },
}

/// The start of the log.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChainStart {
    /// The link that the first record follows.
    pub(super) link: ChainLink,
    /// How many records were removed before it.
    pub(super) pruned: u64,
}

#[derive(Serialize)]
struct RemarkRecord<'a> {
    #[serde(flatten)]
    record: AuditRecord,
    log: &'a AuditRemark,
}

#[derive(Deserialize)]
struct RemarkField {
    log: Option<AuditRemark>,
}

impl AuditRemark {
    /// Returns the remark in a record, if the record contains one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let parsed_field = text.contains(KEY).then(|| serde_json::from_str::<RemarkField>(text));
        parsed_field?.ok()?.log
    }

    /// Renders the record that contains the remark.
    pub(super) fn render_line(&self) -> String {
        let kind = match self {
            Self::Broken { .. } => AuditKind::Trouble,
            Self::Pruned { .. } => AuditKind::Checkpoint,
        };
        let mut record =
            AuditRecord::new(kind, sqlite::current_time_ms(), HostUser::from_process(""));
        record.message = Some(self.display_text());
        record::render_line(&RemarkRecord { record, log: self })
    }

    fn display_text(&self) -> String {
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

impl ChainStart {
    /// The start of a log from which nothing was removed.
    const GENESIS: Self = Self { link: ChainLink::GENESIS, pruned: 0 };

    /// Finds the start of a log whose first record has this number: right after the last removal.
    /// Without a remark about a removal, the log starts at the beginning.
    pub(super) fn find_start(connection: &Connection, first_seq: u64) -> rusqlite::Result<Self> {
        if first_seq <= 1 {
            return Ok(Self::GENESIS);
        }
        let sql =
            format!("SELECT {COLUMNS} FROM audit WHERE instr(text, ?1) > 0 ORDER BY seq DESC");
        let mut statement = connection.prepare(&sql)?;
        for row in statement.query_map([KEY], AuditRow::from_row)? {
            if let Some(AuditRemark::Pruned { records, through, .. }) =
                AuditRemark::parse(row?.text())
            {
                return Ok(Self { link: through, pruned: records });
            }
        }
        Ok(Self::GENESIS)
    }
}
