//! What a session's memory is still to remember or to forget, and how it failed of late.

use std::{collections::VecDeque, time::Duration};

use super::{
    history::PastTurn,
    session_memory::{RecallError, SessionMemory, with_time_limit},
};

/// Longest wait for a turn to be remembered or forgotten. It may be longer because the user already
/// has the answer; only the next input waits for it.
const REMEMBER_TIME_MAX: Duration = Duration::from_secs(10);

/// Turns to be remembered or forgotten that may wait while the memory does not answer. Beyond that
/// the oldest are discarded; the journal still contains them.
const JOBS_MAX: usize = 64;

/// The pending work of a session's memory, and its recent failures.
#[derive(Debug, Default)]
pub(super) struct RecallBacklog {
    /// Inputs that still skip the query.
    pub(super) recall_rest_turns: u32,
    /// Turns after which the pending errands still wait.
    pub(super) job_rest_turns: u32,
    /// In the order in which they arose.
    pub(super) jobs: VecDeque<RecallJob>,
    /// The user knows that something is missing.
    pub(super) has_reported_failure: bool,
}

/// A turn to be remembered or forgotten.
#[derive(Debug)]
pub(super) enum RecallJob {
    Remember(Box<PastTurn>),
    Forget(usize),
}

impl RecallBacklog {
    pub(super) fn queue_job(&mut self, job: RecallJob) {
        if self.jobs.len() == JOBS_MAX {
            self.jobs.pop_front();
        }
        self.jobs.push_back(job);
    }

    /// Whether a turn is still to be forgotten.
    pub(super) fn will_forget(&self, turn: usize) -> bool {
        self.jobs.iter().any(|job| matches!(job, RecallJob::Forget(gone) if *gone == turn))
    }
}

impl RecallJob {
    pub(super) async fn run(&self, recall: &dyn SessionMemory) -> Result<(), RecallError> {
        let operation = match self {
            Self::Remember(turn) => recall.remember_turn(turn),
            Self::Forget(turn) => recall.forget_turn(*turn),
        };
        with_time_limit(REMEMBER_TIME_MAX, operation).await
    }
}
