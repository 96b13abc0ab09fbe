//! A walk along the chain, record by record, that finds every place where the chain is broken.

use blake3::Hash;

use super::{
    AuditRow,
    key::{self, AuditKey},
    link::ChainLink,
    remark::{AuditRemark, ChainStart},
};
use crate::audit::{
    AuditVerification,
    problem::{AuditProblem, AuditProblemList},
};

/// The problem of a record whose hash does not fit.
const HASH_MISMATCH: &str = "changed or out of place";

/// A walk, and its findings so far.
pub(crate) struct ChainWalk<'k> {
    key: &'k AuditKey,
    /// The link of the last record visited.
    pub(crate) end: ChainLink,
    /// How many records were visited.
    pub(crate) records: u64,
    /// How many records were pruned before the first.
    pub(crate) pruned: u64,
    /// The problems found.
    pub(crate) problems: AuditProblemList,
    mismatch: Option<MismatchRange>,
    expected: Option<ExpectedLink>,
}

/// Consecutive records that do not fit.
#[derive(Clone, Copy)]
struct MismatchRange {
    from: u64,
    to: u64,
}

/// A link that the chain should contain, and the hash that was found at its place.
#[derive(Clone, Copy)]
struct ExpectedLink {
    link: ChainLink,
    found_hash: Option<Hash>,
}

impl<'k> ChainWalk<'k> {
    /// Starts at the beginning of a log, and looks for `expected` on the way. The start itself may
    /// be the expected link.
    pub(crate) fn new(start: ChainStart, key: &'k AuditKey, expected: Option<ChainLink>) -> Self {
        let ChainStart { link: end, pruned } = start;
        let found_hash = |link: ChainLink| (link.seq == end.seq).then_some(end.hash);
        let expected = expected.filter(|link| *link != ChainLink::GENESIS);
        let expected = expected.map(|link| ExpectedLink { link, found_hash: found_hash(link) });
        let problems = AuditProblemList::default();
        Self { key, end, records: 0, pruned, problems, mismatch: None, expected }
    }

    /// Visits the next record. After the last one comes [`report_mismatch`](Self::report_mismatch).
    pub(crate) fn visit_record(&mut self, row: &AuditRow) {
        let ChainLink { seq, hash } = row.link;
        self.check_number(seq);
        if self.key.hash_record(&self.end.hash, seq, &row.text) == hash {
            self.report_mismatch();
            self.report_remark(seq, row.text());
        } else {
            self.mismatch =
                Some(MismatchRange { from: self.mismatch.map_or(seq, |run| run.from), to: seq });
        }
        self.records += 1;
        self.end = row.link;
        if let Some(expected) = self.expected.as_mut().filter(|expected| expected.link.seq == seq) {
            expected.found_hash = Some(hash);
        }
    }

    fn check_number(&mut self, seq: u64) {
        let next = self.end.seq.saturating_add(1);
        if seq == next {
            return;
        }
        self.report_mismatch();
        if seq > next {
            self.problems.push(AuditProblem::from_range(next, seq - 1, "missing"));
        } else {
            self.problems.push_new(seq, "its number is not above the one before");
        }
    }

    /// Reports the log's own remarks. They remain problems for as long as the log exists.
    fn report_remark(&mut self, seq: u64, text: &str) {
        let (place, problems) = match AuditRemark::parse(text) {
            Some(AuditRemark::Broken { problems }) => ("the log was found broken here", problems),
            Some(AuditRemark::Pruned { problems, .. }) => ("among the removed records", problems),
            None => return,
        };
        for problem in problems {
            self.problems.push_new(seq, format!("{place}: {problem}"));
        }
    }

    /// Adds the problem of the records up to here that do not fit, if there are any.
    pub(crate) fn report_mismatch(&mut self) {
        let Some(MismatchRange { from, to }) = self.mismatch.take() else { return };
        let all_so_far = from < to && to - from + 1 == self.records;
        let what = if all_so_far { "changed, or written with another key" } else { HASH_MISMATCH };
        self.problems.push(AuditProblem::from_range(from, to, what));
    }

    /// Adds a problem if the expected link was not found.
    pub(crate) fn check_expected_link(&mut self) {
        let Some(ExpectedLink { link, found_hash }) = self.expected else { return };
        match found_hash {
            Some(hash) if hash == link.hash => {}
            Some(_) => self.problems.push_new(link.seq, "not the one that was expected"),
            None if link.seq > self.end.seq => {
                self.problems.push_new(link.seq, "expected, but the log ends before it");
            }
            None => {
                self.problems
                    .push_new(link.seq, "gone, so it cannot be compared with what is expected");
            }
        }
    }

    /// What was found.
    pub(crate) fn into_verification(self) -> AuditVerification {
        AuditVerification {
            records: self.records,
            pruned: self.pruned,
            head: self.end.to_string(),
            problems: self.problems.into_list(),
        }
    }
}

/// The result of a check without a key, which can check neither the records nor an expected head.
pub(crate) fn unchecked_verification(
    records: u64,
    end: ChainLink,
    expected: Option<ChainLink>,
) -> AuditVerification {
    let mut problems = AuditProblemList::default();
    if records > 0 {
        let what = format!("cannot be checked, nor any before it: {} is missing", key::FILE);
        problems.push_new(end.seq, what);
    }
    if let Some(expected) = expected.filter(|expected| *expected != ChainLink::GENESIS) {
        let what = if records > 0 { "cannot be compared" } else { "the log ends before it" };
        problems.push_new(expected.seq, format!("expected, but {what}"));
    }
    AuditVerification { records, pruned: 0, head: end.to_string(), problems: problems.into_list() }
}
