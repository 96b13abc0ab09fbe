//! A timer as either database keeps it, and what follows from its row.

use sallyport_contract::services::{StoredTimer, TimerError, TimerFiring, TimerRequest};

use super::LATE_MS;
use crate::error::check_length;

/// Longest label, in bytes: one line that users read.
const LABEL_BYTES_MAX: usize = 256;

/// Longest payload, in bytes. A payload is a plugin's note to itself; larger data belongs in its
/// state.
const PAYLOAD_BYTES_MAX: usize = 64 << 10;

/// Most timers that are listed as due. The caller lists the others after these.
pub(crate) const DUE_MAX: usize = 64;

/// The prefix of the number in a timer's id.
const PREFIX: &str = "t-";

/// A timer, with the columns that only its claims need.
pub(crate) struct TimerRow {
    pub(crate) key: i64,
    pub(crate) timer: StoredTimer,
    pub(crate) set_ms: u64,
    pub(crate) claims: i64,
    /// The process that has claimed the timer and not settled it.
    pub(crate) process: Option<String>,
    pub(crate) lease_ms: Option<u64>,
    pub(crate) again: bool,
}

impl TimerRow {
    /// Whether the timer is due and not claimed. A claim is free when its process has ended.
    pub(crate) fn is_claimable(&self, now_ms: u64, has_ended: impl Fn(&str) -> bool) -> bool {
        let is_claimed = self.process.as_deref().is_some_and(|holder| {
            !has_ended(holder) && self.lease_ms.is_some_and(|end| end > now_ms)
        });
        self.timer.next_ms <= now_ms && !is_claimed
    }

    /// The firing of a timer that is due.
    pub(crate) fn to_firing(&self, now_ms: u64, next_ms: Option<u64>) -> TimerFiring {
        let due_ms = self.timer.next_ms;
        let Self { timer, set_ms, process, again, .. } = self;
        let again = *again || process.is_some();
        let late = again || now_ms - due_ms > LATE_MS;
        let missed = sallyport_schedule::count_missed(&timer.schedule, *set_ms, due_ms, now_ms);
        let timer = StoredTimer { next_ms: next_ms.unwrap_or(due_ms), ..timer.clone() };
        TimerFiring { timer, due_ms, late, missed: missed.unwrap_or(0), will_repeat: again }
    }

    /// Returns the next time of a repeated timer. A timer whose calendar can no longer be parsed,
    /// or has ended, fires for the last time.
    pub(crate) fn next_firing_ms(&self, now_ms: u64) -> Option<u64> {
        sallyport_schedule::next_firing_ms(&self.timer.schedule, self.set_ms, now_ms).ok().flatten()
    }
}

/// Checks a plan, and returns when it fires first, in milliseconds since 1970.
///
/// # Errors
///
/// A text is too long, or the plan never fires.
pub(crate) fn check_plan(plan: &TimerRequest, now_ms: u64) -> Result<u64, TimerError> {
    let label = plan.label.as_deref().unwrap_or_default();
    check_length("a label", label, LABEL_BYTES_MAX)
        .and_then(|()| check_length("a payload", &plan.payload, PAYLOAD_BYTES_MAX))
        .map_err(|error| TimerError::Invalid(error.to_string()))?;
    sallyport_schedule::first_firing_ms(&plan.schedule, now_ms, plan.interval_ms_min)
        .map_err(|error| TimerError::Invalid(error.to_string()))
}

/// The id of a timer with this key.
pub(crate) fn timer_id(key: i64) -> String {
    format!("{PREFIX}{key}")
}

/// Returns the number in a timer's id; `None` if this program does not write such an id.
pub(crate) fn parse_timer_key(id: &str) -> Option<i64> {
    let key = id.strip_prefix(PREFIX)?.parse().ok()?;
    (timer_id(key) == id).then_some(key)
}
