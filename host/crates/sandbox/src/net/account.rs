//! What all requests of one call come to: how many they are, and how long their bodies. With the
//! call the account is closed, and whatever is still under way on it ends.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use sallyport_policy::ByteSize;
use tokio_util::sync::CancellationToken;
use wasmtime_wasi_http::Error;

use super::HttpGate;

/// The account of one call.
#[derive(Debug, Default)]
pub(crate) struct Account {
    requests: AtomicU32,
    refusals: AtomicU32,
    body_bytes: AtomicU64,
    over: CancellationToken,
}

impl Account {
    /// The call is over, and so is all that it had under way: a guest that lives on has no
    /// connection of it any more.
    pub(crate) fn close(&self) {
        self.over.cancel();
    }

    /// Waits until the call is over.
    pub(super) async fn closed(&self) {
        self.over.cancelled().await;
    }

    /// Counts a request that is about to leave, unless there were as many already.
    pub(super) fn take_request(&self, limit: u32) -> bool {
        self.requests.fetch_add(1, Ordering::Relaxed) < limit
    }

    /// Counts a request that nobody agreed to.
    pub(super) fn add_refusal(&self) {
        self.refusals.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether somebody may be asked about a further request. A guest that is refused again and
    /// again must not ask a person more often than it may send.
    pub(super) fn may_ask(&self, limit: u32) -> bool {
        self.refusals.load(Ordering::Relaxed) < limit
    }

    /// Counts bytes of a body that goes either way, unless they would be too many.
    pub(super) fn take_bytes(&self, bytes: u64, limit: u64) -> bool {
        let add = |sum: u64| sum.checked_add(bytes).filter(|sum| *sum <= limit);
        self.body_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }
}

impl HttpGate {
    /// Ends a request that is one too many.
    pub(super) fn too_many(&self, limit: u32) -> Error {
        let limit = format!("{limit} requests per call (limits.http-requests)");
        self.case.ledger.limit_reached(limit);
        Error::ConnectionLimitReached
    }

    /// Checks how long one body has become.
    ///
    /// # Errors
    ///
    /// The limit in bytes, which is written down.
    pub(super) fn check_body(&self, bytes: u64) -> Result<(), u64> {
        let limit = self.case.grant().limits().http_body_bytes;
        self.within(bytes <= limit, limit, "one body (limits.http-body)")
    }

    /// Counts a piece of a body; `so_far` is the length of the body with it.
    ///
    /// # Errors
    ///
    /// The limit in bytes, which is written down.
    pub(super) fn take_body(&self, so_far: u64, bytes: u64) -> Result<(), u64> {
        self.check_body(so_far)?;
        let limit = self.case.grant().limits().http_total_bytes;
        let fits = self.account.take_bytes(bytes, limit);
        self.within(fits, limit, "all bodies of a call (limits.http-total)")
    }

    fn within(&self, fits: bool, limit: u64, what: &str) -> Result<(), u64> {
        if fits {
            return Ok(());
        }
        self.case.ledger.limit_reached(format!("{} of {what}", ByteSize(limit)));
        Err(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_closed_stays_closed() {
        let account = Account::default();
        assert!(futures::poll!(std::pin::pin!(account.closed())).is_pending());
        account.close();
        account.closed().await;
    }

    #[test]
    fn each_sum_ends_at_its_limit() {
        let account = Account::default();
        assert!(account.take_request(2) && account.take_request(2) && !account.take_request(2));
        assert!(account.take_bytes(60, 100) && account.take_bytes(40, 100));
        assert!(!account.take_bytes(1, 100) && account.take_bytes(0, 100));
        assert!(!account.take_bytes(u64::MAX, u64::MAX));
        assert!(account.may_ask(1));
        account.add_refusal();
        assert!(!account.may_ask(1));
    }
}
