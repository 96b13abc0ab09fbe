//! From where on a conversation is shown, within a budget.
//!
//! The window begins at a turn. When what was said since then does not fit any more, it moves on by
//! so much that there is room for a while: a provider's cache holds as long as the beginning of
//! what it is sent stays the same. Only when the newest turn alone is too much does the window begin
//! within it, after its input.
//!
//! Nothing is remembered: the window is found by going through the conversation as it grew. It
//! depends on nothing that comes later, so it never moves back.

use sallyport_model::Message;

use super::{LEFT_OUT, Memory, Meter, units::Unit};

/// How full the window is after it has moved: three quarters of the budget.
const FILLED: (u64, u64) = (3, 4);

/// What is known when the window is laid.
pub(super) struct Window {
    /// Most tokens of all that is sent.
    tokens_max: u64,
    /// Tokens of a window that has just moved.
    tokens_filled: u64,
    /// Most tokens with which the newest turn is still shown whole.
    tokens_newest_max: u64,
    /// Tokens that are sent whatever is shown.
    tokens_fixed: u64,
    /// Tokens of the note that part of a turn is left out.
    tokens_note: u64,
}

impl Window {
    /// Plans a window, with messages that are sent whatever is shown.
    pub(super) fn new(memory: &Memory, meter: &Meter, always: &[Message]) -> Self {
        let tokens_max = memory.tokens_max();
        let tokens_filled = tokens_max / FILLED.1 * FILLED.0;
        // A summary needs room beside the newest turn.
        let needs_room = matches!(memory, Memory::Summary { .. });
        Self {
            tokens_max,
            tokens_filled,
            tokens_newest_max: if needs_room { tokens_filled } else { tokens_max },
            tokens_fixed: meter.tokens(always),
            tokens_note: meter.tokens(&[Message::user(LEFT_OUT)]),
        }
    }

    /// Returns the first of the newest units that are shown, at or after `first`.
    pub(super) fn start(&self, units: &[Unit], first: usize) -> usize {
        let costs = Costs::new(units);
        let mut start = first;
        for end in first + 1..=units.len() {
            if self.tokens(units, &costs, start, end) > self.tokens_max {
                start = self.moved(units, &costs, start, end);
            }
        }
        start
    }

    /// What is sent when the units from `start` on are shown, and `end` is where they end.
    fn tokens(&self, units: &[Unit], costs: &Costs, start: usize, end: usize) -> u64 {
        let turn = units[start].turn;
        let shown = costs.kept[start] + costs.all[end] - costs.all[start];
        let input = if turn == start || units[turn].kept { 0 } else { units[turn].tokens };
        let note = if turn == start { 0 } else { self.tokens_note };
        self.tokens_fixed + shown + input + note
    }

    /// Moves the window on: to a turn from which there is room, else to the newest turn if that
    /// fits, else into it.
    fn moved(&self, units: &[Unit], costs: &Costs, start: usize, end: usize) -> usize {
        let newest = units[end - 1].turn;
        let turns = (start + 1..=newest).filter(|at| units[*at].turn == *at);
        let within = (newest + 2..end).filter(|at| *at > start);
        let mut last = start;
        for at in turns.chain(within) {
            let tokens = self.tokens(units, costs, at, end);
            let is_newest = at == newest && tokens <= self.tokens_newest_max;
            if is_newest || tokens <= self.tokens_filled {
                return at;
            }
            last = at;
        }
        last
    }
}

/// Sums over the first units, so that every question is one subtraction.
struct Costs {
    all: Vec<u64>,
    kept: Vec<u64>,
}

impl Costs {
    fn new(units: &[Unit]) -> Self {
        let sums = |counts: fn(&Unit) -> bool| {
            let mut sum = 0;
            let mut sums = vec![sum];
            sums.extend(units.iter().map(|unit| {
                sum += if counts(unit) { unit.tokens } else { 0 };
                sum
            }));
            sums
        };
        Self { all: sums(|_| true), kept: sums(|unit| unit.kept) }
    }
}
