//! The account of one call's requests: their number, and the bytes of their bodies. The account is
//! closed with the call, which ends every request that is still running.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use sallyport_policy::ByteSize;
use tokio_util::sync::CancellationToken;
use wasmtime_wasi_http::Error;

use super::HttpGate;

/// The account of one call.
#[derive(Debug, Default)]
pub(crate) struct HttpUsage {
    requests: AtomicU32,
    refusals: AtomicU32,
    body_bytes: AtomicU64,
    closed: CancellationToken,
}

impl HttpUsage {
    /// Closes the account when the call ends. This ends every request of the call, so that a
    /// stateful guest keeps no connection from it.
    pub(crate) fn close(&self) {
        self.closed.cancel();
    }

    /// Waits until the account is closed.
    pub(super) async fn wait_until_closed(&self) {
        self.closed.cancelled().await;
    }

    /// Counts a request that is about to be sent. Returns false if the limit was reached before.
    pub(super) fn count_request(&self, limit: u32) -> bool {
        self.requests.fetch_add(1, Ordering::Relaxed) < limit
    }

    /// Counts a request that was refused.
    pub(super) fn count_refusal(&self) {
        self.refusals.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether a question about another request is allowed. A guest that is refused again and again
    /// must not ask the user more often than it may send.
    pub(super) fn can_ask(&self, limit: u32) -> bool {
        self.refusals.load(Ordering::Relaxed) < limit
    }

    /// Counts bytes of a body in either direction. Returns false if they exceed the limit.
    pub(super) fn count_bytes(&self, bytes: u64, limit: u64) -> bool {
        let add = |sum: u64| sum.checked_add(bytes).filter(|sum| *sum <= limit);
        self.body_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }
}

impl HttpGate {
    /// Records that the limit of requests is reached, and returns the error.
    pub(super) fn request_limit_error(&self, limit: u32) -> Error {
        let limit = format!("{limit} requests per call (limits.http-requests)");
        self.run_context.effect_log.record_limit(limit);
        Error::ConnectionLimitReached
    }

    /// Checks the length of one body.
    ///
    /// # Errors
    ///
    /// The limit in bytes, which is recorded.
    pub(super) fn check_body_length(&self, bytes: u64) -> Result<(), u64> {
        let limit = self.run_context.current_grant().limits().http_body_bytes;
        self.check_byte_limit(bytes <= limit, limit, "one body (limits.http-body)")
    }

    /// Counts a piece of a body. `so_far` is the length of the body including the piece.
    ///
    /// # Errors
    ///
    /// The limit in bytes, which is recorded.
    pub(super) fn count_body_bytes(&self, so_far: u64, bytes: u64) -> Result<(), u64> {
        self.check_body_length(so_far)?;
        let limit = self.run_context.current_grant().limits().http_total_bytes;
        let fits = self.usage.count_bytes(bytes, limit);
        self.check_byte_limit(fits, limit, "all bodies of a call (limits.http-total)")
    }

    fn check_byte_limit(&self, fits: bool, limit: u64, what: &str) -> Result<(), u64> {
        if fits {
            return Ok(());
        }
        self.run_context.effect_log.record_limit(format!("{} of {what}", ByteSize(limit)));
        Err(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_closed_stays_closed() {
        let account = HttpUsage::default();
        assert!(futures::poll!(std::pin::pin!(account.wait_until_closed())).is_pending());
        account.close();
        account.wait_until_closed().await;
    }

    #[test]
    fn each_sum_ends_at_its_limit() {
        let account = HttpUsage::default();
        assert!(account.count_request(2) && account.count_request(2) && !account.count_request(2));
        assert!(account.count_bytes(60, 100) && account.count_bytes(40, 100));
        assert!(!account.count_bytes(1, 100) && account.count_bytes(0, 100));
        assert!(!account.count_bytes(u64::MAX, u64::MAX));
        assert!(account.can_ask(1));
        account.count_refusal();
        assert!(!account.can_ask(1));
    }
}
