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
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use meter::TokenMeter;
pub(crate) use meter::json_bytes;
pub use recalled_memories::{PositionedMemory, RecalledMemory};
pub use summary::summary_request;

use self::{message_groups::MessageGroup, window::WindowBudget};

/// Precedes an input some of whose calls are not shown, so that the model does not believe that it
/// has done nothing yet.
const LEFT_OUT: &str = "[Some calls that you have already made for this input are left out after \
    it, with their results, since the conversation is too long. What they did stays done.]";

/// How much of a conversation is sent to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    let groups = message_groups::group_messages(&messages, pinned, meter);
    if groups.is_empty() {
        return full_view(messages);
    }
    let summary_texts = summary.map_or_else(Vec::new, |existing_summary| {
        summary::summary_messages(existing_summary, memory, meter)
    });
    let first =
        message_groups::first_group_after(&groups, summary.map_or(0, |summary| summary.through));
    let fixed_messages = [message_groups::system_prompt(&messages), &summary_texts].concat();
    let start = WindowBudget::new(memory, meter, &fixed_messages).first_visible(&groups, first);
    let dropped = groups[..start].iter().filter(|group| is_dropped(group, &groups, start));
    let left_out: Vec<Range<usize>> = dropped.map(|group| group.range.clone()).collect();
    let is_unseen = |index: usize| is_among(index, &left_out);
    let unseen =
        recalled.iter().filter(|memory_item| memory_item.message_index.is_none_or(is_unseen));
    let replacements = [recalled_memories::memory_messages(unseen), summary_texts].concat();
    if left_out.is_empty() && replacements.is_empty() {
        return full_view(messages);
    }
    let wants_summary = range_to_summarize(memory, &groups, first, start);
    let messages = Cow::Owned(assemble_messages(&messages, &groups, start, replacements));
    ConversationView { messages, left_out, wants_summary }
}

impl ConversationView<'_> {
    /// Whether a message of the transcript, by its index, is left out.
    pub fn is_left_out(&self, index: usize) -> bool {
        is_among(index, &self.left_out)
    }
}

/// Whether a position is in one of several sorted ranges.
fn is_among(index: usize, ranges: &[Range<usize>]) -> bool {
    let range = ranges.get(ranges.partition_point(|range| range.end <= index));
    range.is_some_and(|range| range.contains(&index))
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
fn is_dropped(group: &MessageGroup, groups: &[MessageGroup], start: usize) -> bool {
    !group.is_kept && group.range != groups[groups[start].turn].range
}

/// The messages left out between the summarized part and the start of the window, if the memory
/// wants a summary of them.
fn range_to_summarize(
    memory: &MemoryMode,
    groups: &[MessageGroup],
    first: usize,
    start: usize,
) -> Option<Range<usize>> {
    let has_dropped = groups[first..start].iter().any(|group| is_dropped(group, groups, start));
    let is_wanted = has_dropped && matches!(memory, MemoryMode::Summary { .. });
    is_wanted.then(|| groups[first].range.start..groups[start].range.start)
}

/// Assembles the view: the system prompt, the kept units of old turns, the replacements of the
/// others, and the newest units, preceded by their turn's input.
fn assemble_messages(
    messages: &[ChatMessage],
    groups: &[MessageGroup],
    start: usize,
    replacements: Vec<ChatMessage>,
) -> Vec<ChatMessage> {
    let turn = groups[start].turn;
    let kept = |groups: &[MessageGroup]| -> Vec<ChatMessage> {
        let kept = groups.iter().filter(|group| group.is_kept);
        kept.flat_map(|group| messages[group.range.clone()].iter().cloned()).collect()
    };
    let mut assembled = message_groups::system_prompt(messages).to_vec();
    assembled.extend(kept(&groups[..turn]));
    assembled.extend(replacements);
    if turn < start {
        let between = &groups[turn + 1..start];
        let mut input = messages[groups[turn].range.start].clone();
        if let ChatMessage::User(user_message) = &mut input
            && between.iter().any(|group| !group.is_kept)
        {
            user_message.append_note(LEFT_OUT.to_owned());
        }
        assembled.push(input);
        assembled.extend(kept(between));
    }
    assembled.extend_from_slice(&messages[groups[start].range.start..]);
    assembled
}
