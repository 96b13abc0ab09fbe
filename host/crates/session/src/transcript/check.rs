//! The rules of a conversation, checked independently.
//!
//! They apply to every outgoing conversation, whichever code made it: the transcript itself, and
//! the versions of it that memory and tool search produce.

use std::collections::{HashSet, VecDeque};

use sallyport_model::{AssistantMessage, Message};

/// A broken rule of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A message appears where its role is not allowed.
    #[error("message {index} cannot stand where it stands")]
    Misplaced {
        /// Its index, from 0.
        index: usize,
    },
    /// Two calls have the same id.
    #[error("two calls have the id {call_id:?}")]
    IdTwice {
        /// The id.
        call_id: String,
    },
    /// A call has no result after its message.
    #[error("call {call_id:?} has no result")]
    ResultMissing {
        /// The call.
        call_id: String,
    },
    /// A result answers no call, or not the next one.
    #[error("the result of {call_id:?} answers no call of the message before it")]
    ResultUnexpected {
        /// The call id of the result.
        call_id: String,
    },
    /// The conversation contains nothing for a model to answer.
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
/// The first broken rule.
pub fn check(messages: &[Message]) -> Result<(), Violation> {
    let mut checker = Checker::default();
    for (index, message) in messages.iter().enumerate() {
        checker.step(index, message)?;
    }
    checker.end()
}

/// Tracks which messages are allowed next.
#[derive(Default)]
struct Checker<'a> {
    ids: HashSet<&'a str>,
    /// Calls that still need their result.
    open: VecDeque<&'a str>,
    /// True after an input or after results: the model may answer.
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
