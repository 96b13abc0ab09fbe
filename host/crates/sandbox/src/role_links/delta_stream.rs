//! The pieces of an answer while a provider generates it: limited, without secrets, and consistent
//! with the final answer.

use std::{
    mem,
    sync::{Arc, Mutex},
};

use sallyport_contract::{Redactor, redact::RedactStream};

use crate::{
    mutex::lock_mutex,
    role_data::{DeltaSender, ProviderDelta},
};

/// The cost of each piece in addition to its text, in bytes. It stops a flood of small pieces, each
/// of which is a message to a client.
const PIECE_BYTES: u64 = 16;

/// The pieces of one run.
pub(crate) struct DeltaStream(Mutex<DeltaStreamState>);

struct DeltaStreamState {
    sender: DeltaSender,
    bytes_left: u64,
    text: DeltaRedactor,
    reasoning: DeltaRedactor,
    /// All text that was passed on.
    sent_text: String,
}

/// Removes secrets from pieces, including those that are split across two of them.
struct DeltaRedactor {
    redactor: Arc<Redactor>,
    stream: RedactStream,
}

impl DeltaStream {
    /// Passes pieces on up to the limit.
    pub(crate) fn new(sender: DeltaSender, bytes_max: u64, redactor: &Arc<Redactor>) -> Self {
        let (text, reasoning) = (DeltaRedactor::new(redactor), DeltaRedactor::new(redactor));
        Self(Mutex::new(DeltaStreamState {
            sender,
            bytes_left: bytes_max,
            text,
            reasoning,
            sent_text: String::new(),
        }))
    }

    /// Pushes text. Returns whether it was within the limit. After the first piece that was not,
    /// nothing more is pushed: later text would appear in the wrong place.
    pub(crate) fn push_text(&self, piece: &str, redactor: &Arc<Redactor>) -> bool {
        let mut state = lock_mutex(&self.0);
        let fits = state.count_piece(piece);
        if fits {
            let piece = state.text.push(piece, redactor);
            state.send_text(piece);
        }
        fits
    }

    /// Pushes reasoning. Returns whether it was within the limit.
    pub(crate) fn push_reasoning(&self, piece: &str, redactor: &Arc<Redactor>) -> bool {
        let mut state = lock_mutex(&self.0);
        let fits = state.count_piece(piece);
        if fits {
            let piece = state.reasoning.push(piece, redactor);
            state.send_reasoning(piece);
        }
        fits
    }

    /// Combines the pushed text with the text of the answer, and pushes the missing part.
    pub(crate) fn finish_answer(&self, answer: &str) -> String {
        let mut state = lock_mutex(&self.0);
        let (text, reasoning) = (state.text.finish_redaction(), state.reasoning.finish_redaction());
        state.send_reasoning(reasoning);
        state.send_text(text);
        let missing = missing_suffix(&state.sent_text, answer);
        state.send_text(missing);
        mem::take(&mut state.sent_text)
    }
}

impl DeltaStreamState {
    fn count_piece(&mut self, piece: &str) -> bool {
        let left = self.bytes_left.checked_sub(PIECE_BYTES + piece.len() as u64);
        self.bytes_left = left.unwrap_or_default();
        left.is_some()
    }

    /// A receiver that is gone misses nothing: the answer contains all text.
    fn send_text(&mut self, piece: String) {
        if !piece.is_empty() {
            self.sent_text.push_str(&piece);
            let _ = self.sender.send(ProviderDelta::Text(piece));
        }
    }

    fn send_reasoning(&mut self, piece: String) {
        if !piece.is_empty() {
            let _ = self.sender.send(ProviderDelta::Reasoning(piece));
        }
    }
}

impl DeltaRedactor {
    fn new(redactor: &Arc<Redactor>) -> Self {
        Self { redactor: Arc::clone(redactor), stream: redactor.redact_stream() }
    }

    /// If the redactor has changed, the bytes that were held back are scanned again: they may
    /// contain a secret that has become known since.
    fn push(&mut self, piece: &str, redactor: &Arc<Redactor>) -> String {
        let mut bytes = Vec::new();
        if !Arc::ptr_eq(&self.redactor, redactor) {
            let held = mem::replace(self, Self::new(redactor)).stream.finish();
            bytes.extend_from_slice(&self.stream.push(&held));
        }
        bytes.extend_from_slice(&self.stream.push(piece.as_bytes()));
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn finish_redaction(&mut self) -> String {
        let stream = mem::replace(&mut self.stream, self.redactor.redact_stream());
        String::from_utf8_lossy(&stream.finish()).into_owned()
    }
}

/// The part of an answer that was not pushed yet. White space at the edges is ignored: providers
/// trim it.
fn missing_suffix(sent_text: &str, answer: &str) -> String {
    if let Some(rest) = answer.strip_prefix(sent_text) {
        return rest.to_owned();
    }
    let (sent_text, answer) = (sent_text.trim(), answer.trim());
    match answer.strip_prefix(sent_text) {
        Some(rest) => rest.to_owned(),
        None if sent_text.ends_with(answer) => String::new(),
        None => format!("\n\n{answer}"),
    }
}

#[cfg(test)]
mod tests {
    use sallyport_contract::Secret;
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;

    fn all(pieces: &mut UnboundedReceiver<ProviderDelta>) -> Vec<ProviderDelta> {
        std::iter::from_fn(|| pieces.try_recv().ok()).collect()
    }

    fn text(text: &str) -> ProviderDelta {
        ProviderDelta::Text(text.to_owned())
    }

    #[track_caller]
    fn check(sent_text: &[&str], answer: &str, want: &str) {
        let (sender, mut pieces) = unbounded_channel();
        let redactor = Arc::new(Redactor::empty());
        let speech = DeltaStream::new(sender, 1000, &redactor);
        sent_text.iter().for_each(|piece| assert!(speech.push_text(piece, &redactor)));
        assert_eq!(speech.finish_answer(answer), want);
        let heard = all(&mut pieces).into_iter().map(|piece| match piece {
            ProviderDelta::Text(text) | ProviderDelta::Reasoning(text) => text,
        });
        assert_eq!(heard.collect::<String>(), want, "who heard the pieces has heard the answer");
    }

    #[test]
    fn what_was_said_and_the_answer_are_one_text() {
        check(&[], "", "");
        check(&[], "Hello.", "Hello.");
        check(&["Hel", "lo."], "Hello.", "Hello.");
        check(&["Hel"], "Hello.", "Hello.");
        check(&["Hello."], "", "Hello.");
        check(&["Hello.\n"], "Hello.", "Hello.\n");
        check(&[" Hello"], "Hello there.", " Hello there.");
        check(&["First. ", "Last."], "Last.", "First. Last.");
        check(&["Forgotten."], "Hello.", "Forgotten.\n\nHello.");
    }

    #[test]
    fn after_the_first_piece_that_does_not_fit_nothing_is_said() {
        let (sender, mut pieces) = unbounded_channel();
        let redactor = Arc::new(Redactor::empty());
        let speech = DeltaStream::new(sender, 2 * PIECE_BYTES + 8, &redactor);
        assert!(speech.push_text("four", &redactor));
        assert!(!speech.push_text("much too long for it", &redactor));
        assert!(!speech.push_text("", &redactor) && !speech.push_reasoning("", &redactor));
        assert_eq!(speech.finish_answer("four and"), "four and");
        assert_eq!(all(&mut pieces), [text("four"), text(" and")]);
    }

    #[test]
    fn a_secret_that_lies_across_pieces_is_not_said() {
        let (sender, mut pieces) = unbounded_channel();
        let secret = Secret::new("hunter2-hunter2");
        let (before, since) = (Redactor::empty(), Redactor::new([("key", &secret)]));
        let (before, since) = (Arc::new(before), Arc::new(since));
        let speech = DeltaStream::new(sender, 1000, &before);
        assert!(speech.push_text("it is ", &before));
        assert!(speech.push_text("hunter2-", &since) && speech.push_reasoning("hunter2-", &since));
        assert!(speech.push_text("hunter2!", &since) && speech.push_reasoning("hunter2!", &since));
        let whole = speech.finish_answer("");
        let heard = format!("{:?}", all(&mut pieces));
        assert!(!whole.contains("hunter2") && !heard.contains("hunter2"), "{whole} {heard}");
        assert!(whole.starts_with("it is ") && whole.ends_with('!'), "{whole}");
    }

    #[test]
    fn nobody_has_to_listen() {
        let (sender, pieces) = unbounded_channel();
        drop(pieces);
        let redactor = Arc::new(Redactor::empty());
        let speech = DeltaStream::new(sender, 1000, &redactor);
        assert!(speech.push_text("Hello.", &redactor));
        assert_eq!(speech.finish_answer(""), "Hello.");
    }
}
