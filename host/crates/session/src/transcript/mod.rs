//! The conversation as the model sees it, kept valid by construction.
//!
//! Providers refuse a conversation in which a call has no result, or two. Therefore it changes
//! through `Transcript::apply_record`, which takes a [`JournalRecord`]: any records in any order
//! leave a conversation that can continue. Results wait until every call of the last message has
//! one, and an interrupted turn is closed before anything new begins. A live session and a restored
//! one apply the same records and so have the same transcript.

mod check;
mod ids;
mod notice_backlog;
mod open_calls;

use std::collections::BTreeSet;

use sallyport_model::{AssistantMessage, ChatMessage, ToolResultMessage, UserInputMessage};

use self::{ids::CallIds, notice_backlog::NoticeBacklog, open_calls::OpenCalls};
use crate::{
    journal::JournalRecord,
    memory::{
        ConversationSummary, ConversationView, MemoryMode, PositionedMemory, RecalledMemory,
        TokenMeter, build_view,
    },
};

pub use check::{TranscriptViolation, check_messages};

/// Longest result of one call that a model sees, in bytes of JSON, whatever the options say. It is
/// a large part of today's models' context.
pub const RESULT_BYTES_MAX: usize = 256 * 1024;

/// Replaces the answer of the model when the host ended before it arrived.
const HOST_ENDED: &str = "[stopped: the host ended]";

/// The heading of the facts that the model knows from the start.
const MEMORIES_TITLE: &str = "What you know from earlier conversations:";

/// Owns the messages of a session.
#[derive(Debug, Default)]
pub(crate) struct Transcript {
    messages: Vec<ChatMessage>,
    /// How many messages precede the first turn: the instructions, if there are any.
    head_length: usize,
    turns: Vec<TranscriptTurn>,
    open_calls: Option<OpenCalls>,
    ids: CallIds,
    /// A later summary replaces more. Counted without the instructions.
    summaries: Vec<ConversationSummary>,
    /// Memories that are relevant to the last input.
    recalled: Vec<RecalledMemory>,
    notice_backlog: NoticeBacklog,
    /// The session has kept a long result, perhaps in a turn that was undone.
    has_kept_results: bool,
}

/// One input and the messages that followed.
#[derive(Debug)]
struct TranscriptTurn {
    /// The index of its first message; a forgotten turn has no messages.
    start: usize,
    input: UserInputMessage,
    is_pinned: bool,
}

impl Transcript {
    /// The conversation so far.
    pub(crate) fn messages(&self) -> &[ChatMessage] {
        &self.messages
    }

    /// The number of turns, without undone ones.
    pub(crate) fn turn_count(&self) -> usize {
        self.turns.len()
    }

    /// The input of the last turn.
    pub(crate) fn last_input(&self) -> Option<&UserInputMessage> {
        self.turns.last().map(|turn| &turn.input)
    }

    /// The names of the calls of the last message that have no result yet.
    pub(crate) fn open_calls(&self) -> Vec<String> {
        let open = self.open_calls.iter().flat_map(OpenCalls::calls_without_result);
        open.map(|call| call.name.clone()).collect()
    }

    /// Whether the session has ever kept a long result.
    pub(crate) fn has_kept_results(&self) -> bool {
        self.has_kept_results
    }

    /// Whether an input or results await an answer of the model.
    pub(crate) fn is_unanswered(&self) -> bool {
        matches!(self.messages.last(), Some(ChatMessage::User(_) | ChatMessage::Tool(_)))
    }

    /// The part of the conversation that is sent to a model.
    pub(crate) fn conversation_view(
        &self,
        memory: MemoryMode,
        meter: &TokenMeter,
    ) -> ConversationView<'_> {
        let summary = self.summaries.last().map(|summary| ConversationSummary {
            text: summary.text.clone(),
            through: self.head_length + summary.through,
        });
        let recalled = match memory {
            MemoryMode::ByMeaning { .. } => self.positioned_memories(),
            MemoryMode::None | MemoryMode::SlidingWindow { .. } | MemoryMode::Summary { .. } => {
                Vec::new()
            }
        };
        build_view(
            &memory,
            &self.messages,
            &self.pinned_messages(),
            summary.as_ref(),
            &recalled,
            meter,
        )
    }

    fn positioned_memories(&self) -> Vec<PositionedMemory<'_>> {
        let start_of = |turn: usize| Some(self.turns.get(turn.checked_sub(1)?)?.start);
        let recalled = self.recalled.iter().map(|recalled_memory| PositionedMemory {
            text: &recalled_memory.text,
            turn: recalled_memory.turn,
            message_index: recalled_memory.turn.and_then(start_of),
        });
        recalled.collect()
    }

    /// The turns whose input the model sees, from 1.
    pub(crate) fn visible_turns(&self, memory: MemoryMode, meter: &TokenMeter) -> Vec<usize> {
        let view = self.conversation_view(memory, meter);
        let turns = self.turns.iter().enumerate();
        let turns = turns.filter(|(_, turn)| !view.is_left_out(turn.start));
        turns.map(|(index, _)| index + 1).collect()
    }

    /// The current summary.
    pub(crate) fn summary(&self) -> Option<&ConversationSummary> {
        self.summaries.last()
    }

    /// The number of messages in the instructions and the summarized part.
    pub(crate) fn summarized_count(&self) -> usize {
        self.head_length + self.summaries.last().map_or(0, |summary| summary.through)
    }

    /// The number of messages before the first turn.
    pub(crate) fn head_length(&self) -> usize {
        self.head_length
    }

    /// Makes the ids of a message's calls unique before it is applied.
    pub(crate) fn assign_unique_ids(&mut self, message: &mut AssistantMessage) {
        self.ids.claim_ids(message);
    }

    /// Returns the record that closes a turn without a final answer. Completed work stays, and so
    /// does the text in `said`, followed by the note; an input with neither work nor text is
    /// forgotten.
    pub(crate) fn closing_record(&self, partial_text: &str, note: &str) -> Option<JournalRecord> {
        let is_blank_text = partial_text.trim().is_empty();
        match self.messages.last() {
            Some(ChatMessage::User(_)) if is_blank_text => Some(JournalRecord::Forgotten),
            Some(ChatMessage::Tool(_)) if is_blank_text => {
                Some(JournalRecord::Note { text: note.to_owned() })
            }
            Some(ChatMessage::User(_) | ChatMessage::Tool(_)) => {
                Some(JournalRecord::Note { text: format!("{partial_text}\n{note}") })
            }
            Some(ChatMessage::System { .. } | ChatMessage::Assistant(_)) | None => None,
        }
    }

    /// Applies a record.
    pub(crate) fn apply_record(&mut self, record: JournalRecord) {
        match record {
            JournalRecord::Began { system_prompt, memories, accounts, by_meaning, .. } => {
                let memories = if by_meaning { Vec::new() } else { memories };
                self.set_instructions(compose_instructions(system_prompt, accounts, &memories));
            }
            JournalRecord::Input { message } => self.begin_turn(message),
            JournalRecord::Answer { message, .. } => self.append_answer(message),
            JournalRecord::Result { result, kept, .. } => {
                self.has_kept_results |= kept.is_some();
                self.add_result(result);
            }
            JournalRecord::Note { text } => self.append_text_answer(text),
            JournalRecord::TurnEnded { .. } => self.close_turn(),
            JournalRecord::Forgotten => self.forget_turn(),
            JournalRecord::Undone => self.undo_turn(),
            JournalRecord::Summary { text, through, .. } => {
                self.summaries.push(ConversationSummary { text, through });
            }
            JournalRecord::Recalled { memories } => self.recalled = memories,
            JournalRecord::Noticed { notice } => self.notice_backlog.add_notice(&notice),
            JournalRecord::Pinned { turn } => self.pin_turn(turn),
            JournalRecord::Model { .. } | JournalRecord::Found { .. } | JournalRecord::Unknown => {}
        }
    }

    /// Closes an interrupted turn: first calls without a result, then the missing answer.
    pub(crate) fn close_turn(&mut self) {
        self.end_calls();
        if self.is_unanswered() {
            self.append_text_answer(HOST_ENDED.to_owned());
        }
    }

    fn set_instructions(&mut self, text: Option<String>) {
        let head = usize::from(text.is_some());
        self.messages.splice(..self.head_length, text.map(|text| ChatMessage::System { text }));
        for turn in &mut self.turns {
            turn.start = turn.start - self.head_length + head;
        }
        self.head_length = head;
    }

    fn begin_turn(&mut self, input: UserInputMessage) {
        self.close_turn();
        self.turns.push(TranscriptTurn {
            start: self.messages.len(),
            input: input.clone(),
            is_pinned: false,
        });
        let mut message_for_model = input;
        self.notice_backlog
            .take_for_turn(self.turns.len())
            .into_iter()
            .for_each(|note_text| message_for_model.append_note(note_text));
        self.messages.push(ChatMessage::User(message_for_model));
        self.recalled.clear();
    }

    /// Appends an answer. An empty one is dropped: providers reject it when it is sent back.
    fn append_answer(&mut self, message: AssistantMessage) {
        self.end_calls();
        let is_blank = message.calls.is_empty() && message.text.trim().is_empty();
        if is_blank || !self.is_unanswered() {
            return;
        }
        let calls = message.calls.clone();
        self.messages.push(ChatMessage::Assistant(message));
        self.open_calls = (!calls.is_empty()).then(|| OpenCalls::new(calls));
    }

    fn add_result(&mut self, result: ToolResultMessage) {
        if let Some(open) = &mut self.open_calls {
            open.add_result(result);
            if open.has_all_results() {
                self.end_calls();
            }
        }
    }

    /// Appends a result for every call.
    fn end_calls(&mut self) {
        if let Some(open) = self.open_calls.take() {
            self.messages.extend(open.into_messages());
        }
    }

    fn append_text_answer(&mut self, text: String) {
        self.append_answer(AssistantMessage { text, ..AssistantMessage::default() });
    }

    fn forget_turn(&mut self) {
        if let Some(start) = self.turns.last().map(|turn| turn.start) {
            self.notice_backlog.mark_undelivered(self.turns.len());
            self.truncate_messages(start);
        }
    }

    fn undo_turn(&mut self) {
        if let Some(turn) = self.turns.pop() {
            self.notice_backlog.mark_undelivered(self.turns.len() + 1);
            self.truncate_messages(turn.start);
        }
    }

    fn truncate_messages(&mut self, length: usize) {
        self.open_calls = None;
        self.messages.truncate(length);
        let kept = length - self.head_length;
        self.summaries.retain(|summary| summary.through <= kept);
    }

    fn pin_turn(&mut self, turn: usize) {
        if let Some(turn) = turn.checked_sub(1).and_then(|index| self.turns.get_mut(index)) {
            turn.is_pinned = true;
        }
    }

    /// The indices of the pinned messages.
    fn pinned_messages(&self) -> BTreeSet<usize> {
        let starts = self.turns.iter().map(|turn| turn.start);
        let ends = starts.skip(1).chain([self.messages.len()]);
        let turns = self.turns.iter().zip(ends).filter(|(turn, _)| turn.is_pinned);
        turns.flat_map(|(turn, end)| turn.start..end).collect()
    }
}

fn compose_instructions(
    system_prompt: Option<String>,
    accounts: Option<String>,
    memories: &[String],
) -> Option<String> {
    let known = (!memories.is_empty()).then(|| {
        let memories: Vec<String> = memories.iter().map(|memory| format!("- {memory}")).collect();
        format!("{MEMORIES_TITLE}\n{}", memories.join("\n"))
    });
    let parts: Vec<String> = [system_prompt, accounts, known].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}
