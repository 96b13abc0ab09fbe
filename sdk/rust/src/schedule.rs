//! Timers that outlive the host.
//!
//! A timer is stored on disk and fires at its time. If the host was not running then, the timer
//! fires later and the firing is marked as late. The manifest requests `schedule`, the policy
//! grants it, and [`export_plugin!`](crate::export_plugin) names the function to call.
//!
//! ```
//! use std::time::Duration;
//!
//! use sallyport_sdk::{notify, prelude::*, schedule::{self, Firing, Moment}, testing};
//!
//! /// Reminds the user of their tea in four minutes.
//! #[tool]
//! fn tea() -> Result<String, ToolError> {
//!     let in_time = Moment::In(Duration::from_secs(4 * 60));
//!     Ok(schedule::add(in_time, Some("tea"), "green")?.id)
//! }
//!
//! fn ring(firing: Firing, _context: &CallContext) -> Result<(), ToolError> {
//!     let kind: String = firing.timer.payload_as()?;
//!     Ok(notify::send(&notify::Message::new(format!("The {kind} tea is ready.")))?)
//! }
//!
//! sallyport_sdk::export_plugin!(tools = [tea], on_timer = ring);
//!
//! # fn main() {
//! use testing::Power;
//!
//! testing::grant([Power::Schedule, Power::Notify]);
//! tea().unwrap();
//! for firing in testing::pass(Duration::from_secs(240)) {
//!     ring(firing, &CallContext::default()).unwrap();
//! }
//! assert_eq!(testing::noticed()[0].text, "The green tea is ready.");
//! # }
//! ```

use std::{error::Error, fmt, time::Duration};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{ToolError, host};

/// When a timer fires.
///
/// ```
/// use sallyport_sdk::schedule::Moment;
///
/// let weekdays = Moment::Calendar { cron: "30 8 * * MON-FRI".to_owned(), time_zone: None };
/// assert!(weekdays.is_repeated());
/// assert!(!Moment::AtMs(1_800_000_000_000).is_repeated());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moment {
    /// Once, at a time in milliseconds since 1970.
    AtMs(u64),
    /// Once, after a delay.
    In(Duration),
    /// Repeatedly, at an interval.
    Every(Duration),
    /// Repeatedly, by the calendar.
    Calendar {
        /// A cron expression of five fields, or of six with seconds first.
        cron: String,
        /// An IANA time zone; `None` for the host's time zone.
        time_zone: Option<String>,
    },
    /// A kind of time that this version does not know, as JSON.
    Other(Value),
}

impl Moment {
    /// Returns whether the timer can fire more than once.
    pub fn is_repeated(&self) -> bool {
        matches!(self, Self::Every(_) | Self::Calendar { .. })
    }
}

/// A timer that was set.
///
/// ```
/// use std::time::Duration;
///
/// use sallyport_sdk::{schedule::{self, Moment}, testing};
///
/// testing::grant([testing::Power::Schedule]);
/// let timer = schedule::add(Moment::In(Duration::from_secs(1)), None, &7)?;
/// assert_eq!(timer.payload_as::<u8>(), Ok(7));
/// # Ok::<(), schedule::ScheduleError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Timer {
    /// The id, chosen by the host.
    pub id: String,
    /// When it fires.
    pub moment: Moment,
    /// The time of its next firing, in milliseconds since 1970.
    pub next_ms: u64,
    /// The name that users see.
    pub label: Option<String>,
    /// The payload that was passed when the timer was set.
    pub payload: Value,
}

impl Timer {
    /// Deserializes the payload.
    ///
    /// # Errors
    ///
    /// The payload does not match the type; an older version of the plugin may have set it.
    pub fn payload_as<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        T::deserialize(&self.payload).map_err(|e| {
            ToolError::Failed(format!("what the timer {} carries does not fit: {e}", self.id))
        })
    }
}

/// A firing of a timer.
///
/// ```
/// use std::time::Duration;
///
/// use sallyport_sdk::{schedule::{self, Moment}, testing};
///
/// testing::grant([testing::Power::Schedule]);
/// schedule::add(Moment::Every(Duration::from_secs(60)), None, &())?;
/// let firing = testing::pass(Duration::from_secs(150)).remove(0);
/// assert!(firing.late);
/// assert_eq!(firing.missed, 1);
/// # Ok::<(), schedule::ScheduleError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Firing {
    /// The timer. For a repeated one, `next_ms` is the time of the next firing.
    pub timer: Timer,
    /// When it was due, in milliseconds since 1970.
    pub due_ms: u64,
    /// The firing is late, because the host was down or busy.
    pub late: bool,
    /// How many other firings of a repeated timer were missed in that time.
    pub missed: u32,
    /// The host cannot rule out that the timer has fired for this time before. Such a firing is
    /// late as well.
    pub again: bool,
}

/// Why an operation on timers failed. `?` converts it into the matching [`ToolError`].
///
/// ```
/// use sallyport_sdk::{ToolError, schedule::ScheduleError};
///
/// let error = ScheduleError::Invalid { reason: "the moment is in the past".to_owned() };
/// assert_eq!(ToolError::from(error).kind(), "invalid-arguments");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScheduleError {
    /// The policy does not grant `schedule` to this plugin.
    NotGranted,
    /// The time is in the past, never comes or comes too often, or a text is too long.
    Invalid {
        /// What is wrong with it.
        reason: String,
    },
    /// The plugin has its maximum number of timers.
    QuotaReached {
        /// How many that is.
        reason: String,
    },
    /// The store cannot be used at the moment.
    Unavailable {
        /// Why not.
        reason: String,
    },
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotGranted => f.write_str("this plugin may not set timers"),
            Self::Invalid { reason } => write!(f, "the timer cannot be set: {reason}"),
            Self::QuotaReached { reason } => write!(f, "there are too many timers: {reason}"),
            Self::Unavailable { reason } => write!(f, "timers cannot be used: {reason}"),
        }
    }
}

impl Error for ScheduleError {}

impl From<ScheduleError> for ToolError {
    fn from(error: ScheduleError) -> Self {
        let message = error.to_string();
        match error {
            ScheduleError::NotGranted => Self::Denied(message),
            ScheduleError::Invalid { .. } => Self::InvalidArguments(message),
            ScheduleError::QuotaReached { .. } => Self::Failed(message),
            ScheduleError::Unavailable { .. } => Self::Unavailable(message),
        }
    }
}

/// Sets a timer. Users see `label`; the firing contains `payload`.
///
/// ```
/// use std::time::Duration;
///
/// use sallyport_sdk::{schedule::{self, Moment}, testing};
///
/// testing::grant([testing::Power::Schedule]);
/// let timer = schedule::add(Moment::In(Duration::from_secs(9)), Some("egg"), &())?;
/// assert_eq!(timer.next_ms, schedule::now_ms() + 9_000);
/// # Ok::<(), schedule::ScheduleError>(())
/// ```
///
/// # Errors
///
/// The policy does not grant `schedule`, the time is in the past, never comes or comes too often, a
/// text is too long, the payload cannot be serialized, the plugin has too many timers, or the store
/// cannot be used.
pub fn add<T: Serialize + ?Sized>(
    moment: Moment,
    label: Option<&str>,
    payload: &T,
) -> Result<Timer, ScheduleError> {
    let payload = serde_json::to_value(payload)
        .map_err(|e| ScheduleError::Invalid { reason: e.to_string() })?;
    host::schedule::add(moment, label, payload)
}

/// Cancels a timer. Returns whether it existed.
///
/// ```
/// use sallyport_sdk::{schedule, testing};
///
/// testing::grant([testing::Power::Schedule]);
/// assert_eq!(schedule::cancel("no such timer"), Ok(false));
/// ```
///
/// # Errors
///
/// The policy does not grant `schedule`, or the store cannot be used.
pub fn cancel(id: &str) -> Result<bool, ScheduleError> {
    host::schedule::cancel(id)
}

/// Lists this plugin's timers for the current user, next to fire first.
///
/// ```
/// use sallyport_sdk::{schedule, testing};
///
/// testing::grant([testing::Power::Schedule]);
/// assert_eq!(schedule::list(), Ok(vec![]));
/// ```
///
/// # Errors
///
/// The policy does not grant `schedule`, or the store cannot be used.
pub fn list() -> Result<Vec<Timer>, ScheduleError> {
    host::schedule::list()
}

/// Returns the current time in milliseconds since 1970. In a test, the time only changes with
/// [`testing::pass`](crate::testing).
///
/// ```
/// use std::time::Duration;
///
/// use sallyport_sdk::{schedule, testing};
///
/// let before = schedule::now_ms();
/// testing::pass(Duration::from_secs(1));
/// assert_eq!(schedule::now_ms(), before + 1_000);
/// ```
pub fn now_ms() -> u64 {
    host::schedule::now_ms()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Power};

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn without_a_grant_no_timer_is_set() {
        assert_eq!(add(Moment::In(MINUTE), None, &()), Err(ScheduleError::NotGranted));
        assert_eq!(cancel("1"), Err(ScheduleError::NotGranted));
        assert_eq!(list(), Err(ScheduleError::NotGranted));
        assert_eq!(ToolError::from(ScheduleError::NotGranted).kind(), "denied");
    }

    #[test]
    fn timers_fire_in_their_order_and_once() {
        testing::grant([Power::Schedule]);
        add(Moment::In(2 * MINUTE), Some("late"), &()).unwrap();
        let gone = add(Moment::In(MINUTE), Some("gone"), &()).unwrap();
        add(Moment::In(MINUTE), Some("early"), &()).unwrap();
        assert_eq!(cancel(&gone.id), Ok(true));
        assert_eq!(testing::pass(MINUTE / 2), []);
        let labels: Vec<_> =
            testing::pass(3 * MINUTE).into_iter().filter_map(|f| f.timer.label).collect();
        assert_eq!(labels, ["early", "late"]);
        assert_eq!(testing::pass(3 * MINUTE), []);
        assert_eq!(list(), Ok(vec![]));
    }

    #[test]
    fn what_never_comes_is_refused() {
        testing::grant([Power::Schedule]);
        for moment in [Moment::AtMs(1), Moment::In(Duration::ZERO), Moment::Every(Duration::ZERO)] {
            let error = add(moment, None, &()).unwrap_err();
            assert!(matches!(error, ScheduleError::Invalid { .. }), "{error}");
        }
    }
}
