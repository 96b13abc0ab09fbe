//! Timers that outlive the host.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::DataOwner;

/// When a timer fires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimerSchedule {
    /// Once, at a time in milliseconds since 1970.
    AtMs(u64),
    /// Once, this many milliseconds after it is set.
    InMs(u64),
    /// Repeatedly, this many milliseconds apart, counted from when it is set.
    EveryMs(u64),
    /// Repeatedly, by the calendar.
    Calendar {
        /// A cron expression of five fields, or of six with seconds first.
        cron: String,
        /// An IANA time zone; the default is the host's own.
        time_zone: Option<String>,
    },
}

/// A timer to set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimerRequest {
    /// When it fires.
    pub schedule: TimerSchedule,
    /// A display name.
    pub label: Option<String>,
    /// JSON text that is returned when it fires.
    pub payload: String,
    /// The session that it was set in.
    pub session_id: String,
    /// Shortest interval between two firings that the owner may set, in milliseconds.
    pub interval_ms_min: u64,
    /// Most timers that the owner may have.
    pub timers_max: u32,
}

/// A timer that is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTimer {
    /// Identifies the timer.
    pub id: String,
    /// The owner of the timer.
    pub owner: DataOwner,
    /// When it fires.
    pub schedule: TimerSchedule,
    /// When it fires next, in milliseconds since 1970.
    pub next_ms: u64,
    /// A display name; untrusted.
    pub label: Option<String>,
    /// JSON text that is returned when it fires; untrusted.
    pub payload: String,
    /// The session that it was set in.
    pub session_id: String,
}

/// A timer that fires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimerFiring {
    /// The timer; for a repeated one, `next_ms` is the next time.
    pub timer: StoredTimer,
    /// When it should have fired, in milliseconds since 1970.
    pub due_ms: u64,
    /// It fires later than it should have.
    pub late: bool,
    /// How many other firings of a repeated timer fell into the missed time.
    pub missed: u32,
    /// It may have fired for the same time before; such a firing is late as well.
    pub will_repeat: bool,
}

/// Why an operation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimerError {
    /// The time is in the past, never comes, comes too often, or cannot be read; the message is one
    /// that a plugin may read.
    #[error("{0}")]
    Invalid(String),
    /// The owner has as many timers as it may have.
    #[error("there are {max} timers already, and no more are allowed")]
    TooMany {
        /// The limit.
        max: u32,
    },
    /// The store is unavailable; the text is for the log.
    #[error("{0}")]
    Unavailable(String),
}

/// Stores timers.
#[async_trait]
pub trait TimerStore: Send + Sync {
    /// Sets a timer.
    ///
    /// # Errors
    ///
    /// See [`TimerError`].
    async fn add_timer(
        &self,
        owner: &DataOwner,
        plan: TimerRequest,
    ) -> Result<StoredTimer, TimerError>;

    /// Cancels a timer. Returns whether it existed.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    async fn cancel_timer(&self, owner: &DataOwner, id: &str) -> Result<bool, TimerError>;

    /// Lists the owner's timers, the next to fire first.
    ///
    /// # Errors
    ///
    /// The store is unavailable.
    async fn list_timers(&self, owner: &DataOwner) -> Result<Vec<StoredTimer>, TimerError>;
}
