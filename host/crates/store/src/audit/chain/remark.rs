//! Remarks of the log about itself: it was found broken, or old records were removed.
//!
//! A remark is stored in an ordinary record, under a key that no other record has, so it is
//! protected like every other record.

use serde::{Deserialize, Serialize};

use super::{AuditRow, link::ChainLink};
use crate::{
    audit::{
        AuditProblem,
        record::{self, AuditKind, AuditRecord, HostUser},
    },
    clock,
};

/// The key of a remark in its record. It occurs nowhere else: inside a text, its quotes would be
/// escaped.
pub(crate) const KEY: &str = "\"log\":";

/// A remark of the log about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AuditRemark {
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
pub(crate) struct ChainStart {
    /// The link that the first record follows.
    pub(crate) link: ChainLink,
    /// How many records were removed before it.
    pub(crate) pruned: u64,
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
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let parsed_field = text.contains(KEY).then(|| serde_json::from_str::<RemarkField>(text));
        parsed_field?.ok()?.log
    }

    /// Renders the record that contains the remark.
    pub(crate) fn render_line(&self) -> String {
        let kind = match self {
            Self::Broken { .. } => AuditKind::Trouble,
            Self::Pruned { .. } => AuditKind::Checkpoint,
        };
        let mut record =
            AuditRecord::new(kind, clock::current_time_ms(), HostUser::from_process(""));
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
    pub(crate) const GENESIS: Self = Self { link: ChainLink::GENESIS, pruned: 0 };

    /// Finds the start of a log among the texts of its records that may be remarks, newest first:
    /// right after the last removal. Without a remark about a removal, it is the beginning.
    pub(crate) fn from_remarks<E>(
        texts: impl IntoIterator<Item = Result<String, E>>,
    ) -> Result<Self, E> {
        for text in texts {
            if let Some(AuditRemark::Pruned { records, through, .. }) = AuditRemark::parse(&text?) {
                return Ok(Self { link: through, pruned: records });
            }
        }
        Ok(Self::GENESIS)
    }
}

/// The part of a record that contains its age. Records of every version have it.
#[derive(Deserialize)]
struct RecordAge {
    at_ms: u64,
}

/// Returns the number of the last record in the unbroken run of old records at the start of the
/// log, of which `rows` are the first. An unreadable record is removed together with the one after
/// it.
pub(crate) fn last_removable_seq(rows: &[AuditRow], before_ms: u64) -> Option<u64> {
    let mut last = None;
    for row in rows {
        match serde_json::from_slice::<RecordAge>(&row.text) {
            Ok(age) if age.at_ms >= before_ms => break,
            Ok(_) => last = Some(row.link.seq),
            Err(_) => {}
        }
    }
    last
}
