//! The turns of a session, as a user would read them.

use sallyport_contract::text;
use sallyport_model::{
    AssistantMessage, ModelCallRequest, ToolResultMessage, UserInputMessage, chat::split_lines,
};

use crate::{
    budget::TurnUsage, journal::JournalRecord, memory::RecalledMemory, results::KeptResult,
};

/// Longest title, in characters: a line of a list next to a date and a number.
const TITLE_CHARS_MAX: usize = 80;

/// Longest text of the input, and of the answers, by which a turn is remembered, in bytes:
/// embedding models read about as much of a text.
const MEMORY_BYTES_MAX: usize = 2 * 1024;

/// The ending of a turn in which a tool's sentence replaced the answer.
const SPOKEN_END: &str = "spoken";

/// One input and its consequences.
#[derive(Debug, Clone, PartialEq)]
pub struct PastTurn {
    /// Its number, from 1, without undone turns.
    pub number: usize,
    /// The input.
    pub input: UserInputMessage,
    /// The memories that were recalled for it.
    pub recalled: Vec<RecalledMemory>,
    /// Its steps, in order.
    pub steps: Vec<TurnStep>,
    /// How it ended, see [`TurnEnd::as_str`](crate::TurnEnd::as_str); `None` when it was
    /// interrupted.
    pub end: Option<String>,
    /// Its usage.
    pub usage: Option<TurnUsage>,
    /// The model does not see it again.
    pub is_forgotten: bool,
    /// The model keeps seeing it.
    pub is_pinned: bool,
}

/// One step of a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnStep {
    /// The model wrote a text.
    AssistantText {
        /// The text.
        text: String,
    },
    /// The model requested a call.
    ToolCall(PastCall),
    /// A note replaced an answer of the model.
    Note {
        /// The note.
        text: String,
    },
}

/// A call and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastCall {
    /// Unique within the session.
    pub id: String,
    /// The tool; the name that the model wrote if the call did not end.
    pub tool: String,
    /// The arguments as the model wrote them.
    pub arguments: String,
    /// The arguments with which the user replaced them.
    pub edited: Option<String>,
    /// How it ended, see [`Outcome::as_str`](sallyport_contract::Outcome::as_str); `None` when it
    /// was interrupted.
    pub outcome: Option<String>,
    /// The result for the model, as JSON text; empty when the call was interrupted.
    pub result: String,
    /// The whole result is kept, and [`result`](Self::result) is an excerpt.
    pub kept: Option<KeptResult>,
}

/// Returns the turns of a session, without undone ones.
pub fn past_turns(records: &[JournalRecord]) -> Vec<PastTurn> {
    let mut turns = Vec::new();
    records.iter().for_each(|record| apply_record(&mut turns, record));
    turns
}

/// Returns the numbers of the kept results that the turns of a session refer to.
pub fn kept_numbers(records: &[JournalRecord]) -> Vec<u64> {
    let turns = past_turns(records);
    let calls = turns.iter().flat_map(PastTurn::calls);
    calls.filter_map(|call| call.kept.map(|kept| kept.number)).collect()
}

fn apply_record(turns: &mut Vec<PastTurn>, record: &JournalRecord) {
    match record {
        JournalRecord::Input { message } => {
            turns.push(PastTurn::new(turns.len() + 1, message.clone()))
        }
        JournalRecord::Undone => drop(turns.pop()),
        JournalRecord::Pinned { turn } => {
            let turn = turn.checked_sub(1).and_then(|index| turns.get_mut(index));
            turn.into_iter().for_each(|turn| turn.is_pinned = true);
        }
        record => turns.last_mut().into_iter().for_each(|turn| turn.apply_record(record)),
    }
}

impl PastTurn {
    pub(crate) fn new(number: usize, input: UserInputMessage) -> Self {
        let (recalled, steps, end, usage) = (Vec::new(), Vec::new(), None, None);
        Self { number, input, recalled, steps, end, usage, is_forgotten: false, is_pinned: false }
    }

    /// Returns its calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &PastCall> {
        self.steps.iter().filter_map(|step| match step {
            TurnStep::ToolCall(call) => Some(call),
            TurnStep::AssistantText { .. } | TurnStep::Note { .. } => None,
        })
    }

    /// Returns the text that represents the turn and by which it can be found: the question, and
    /// the answer of the model or of a tool that spoke instead. A turn without an answer in text
    /// returns `None`.
    pub fn memory_text(&self) -> Option<String> {
        let is_spoken = self.end.as_deref() == Some(SPOKEN_END);
        let assistant_text = self.steps.iter().filter_map(|step| match step {
            TurnStep::AssistantText { text } => Some(text.trim()),
            TurnStep::Note { text } if is_spoken => Some(text.trim()),
            TurnStep::ToolCall(_) | TurnStep::Note { .. } => None,
        });
        let assistant_text = assistant_text.collect::<Vec<_>>().join("\n");
        let user_text = self.input.text_for_model();
        let memory = format!(
            "User: {}\nAssistant: {}",
            memory_excerpt(user_text.trim()),
            memory_excerpt(&assistant_text)
        );
        (!assistant_text.is_empty()).then_some(memory)
    }

    /// Applies a record of this turn.
    pub(crate) fn apply_record(&mut self, record: &JournalRecord) {
        match record {
            JournalRecord::Answer { message, .. } => self.apply_answer(message),
            JournalRecord::Result { result, tool, outcome, edited, kept } => {
                if let Some(call) = self.apply_result(result, tool, outcome) {
                    (call.edited, call.kept) = (edited.clone(), *kept);
                }
            }
            JournalRecord::Recalled { memories } => self.recalled.clone_from(memories),
            JournalRecord::Note { text } => self.steps.push(TurnStep::Note { text: text.clone() }),
            JournalRecord::Forgotten => self.is_forgotten = true,
            JournalRecord::TurnEnded { end, usage } => {
                (self.end, self.usage) = (Some(end.clone()), Some(*usage));
            }
            _ => {}
        }
    }

    fn apply_answer(&mut self, message: &AssistantMessage) {
        if !message.text.trim().is_empty() {
            self.steps.push(TurnStep::AssistantText { text: message.text.clone() });
        }
        self.steps.extend(message.calls.iter().map(|call| TurnStep::ToolCall(call.into())));
    }

    /// Returns the call that ended, if it is one of this turn.
    fn apply_result(
        &mut self,
        result: &ToolResultMessage,
        tool: &str,
        outcome: &str,
    ) -> Option<&mut PastCall> {
        let call = self.steps.iter_mut().find_map(|step| match step {
            TurnStep::ToolCall(call) if call.id == result.call_id && call.outcome.is_none() => {
                Some(call)
            }
            _ => None,
        })?;
        call.tool = tool.to_owned();
        call.outcome = Some(outcome.to_owned());
        call.result.clone_from(&result.content);
        Some(call)
    }
}

impl From<&ModelCallRequest> for PastCall {
    /// Creates a call that has not ended yet.
    fn from(call: &ModelCallRequest) -> Self {
        Self {
            id: call.id.clone(),
            tool: call.name.clone(),
            arguments: call.arguments.clone(),
            edited: None,
            outcome: None,
            result: String::new(),
            kept: None,
        }
    }
}

/// Returns the records for a new session that shares the first `turn` turns with this one; `None`
/// if there are fewer turns.
pub fn fork_at(records: &[JournalRecord], turn: usize) -> Option<&[JournalRecord]> {
    let mut input_indices = Vec::new();
    for (index, record) in records.iter().enumerate() {
        match record {
            JournalRecord::Input { .. } => input_indices.push(index),
            JournalRecord::Undone => drop(input_indices.pop()),
            _ => {}
        }
    }
    let after = turn.checked_sub(1).map_or(Some(0), |last| Some(input_indices.get(last)? + 1))?;
    let next = records[after..].iter().position(begins_or_ends_turn);
    Some(&records[..next.map_or(records.len(), |next| after + next)])
}

/// Whether a record shows that the turn before it is complete or not the last any more.
fn begins_or_ends_turn(record: &JournalRecord) -> bool {
    matches!(record, JournalRecord::Input { .. } | JournalRecord::Undone)
}

/// Returns a title for a session: the first line of its first input, cut to a line of a list and
/// safe for a terminal; `None` before the first input.
pub fn session_title(records: &[JournalRecord]) -> Option<String> {
    let input = past_turns(records).into_iter().next()?.input;
    let line = input.text.trim().lines().next().unwrap_or_default().trim();
    let name = || input.attachments.first().map(|file| file.name.as_str());
    let line = if line.is_empty() { name()? } else { line };
    Some(text::escape_excerpt(line, TITLE_CHARS_MAX))
}

/// Returns the part of a text by which it is remembered. Continuation lines are indented, so that
/// none can pass for the words of another speaker.
fn memory_excerpt(text: &str) -> String {
    let truncated = &text[..text.floor_char_boundary(MEMORY_BYTES_MAX)];
    split_lines(truncated).collect::<Vec<_>>().join("\n  ")
}
