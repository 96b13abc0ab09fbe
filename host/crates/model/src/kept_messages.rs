//! Keeps the messages of a conversation as they were written for the last request.
//!
//! A session sends its whole conversation with every request, and all but the last messages are the
//! same as before. Repairing and writing them again would cost more with every call.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
};

use serde_json::value::RawValue;

use crate::{
    chat::ChatMessage,
    fit::{FittedTools, HistoryRepair},
};

/// Longest JSON of a conversation that is kept, in bytes. A longer conversation is written anew for
/// each request.
const KEPT_BYTES_MAX: usize = 16 << 20;

/// The written messages of one conversation. It belongs to the conversation, because a model serves
/// several.
///
/// What is kept is used only for a request that begins with the same messages in full, for the same
/// origin (protocol and model), and with the same renamed properties of tools. Anything else, such
/// as a turn that was undone, a shortened view or another model, discards all of it, because the
/// repair of a call's id depends on every earlier message. Redaction needs no rule of its own: it
/// changes messages, and they are compared.
#[derive(Default)]
pub struct KeptMessages(Mutex<WrittenMessages>);

/// Writes each message on its own. Not every protocol allows that: some join messages.
pub(crate) trait SingleMessageWriter {
    /// Returns a repaired message as JSON.
    fn message_json(&self, message: &ChatMessage) -> Box<RawValue>;

    /// Returns the body of a request with these messages.
    fn body_with(&self, messages: &[Box<RawValue>]) -> Vec<u8>;
}

#[derive(Default)]
struct WrittenMessages {
    origin: String,
    /// Also contains the renamed properties for which the messages were repaired.
    repair: HistoryRepair,
    /// The messages before repairs.
    sources: Vec<ChatMessage>,
    /// One for each source.
    json: Vec<Box<RawValue>>,
    json_bytes: usize,
}

impl KeptMessages {
    /// Returns the body of a request. Only the messages that the last request did not contain are
    /// repaired and written.
    pub(crate) fn write_body(
        &self,
        messages: &[ChatMessage],
        fit: &FittedTools,
        origin: &str,
        writer: &dyn SingleMessageWriter,
    ) -> Vec<u8> {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !written.is_prefix_of(messages, fit, origin) {
            *written = WrittenMessages {
                origin: origin.to_owned(),
                repair: fit.begin_repair(),
                ..WrittenMessages::default()
            };
        }
        for message in &messages[written.sources.len()..] {
            written.push(message, writer);
        }
        let body = writer.body_with(&written.json);
        if written.json_bytes > KEPT_BYTES_MAX {
            *written = WrittenMessages::default();
        }
        body
    }
}

impl fmt::Debug for KeptMessages {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("KeptMessages")
    }
}

impl WrittenMessages {
    fn is_prefix_of(&self, messages: &[ChatMessage], fit: &FittedTools, origin: &str) -> bool {
        self.origin == origin && self.repair.is_for(fit) && messages.starts_with(&self.sources)
    }

    fn push(&mut self, message: &ChatMessage, writer: &dyn SingleMessageWriter) {
        let repaired = self.repair.repair_message(message, &self.origin);
        let json = writer.message_json(repaired.as_ref().unwrap_or(message));
        self.json_bytes += json.get().len();
        self.sources.push(message.clone());
        self.json.push(json);
    }
}

#[cfg(test)]
mod tests;
