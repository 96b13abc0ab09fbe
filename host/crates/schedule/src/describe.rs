//! Formats moments as short English text for lists and answers.

use jiff::{Timestamp, Unit, Zoned, civil::Date};
use sallyport_contract::{services::TimerSchedule, text};

use crate::expression::names;

const SECOND_MS: u64 = 1000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
const HOUR_MS: u64 = 60 * MINUTE_MS;

/// Maximum length of a cron expression that is shown as it is, in characters.
const CRON_CHARS_MAX: usize = 60;

/// The units of time, the longest first.
const UNITS: [(u64, &str); 5] = [
    (7 * 24 * HOUR_MS, "week"),
    (24 * HOUR_MS, "day"),
    (HOUR_MS, "hour"),
    (MINUTE_MS, "minute"),
    (SECOND_MS, "second"),
];

/// Formats a time, in milliseconds since 1970, relative to `now`: `in 20 minutes`, `today at
/// 17:00`, `tomorrow at 09:00`, `on Friday at 12:00`, `on 24 December at 18:00`.
pub fn describe_time(at_ms: u64, now: &Zoned) -> String {
    let at = i64::try_from(at_ms).ok().and_then(|at_ms| Timestamp::from_millisecond(at_ms).ok());
    let Some(at) = at.map(|at| at.to_zoned(now.time_zone().clone())) else {
        return "after the year 9999".to_owned();
    };
    let ahead_ms = at.timestamp().as_millisecond() - now.timestamp().as_millisecond();
    match u64::try_from(ahead_ms) {
        Ok(ahead_ms) if ahead_ms < SECOND_MS => "now".to_owned(),
        Ok(ahead_ms) if ahead_ms < HOUR_MS => format!("in {}", format_short_duration(ahead_ms)),
        Err(_) if ahead_ms.unsigned_abs() < HOUR_MS => {
            format!("{} ago", format_short_duration(ahead_ms.unsigned_abs()))
        }
        _ => format!("{} at {:02}:{:02}", describe_day(&at, now), at.hour(), at.minute()),
    }
}

/// Describes when a moment fires: `tomorrow at 09:00`, `every weekday at 08:30`. `next_ms` is its
/// next firing, in milliseconds since 1970.
pub fn describe_moment(moment: &TimerSchedule, next_ms: u64, now: &Zoned) -> String {
    match moment {
        TimerSchedule::AtMs(_) | TimerSchedule::InMs(_) => describe_time(next_ms, now),
        TimerSchedule::EveryMs(every_ms) => describe_interval(*every_ms),
        TimerSchedule::Calendar { cron, time_zone } => {
            let description = describe_cron(cron).unwrap_or_else(|| {
                format!("by the calendar \"{}\"", text::escape_excerpt(cron, CRON_CHARS_MAX))
            });
            let elsewhere =
                time_zone.as_deref().filter(|zone| now.time_zone().iana_name() != Some(zone));
            match elsewhere {
                Some(zone) => {
                    format!("{description} in {}", text::escape_excerpt(zone, CRON_CHARS_MAX))
                }
                None => description,
            }
        }
    }
}

/// Formats a duration below an hour, in whole seconds or minutes.
fn format_short_duration(ms: u64) -> String {
    if ms < MINUTE_MS {
        return format_count(((ms + SECOND_MS / 2) / SECOND_MS).clamp(1, 59), "second");
    }
    format_count((ms + MINUTE_MS / 2) / MINUTE_MS, "minute")
}

fn describe_day(at: &Zoned, now: &Zoned) -> String {
    let days = now.date().until((Unit::Day, at.date())).map_or(i32::MAX, |span| span.get_days());
    match days {
        0 => "today".to_owned(),
        1 => "tomorrow".to_owned(),
        -1 => "yesterday".to_owned(),
        2..=6 => at.strftime("on %A").to_string(),
        _ if at.year() == now.year() => at.strftime("on %-d %B").to_string(),
        _ => at.strftime("on %-d %B %Y").to_string(),
    }
}

fn describe_interval(every_ms: u64) -> String {
    let (unit_ms, name) = UNITS
        .into_iter()
        .find(|(unit_ms, _)| every_ms >= *unit_ms && every_ms.is_multiple_of(*unit_ms))
        .unwrap_or((1, "millisecond"));
    match every_ms / unit_ms {
        1 => format!("every {name}"),
        count => format!("every {}", format_count(count, name)),
    }
}

fn format_count(count: u64, name: &str) -> String {
    match count {
        1 => format!("1 {name}"),
        _ => format!("{count} {name}s"),
    }
}

/// Describes a cron expression with one time of day on simple days; `None` for any other.
fn describe_cron(cron: &str) -> Option<String> {
    let fields: Vec<&str> = cron.split_ascii_whitespace().collect();
    let [minute, hour, day, month, weekday] = fields[..] else { return None };
    let (minute, hour) = (parse_digits(minute, 59)?, parse_digits(hour, 23)?);
    let days = match (day, month, weekday) {
        ("*", "*", "*") => "day".to_owned(),
        ("*", "*", "1-5") => "weekday".to_owned(),
        ("*", "*", weekdays) => describe_week_field(weekdays)?,
        ("L", "*", "*") => "last day of the month".to_owned(),
        (day, "*", "*") => format!("{} of the month", format_ordinal(parse_digits(day, 31)?)),
        (day, month, "*") => {
            let month = i8::try_from(parse_digits(month, 12)?).ok()?;
            let month = Date::new(2000, month, 1).ok()?.strftime("%B");
            format!("{} {month}", parse_digits(day, 31)?)
        }
        _ => return None,
    };
    Some(format!("every {days} at {hour:02}:{minute:02}"))
}

fn describe_week_field(field: &str) -> Option<String> {
    if let Some(day) = field.strip_suffix('L') {
        return Some(format!("last {} of the month", weekday_from_field(day)?));
    }
    if let Some((day, nth)) = field.split_once('#') {
        return Some(format!(
            "{} {} of the month",
            format_ordinal(parse_digits(nth, 5)?),
            weekday_from_field(day)?
        ));
    }
    let mut names: Vec<String> = field.split(',').map(weekday_from_field).collect::<Option<_>>()?;
    let last = names.pop()?;
    match names.is_empty() {
        true => Some(last),
        false => Some(format!("{} and {last}", names.join(", "))),
    }
}

fn weekday_from_field(field: &str) -> Option<String> {
    // The second of January 2000 was a Sunday.
    let day = i8::try_from(parse_digits(field, 6)? + 2).ok()?;
    Some(Date::new(2000, 1, day).ok()?.strftime("%A").to_string())
}

fn format_ordinal(number: u32) -> String {
    let end = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{end}")
}

/// Parses a number that consists of digits, up to a maximum.
fn parse_digits(field: &str, max: u32) -> Option<u32> {
    field.parse().ok().filter(|number| names::is_digits(field) && *number <= max)
}
