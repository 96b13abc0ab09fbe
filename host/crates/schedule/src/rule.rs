//! A parsed moment, which computes its firing times.

use croner::{Cron, errors::CronError, parser::CronParser};
use jiff::{Timestamp, Zoned, tz::TimeZone};
use sallyport_contract::{services::TimerSchedule, text};

use crate::error::MomentError;

/// Maximum length of a cron expression, in bytes. One that lists every minute and hour is about
/// this long.
const CRON_BYTES_MAX: usize = 256;

/// Maximum length of a time zone's name, in bytes: twice the longest that exists.
const ZONE_BYTES_MAX: usize = 64;

/// Maximum length of a quoted text in an error, in characters.
const QUOTE_CHARS_MAX: usize = 40;

/// Maximum length of a reason in an error, in characters.
const WHY_CHARS_MAX: usize = 160;

/// A parsed moment.
#[derive(Debug)]
pub(crate) enum FiringRule {
    Once { at_ms: u64 },
    Every { set_ms: u64, every_ms: u64 },
    Calendar { cron: Box<Cron>, text: String, zone: TimeZone },
}

impl FiringRule {
    /// Parses a moment.
    ///
    /// # Errors
    ///
    /// The expression or the time zone is invalid, or the moment is beyond the range of the
    /// calendar.
    pub(crate) fn from_moment(moment: &TimerSchedule, set_ms: u64) -> Result<Self, MomentError> {
        match moment {
            TimerSchedule::AtMs(at_ms) => Ok(Self::Once { at_ms: *at_ms }),
            TimerSchedule::InMs(in_ms) => Ok(Self::Once { at_ms: add_ms(set_ms, *in_ms)? }),
            TimerSchedule::EveryMs(every_ms) => {
                Ok(Self::Every { set_ms, every_ms: (*every_ms).max(1) })
            }
            TimerSchedule::Calendar { cron, time_zone } => Ok(Self::Calendar {
                cron: Box::new(parse_cron(cron)?),
                text: quote_excerpt(cron),
                zone: time_zone
                    .as_deref()
                    .map_or_else(|| Ok(TimeZone::system()), parse_time_zone)?,
            }),
        }
    }

    /// Returns the first firing after a time; `None` if it does not fire any more.
    ///
    /// # Errors
    ///
    /// It never fires, or the time is beyond the range of the calendar.
    pub(crate) fn next_firing(&self, after_ms: u64) -> Result<Option<u64>, MomentError> {
        match self {
            Self::Once { at_ms } => Ok(Some(*at_ms).filter(|at_ms| *at_ms > after_ms)),
            Self::Every { set_ms, every_ms } => {
                let passed = after_ms.saturating_sub(*set_ms) / every_ms;
                let since_set = passed.saturating_add(1).saturating_mul(*every_ms);
                add_ms(*set_ms, since_set).map(Some)
            }
            Self::Calendar { cron, text, zone } => {
                let after = timestamp_from_ms(after_ms)?.to_zoned(zone.clone());
                let never = |_| MomentError::Never { cron: text.clone() };
                let next = cron.find_next_occurrence(&after, false).map_err(never)?;
                u64::try_from(next.timestamp().as_millisecond())
                    .map(Some)
                    .map_err(|_| MomentError::TooFar)
            }
        }
    }

    /// Returns a time in the time zone of this rule.
    ///
    /// # Errors
    ///
    /// The time is beyond the range of the calendar.
    pub(crate) fn to_zoned_time(&self, at_ms: u64) -> Result<Zoned, MomentError> {
        let zone = match self {
            Self::Calendar { zone, .. } => zone.clone(),
            Self::Once { .. } | Self::Every { .. } => TimeZone::UTC,
        };
        Ok(timestamp_from_ms(at_ms)?.to_zoned(zone))
    }
}

/// Returns the time `by_ms` milliseconds later.
///
/// # Errors
///
/// The time is beyond the range of the calendar.
fn add_ms(at_ms: u64, by_ms: u64) -> Result<u64, MomentError> {
    let at_ms = at_ms.checked_add(by_ms).ok_or(MomentError::TooFar)?;
    timestamp_from_ms(at_ms).map(|_| at_ms)
}

/// Converts milliseconds since 1970.
///
/// # Errors
///
/// The time is beyond the range of the calendar.
pub(crate) fn timestamp_from_ms(at_ms: u64) -> Result<Timestamp, MomentError> {
    let at_ms = i64::try_from(at_ms).map_err(|_| MomentError::TooFar)?;
    Timestamp::from_millisecond(at_ms).map_err(|_| MomentError::TooFar)
}

fn parse_cron(text: &str) -> Result<Cron, MomentError> {
    let wrong = |why: &str| MomentError::Cron { cron: quote_excerpt(text), why: why.to_owned() };
    if text.len() > CRON_BYTES_MAX || !text.is_ascii() {
        return Err(wrong("it has at most 256 signs, all of them ASCII"));
    }
    if !matches!(text.split_ascii_whitespace().count(), 5 | 6) {
        return Err(wrong("it has five fields, minute hour day month weekday, or seconds first"));
    }
    CronParser::new().parse(text).map_err(|error| match error {
        CronError::InvalidPattern(why)
        | CronError::IllegalCharacters(why)
        | CronError::ComponentError(why) => {
            wrong(text::escape_excerpt(&why, WHY_CHARS_MAX).trim_end_matches('.'))
        }
        CronError::EmptyPattern
        | CronError::InvalidDate
        | CronError::InvalidTime
        | CronError::TimeSearchLimitExceeded => wrong("no day is like this"),
    })
}

fn parse_time_zone(name: &str) -> Result<TimeZone, MomentError> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"/_+-".contains(&byte);
    let known = (name.len() <= ZONE_BYTES_MAX && name.bytes().all(fits))
        .then(|| TimeZone::get(name).ok())
        .flatten();
    known.ok_or_else(|| MomentError::Zone { name: quote_excerpt(name) })
}

fn quote_excerpt(text: &str) -> String {
    text::escape_excerpt(text, QUOTE_CHARS_MAX)
}
