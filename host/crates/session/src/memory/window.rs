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
    pub(super) fn new(
        memory: &MemoryMode,
        meter: &TokenMeter,
        fixed_messages: &[ChatMessage],
    ) -> Self {
        let tokens_max = memory.tokens_max();
        let tokens_target = tokens_max / FILL_RATIO.1 * FILL_RATIO.0;
        // A summary needs room next to the newest turn.
        let reserves_space = matches!(memory, MemoryMode::Summary { .. });
        Self {
            tokens_max,
            tokens_target,
            newest_tokens_max: if reserves_space { tokens_target } else { tokens_max },
            fixed_tokens: meter.estimate_tokens(fixed_messages),
            note_tokens: meter.estimate_tokens(&[ChatMessage::user(LEFT_OUT)]),
        }
    }

    /// Returns the first visible unit, at or after `first`.
    pub(super) fn first_visible(&self, groups: &[MessageGroup], first: usize) -> usize {
        let prefix_sums = TokenPrefixSums::new(groups);
        let mut start = first;
        for end in first + 1..=groups.len() {
            if self.request_tokens(groups, &prefix_sums, start, end) > self.tokens_max {
                start = self.advance_start(groups, &prefix_sums, start, end);
            }
        }
        start
    }

    /// Returns the tokens of a request that shows the units from `start` to `end`.
    fn request_tokens(
        &self,
        groups: &[MessageGroup],
        prefix_sums: &TokenPrefixSums,
        start: usize,
        end: usize,
    ) -> u64 {
        let turn = groups[start].turn;
        let shown = prefix_sums.kept[start] + prefix_sums.all[end] - prefix_sums.all[start];
        let input = if turn == start || groups[turn].is_kept { 0 } else { groups[turn].tokens };
        let note = if turn == start { 0 } else { self.note_tokens };
        self.fixed_tokens + shown + input + note
    }

    /// Moves the window forward: to a turn that leaves room, else to the newest turn if that fits,
    /// else into it.
    fn advance_start(
        &self,
        groups: &[MessageGroup],
        prefix_sums: &TokenPrefixSums,
        start: usize,
        end: usize,
    ) -> usize {
        let newest = groups[end - 1].turn;
        let turns = (start + 1..=newest).filter(|index| groups[*index].turn == *index);
        let later_starts = (newest + 2..end).filter(|index| *index > start);
        let mut last = start;
        for index in turns.chain(later_starts) {
            let tokens = self.request_tokens(groups, prefix_sums, index, end);
            let is_newest = index == newest && tokens <= self.newest_tokens_max;
            if is_newest || tokens <= self.tokens_target {
                return index;
            }
            last = index;
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
    fn new(groups: &[MessageGroup]) -> Self {
        let sums = |is_counted: fn(&MessageGroup) -> bool| {
            let mut sum = 0;
            let mut sums = vec![sum];
            sums.extend(groups.iter().map(|group| {
                sum += if is_counted(group) { group.tokens } else { 0 };
                sum
            }));
            sums
        };
        Self { all: sums(|_| true), kept: sums(|group| group.is_kept) }
    }
}
