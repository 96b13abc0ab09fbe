//! Problems with the log, and their places.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Most problems that one check lists. A log with more of them is worthless as evidence, and an
/// attacker must not determine the size of the list.
const PROBLEMS_MAX: usize = 1000;

/// A problem with the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditProblem {
    /// The number of the record where it was found.
    pub seq: u64,
    /// A description of the problem.
    pub what: String,
}

/// A bounded list of problems, in the order of the log.
#[derive(Debug, Default)]
pub(crate) struct AuditProblemList {
    list: Vec<AuditProblem>,
    further: u64,
    further_seq: u64,
}

impl fmt::Display for AuditProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "record {}: {}", self.seq, self.what)
    }
}

impl AuditProblem {
    /// Makes one problem for a run of neighbouring records.
    pub(crate) fn from_range(from: u64, to: u64, what: &str) -> Self {
        let what = if from == to { what.to_owned() } else { format!("{what}, up to record {to}") };
        Self { seq: from, what }
    }
}

impl AuditProblemList {
    /// Adds a problem, or only counts it when the list is full.
    pub(crate) fn push(&mut self, problem: AuditProblem) {
        if self.list.len() < PROBLEMS_MAX {
            self.list.push(problem);
        } else {
            self.further += 1;
            self.further_seq = problem.seq;
        }
    }

    /// Adds a problem from its parts.
    pub(crate) fn push_new(&mut self, seq: u64, what: impl Into<String>) {
        self.push(AuditProblem { seq, what: what.into() });
    }

    /// Returns the list. If problems were only counted, the last entry states how many.
    pub(crate) fn into_list(mut self) -> Vec<AuditProblem> {
        if self.further > 0 {
            let what = format!("the last of {} further problems", self.further);
            self.list.push(AuditProblem { seq: self.further_seq, what });
        }
        self.list
    }
}
