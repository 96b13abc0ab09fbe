//! The part of a long conversation that a model sees.
//!
//! A transcript is never shortened; each request sends a *view* of it, computed from the transcript
//! alone. The same conversation gives the same view, and a further message never brings back a
//! message that was left out.

mod message_groups;
mod meter;
mod recalled_memories;
mod shorten;
mod summary;
#[cfg(test)]
mod tests;
mod window;

use std::{borrow::Cow, collections::BTreeSet, ops::Range};

use sallyport_model::ChatMessage;
use serde::{Deserialize, Serialize};

pub use meter::TokenMeter;
pub(crate) use meter::json_bytes;
pub use recalled_memories::PositionedMemory;
pub use summary::summary_request;

use self::{message_groups::MessageGroup, window::WindowBudget};

/// Precedes an input some of whose calls are not shown, so that the model does not believe that it
/// has done nothing yet.
const LEFT_OUT: &str = "[Some calls that you have already made for this input are left out after \
    it, with their results, since the conversation is too long. What they did stays done.]";

/// How much of a conversation is sent to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryMode {
    /// Everything that no summary replaces.
    None,
    /// The system prompt, the first turn's input and answer, what is pinned, and the newest turns.
    SlidingWindow {
        /// Most tokens, by estimate.
        tokens_max: u64,
    },
    /// The same, with a request for a summary of the messages that are left out.
    Summary {
        /// Most tokens, by estimate.
        tokens_max: u64,
    },
    /// The same as the window, and in front of the newest turns the earlier texts and facts that
    /// are relevant to the last input.
    ByMeaning {
        /// Most tokens of the window, by estimate.
        tokens_max: u64,
        /// Most tokens of the recalled memories, by estimate.
        recalled_tokens_max: u64,
    },
}

/// Replaces the beginning of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationSummary {
    /// The model's text.
    pub text: String,
    /// How many messages of the transcript it replaces, from the first. Undoing a turn among them
    /// voids it.
    pub through: usize,
}

/// The messages of a conversation that are sent.
#[derive(Debug, Clone, PartialEq)]
pub struct ConversationView<'a> {
    /// The messages, ready to be sent.
    pub messages: Cow<'a, [ChatMessage]>,
    /// The ranges of the transcript's messages that are left out, in order.
    pub left_out: Vec<Range<usize>>,
    /// The messages of the transcript that are left out and not summarized yet. A summary of them,
    /// requested with [`summary_request`], replaces everything up to the end of the range. Without
    /// one, this view is sent.
    pub wants_summary: Option<Range<usize>>,
}

/// Returns the view of a transcript that is itself valid.
///
/// It fits the budget unless the system prompt, the messages that are always kept and the last
/// exchange exceed it; recalled memories have a budget of their own. `pinned` contains indices of
/// the transcript. A summary replaces its messages in every memory, because the user requested it;
/// one that covers more messages than there are is not used.
pub fn build_view<'a>(
    memory: &MemoryMode,
    transcript: &'a [ChatMessage],
    pinned: &BTreeSet<usize>,
    summary: Option<&ConversationSummary>,
    recalled: &[PositionedMemory<'_>],
    meter: &TokenMeter,
) -> ConversationView<'a> {
    let summary = summary.filter(|summary| summary.is_usable(transcript));
    if *memory == MemoryMode::None && summary.is_none() {
        // Nothing is left out, so the estimate, which reads the whole conversation, is skipped.
        return full_view(Cow::Borrowed(transcript));
    }
    let messages = shorten::shorten_results(transcript, memory.tokens_max(), meter);
    let units = message_groups::group_messages(&messages, pinned, meter);
    if units.is_empty() {
        return full_view(messages);
    }
    let summed_up = summary.map_or_else(Vec::new, |s| summary::summary_messages(s, memory, meter));
    let first =
        message_groups::first_group_after(&units, summary.map_or(0, |summary| summary.through));
    let always = [message_groups::system_prompt(&messages), &summed_up].concat();
    let start = WindowBudget::new(memory, meter, &always).first_visible(&units, first);
    let dropped = units[..start].iter().filter(|unit| is_dropped(unit, &units, start));
    let left_out: Vec<Range<usize>> = dropped.map(|unit| unit.range.clone()).collect();
    let is_unseen = |place: usize| is_among(place, &left_out);
    let unseen = recalled.iter().filter(|one| one.message_index.is_none_or(is_unseen));
    let stands_in = [recalled_memories::memory_messages(unseen), summed_up].concat();
    if left_out.is_empty() && stands_in.is_empty() {
        return full_view(messages);
    }
    let wants_summary = range_to_summarize(memory, &units, first, start);
    let messages = Cow::Owned(assemble_messages(&messages, &units, start, stands_in));
    ConversationView { messages, left_out, wants_summary }
}

impl ConversationView<'_> {
    /// Whether a message of the transcript, by its index, is left out.
    pub fn is_left_out(&self, place: usize) -> bool {
        is_among(place, &self.left_out)
    }
}

/// Whether a position is in one of several sorted ranges.
fn is_among(place: usize, ranges: &[Range<usize>]) -> bool {
    let range = ranges.get(ranges.partition_point(|range| range.end <= place));
    range.is_some_and(|range| range.contains(&place))
}

/// A view in which nothing is left out.
fn full_view(messages: Cow<'_, [ChatMessage]>) -> ConversationView<'_> {
    ConversationView { messages, left_out: Vec::new(), wants_summary: None }
}

impl MemoryMode {
    fn tokens_max(&self) -> u64 {
        match *self {
            Self::None => u64::MAX,
            Self::SlidingWindow { tokens_max }
            | Self::Summary { tokens_max }
            | Self::ByMeaning { tokens_max, .. } => tokens_max,
        }
    }
}

impl ConversationSummary {
    /// Whether it has text, and covers only messages that exist.
    fn is_usable(&self, transcript: &[ChatMessage]) -> bool {
        self.through <= transcript.len() && !self.text.trim().is_empty()
    }
}

/// Whether a unit before the start of the window is left out. The input of the turn in which the
/// window begins is kept.
fn is_dropped(unit: &MessageGroup, units: &[MessageGroup], start: usize) -> bool {
    !unit.is_kept && unit.range != units[units[start].turn].range
}

/// The messages left out between the summarized part and the start of the window, if the memory
/// wants a summary of them.
fn range_to_summarize(
    memory: &MemoryMode,
    units: &[MessageGroup],
    first: usize,
    start: usize,
) -> Option<Range<usize>> {
    let any = units[first..start].iter().any(|unit| is_dropped(unit, units, start));
    let is_wanted = any && matches!(memory, MemoryMode::Summary { .. });
    is_wanted.then(|| units[first].range.start..units[start].range.start)
}

/// Assembles the view: the system prompt, the kept units of old turns, the replacements of the
/// others, and the newest units, preceded by their turn's input.
fn assemble_messages(
    messages: &[ChatMessage],
    units: &[MessageGroup],
    start: usize,
    stands_in: Vec<ChatMessage>,
) -> Vec<ChatMessage> {
    let turn = units[start].turn;
    let kept = |units: &[MessageGroup]| -> Vec<ChatMessage> {
        let kept = units.iter().filter(|unit| unit.is_kept);
        kept.flat_map(|unit| messages[unit.range.clone()].iter().cloned()).collect()
    };
    let mut sent = message_groups::system_prompt(messages).to_vec();
    sent.extend(kept(&units[..turn]));
    sent.extend(stands_in);
    if turn < start {
        let between = &units[turn + 1..start];
        let mut input = messages[units[turn].range.start].clone();
        if let ChatMessage::User(said) = &mut input
            && between.iter().any(|unit| !unit.is_kept)
        {
            said.append_note(LEFT_OUT.to_owned());
        }
        sent.push(input);
        sent.extend(kept(between));
    }
    sent.extend_from_slice(&messages[units[start].range.start..]);
    sent
}
