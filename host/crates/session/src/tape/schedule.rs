//! Determines when to cancel again.
//!
//! A cancellation is replayed when the session has reached the same point as in the recording:
//! everything that had ended before has ended, and everything that was then dropped is being waited
//! for.

use std::collections::{BTreeSet, VecDeque};

use super::line::{Answer, Decision, Line, Recollected, Report};

/// The cancellations of a tape that stopped something, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Schedule {
    cancellings: VecDeque<Cancelling>,
    /// Lines since the last input that had ended.
    ended: BTreeSet<usize>,
    /// Whether the turn was cancelled since then.
    is_cancelled: bool,
}

/// The conditions for a cancellation.
#[derive(Debug, Clone, Default)]
struct Cancelling {
    ended: BTreeSet<usize>,
    dropped: BTreeSet<usize>,
}

impl Schedule {
    /// Adds a line of the tape.
    pub(super) fn add(&mut self, number: usize, line: &Line) {
        match line {
            Line::Input { .. } | Line::Turn { .. } => self.close(),
            Line::Cancel if !self.is_cancelled => {
                let ended = std::mem::take(&mut self.ended);
                self.cancellings.push_back(Cancelling { ended, dropped: BTreeSet::new() });
                self.is_cancelled = true;
            }
            Line::Tape(_) | Line::Request(_) | Line::Cancel => {}
            Line::Noticed { .. } | Line::Recalls => {}
            _ if is_dropped(line) => {
                let cancelling = self.cancellings.back_mut().filter(|_| self.is_cancelled);
                cancelling.map(|cancelling| cancelling.dropped.insert(number));
            }
            Line::Answer(_) | Line::Decision(_) | Line::Report(_) | Line::Recalled { .. } => {
                self.ended.insert(number);
            }
        }
    }

    /// Whether the turn was cancelled before the next line.
    pub(super) fn has_cancelled(&self) -> bool {
        self.is_cancelled
    }

    /// Ends a turn of the tape: a cancellation that stopped nothing in it is not replayed.
    pub(super) fn close(&mut self) {
        if self.is_cancelled {
            self.cancellings.pop_back_if(|cancelling| cancelling.dropped.is_empty());
        }
        self.is_cancelled = false;
        self.ended.clear();
    }

    /// Registers that the replay has reached a line. Returns whether it is time to cancel.
    pub(super) fn reach(&mut self, number: usize) -> bool {
        let Some(next) = self.cancellings.front_mut() else { return false };
        let waited = next.ended.remove(&number) | next.dropped.remove(&number);
        let is_due = waited && next.ended.is_empty() && next.dropped.is_empty();
        if is_due {
            self.cancellings.pop_front();
        }
        is_due
    }

    /// Whether a dropped line was dropped by a cancellation that is still to come.
    pub(super) fn will_cancel(&self, number: usize) -> bool {
        self.cancellings.iter().any(|cancelling| cancelling.dropped.contains(&number))
    }
}

fn is_dropped(line: &Line) -> bool {
    match line {
        Line::Answer(answered) => matches!(answered.end, Answer::Dropped),
        Line::Decision(decided) => matches!(decided.end, Decision::Dropped),
        Line::Report(reported) => matches!(reported.end, Report::Dropped),
        Line::Tape(_) | Line::Input { .. } | Line::Cancel => false,
        Line::Recalled { end } => matches!(end, Recollected::Dropped),
        Line::Request(_) | Line::Turn { .. } => false,
        Line::Noticed { .. } | Line::Recalls => false,
    }
}
