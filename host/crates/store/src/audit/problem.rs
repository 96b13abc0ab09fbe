//! What is wrong with the log, and where.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Most problems that one look at the log names. A log with more of them is lost as evidence, and
/// the list should not take its size from whoever broke it.
const PROBLEMS_MAX: usize = 1000;

/// Something that is wrong with the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The number of the record where it shows.
    pub seq: u64,
    /// What it is.
    pub what: String,
}

/// A bounded list of problems, in the order of the log.
#[derive(Debug, Default)]
pub(super) struct Problems {
    list: Vec<Problem>,
    further: u64,
    further_seq: u64,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {}: {}", self.seq, self.what)
    }
}

impl Problem {
    /// Says the same of neighbouring records.
    pub(super) fn of_run(from: u64, to: u64, what: &str) -> Self {
        let what = if from == to { what.to_owned() } else { format!("{what}, up to record {to}") };
        Self { seq: from, what }
    }
}

impl Problems {
    /// Adds one, or counts it when the list is full.
    pub(super) fn push(&mut self, problem: Problem) {
        if self.list.len() < PROBLEMS_MAX {
            self.list.push(problem);
        } else {
            self.further += 1;
            self.further_seq = problem.seq;
        }
    }

    /// Adds one from its parts.
    pub(super) fn add(&mut self, seq: u64, what: impl Into<String>) {
        self.push(Problem { seq, what: what.into() });
    }

    /// Returns the list; its last entry says how many there are beside it.
    pub(super) fn into_list(mut self) -> Vec<Problem> {
        if self.further > 0 {
            let what = format!("the last of {} further problems", self.further);
            self.list.push(Problem { seq: self.further_seq, what });
        }
        self.list
    }
}
