//! Determines when to cancel again.
//!
//! A cancellation is replayed when the session has reached the same point as in the recording:
//! everything that had ended before has ended, and everything that was then dropped is being waited
//! for.

use std::collections::{BTreeSet, VecDeque};

use super::line::{AnswerOutcome, DecisionOutcome, RecallOutcome, RecordingLine, RunOutcome};

/// The cancellations of a tape that stopped something, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct CancellationSchedule {
    conditions: VecDeque<CancellationCondition>,
    /// Lines since the last input that had ended.
    ended: BTreeSet<usize>,
    /// Whether the turn was cancelled since then.
    is_cancelled: bool,
}

/// The conditions for a cancellation.
#[derive(Debug, Clone, Default)]
struct CancellationCondition {
    ended: BTreeSet<usize>,
    dropped: BTreeSet<usize>,
}

impl CancellationSchedule {
    /// Adds a line of the tape.
    pub(super) fn add_line(&mut self, number: usize, line: &RecordingLine) {
        match line {
            RecordingLine::Input { .. } | RecordingLine::Turn { .. } => self.close_turn(),
            RecordingLine::Cancel if !self.is_cancelled => {
                let ended = std::mem::take(&mut self.ended);
                self.conditions
                    .push_back(CancellationCondition { ended, dropped: BTreeSet::new() });
                self.is_cancelled = true;
            }
            RecordingLine::Tape(_) | RecordingLine::Request(_) | RecordingLine::Cancel => {}
            RecordingLine::Noticed { .. } | RecordingLine::Recalls => {}
            _ if is_dropped(line) => {
                let condition = self.conditions.back_mut().filter(|_| self.is_cancelled);
                condition.map(|condition| condition.dropped.insert(number));
            }
            RecordingLine::Answer(_)
            | RecordingLine::Decision(_)
            | RecordingLine::Report(_)
            | RecordingLine::Recalled { .. } => {
                self.ended.insert(number);
            }
        }
    }

    /// Whether the turn was cancelled before the next line.
    pub(super) fn has_cancelled(&self) -> bool {
        self.is_cancelled
    }

    /// Ends a turn of the tape: a cancellation that stopped nothing in it is not replayed.
    pub(super) fn close_turn(&mut self) {
        if self.is_cancelled {
            self.conditions.pop_back_if(|condition| condition.dropped.is_empty());
        }
        self.is_cancelled = false;
        self.ended.clear();
    }

    /// Registers that the replay has reached a line. Returns whether it is time to cancel.
    pub(super) fn reach_line(&mut self, number: usize) -> bool {
        let Some(next) = self.conditions.front_mut() else { return false };
        let was_awaited = next.ended.remove(&number) | next.dropped.remove(&number);
        let is_due = was_awaited && next.ended.is_empty() && next.dropped.is_empty();
        if is_due {
            self.conditions.pop_front();
        }
        is_due
    }

    /// Whether a dropped line was dropped by a cancellation that is still to come.
    pub(super) fn will_cancel(&self, number: usize) -> bool {
        self.conditions.iter().any(|condition| condition.dropped.contains(&number))
    }
}

fn is_dropped(line: &RecordingLine) -> bool {
    match line {
        RecordingLine::Answer(answer) => matches!(answer.end, AnswerOutcome::Dropped),
        RecordingLine::Decision(decision) => matches!(decision.end, DecisionOutcome::Dropped),
        RecordingLine::Report(report) => matches!(report.end, RunOutcome::Dropped),
        RecordingLine::Tape(_) | RecordingLine::Input { .. } | RecordingLine::Cancel => false,
        RecordingLine::Recalled { end } => matches!(end, RecallOutcome::Dropped),
        RecordingLine::Request(_) | RecordingLine::Turn { .. } => false,
        RecordingLine::Noticed { .. } | RecordingLine::Recalls => false,
    }
}
