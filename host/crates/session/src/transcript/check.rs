//! The rules of a conversation, checked independently.
//!
//! They apply to every outgoing conversation, whichever code made it: the transcript itself, and
//! the versions of it that memory and tool search produce.

use std::collections::{HashSet, VecDeque};

use sallyport_model::{AssistantMessage, ChatMessage};

/// A broken rule of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TranscriptViolation {
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
pub fn check_messages(messages: &[ChatMessage]) -> Result<(), TranscriptViolation> {
    let mut checker = TranscriptChecker::default();
    for (index, message) in messages.iter().enumerate() {
        checker.check_message(index, message)?;
    }
    checker.check_end()
}

/// Tracks which messages are allowed next.
#[derive(Default)]
struct TranscriptChecker<'a> {
    ids: HashSet<&'a str>,
    /// Calls that still need their result.
    open_calls: VecDeque<&'a str>,
    /// True after an input or after results: the model may answer.
    can_answer: bool,
}

impl<'a> TranscriptChecker<'a> {
    fn check_message(
        &mut self,
        index: usize,
        message: &'a ChatMessage,
    ) -> Result<(), TranscriptViolation> {
        match message {
            ChatMessage::Tool(result) => return self.check_result(&result.call_id),
            _ if !self.open_calls.is_empty() => return self.require_no_open_calls(),
            ChatMessage::System { .. } if index == 0 => {}
            ChatMessage::User(_) if !self.can_answer => self.can_answer = true,
            ChatMessage::Assistant(answer) if self.can_answer => return self.check_answer(answer),
            _ => return Err(TranscriptViolation::Misplaced { index }),
        }
        Ok(())
    }

    fn check_answer(&mut self, answer: &'a AssistantMessage) -> Result<(), TranscriptViolation> {
        for call in &answer.calls {
            if !self.ids.insert(&call.id) {
                return Err(TranscriptViolation::IdTwice { call_id: call.id.clone() });
            }
            self.open_calls.push_back(&call.id);
        }
        self.can_answer = !answer.calls.is_empty();
        Ok(())
    }

    fn check_result(&mut self, call_id: &str) -> Result<(), TranscriptViolation> {
        match self.open_calls.pop_front() {
            Some(open) if open == call_id => Ok(()),
            _ => Err(TranscriptViolation::ResultUnexpected { call_id: call_id.to_owned() }),
        }
    }

    fn require_no_open_calls(&self) -> Result<(), TranscriptViolation> {
        match self.open_calls.front() {
            Some(call_id) => {
                Err(TranscriptViolation::ResultMissing { call_id: (*call_id).to_owned() })
            }
            None => Ok(()),
        }
    }

    fn check_end(&self) -> Result<(), TranscriptViolation> {
        self.require_no_open_calls()?;
        if self.can_answer { Ok(()) } else { Err(TranscriptViolation::NothingToAnswer) }
    }
}
