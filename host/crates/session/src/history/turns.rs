//! The turns of a session, as a person would go through them.

use sallyport_contract::text;
use sallyport_model::{AssistantMessage, CallRequest, ToolResult, UserMessage, chat::lines};

use crate::{event::TurnUsage, journal::Record, recall::Recalled};

/// Longest title, in characters: a line of a list beside a date and a number.
const TITLE_CHARS_MAX: usize = 80;

/// Longest words, in bytes, of the input and of the answers of a turn that it is remembered by: as
/// much as the models that make vectors read of a text.
const MEMORY_BYTES_MAX: usize = 2 * 1024;

/// The word for the end of a turn in which a tool spoke in the model's place.
const SPOKEN: &str = "spoken";

/// One input and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct PastTurn {
    /// Its place, from 1, those not counted that the person took back.
    pub number: usize,
    /// What the person said.
    pub input: UserMessage,
    /// What bore on it and was recalled.
    pub recalled: Vec<Recalled>,
    /// What came of it, in order.
    pub steps: Vec<Step>,
    /// How it ended, see [`TurnEnd::word`](crate::TurnEnd::word); `None` when it was interrupted.
    pub end: Option<String>,
    /// What it used.
    pub usage: Option<TurnUsage>,
    /// The model is not shown it again.
    pub is_forgotten: bool,
    /// It stays in the model's sight.
    pub is_pinned: bool,
}

/// One step of a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// The model said something.
    Said {
        /// Its words.
        text: String,
    },
    /// The model had a call made.
    Called(PastCall),
    /// Something was said in the model's place.
    Noted {
        /// The words.
        text: String,
    },
}

/// A call and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastCall {
    /// Unique within the session.
    pub id: String,
    /// The tool; the name that the model wrote when the call did not end.
    pub tool: String,
    /// The arguments as the model wrote them.
    pub arguments: String,
    /// The arguments that the person put in their place.
    pub edited: Option<String>,
    /// How it ended, see [`Outcome::word`](sallyport_contract::Outcome::word); `None` when it was
    /// interrupted.
    pub outcome: Option<String>,
    /// What the model was told, as JSON text; empty when the call was interrupted.
    pub result: String,
}

/// Returns the turns of a session, those left out that the person took back.
pub fn turns(records: &[Record]) -> Vec<PastTurn> {
    let mut turns = Vec::new();
    records.iter().for_each(|record| take(&mut turns, record));
    turns
}

fn take(turns: &mut Vec<PastTurn>, record: &Record) {
    match record {
        Record::Input { message } => turns.push(PastTurn::new(turns.len() + 1, message.clone())),
        Record::Undone => drop(turns.pop()),
        Record::Pinned { turn } => {
            let turn = turn.checked_sub(1).and_then(|index| turns.get_mut(index));
            turn.into_iter().for_each(|turn| turn.is_pinned = true);
        }
        record => turns.last_mut().into_iter().for_each(|turn| turn.take(record)),
    }
}

impl PastTurn {
    pub(crate) fn new(number: usize, input: UserMessage) -> Self {
        let (recalled, steps, end, usage) = (Vec::new(), Vec::new(), None, None);
        Self { number, input, recalled, steps, end, usage, is_forgotten: false, is_pinned: false }
    }

    /// Its calls, in order.
    pub fn calls(&self) -> impl Iterator<Item = &PastCall> {
        self.steps.iter().filter_map(|step| match step {
            Step::Called(call) => Some(call),
            Step::Said { .. } | Step::Noted { .. } => None,
        })
    }

    /// Returns the words by which it can be found again, and which then stand for it: what was
    /// asked, and what the model said to it, or a tool in its place. A turn without an answer in words
    /// has none.
    pub fn memory(&self) -> Option<String> {
        let is_spoken = self.end.as_deref() == Some(SPOKEN);
        let said = self.steps.iter().filter_map(|step| match step {
            Step::Said { text } => Some(text.trim()),
            Step::Noted { text } if is_spoken => Some(text.trim()),
            Step::Called(_) | Step::Noted { .. } => None,
        });
        let said = said.collect::<Vec<_>>().join("\n");
        let asked = self.input.told();
        let memory = format!("User: {}\nAssistant: {}", set_in(asked.trim()), set_in(&said));
        (!said.is_empty()).then_some(memory)
    }

    /// Takes in what comes of it.
    pub(crate) fn take(&mut self, record: &Record) {
        match record {
            Record::Answer { message, .. } => self.take_answer(message),
            Record::Result { result, tool, outcome, edited } => {
                self.take_result(result, tool, outcome, edited.as_deref());
            }
            Record::Recalled { memories } => self.recalled.clone_from(memories),
            Record::Note { text } => self.steps.push(Step::Noted { text: text.clone() }),
            Record::Forgotten => self.is_forgotten = true,
            Record::TurnEnded { end, usage } => {
                (self.end, self.usage) = (Some(end.clone()), Some(*usage));
            }
            _ => {}
        }
    }

    fn take_answer(&mut self, message: &AssistantMessage) {
        if !message.text.trim().is_empty() {
            self.steps.push(Step::Said { text: message.text.clone() });
        }
        self.steps.extend(message.calls.iter().map(|call| Step::Called(call.into())));
    }

    fn take_result(
        &mut self,
        result: &ToolResult,
        tool: &str,
        outcome: &str,
        edited: Option<&str>,
    ) {
        let call = self.steps.iter_mut().find_map(|step| match step {
            Step::Called(call) if call.id == result.call_id && call.outcome.is_none() => Some(call),
            _ => None,
        });
        if let Some(call) = call {
            call.tool = tool.to_owned();
            call.outcome = Some(outcome.to_owned());
            call.edited = edited.map(str::to_owned);
            call.result.clone_from(&result.content);
        }
    }
}

impl From<&CallRequest> for PastCall {
    /// A call that has not ended yet.
    fn from(call: &CallRequest) -> Self {
        Self {
            id: call.id.clone(),
            tool: call.name.clone(),
            arguments: call.arguments.clone(),
            edited: None,
            outcome: None,
            result: String::new(),
        }
    }
}

/// Returns the records with which another session can begin that shares the first `turn` turns with
/// this one; `None` when there are not so many.
pub fn fork_at(records: &[Record], turn: usize) -> Option<&[Record]> {
    let mut stands = Vec::new();
    for (index, record) in records.iter().enumerate() {
        match record {
            Record::Input { .. } => stands.push(index),
            Record::Undone => drop(stands.pop()),
            _ => {}
        }
    }
    let after = turn.checked_sub(1).map_or(Some(0), |last| Some(stands.get(last)? + 1))?;
    let next = records[after..].iter().position(begins_or_ends_turn);
    Some(&records[..next.map_or(records.len(), |next| after + next)])
}

/// Whether the turn before a record can be told from it to be complete, or is not the last any more.
fn begins_or_ends_turn(record: &Record) -> bool {
    matches!(record, Record::Input { .. } | Record::Undone)
}

/// Returns what to call a session: the first line of its first input, cut to a line of a list and
/// safe for a terminal; `None` before anything was said.
pub fn title(records: &[Record]) -> Option<String> {
    let input = turns(records).into_iter().next()?.input;
    let line = input.text.trim().lines().next().unwrap_or_default().trim();
    let name = || input.attachments.first().map(|file| file.name.as_str());
    let line = if line.is_empty() { name()? } else { line };
    Some(text::excerpt(line, TITLE_CHARS_MAX))
}

/// As much of what somebody said as it is remembered by. A line that follows another is set in, so that
/// it cannot pass for the words of somebody else.
fn set_in(text: &str) -> String {
    let cut = &text[..text.floor_char_boundary(MEMORY_BYTES_MAX)];
    lines(cut).collect::<Vec<_>>().join("\n  ")
}
