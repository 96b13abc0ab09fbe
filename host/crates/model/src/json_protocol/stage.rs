//! Tracks which part of an answer the user has seen, and shows the rest.
//!
//! The deltas of an answer, joined, are its text. A part that was shown cannot be taken back, so
//! this also applies if the model is asked again after it.

use super::{
    answer::Wanted,
    scanner::{Found, Scanner},
};
use crate::chat::Delta;

/// Separates two attempts with different texts.
const BETWEEN: &str = "\n\n";

/// Passes an answer on to the user.
pub(super) struct Stage<'a> {
    on_delta: &'a mut (dyn FnMut(Delta) + Send),
    scanner: Scanner,
    seen: String,
    calls_begun: usize,
    /// Whether the attempt is shown while it arrives. After a shown attempt, the next one is
    /// compared with it first.
    is_live: bool,
}

impl<'a> Stage<'a> {
    pub(super) fn new(on_delta: &'a mut (dyn FnMut(Delta) + Send)) -> Self {
        let scanner = Scanner::default();
        Self { on_delta, scanner, seen: String::new(), calls_begun: 0, is_live: true }
    }

    /// Begins another attempt at the same answer.
    pub(super) fn begin_again(&mut self) {
        self.scanner = Scanner::default();
        self.is_live = self.seen.is_empty();
    }

    /// Passes on the part of a delta that the user may see.
    pub(super) fn pass(&mut self, delta: Delta) {
        match delta {
            Delta::Text(piece) if self.is_live => {
                self.scanner.push(&piece).into_iter().for_each(|found| self.show(found));
            }
            Delta::Text(_) => {}
            Delta::CallBegun { name } => self.begin_call(name),
            Delta::Retry { .. } => {
                self.begin_again();
                (self.on_delta)(delta);
            }
            Delta::Reasoning(_) | Delta::LeftOut(_) => (self.on_delta)(delta),
        }
    }

    /// Returns the part of the reply that the user has seen.
    pub(super) fn seen(&self) -> &str {
        &self.seen
    }

    /// Shows the part of the reply that has not been shown yet, and returns everything shown.
    pub(super) fn settle(mut self, text: &str, calls: &[Wanted]) -> String {
        match text.strip_prefix(&self.seen) {
            Some(rest) => self.say(rest.to_owned()),
            None if text.trim() == self.seen.trim() || text.is_empty() => {}
            None => self.say(format!("{BETWEEN}{text}")),
        }
        for call in calls.iter().skip(self.calls_begun) {
            self.begin_call(call.name.clone());
        }
        self.seen
    }

    fn show(&mut self, found: Found) {
        match found {
            Found::Reply(text) => self.say(text),
            Found::Thought(text) => (self.on_delta)(Delta::Reasoning(text)),
            Found::Tool(name) if name.trim().is_empty() => {}
            Found::Tool(name) => self.begin_call(name.trim().to_owned()),
        }
    }

    fn say(&mut self, text: String) {
        if !text.is_empty() {
            self.seen.push_str(&text);
            (self.on_delta)(Delta::Text(text));
        }
    }

    fn begin_call(&mut self, name: String) {
        self.calls_begun += 1;
        (self.on_delta)(Delta::CallBegun { name });
    }
}
