//! Errors of moments and time expressions. Plugins and users may read them.

use jiff::{Span, Timestamp, fmt::friendly::SpanPrinter, tz::TimeZone};

/// Why a moment cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MomentError {
    /// The moment is over.
    #[error("{} is in the past", stamp(*at_ms))]
    Past {
        /// The moment, in milliseconds since 1970.
        at_ms: u64,
    },
    /// The moment is beyond the range of the calendar.
    #[error("it is too far away, no calendar goes beyond the year 9999")]
    TooFar,
    /// Two firings would be too close together.
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
    /// No day matches the cron expression.
    #[error("the cron expression \"{cron}\" never fires: there is no such day")]
    Never {
        /// The start of the expression.
        cron: String,
    },
    /// The text is not a cron expression.
    #[error("\"{cron}\" is not a cron expression: {why}")]
    Cron {
        /// The start of the expression.
        cron: String,
        /// The parser's error.
        why: String,
    },
    /// The time zone does not exist.
    #[error("there is no time zone \"{name}\"; one is written like Europe/Vienna")]
    Zone {
        /// The start of its name.
        name: String,
    },
}

/// Formats a time in UTC, because the reader's time zone is unknown.
fn stamp(at_ms: u64) -> String {
    let at = i64::try_from(at_ms).ok().and_then(|at| Timestamp::from_millisecond(at).ok());
    at.map_or_else(
        || format!("the moment {at_ms}"),
        |at| at.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
    )
}

/// Formats a duration, such as `1h 30m`.
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

/// Why a time expression does not yield a moment. The text is the start of the expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimeExpressionError {
    /// The expression is not understood.
    #[error("\"{0}\" is not understood as a time")]
    NotUnderstood(String),
    /// A date that is one day if it starts with the day, and another if it starts with the month.
    #[error("\"{0}\" can mean two days")]
    Ambiguous(String),
    /// A weekday of every second or third week. A calendar cannot count weeks.
    #[error("\"{0}\" cannot be set: a day of the week can only come every week")]
    WeeksApart(String),
    /// The moment is over.
    #[error("\"{0}\" is in the past")]
    Past(String),
    /// No calendar has such a day.
    #[error("there is no day like \"{0}\"")]
    NoSuchDay(String),
    /// The expression is understood, but its moment is invalid.
    #[error(transparent)]
    Moment(#[from] MomentError),
}

impl TimeExpressionError {
    /// Returns a suggestion for a valid expression.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotUnderstood(_) => Some(
                "say it in English, like: in 20 minutes; at 17:00; tomorrow at 9; on Friday at noon; \
                 24 December at 18:00; 2026-12-24 18:00; every 2 hours; every weekday at 8:30; \
                 every first of the month",
            ),
            Self::Ambiguous(_) => Some("write the month as a word, or like 2026-12-24"),
            Self::WeeksApart(_) => Some(
                "say every week, like every Tuesday at 9, or count from now, like every 2 weeks",
            ),
            Self::Past(_) => Some("name a later day, or a time that is still to come"),
            Self::NoSuchDay(_) => Some("name a day that the calendar has"),
            Self::Moment(_) => None,
        }
    }
}
