//! Tracks which part of an answer the user has seen, and shows the rest.
//!
//! The deltas of an answer, joined, are its text. A part that was shown cannot be taken back, so
//! this also applies if the model is asked again after it.

use super::{
    answer::ParsedToolCall,
    scanner::{AnswerPiece, AnswerScanner},
};
use crate::chat::ReplyDelta;

/// Separates two attempts with different texts.
const SEPARATOR: &str = "\n\n";

/// Passes an answer on to the user.
pub(super) struct VisibleReply<'a> {
    on_delta: &'a mut (dyn FnMut(ReplyDelta) + Send),
    scanner: AnswerScanner,
    shown_text: String,
    calls_begun: usize,
    /// Whether the attempt is shown while it arrives. After a shown attempt, the next one is
    /// compared with it first.
    is_live: bool,
}

impl<'a> VisibleReply<'a> {
    pub(super) fn new(on_delta: &'a mut (dyn FnMut(ReplyDelta) + Send)) -> Self {
        let scanner = AnswerScanner::default();
        Self { on_delta, scanner, shown_text: String::new(), calls_begun: 0, is_live: true }
    }

    /// Begins another attempt at the same answer.
    pub(super) fn restart_attempt(&mut self) {
        self.scanner = AnswerScanner::default();
        self.is_live = self.shown_text.is_empty();
    }

    /// Passes on the part of a delta that the user may see.
    pub(super) fn forward_delta(&mut self, delta: ReplyDelta) {
        match delta {
            ReplyDelta::Text { text: piece } if self.is_live => {
                self.scanner.push(&piece).into_iter().for_each(|found| self.show_piece(found));
            }
            ReplyDelta::Text { .. } => {}
            ReplyDelta::CallBegun { name } => self.announce_call(name),
            ReplyDelta::Retry { .. } => {
                self.restart_attempt();
                (self.on_delta)(delta);
            }
            ReplyDelta::Reasoning { .. } | ReplyDelta::LeftOut(_) => (self.on_delta)(delta),
        }
    }

    /// Returns the part of the reply that the user has seen.
    pub(super) fn visible_text(&self) -> &str {
        &self.shown_text
    }

    /// Shows the part of the reply that has not been shown yet, and returns everything shown.
    pub(super) fn finish_reply(mut self, text: &str, calls: &[ParsedToolCall]) -> String {
        match text.strip_prefix(&self.shown_text) {
            Some(rest) => self.show_text(rest.to_owned()),
            None if text.trim() == self.shown_text.trim() || text.is_empty() => {}
            None => self.show_text(format!("{SEPARATOR}{text}")),
        }
        for call in calls.iter().skip(self.calls_begun) {
            self.announce_call(call.name.clone());
        }
        self.shown_text
    }

    fn show_piece(&mut self, found: AnswerPiece) {
        match found {
            AnswerPiece::Reply(text) => self.show_text(text),
            AnswerPiece::Thought(text) => (self.on_delta)(ReplyDelta::Reasoning { text }),
            AnswerPiece::Tool(name) if name.trim().is_empty() => {}
            AnswerPiece::Tool(name) => self.announce_call(name.trim().to_owned()),
        }
    }

    fn show_text(&mut self, text: String) {
        if !text.is_empty() {
            self.shown_text.push_str(&text);
            (self.on_delta)(ReplyDelta::Text { text });
        }
    }

    fn announce_call(&mut self, name: String) {
        self.calls_begun += 1;
        (self.on_delta)(ReplyDelta::CallBegun { name });
    }
}
