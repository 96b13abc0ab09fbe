//! The conversation as the model is shown it, kept valid by construction.
//!
//! Providers refuse a conversation in which a call has no result, or two. So results are not
//! appended one by one: `Transcript::record` answers every call of the last message at once, from
//! that message itself, and `Transcript::close` leaves a state from which the next turn can
//! start. [`check`] says the same rules once more, from outside, for every request that leaves.

use std::collections::{HashSet, VecDeque};

use sallyport_contract::Outcome;
use sallyport_model::{AssistantMessage, CallRequest, Message, ToolResult};
use serde_json::{Value, json};

/// Longest result of one call that a model is shown, in bytes of JSON. It is a large part of what
/// the models of today can hold, and a tool that has more to say should be asked for less.
pub const RESULT_BYTES_MAX: usize = 256 * 1024;

/// Room for the object around the part that is kept of a longer result.
const CUT_FRAME_BYTES: usize = 256;

/// Owns the messages of a session.
#[derive(Debug)]
pub(super) struct Transcript {
    messages: Vec<Message>,
    ids: CallIds,
}

impl Transcript {
    /// Begins a conversation.
    pub(super) fn new(system_prompt: Option<String>) -> Self {
        let messages = system_prompt.map(|text| Message::System { text }).into_iter().collect();
        Self { messages, ids: CallIds::default() }
    }

    /// The conversation so far.
    pub(super) fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Appends what the person said.
    pub(super) fn ask(&mut self, text: String) {
        self.messages.push(Message::user(text));
    }

    /// Appends what the model answered and returns its calls, their ids now unique. If one had to
    /// be changed, the provider's own form of the message would contradict it and is dropped.
    pub(super) fn answer(&mut self, mut message: AssistantMessage) -> Vec<CallRequest> {
        for call in &mut message.calls {
            if self.ids.claim(&mut call.id) == Claim::Replaced {
                message.opaque = None;
            }
        }
        let calls = message.calls.clone();
        self.messages.push(Message::Assistant(message));
        calls
    }

    /// Appends one result for each call of the last message, in the order of the calls. A call
    /// without an outcome counts as cancelled.
    pub(super) fn record<'a>(&mut self, outcomes: impl IntoIterator<Item = &'a Outcome>) {
        let Some(Message::Assistant(message)) = self.messages.last() else { return };
        let mut outcomes = outcomes.into_iter();
        let results: Vec<Message> = message
            .calls
            .iter()
            .map(|call| (call, outcomes.next().unwrap_or(&Outcome::Cancelled)))
            .map(|(call, outcome)| Message::Tool(result(call, outcome)))
            .collect();
        self.messages.extend(results);
    }

    /// Closes a turn in which the model did not have the last word. What was done stays, followed
    /// by the note in the model's place; an input to which nothing was done is taken back.
    pub(super) fn close(&mut self, note: &str) {
        match self.messages.last() {
            Some(Message::User(_)) => drop(self.messages.pop()),
            Some(Message::Tool(_)) => self.say(note.to_owned()),
            Some(Message::System { .. } | Message::Assistant(_)) | None => {}
        }
    }

    /// Appends words that stand in the model's place.
    pub(super) fn say(&mut self, text: String) {
        let message = AssistantMessage { text, ..AssistantMessage::default() };
        self.messages.push(Message::Assistant(message));
    }

    /// Takes the last turn back as a whole, with all that was done in it.
    pub(super) fn forget_turn(&mut self) {
        let is_input = |message: &Message| matches!(message, Message::User(_));
        if let Some(start) = self.messages.iter().rposition(is_input) {
            self.messages.truncate(start);
        }
    }
}

fn result(call: &CallRequest, outcome: &Outcome) -> ToolResult {
    ToolResult {
        call_id: call.id.clone(),
        name: call.name.clone(),
        content: bounded(&outcome.to_model(), RESULT_BYTES_MAX),
        failed: !matches!(outcome, Outcome::Completed(_)),
    }
}

/// Writes a value as JSON text of at most `bytes_max` bytes. A longer one becomes an object that
/// says so and holds the beginning of the text as a string.
fn bounded(value: &Value, bytes_max: usize) -> String {
    let text = value.to_string();
    if text.len() <= bytes_max {
        return text;
    }
    // JSON text holds no raw control characters, so quoting it can at most double it.
    let kept_bytes = text.floor_char_boundary(bytes_max.saturating_sub(CUT_FRAME_BYTES) / 2);
    let cut = json!({
        "cut": "the result is too long, only the beginning of its JSON text is here",
        "bytes": text.len(),
        "bytes_cut": text.len() - kept_bytes,
        "beginning": &text[..kept_bytes],
    });
    cut.to_string()
}

/// The ids that calls of this session have had.
#[derive(Debug, Default)]
struct CallIds {
    taken: HashSet<String>,
    made: u32,
}

#[derive(Debug, PartialEq, Eq)]
enum Claim {
    Kept,
    Replaced,
}

impl CallIds {
    /// Takes an id for a call; one that is empty or was taken before is replaced by a new one.
    fn claim(&mut self, id: &mut String) -> Claim {
        if !id.is_empty() && self.taken.insert(id.clone()) {
            return Claim::Kept;
        }
        loop {
            self.made += 1;
            // Nine letters and digits: what the strictest provider takes as an id.
            *id = format!("call{:05}", self.made);
            if self.taken.insert(id.clone()) {
                return Claim::Replaced;
            }
        }
    }
}

/// What is wrong with a conversation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A message stands where its role cannot stand.
    #[error("message {index} cannot stand where it stands")]
    Misplaced {
        /// Its place, from 0.
        index: usize,
    },
    /// Two calls have one id.
    #[error("two calls have the id {call_id:?}")]
    IdTwice {
        /// The id.
        call_id: String,
    },
    /// A call has no result where its result should stand.
    #[error("call {call_id:?} has no result")]
    ResultMissing {
        /// The call.
        call_id: String,
    },
    /// A result answers no call, or not the call whose turn it is.
    #[error("the result of {call_id:?} answers no call of the message before it")]
    ResultUnexpected {
        /// The call that it names.
        call_id: String,
    },
    /// There is nothing that a model could answer.
    #[error("the conversation does not end with an input or with results")]
    NothingToAnswer,
}

/// Checks a conversation that is about to be sent to a model.
///
/// It starts with the system prompt, if any, and an input. Inputs and answers alternate; an answer
/// with calls is followed by exactly their results, in the order of the calls, and then by another
/// answer. Ids of calls are unique. It ends with an input or with results.
///
/// # Errors
///
/// The first rule that is broken.
pub fn check(messages: &[Message]) -> Result<(), Violation> {
    let mut checker = Checker::default();
    for (index, message) in messages.iter().enumerate() {
        checker.step(index, message)?;
    }
    checker.end()
}

/// What may come next in a conversation.
#[derive(Default)]
struct Checker<'a> {
    ids: HashSet<&'a str>,
    /// Calls that still need their result.
    open: VecDeque<&'a str>,
    /// True after an input or after results: it is the model's turn.
    answerable: bool,
}

impl<'a> Checker<'a> {
    fn step(&mut self, index: usize, message: &'a Message) -> Result<(), Violation> {
        match message {
            Message::Tool(result) => return self.result(&result.call_id),
            _ if !self.open.is_empty() => return self.nothing_open(),
            Message::System { .. } if index == 0 => {}
            Message::User(_) if !self.answerable => self.answerable = true,
            Message::Assistant(answer) if self.answerable => return self.answer(answer),
            _ => return Err(Violation::Misplaced { index }),
        }
        Ok(())
    }

    fn answer(&mut self, answer: &'a AssistantMessage) -> Result<(), Violation> {
        for call in &answer.calls {
            if !self.ids.insert(&call.id) {
                return Err(Violation::IdTwice { call_id: call.id.clone() });
            }
            self.open.push_back(&call.id);
        }
        self.answerable = !answer.calls.is_empty();
        Ok(())
    }

    fn result(&mut self, call_id: &str) -> Result<(), Violation> {
        match self.open.pop_front() {
            Some(open) if open == call_id => Ok(()),
            _ => Err(Violation::ResultUnexpected { call_id: call_id.to_owned() }),
        }
    }

    fn nothing_open(&self) -> Result<(), Violation> {
        match self.open.front() {
            Some(call_id) => Err(Violation::ResultMissing { call_id: (*call_id).to_owned() }),
            None => Ok(()),
        }
    }

    fn end(&self) -> Result<(), Violation> {
        self.nothing_open()?;
        if self.answerable { Ok(()) } else { Err(Violation::NothingToAnswer) }
    }
}
