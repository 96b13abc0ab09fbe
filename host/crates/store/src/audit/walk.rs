//! A walk along the chain, record by record, that finds every place where the chain is broken.

use blake3::Hash;
use rusqlite::Connection;

use super::{
    key::AuditKey,
    link::Link,
    problem::{Problem, Problems},
    remark::{Remark, Start},
    row::{COLUMNS, Row},
};

/// The problem of a record whose hash does not fit.
const UNFIT: &str = "changed or out of place";

/// A walk, and its findings so far.
pub(super) struct Walk<'k> {
    key: &'k AuditKey,
    /// The link of the last record visited.
    pub(super) end: Link,
    /// How many records were visited.
    pub(super) records: u64,
    /// How many records were pruned before the first.
    pub(super) pruned: u64,
    /// The problems found.
    pub(super) problems: Problems,
    unfit: Option<Run>,
    expected: Option<Expected>,
}

/// Consecutive records that do not fit.
#[derive(Clone, Copy)]
struct Run {
    from: u64,
    to: u64,
}

/// A link that the chain should contain, and the hash that was found at its place.
#[derive(Clone, Copy)]
struct Expected {
    link: Link,
    met: Option<Hash>,
}

impl<'k> Walk<'k> {
    /// Starts at the beginning of a log, and looks for `expected` on the way. The start itself may
    /// be the expected link.
    pub(super) fn new(start: Start, key: &'k AuditKey, expected: Option<Link>) -> Self {
        let Start { link: end, pruned } = start;
        let met = |link: Link| (link.seq == end.seq).then_some(end.hash);
        let expected = expected.filter(|link| *link != Link::GENESIS);
        let expected = expected.map(|link| Expected { link, met: met(link) });
        let problems = Problems::default();
        Self { key, end, records: 0, pruned, problems, unfit: None, expected }
    }

    /// Walks over all records with a number up to `through`.
    pub(super) fn go(&mut self, connection: &Connection, through: u64) -> rusqlite::Result<()> {
        let sql = format!("SELECT {COLUMNS} FROM audit WHERE seq <= ?1 ORDER BY seq");
        let mut statement = connection.prepare(&sql)?;
        let through = i64::try_from(through).unwrap_or(i64::MAX);
        for row in statement.query_map([through], Row::read)? {
            self.step(&row?);
        }
        self.end_run();
        Ok(())
    }

    fn step(&mut self, row: &Row) {
        let Link { seq, hash } = row.link;
        self.check_number(seq);
        if self.key.hash(&self.end.hash, seq, &row.text) == hash {
            self.end_run();
            self.heed(seq, row.text());
        } else {
            self.unfit = Some(Run { from: self.unfit.map_or(seq, |run| run.from), to: seq });
        }
        self.records += 1;
        self.end = row.link;
        if let Some(expected) = self.expected.as_mut().filter(|expected| expected.link.seq == seq) {
            expected.met = Some(hash);
        }
    }

    fn check_number(&mut self, seq: u64) {
        let next = self.end.seq.saturating_add(1);
        if seq == next {
            return;
        }
        self.end_run();
        if seq > next {
            self.problems.push(Problem::of_run(next, seq - 1, "missing"));
        } else {
            self.problems.add(seq, "its number is not above the one before");
        }
    }

    /// Reports the log's own remarks. They remain problems for as long as the log exists.
    fn heed(&mut self, seq: u64, text: &str) {
        let (place, problems) = match Remark::parse(text) {
            Some(Remark::Broken { problems }) => ("the log was found broken here", problems),
            Some(Remark::Pruned { problems, .. }) => ("among the removed records", problems),
            None => return,
        };
        for problem in problems {
            self.problems.add(seq, format!("{place}: {problem}"));
        }
    }

    fn end_run(&mut self) {
        let Some(Run { from, to }) = self.unfit.take() else { return };
        let all_so_far = from < to && to - from + 1 == self.records;
        let what = if all_so_far { "changed, or written with another key" } else { UNFIT };
        self.problems.push(Problem::of_run(from, to, what));
    }

    /// Adds a problem if the expected link was not found.
    pub(super) fn judge_expected(&mut self) {
        let Some(Expected { link, met }) = self.expected else { return };
        match met {
            Some(hash) if hash == link.hash => {}
            Some(_) => self.problems.add(link.seq, "not the one that was expected"),
            None if link.seq > self.end.seq => {
                self.problems.add(link.seq, "expected, but the log ends before it");
            }
            None => {
                self.problems.add(link.seq, "gone, so it cannot be compared with what is expected");
            }
        }
    }
}
