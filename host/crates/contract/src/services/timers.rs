//! Timers that outlive the host.

use serde::{Deserialize, Serialize};

use super::Owner;

/// When a timer fires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Moment {
    /// Once, at a time in milliseconds since 1970.
    AtMs(u64),
    /// Once, so many milliseconds after it is set.
    InMs(u64),
    /// Again and again, so many milliseconds apart, counted from when it is set.
    EveryMs(u64),
    /// Again and again, by the calendar.
    Calendar {
        /// A cron expression of five fields, or of six with seconds first.
        cron: String,
        /// An IANA time zone; the host's own without one.
        time_zone: Option<String>,
    },
}

/// A timer that is to be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// When it fires.
    pub moment: Moment,
    /// A name for people.
    pub label: Option<String>,
    /// JSON text that comes back when it fires.
    pub payload: String,
    /// The session that it was set in.
    pub session_id: String,
    /// The shortest time between two firings that its owner may ask for, in milliseconds.
    pub interval_ms_min: u64,
    /// How many timers its owner may have.
    pub timers_max: u32,
}

/// A timer that is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timer {
    /// Names it.
    pub id: String,
    /// Whose it is.
    pub owner: Owner,
    /// When it fires.
    pub moment: Moment,
    /// When it fires next, in milliseconds since 1970.
    pub next_ms: u64,
    /// A name for people; untrusted.
    pub label: Option<String>,
    /// JSON text that comes back when it fires; untrusted.
    pub payload: String,
    /// The session that it was set in.
    pub session_id: String,
}

/// A timer that fires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Firing {
    /// The timer; of a repeated one, `next_ms` is the next time.
    pub timer: Timer,
    /// When it should have fired, in milliseconds since 1970.
    pub due_ms: u64,
    /// It fires later than it should have.
    pub late: bool,
    /// How many other firings of a repeated timer fell into the time that was missed.
    pub missed: u32,
    /// It may have fired for the same time before; such a firing is late as well.
    pub again: bool,
}

/// Why nothing came of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimerError {
    /// The moment is in the past, never comes, comes too often, or cannot be read; in words that a
    /// plugin may read.
    #[error("{0}")]
    Invalid(String),
    /// The owner has as many timers as it may have.
    #[error("there are {max} timers already, and no more are allowed")]
    TooMany {
        /// How many it may have.
        max: u32,
    },
    /// The store cannot be used; for the log.
    #[error("{0}")]
    Unavailable(String),
}

/// Keeps timers. It may block; whoever asks from async code does so apart from it.
pub trait Timers: Send + Sync {
    /// Sets a timer.
    ///
    /// # Errors
    ///
    /// See [`TimerError`].
    fn add(&self, owner: &Owner, plan: Plan) -> Result<Timer, TimerError>;

    /// Cancels a timer. Returns whether there was one.
    ///
    /// # Errors
    ///
    /// The store cannot be used.
    fn cancel(&self, owner: &Owner, id: &str) -> Result<bool, TimerError>;

    /// Lists the owner's timers, the next to fire first.
    ///
    /// # Errors
    ///
    /// The store cannot be used.
    fn list(&self, owner: &Owner) -> Result<Vec<Timer>, TimerError>;
}
