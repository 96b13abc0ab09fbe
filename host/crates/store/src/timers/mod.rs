//! Timers: what is to happen at its time, also when the host was down by then.
//!
//! Whoever lets a timer fire first claims it, and settles it when it has fired. Of several processes
//! one gets the claim. A claim ends by being settled, which puts a repeated timer on its next time
//! and removes any other; by being released, when the firing has not begun; or with its holder: when
//! that process is gone, at once, and when it lives but neither settles nor renews, as soon as its
//! lease is over. What was claimed and never settled may have happened, so the next firing for that
//! time says that it comes again.
//!
//! A repeated timer that was missed fires once, and says how many other times fell into the time
//! that was missed.
//!
//! A clock that steps back lets nothing fire a second time: a timer's next time is in its row.

mod claim;
mod rows;

use sallyport_contract::services::{Owner, Plan, Timer, TimerError, Timers};

pub use claim::Claim;

use crate::{clock::Clock, error::StoreError, refusal::Refusal, store::Store};

/// How late a timer may be without being called late. A host that sleeps until the time is there
/// within milliseconds; one that looks now and then for what others have set takes up to this.
pub const LATE_MS: u64 = 2000;

/// Longest label; one line that people read.
const LABEL_BYTES_MAX: usize = 256;

/// Longest payload. It is a note of a plugin to itself; more belongs into its state.
const PAYLOAD_BYTES_MAX: usize = 64 << 10;

/// The table of timers. A number is never given to another timer, since a conversation may speak of
/// one that is long over. `claims` counts how often a timer was claimed and names the last claim;
/// while that is unsettled, `process` has it. `again` says that an earlier one for the same time was
/// never settled.
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
pub struct KeptTimers {
    store: Store,
    clock: Clock,
}

impl KeptTimers {
    pub(crate) fn new(store: Store, clock: Clock) -> Self {
        Self { store, clock }
    }

    /// Lists the first timers that are due at a moment, in milliseconds since 1970, and that nobody
    /// has claimed.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn due(&self, now_ms: u64) -> Result<Vec<Timer>, StoreError> {
        self.store.read(|connection| Ok(claim::due(connection, now_ms)?))
    }

    /// Tells when something will be due after a moment: the next time of a timer, or the end of a
    /// lease. What was due by then is not meant. In milliseconds since 1970; `None` when nothing is
    /// planned.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn next_due(&self, after_ms: u64) -> Result<Option<u64>, StoreError> {
        self.store.read(|connection| Ok(rows::next_due(connection, after_ms)?))
    }

    /// Claims a timer that is due, to let it fire within `lease_ms`. `None` when it is not due, when
    /// somebody else has claimed it, or when there is no such timer any more.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn claim(&self, id: &str, now_ms: u64, lease_ms: u64) -> Result<Option<Claim>, StoreError> {
        let lease = claim::Lease::own(now_ms, lease_ms);
        self.store.write(|connection| Ok(claim::claim(connection, id, &lease)?))
    }

    /// Holds a claim for another `lease_ms` from now on. Tells whether it still stood: a timer may
    /// have been cancelled, or taken over after its lease.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn renew(&self, claim: &Claim, now_ms: u64, lease_ms: u64) -> Result<bool, StoreError> {
        let until_ms = now_ms.saturating_add(lease_ms);
        self.store.write(|connection| Ok(claim::renew(connection, claim, until_ms)?))
    }

    /// Writes down that a timer has fired, and plans its next time or removes it. Tells whether the
    /// claim still stood; if not, nothing was written.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn settle(&self, claim: &Claim) -> Result<bool, StoreError> {
        self.store.write(|connection| Ok(claim::settle(connection, claim)?))
    }

    /// Gives back a claim whose firing has not begun. Tells whether it still stood.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn release(&self, claim: &Claim) -> Result<bool, StoreError> {
        self.store.write(|connection| Ok(claim::release(connection, claim, false)?))
    }

    /// Gives back a claim whose firing has begun and came to nothing: the next one says that it comes
    /// again. Tells whether it still stood.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn release_begun(&self, claim: &Claim) -> Result<bool, StoreError> {
        self.store.write(|connection| Ok(claim::release(connection, claim, true)?))
    }

    /// Lists the timers of all owners, the next to fire first.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn all(&self) -> Result<Vec<Timer>, StoreError> {
        self.store.read(|connection| Ok(rows::list(connection, &rows::Which::default())?))
    }

    /// Lists an owner's timers that were set in a session, the next to fire first.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn of_session(&self, owner: &Owner, session_id: &str) -> Result<Vec<Timer>, StoreError> {
        let which = rows::Which { owner: Some(owner), session_id: Some(session_id) };
        self.store.read(|connection| Ok(rows::list(connection, &which)?))
    }

    /// Cancels a timer, whoever has set it. Returns what it was, if there was one.
    ///
    /// # Errors
    ///
    /// The database cannot be written.
    pub fn cancel_any(&self, id: &str) -> Result<Option<Timer>, StoreError> {
        self.store.write(|connection| Ok(rows::cancel(connection, id, None)?))
    }
}

impl Timers for KeptTimers {
    fn add(&self, owner: &Owner, plan: Plan) -> Result<Timer, TimerError> {
        check_length("a label", plan.label.as_deref().unwrap_or_default(), LABEL_BYTES_MAX)?;
        check_length("a payload", &plan.payload, PAYLOAD_BYTES_MAX)?;
        let set_ms = self.clock.now_ms();
        let first = sallyport_schedule::first(&plan.moment, set_ms, plan.interval_ms_min);
        let due_ms = first.map_err(|error| TimerError::Invalid(error.to_string()))?;
        let max = plan.timers_max;
        let work = |connection: &_| -> Result<_, Refusal> {
            if rows::count(connection, owner)? >= u64::from(max) {
                return Ok(Err(TimerError::TooMany { max }));
            }
            Ok(Ok(rows::insert(connection, owner, plan, set_ms, due_ms)?))
        };
        self.store.write(work).map_err(unavailable)?
    }

    fn cancel(&self, owner: &Owner, id: &str) -> Result<bool, TimerError> {
        let work = |connection: &_| Ok(rows::cancel(connection, id, Some(owner))?.is_some());
        self.store.write(work).map_err(unavailable)
    }

    fn list(&self, owner: &Owner) -> Result<Vec<Timer>, TimerError> {
        let which = rows::Which { owner: Some(owner), session_id: None };
        let work = |connection: &_| Ok(rows::list(connection, &which)?);
        self.store.read(work).map_err(unavailable)
    }
}

fn check_length(what: &str, text: &str, bytes_max: usize) -> Result<(), TimerError> {
    match text.len() {
        bytes if bytes > bytes_max => Err(TimerError::Invalid(format!(
            "{what} of {bytes} bytes is too long, at most {bytes_max} are taken"
        ))),
        _ => Ok(()),
    }
}

fn unavailable(error: StoreError) -> TimerError {
    TimerError::Unavailable(error.to_string())
}
