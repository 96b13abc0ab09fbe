//! Finds where the visible part of a conversation begins, within a budget.
//!
//! The window begins at a turn. When the messages since then no longer fit, it moves forward far
//! enough to have room for a while, because a provider's cache is valid only as long as the
//! beginning of a request stays the same. Only if the newest turn alone is too large does the
//! window begin within it, after its input.
//!
//! The window has no state: it is found by replaying the growth of the conversation. It depends on
//! nothing that comes later, so it never moves back.

use sallyport_model::ChatMessage;

use super::{LEFT_OUT, MemoryMode, TokenMeter, message_groups::MessageGroup};

/// How full the window is after it has moved: three quarters of the budget.
const FILL_RATIO: (u64, u64) = (3, 4);

/// The budget of a window.
pub(super) struct WindowBudget {
    /// Most tokens of the whole request.
    tokens_max: u64,
    /// Tokens of a window that has just moved.
    tokens_target: u64,
    /// Most tokens with which the newest turn is still shown whole.
    newest_tokens_max: u64,
    /// Tokens that every request contains.
    fixed_tokens: u64,
    /// Tokens of the note that a part of a turn is left out.
    note_tokens: u64,
}

impl WindowBudget {
    /// Plans a window, given the messages that every request contains.
    pub(super) fn new(memory: &MemoryMode, meter: &TokenMeter, always: &[ChatMessage]) -> Self {
        let tokens_max = memory.tokens_max();
        let tokens_target = tokens_max / FILL_RATIO.1 * FILL_RATIO.0;
        // A summary needs room next to the newest turn.
        let needs_room = matches!(memory, MemoryMode::Summary { .. });
        Self {
            tokens_max,
            tokens_target,
            newest_tokens_max: if needs_room { tokens_target } else { tokens_max },
            fixed_tokens: meter.estimate_tokens(always),
            note_tokens: meter.estimate_tokens(&[ChatMessage::user(LEFT_OUT)]),
        }
    }

    /// Returns the first visible unit, at or after `first`.
    pub(super) fn first_visible(&self, units: &[MessageGroup], first: usize) -> usize {
        let costs = TokenPrefixSums::new(units);
        let mut start = first;
        for end in first + 1..=units.len() {
            if self.request_tokens(units, &costs, start, end) > self.tokens_max {
                start = self.advance_start(units, &costs, start, end);
            }
        }
        start
    }

    /// Returns the tokens of a request that shows the units from `start` to `end`.
    fn request_tokens(
        &self,
        units: &[MessageGroup],
        costs: &TokenPrefixSums,
        start: usize,
        end: usize,
    ) -> u64 {
        let turn = units[start].turn;
        let shown = costs.kept[start] + costs.all[end] - costs.all[start];
        let input = if turn == start || units[turn].is_kept { 0 } else { units[turn].tokens };
        let note = if turn == start { 0 } else { self.note_tokens };
        self.fixed_tokens + shown + input + note
    }

    /// Moves the window forward: to a turn that leaves room, else to the newest turn if that fits,
    /// else into it.
    fn advance_start(
        &self,
        units: &[MessageGroup],
        costs: &TokenPrefixSums,
        start: usize,
        end: usize,
    ) -> usize {
        let newest = units[end - 1].turn;
        let turns = (start + 1..=newest).filter(|at| units[*at].turn == *at);
        let within = (newest + 2..end).filter(|at| *at > start);
        let mut last = start;
        for at in turns.chain(within) {
            let tokens = self.request_tokens(units, costs, at, end);
            let is_newest = at == newest && tokens <= self.newest_tokens_max;
            if is_newest || tokens <= self.tokens_target {
                return at;
            }
            last = at;
        }
        last
    }
}

/// Prefix sums over the units, so that every query is one subtraction.
struct TokenPrefixSums {
    all: Vec<u64>,
    kept: Vec<u64>,
}

impl TokenPrefixSums {
    fn new(units: &[MessageGroup]) -> Self {
        let sums = |counts: fn(&MessageGroup) -> bool| {
            let mut sum = 0;
            let mut sums = vec![sum];
            sums.extend(units.iter().map(|unit| {
                sum += if counts(unit) { unit.tokens } else { 0 };
                sum
            }));
            sums
        };
        Self { all: sums(|_| true), kept: sums(|unit| unit.is_kept) }
    }
}
