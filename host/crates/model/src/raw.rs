//! The baseline of the benchmarks: the bytes and the connection of an adapter, without writing
//! requests or reading answers.
//!
//! No other crate uses the HTTP client, so the module is part of this one. It is compiled for
//! benchmarks only.

use futures::TryStreamExt;

use crate::{
    endpoint::ModelEndpoint,
    wire::{self, ProviderConnection, http},
};

/// Longest answer, in bytes. Those of a benchmark are far shorter.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// A connection to a server that implements OpenAI's `chat/completions`.
#[derive(Debug)]
pub struct RawConnection {
    line: ProviderConnection,
}

impl RawConnection {
    /// Creates a connection. It does not connect before the first request.
    ///
    /// # Panics
    ///
    /// Panics if the settings cannot work, because a benchmark has no caller to report to.
    #[expect(clippy::expect_used, reason = "a benchmark stops when its ground is missing")]
    pub fn new(endpoint: &ModelEndpoint) -> Self {
        let headers = wire::auth_headers(endpoint).expect("headers");
        let line =
            ProviderConnection::new(endpoint, "chat/completions", headers).expect("an address");
        Self { line }
    }

    /// Sends a body and returns the length of the answer in bytes.
    ///
    /// # Panics
    ///
    /// Panics if no complete answer arrives.
    #[expect(clippy::expect_used, reason = "a benchmark stops when its ground is missing")]
    pub async fn exchange(&self, body: Vec<u8>) -> usize {
        let response = self.line.post(body, "text/event-stream").await.expect("an answer");
        let pieces = http::body_pieces(response, ANSWER_BYTES_MAX);
        let count = |bytes, piece: bytes::Bytes| async move { Ok(bytes + piece.len()) };
        pieces.try_fold(0, count).await.expect("all of the answer")
    }
}
