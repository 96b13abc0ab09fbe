//! The baseline of the benchmarks: the same bytes over the same line as an adapter's, without
//! anything that reads or writes them.
//!
//! It stands here because no other crate names the HTTP client. It is compiled for benchmarks only.

use futures::TryStreamExt;

use crate::{
    endpoint::Endpoint,
    wire::{self, Line, http},
};

/// Longest answer; a benchmark's are far shorter.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// A line to a server that speaks OpenAI's `chat/completions`.
#[derive(Debug)]
pub struct Raw {
    line: Line,
}

impl Raw {
    /// Takes the settings. Nothing is opened or sent before the first request.
    ///
    /// # Panics
    ///
    /// The settings cannot work: a benchmark has no one to report to.
    #[expect(clippy::expect_used, reason = "a benchmark stops when its ground is missing")]
    pub fn new(endpoint: &Endpoint) -> Self {
        let headers = wire::headers(endpoint).expect("headers");
        let line = Line::new(endpoint, "chat/completions", headers).expect("an address");
        Self { line }
    }

    /// Sends a body and returns how many bytes the answer has.
    ///
    /// # Panics
    ///
    /// No answer came, or not all of it.
    #[expect(clippy::expect_used, reason = "a benchmark stops when its ground is missing")]
    pub async fn exchange(&self, body: Vec<u8>) -> usize {
        let response = self.line.post(body, "text/event-stream").await.expect("an answer");
        let pieces = http::pieces(response, ANSWER_BYTES_MAX);
        let count = |bytes, piece: bytes::Bytes| async move { Ok(bytes + piece.len()) };
        pieces.try_fold(0, count).await.expect("all of the answer")
    }
}
