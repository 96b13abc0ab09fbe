//! Timers: actions that are due at a time, even if the host was not running then.
//!
//! A process claims a timer before it fires it, and settles the claim afterwards. Of several
//! processes, only one gets the claim. A claim ends in one of these ways:
//!
//! - It is settled, which moves a repeated timer to its next time and removes any other.
//! - It is released: the firing did not begin, or came to nothing.
//! - Its holder's process ends, which frees the claim immediately.
//! - Its lease ends while its holder is running but neither settles nor renews.
//!
//! A firing that was claimed and never settled may have happened, so the next firing for that time
//! has `again` set.
//!
//! A repeated timer that was missed fires once, and reports how many other times were missed.
//!
//! A clock that steps back does not fire a timer a second time: the timer's next time is stored in
//! its row.

pub(crate) mod row;

use sallyport_contract::{
    async_trait,
    services::{StoredTimer, TimerError, TimerFiring, TimerStore},
};

use crate::error::StoreError;

/// How late a timer may fire without being marked as late, in milliseconds. A host that sleeps
/// until the time fires within milliseconds; one that polls for the timers of other processes takes
/// up to this long.
pub const LATE_MS: u64 = 2000;

/// The right to fire a timer once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimerClaim {
    /// The firing.
    pub firing: TimerFiring,
    /// Tells this claim from earlier and later ones to the same timer.
    pub number: i64,
    /// The next time of the timer, once this firing is settled, in milliseconds since 1970; `None`
    /// if it was the last.
    pub next_ms: Option<u64>,
}

/// The timers of all owners. Every method fails if the database cannot be used.
#[async_trait]
pub trait PersistentTimerStore: TimerStore {
    /// Lists the timers that are due at a time, in milliseconds since 1970, and not claimed: at
    /// most 64, earliest first.
    async fn list_due(&self, now_ms: u64) -> Result<Vec<StoredTimer>, StoreError>;

    /// Returns the next time after `after_ms` at which a timer is due or the lease of a due timer
    /// ends, in milliseconds since 1970; `None` if there is none. Timers that were due by
    /// `after_ms` do not count.
    async fn next_due_ms(&self, after_ms: u64) -> Result<Option<u64>, StoreError>;

    /// Claims a timer that is due, for `lease_ms` milliseconds. `None` if the timer is not due, is
    /// claimed already, or does not exist.
    async fn claim(
        &self,
        id: &str,
        now_ms: u64,
        lease_ms: u64,
    ) -> Result<Option<TimerClaim>, StoreError>;

    /// Extends a claim to `lease_ms` milliseconds from `now_ms`. Returns whether the claim was
    /// still valid: the timer may have been cancelled, or claimed by another process after the
    /// lease ended.
    async fn renew_claim(
        &self,
        claim: &TimerClaim,
        now_ms: u64,
        lease_ms: u64,
    ) -> Result<bool, StoreError>;

    /// Records that a timer has fired, and moves it to its next time or removes it. Returns whether
    /// the claim was still valid; if not, nothing was written.
    async fn complete_claim(&self, claim: &TimerClaim) -> Result<bool, StoreError>;

    /// Gives back a claim whose firing has not begun. Returns whether the claim was still valid.
    async fn release_claim(&self, claim: &TimerClaim) -> Result<bool, StoreError>;

    /// Gives back a claim whose firing has begun and came to nothing. The next firing has `again`
    /// set. Returns whether the claim was still valid.
    async fn release_started_claim(&self, claim: &TimerClaim) -> Result<bool, StoreError>;

    /// Lists the timers of all owners, next to fire first.
    async fn all(&self) -> Result<Vec<StoredTimer>, StoreError>;

    /// Cancels a timer of any owner. Returns the timer, if it existed.
    async fn cancel_for_any_owner(&self, id: &str) -> Result<Option<StoredTimer>, StoreError>;
}

impl From<StoreError> for TimerError {
    fn from(error: StoreError) -> Self {
        Self::Unavailable(error.to_string())
    }
}
