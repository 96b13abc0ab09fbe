//! A transcript, cut where providers accept a cut.
//!
//! A *unit* is kept or left out as a whole: an input, an answer without calls, or an answer with
//! calls and their results. A turn is the units from one input to the next. The conversation
//! remains valid whichever units are left out between a turn's input and its last answer. A turn
//! whose input is kept needs its last answer too, because inputs and answers alternate.

use std::{collections::BTreeSet, ops::Range};

use sallyport_model::ChatMessage;

use super::TokenMeter;

/// Messages that are kept or left out together.
#[derive(Debug)]
pub(super) struct MessageGroup {
    /// The messages, by their indices in the transcript.
    pub(super) range: Range<usize>,
    /// The unit that begins the turn of this one.
    pub(super) turn: usize,
    /// Its estimated tokens.
    pub(super) tokens: u64,
    /// Whether it stays regardless of its age.
    pub(super) is_kept: bool,
}

/// Cuts a transcript into units. The system prompt belongs to no unit.
pub(super) fn group_messages(
    transcript: &[ChatMessage],
    pinned: &BTreeSet<usize>,
    meter: &TokenMeter,
) -> Vec<MessageGroup> {
    let mut groups: Vec<MessageGroup> = Vec::new();
    for (index, message) in transcript.iter().enumerate().skip(system_prompt(transcript).len()) {
        let tokens = meter.estimate_tokens(std::slice::from_ref(message));
        match (groups.last_mut(), message) {
            (Some(group), ChatMessage::Tool(_)) => {
                group.range.end = index + 1;
                group.tokens += tokens;
            }
            (last, _) => {
                let is_start = matches!(message, ChatMessage::User(_));
                let turn =
                    last.map(|group| group.turn).filter(|_| !is_start).unwrap_or(groups.len());
                groups.push(MessageGroup { range: index..index + 1, turn, tokens, is_kept: false });
            }
        }
    }
    mark_kept(&mut groups, pinned);
    groups
}

/// Returns the system prompt, or nothing.
pub(super) fn system_prompt(transcript: &[ChatMessage]) -> &[ChatMessage] {
    let is_start = matches!(transcript.first(), Some(ChatMessage::System { .. }));
    &transcript[..usize::from(is_start)]
}

/// Returns the first unit that extends beyond the first `through` messages, else the last unit.
pub(super) fn first_group_after(groups: &[MessageGroup], through: usize) -> usize {
    let first = groups.partition_point(|group| group.range.end <= through);
    first.min(groups.len().saturating_sub(1))
}

/// Marks the units that stay: in the first turn and in turns with a pinned message, the input, the
/// last answer and the pinned units.
fn mark_kept(groups: &mut [MessageGroup], pinned: &BTreeSet<usize>) {
    for turn in groups.chunk_by_mut(|a, b| a.turn == b.turn) {
        let is_pinned = |group: &MessageGroup| pinned.range(group.range.clone()).next().is_some();
        if turn[0].turn > 0 && !turn.iter().any(is_pinned) {
            continue;
        }
        for group in turn.iter_mut() {
            group.is_kept = is_pinned(group);
        }
        turn[0].is_kept = true;
        turn[turn.len() - 1].is_kept = true;
    }
}
