//! Days and moments in the user's time zone.

use std::time::{SystemTime, UNIX_EPOCH};

use chrono::{
    DateTime, Days, LocalResult, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, TimeZone, Utc,
};
use sallyport_sdk::{ToolError, settings};

/// Longest time that is listed, in days. A model reads no more than that.
const SPAN_DAYS_MAX: i64 = 366;

/// The user's time zone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UserZone(pub(crate) chrono_tz::Tz);

/// A whole day, or a moment of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    Day(NaiveDate),
    Time(DateTime<Utc>),
}

/// From a moment to another, which is not part of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeSpan {
    pub(crate) from: DateTime<Utc>,
    pub(crate) to: DateTime<Utc>,
}

/// The present moment.
pub(crate) fn now() -> DateTime<Utc> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    DateTime::from_timestamp(i64::try_from(since.as_secs()).unwrap_or(0), 0).unwrap_or_default()
}

impl UserZone {
    pub(crate) fn from_settings() -> Result<Self, ToolError> {
        let name: String = settings::get("time_zone")?;
        let zone = name.parse().map_err(|_| {
            let message = format!("the setting time_zone is {name:?}, which is no time zone");
            ToolError::Unavailable(format!("{message}; write it like Europe/Berlin"))
        })?;
        Ok(Self(zone))
    }

    /// The present day.
    pub(crate) fn today(&self) -> TimeSpan {
        self.day_span(now().with_timezone(&self.0).date_naive())
    }

    fn day_span(&self, day: NaiveDate) -> TimeSpan {
        let next = day.checked_add_days(Days::new(1)).unwrap_or(day);
        TimeSpan { from: self.start_of_day(day), to: self.start_of_day(next) }
    }

    /// The first moment of a day, which is after midnight where the clocks skip it.
    pub(crate) fn start_of_day(&self, day: NaiveDate) -> DateTime<Utc> {
        let hours = (0..24).filter_map(|hour| day.and_hms_opt(hour, 0, 0));
        let mut moments = hours.filter_map(|time| self.moment_of(time));
        moments.next().unwrap_or_else(|| Utc.from_utc_datetime(&day.and_time(NaiveTime::MIN)))
    }

    /// The moment of a local time; the earlier one where the clocks show it twice, `None` where they
    /// skip it.
    fn moment_of(&self, time: NaiveDateTime) -> Option<DateTime<Utc>> {
        match self.0.from_local_datetime(&time) {
            LocalResult::Single(moment) | LocalResult::Ambiguous(moment, _) => {
                Some(moment.with_timezone(&Utc))
            }
            LocalResult::None => None,
        }
    }
}

impl Moment {
    /// Reads `2026-11-26`, `2026-11-26T14:00` or a time with its offset.
    pub(crate) fn read(zone: &UserZone, text: &str) -> Result<Self, ToolError> {
        let text = text.trim();
        if let Ok(day) = text.parse::<NaiveDate>() {
            return Ok(Self::Day(day));
        }
        if let Ok(moment) = DateTime::parse_from_rfc3339(text) {
            return Ok(Self::Time(moment.with_timezone(&Utc)));
        }
        let formats = ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M"];
        let mut times = formats.iter().filter_map(|f| NaiveDateTime::parse_from_str(text, f).ok());
        let time = times.next().ok_or_else(|| {
            let advice = "write a day as 2026-11-26 or a time as 2026-11-26T14:00";
            ToolError::InvalidArguments(format!("{text:?} is no day and no time; {advice}"))
        })?;
        let moment = zone.moment_of(time).ok_or_else(|| {
            let message = format!("the clocks of {} skip {text}", zone.0.name());
            ToolError::InvalidArguments(message)
        })?;
        Ok(Self::Time(moment))
    }

    /// Reads a start and an end. The end of whole days is the day after the last one.
    pub(crate) fn read_pair(
        zone: &UserZone,
        start: &str,
        end: Option<&str>,
    ) -> Result<(Self, Self), ToolError> {
        let start = Self::read(zone, start)?;
        let end = end.map(|end| Self::read(zone, end)).transpose()?;
        let invalid = |message: &str| Err(ToolError::InvalidArguments(message.to_owned()));
        match (start, end) {
            (Self::Day(_), None) => Ok((start, start.later(TimeDelta::days(1)))),
            (Self::Time(_), None) => Ok((start, start.later(TimeDelta::hours(1)))),
            (Self::Day(first), Some(Self::Day(last))) if last >= first => {
                Ok((start, Self::Day(last).later(TimeDelta::days(1))))
            }
            (Self::Time(from), Some(Self::Time(to))) if to > from => Ok((start, Self::Time(to))),
            (Self::Day(_), Some(Self::Time(_))) | (Self::Time(_), Some(Self::Day(_))) => {
                invalid("start and end are both days or both times")
            }
            _ => invalid("the end is not after the start"),
        }
    }

    /// The same after a while.
    pub(crate) fn later(self, length: TimeDelta) -> Self {
        match self {
            Self::Day(day) => Self::Day(day.checked_add_signed(length).unwrap_or(day)),
            Self::Time(time) => Self::Time(time.checked_add_signed(length).unwrap_or(time)),
        }
    }

    /// The moment at which it begins.
    pub(crate) fn begin(self, zone: &UserZone) -> DateTime<Utc> {
        match self {
            Self::Day(day) => zone.start_of_day(day),
            Self::Time(time) => time,
        }
    }

    /// How long it takes until another one; whole days from a day to a day.
    pub(crate) fn until(self, end: Self, zone: &UserZone) -> TimeDelta {
        match (self, end) {
            (Self::Day(first), Self::Day(end)) => end - first,
            (start, end) => end.begin(zone) - start.begin(zone),
        }
    }

    /// The clock of a time zone at its begin.
    pub(crate) fn local(self, zone: impl TimeZone) -> NaiveDateTime {
        match self {
            Self::Day(day) => day.and_time(NaiveTime::MIN),
            Self::Time(time) => time.with_timezone(&zone).naive_local(),
        }
    }

    /// It as a text, in the user's time zone.
    pub(crate) fn text(self, zone: &UserZone) -> String {
        match self {
            Self::Day(day) => day.to_string(),
            Self::Time(time) => {
                time.with_timezone(&zone.0).format("%Y-%m-%dT%H:%M:%S%:z").to_string()
            }
        }
    }
}

impl TimeSpan {
    /// Reads a span. A day at its end is part of it.
    pub(crate) fn between(zone: &UserZone, from: &str, to: &str) -> Result<Self, ToolError> {
        let from = Moment::read(zone, from)?.begin(zone);
        let to = match Moment::read(zone, to)? {
            Moment::Day(day) => zone.day_span(day).to,
            Moment::Time(time) => time,
        };
        let invalid = |message: String| Err(ToolError::InvalidArguments(message));
        match to - from {
            length if length <= TimeDelta::zero() => {
                invalid("the end is not after the start".to_owned())
            }
            length if length > TimeDelta::days(SPAN_DAYS_MAX + 1) => {
                invalid(format!("at most {SPAN_DAYS_MAX} days can be listed at once"))
            }
            _ => Ok(Self { from, to }),
        }
    }
}
