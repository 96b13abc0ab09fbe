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
    let mut units: Vec<MessageGroup> = Vec::new();
    for (index, message) in transcript.iter().enumerate().skip(system_prompt(transcript).len()) {
        let tokens = meter.estimate_tokens(std::slice::from_ref(message));
        match (units.last_mut(), message) {
            (Some(unit), ChatMessage::Tool(_)) => {
                unit.range.end = index + 1;
                unit.tokens += tokens;
            }
            (last, _) => {
                let begins = matches!(message, ChatMessage::User(_));
                let turn = last.map(|unit| unit.turn).filter(|_| !begins).unwrap_or(units.len());
                units.push(MessageGroup { range: index..index + 1, turn, tokens, is_kept: false });
            }
        }
    }
    mark_kept(&mut units, pinned);
    units
}

/// Returns the system prompt, or nothing.
pub(super) fn system_prompt(transcript: &[ChatMessage]) -> &[ChatMessage] {
    let begins = matches!(transcript.first(), Some(ChatMessage::System { .. }));
    &transcript[..usize::from(begins)]
}

/// Returns the first unit that extends beyond the first `through` messages, else the last unit.
pub(super) fn first_group_after(units: &[MessageGroup], through: usize) -> usize {
    let first = units.partition_point(|unit| unit.range.end <= through);
    first.min(units.len().saturating_sub(1))
}

/// Marks the units that stay: in the first turn and in turns with a pinned message, the input, the
/// last answer and the pinned units.
fn mark_kept(units: &mut [MessageGroup], pinned: &BTreeSet<usize>) {
    for turn in units.chunk_by_mut(|a, b| a.turn == b.turn) {
        let is_pinned = |unit: &MessageGroup| pinned.range(unit.range.clone()).next().is_some();
        if turn[0].turn > 0 && !turn.iter().any(is_pinned) {
            continue;
        }
        for unit in turn.iter_mut() {
            unit.is_kept = is_pinned(unit);
        }
        turn[0].is_kept = true;
        turn[turn.len() - 1].is_kept = true;
    }
}
