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

mod claim;
mod rows;

use sallyport_contract::services::{DataOwner, StoredTimer, TimerError, TimerRequest, TimerStore};

pub use claim::TimerClaim;

use crate::{
    clock::StoreClock, error::StoreError, store::HostStore, transaction_error::TransactionError,
};

/// How late a timer may fire without being marked as late, in milliseconds. A host that sleeps
/// until the time fires within milliseconds; one that polls for the timers of other processes takes
/// up to this long.
pub const LATE_MS: u64 = 2000;

/// Longest label, in bytes: one line that users read.
const LABEL_BYTES_MAX: usize = 256;

/// Longest payload, in bytes. A payload is a plugin's note to itself; larger data belongs in its
/// state.
const PAYLOAD_BYTES_MAX: usize = 64 << 10;

/// The table of timers. A number is never reused, because a conversation may refer to a timer that
/// ended long ago. `claims` counts how often a timer was claimed, and identifies the last claim;
/// while that is unsettled, `process` is its holder. `again` is set if an earlier claim for the
/// same time was never settled.
pub(crate) const TABLE: &str = "
    CREATE TABLE timer (
        key INTEGER PRIMARY KEY AUTOINCREMENT,
        plugin TEXT NOT NULL,
        user TEXT NOT NULL,
        session_id TEXT NOT NULL,
        label TEXT,
        payload TEXT NOT NULL,
        moment TEXT NOT NULL,
        repeats INTEGER NOT NULL,
        set_ms INTEGER NOT NULL,
        due_ms INTEGER NOT NULL,
        claims INTEGER NOT NULL DEFAULT 0,
        process TEXT,
        lease_ms INTEGER,
        again INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX timer_due ON timer (due_ms);
    CREATE INDEX timer_owner ON timer (plugin, user);
";

/// The timers of all owners.
#[derive(Debug, Clone)]
pub struct PersistentTimerStore {
    store: HostStore,
    clock: StoreClock,
}

impl PersistentTimerStore {
    pub(crate) fn new(store: HostStore, clock: StoreClock) -> Self {
        Self { store, clock }
    }

    /// Lists the timers that are due at a time, in milliseconds since 1970, and not claimed: at
    /// most 64, earliest first.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn list_due(&self, now_ms: u64) -> Result<Vec<StoredTimer>, StoreError> {
        self.store.read_transaction(|connection| Ok(claim::list_due_timers(connection, now_ms)?))
    }

    /// Returns the next time after `after_ms` at which a timer is due or the lease of a due timer
    /// ends, in milliseconds since 1970; `None` if there is none. Timers that were due by
    /// `after_ms` do not count.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn next_due_ms(&self, after_ms: u64) -> Result<Option<u64>, StoreError> {
        self.store.read_transaction(|connection| Ok(rows::next_due_ms(connection, after_ms)?))
    }

    /// Claims a timer that is due, for `lease_ms` milliseconds. `None` if the timer is not due, is
    /// claimed already, or does not exist.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn claim(
        &self,
        id: &str,
        now_ms: u64,
        lease_ms: u64,
    ) -> Result<Option<TimerClaim>, StoreError> {
        let lease = claim::ClaimLease::for_current_process(now_ms, lease_ms);
        self.store.write_transaction(|connection| Ok(claim::claim_timer(connection, id, &lease)?))
    }

    /// Extends a claim to `lease_ms` milliseconds from `now_ms`. Returns whether the claim was
    /// still valid: the timer may have been cancelled, or claimed by another process after the
    /// lease ended.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn renew_claim(
        &self,
        claim: &TimerClaim,
        now_ms: u64,
        lease_ms: u64,
    ) -> Result<bool, StoreError> {
        let until_ms = now_ms.saturating_add(lease_ms);
        self.store
            .write_transaction(|connection| Ok(claim::renew_claim(connection, claim, until_ms)?))
    }

    /// Records that a timer has fired, and moves it to its next time or removes it. Returns whether
    /// the claim was still valid; if not, nothing was written.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn complete_claim(&self, claim: &TimerClaim) -> Result<bool, StoreError> {
        self.store.write_transaction(|connection| Ok(claim::complete_claim(connection, claim)?))
    }

    /// Gives back a claim whose firing has not begun. Returns whether the claim was still valid.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn release_claim(&self, claim: &TimerClaim) -> Result<bool, StoreError> {
        self.store
            .write_transaction(|connection| Ok(claim::release_claim(connection, claim, false)?))
    }

    /// Gives back a claim whose firing has begun and came to nothing. The next firing has `again`
    /// set. Returns whether the claim was still valid.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn release_started_claim(&self, claim: &TimerClaim) -> Result<bool, StoreError> {
        self.store
            .write_transaction(|connection| Ok(claim::release_claim(connection, claim, true)?))
    }

    /// Lists the timers of all owners, next to fire first.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn all(&self) -> Result<Vec<StoredTimer>, StoreError> {
        self.store.read_transaction(|connection| {
            Ok(rows::list_timers(connection, &rows::TimerFilter::default())?)
        })
    }

    /// Lists the timers that an owner set in a session, next to fire first.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn list_for_session(
        &self,
        owner: &DataOwner,
        session_id: &str,
    ) -> Result<Vec<StoredTimer>, StoreError> {
        let which = rows::TimerFilter { owner: Some(owner), session_id: Some(session_id) };
        self.store.read_transaction(|connection| Ok(rows::list_timers(connection, &which)?))
    }

    /// Cancels a timer of any owner. Returns the timer, if it existed.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn cancel_for_any_owner(&self, id: &str) -> Result<Option<StoredTimer>, StoreError> {
        self.store.write_transaction(|connection| Ok(rows::cancel_timer(connection, id, None)?))
    }
}

impl TimerStore for PersistentTimerStore {
    fn add_timer(&self, owner: &DataOwner, plan: TimerRequest) -> Result<StoredTimer, TimerError> {
        check_text_length("a label", plan.label.as_deref().unwrap_or_default(), LABEL_BYTES_MAX)?;
        check_text_length("a payload", &plan.payload, PAYLOAD_BYTES_MAX)?;
        let set_ms = self.clock.now_ms();
        let first =
            sallyport_schedule::first_firing_ms(&plan.schedule, set_ms, plan.interval_ms_min);
        let due_ms = first.map_err(|error| TimerError::Invalid(error.to_string()))?;
        let max = plan.timers_max;
        let work = |connection: &_| -> Result<_, TransactionError> {
            if rows::count_timers(connection, owner)? >= u64::from(max) {
                return Ok(Err(TimerError::TooMany { max }));
            }
            Ok(Ok(rows::insert_timer(connection, owner, plan, set_ms, due_ms)?))
        };
        self.store.write_transaction(work).map_err(unavailable_error)?
    }

    fn cancel_timer(&self, owner: &DataOwner, id: &str) -> Result<bool, TimerError> {
        let work = |connection: &_| Ok(rows::cancel_timer(connection, id, Some(owner))?.is_some());
        self.store.write_transaction(work).map_err(unavailable_error)
    }

    fn list_timers(&self, owner: &DataOwner) -> Result<Vec<StoredTimer>, TimerError> {
        let which = rows::TimerFilter { owner: Some(owner), session_id: None };
        let work = |connection: &_| Ok(rows::list_timers(connection, &which)?);
        self.store.read_transaction(work).map_err(unavailable_error)
    }
}

fn check_text_length(what: &str, text: &str, bytes_max: usize) -> Result<(), TimerError> {
    match text.len() {
        bytes if bytes > bytes_max => Err(TimerError::Invalid(format!(
            "{what} of {bytes} bytes is too long, at most {bytes_max} are taken"
        ))),
        _ => Ok(()),
    }
}

fn unavailable_error(error: StoreError) -> TimerError {
    TimerError::Unavailable(error.to_string())
}
