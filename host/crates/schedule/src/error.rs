//! Why a moment, or the words for one, cannot be used; in words that a plugin and a person may read.

use jiff::{Span, Timestamp, fmt::friendly::SpanPrinter, tz::TimeZone};

/// Why a moment cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MomentError {
    /// It is over.
    #[error("{} is in the past", stamp(*at_ms))]
    Past {
        /// The moment, in milliseconds since 1970.
        at_ms: u64,
    },
    /// It is so far away that no calendar reaches it.
    #[error("it is too far away, no calendar goes beyond the year 9999")]
    TooFar,
    /// Two firings would follow each other too fast.
    #[error(
        "it would fire {} apart, at least {} are needed",
        span(*interval_ms),
        span(*interval_ms_min)
    )]
    TooOften {
        /// The shortest time between two firings, in milliseconds.
        interval_ms: u64,
        /// The shortest time that is allowed, in milliseconds.
        interval_ms_min: u64,
    },
    /// No day is like this.
    #[error("the cron expression \"{cron}\" never fires: there is no such day")]
    Never {
        /// The start of the expression.
        cron: String,
    },
    /// It is no cron expression.
    #[error("\"{cron}\" is no cron expression: {why}")]
    Cron {
        /// The start of the expression.
        cron: String,
        /// What is wrong with it.
        why: String,
    },
    /// There is no such time zone.
    #[error("there is no time zone \"{name}\"; one is written like Europe/Vienna")]
    Zone {
        /// The start of its name.
        name: String,
    },
}

/// A moment as UTC, since whoever reads an error may be anywhere.
fn stamp(at_ms: u64) -> String {
    let at = i64::try_from(at_ms).ok().and_then(|at| Timestamp::from_millisecond(at).ok());
    at.map_or_else(
        || format!("the moment {at_ms}"),
        |at| at.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
    )
}

/// A length of time as `1h 30m`.
fn span(ms: u64) -> String {
    let (seconds, ms) = (i64::try_from(ms / 1000).unwrap_or(i64::MAX), (ms % 1000) as i64);
    let parts = Span::new()
        .try_days(seconds / 86_400)
        .and_then(|span| span.try_hours(seconds / 3600 % 24))
        .and_then(|span| span.try_minutes(seconds / 60 % 60))
        .and_then(|span| span.try_seconds(seconds % 60))
        .and_then(|span| span.try_milliseconds(ms));
    parts.map_or_else(|_| "an age".to_owned(), |span| SpanPrinter::new().span_to_string(&span))
}

/// Why the words for a moment mean none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WordsError {
    /// Nobody knows what is meant.
    #[error("\"{text}\" is not understood as a time")]
    NotUnderstood {
        /// The start of what was said.
        text: String,
    },
    /// A date that is one day where the day is written first, and another one where the month is.
    #[error("\"{text}\" can mean two days")]
    Ambiguous {
        /// The start of what was said.
        text: String,
    },
    /// A day of every second or third week: no calendar of timers counts weeks.
    #[error("\"{text}\" cannot be set: a day of the week can only come every week")]
    WeeksApart {
        /// The start of what was said.
        text: String,
    },
    /// It is over.
    #[error("\"{text}\" is in the past")]
    Past {
        /// The start of what was said.
        text: String,
    },
    /// No calendar has such a day.
    #[error("there is no day like \"{text}\"")]
    NoSuchDay {
        /// The start of what was said.
        text: String,
    },
    /// It is understood, and cannot be used.
    #[error(transparent)]
    Moment(#[from] MomentError),
}

impl WordsError {
    /// What can be said instead.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotUnderstood { .. } => Some(
                "say it in English, like: in 20 minutes; at 17:00; tomorrow at 9; on Friday at noon; \
                 24 December at 18:00; 2026-12-24 18:00; every 2 hours; every weekday at 8:30; \
                 every first of the month",
            ),
            Self::Ambiguous { .. } => Some("write the month as a word, or like 2026-12-24"),
            Self::WeeksApart { .. } => Some(
                "say every week, like every Tuesday at 9, or count from now, like every 2 weeks",
            ),
            Self::Past { .. } => Some("name a later day, or a time that is still to come"),
            Self::NoSuchDay { .. } => Some("name a day that the calendar has"),
            Self::Moment(_) => None,
        }
    }
}
