//! Parses English time expressions.
//!
//! A text is one of four things: a duration from now on, a repetition, a timestamp, or a day and a
//! time. It must be understood as a whole. Anything else is an error; the parser never guesses from
//! a part of it.

mod clock;
mod day;
mod duration;
pub(crate) mod names;
mod reader;
mod repeat;

use jiff::{Span, Timestamp, Zoned, civil::DateTime, tz::TimeZone};
use sallyport_contract::{services::TimerSchedule, text};

use crate::error::{MomentError, TimeExpressionError};
use day::{DayAndTime, ResolveFailure};
use duration::CalendarDuration;
use reader::WordCursor;
use repeat::RepeatExpression;

/// Maximum length of a text, in bytes: one sentence.
const TEXT_BYTES_MAX: usize = 200;

/// Maximum length of a quoted text in an error, in characters.
const QUOTE_CHARS_MAX: usize = 60;

/// Leading phrases without meaning.
const LEADS: [&str; 3] = ["please", "remind me", "wake me"];

/// Returns the moment that a text means at the time `now`.
///
/// A calendar repetition uses the time zone of `now`.
///
/// # Errors
///
/// The text is not understood, or its moment is over.
pub fn parse_moment(input: &str, now: &Zoned) -> Result<TimerSchedule, TimeExpressionError> {
    let not_understood = || TimeExpressionError::NotUnderstood(quote_excerpt(input));
    if input.len() > TEXT_BYTES_MAX {
        return Err(not_understood());
    }
    if let Some(at) = parse_timestamp(input, now) {
        return single_moment(Some(at), input, now);
    }
    let words = reader::split_words(input);
    if words.iter().any(|word| day::is_ambiguous_date(word)) {
        return Err(TimeExpressionError::Ambiguous(quote_excerpt(input)));
    }
    let mut reader = WordCursor::new(&words);
    reader.consume_any(&LEADS);
    if let Some(length) = reader.try_parse(|reader| parse_to_end(reader, parse_duration)) {
        return moment_from_now(length, input, now);
    }
    if let Some(repeat) = reader.try_parse(|reader| parse_to_end(reader, RepeatExpression::parse)) {
        return repeating_moment(repeat, now);
    }
    if let Some((length, clock)) =
        reader.try_parse(|reader| parse_to_end(reader, parse_days_and_clock))
    {
        return single_moment(days_later_at(length, clock, now), input, now);
    }
    let read = reader.try_parse(|reader| parse_to_end(reader, DayAndTime::parse));
    let read = read.ok_or_else(|| match reader.try_parse(repeat::parse_multi_week_start) {
        Some(()) => TimeExpressionError::WeeksApart(quote_excerpt(input)),
        None => not_understood(),
    })?;
    match read.resolve(now) {
        Ok(at) => single_moment(Some(at), input, now),
        Err(ResolveFailure::Past) => single_moment(None, input, now),
        Err(ResolveFailure::NoSuchDay) => Err(TimeExpressionError::NoSuchDay(quote_excerpt(input))),
        Err(ResolveFailure::TooFar) => Err(MomentError::TooFar.into()),
    }
}

/// Returns the duration that a text means, in milliseconds: `8 minutes`, `for half an hour`.
/// Returns `None` for any other text, for months, whose length differs, and for two durations in
/// one text (`5 minutes 10 minutes`).
pub fn parse_duration_ms(input: &str) -> Option<u64> {
    if input.len() > TEXT_BYTES_MAX {
        return None;
    }
    let words = reader::split_words(input);
    let units: Vec<_> = words.iter().filter_map(|word| duration::parse_unit(word)).collect();
    if units.iter().enumerate().any(|(at, unit)| units[..at].contains(unit)) {
        return None;
    }
    let length = parse_to_end(&mut WordCursor::new(&words), parse_duration)
        .filter(|length| length.months == 0)?;
    u64::from(length.days).checked_mul(duration::DAY_MS)?.checked_add(length.ms)
}

/// Returns whether a text is a moment or a repetition, regardless of the current time.
pub fn is_moment(input: &str) -> bool {
    check_moment(input).is_ok()
}

/// Checks that a text is a moment or a repetition, regardless of the current time.
///
/// # Errors
///
/// The text is not a moment, or names a day that no calendar has
/// ([`TimeExpressionError::NoSuchDay`]).
pub fn check_moment(input: &str) -> Result<(), TimeExpressionError> {
    parse_moment(input, &Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC)).map(drop)
}

/// Applies a parser that must consume the rest of the text.
fn parse_to_end<T>(
    reader: &mut WordCursor<'_>,
    read: impl FnOnce(&mut WordCursor<'_>) -> Option<T>,
) -> Option<T> {
    let value = read(reader)?;
    reader.consume_words("please");
    reader.is_at_end().then_some(value)
}

/// `in 20 minutes`, `for an hour`, `20 minutes from now`.
fn parse_duration(reader: &mut WordCursor<'_>) -> Option<CalendarDuration> {
    reader.consume_any(&["in", "for", "after"]);
    let length = CalendarDuration::parse(reader)?;
    reader.consume_any(&["from now", "later"]);
    Some(length)
}

/// `in 3 days at 9`.
fn parse_days_and_clock(
    reader: &mut WordCursor<'_>,
) -> Option<(CalendarDuration, clock::ClockTime)> {
    let length = parse_duration(reader).filter(|length| length.ms == 0)?;
    reader.skip_fillers();
    Some((length, clock::ClockTime::parse(reader)?))
}

fn moment_from_now(
    length: CalendarDuration,
    input: &str,
    now: &Zoned,
) -> Result<TimerSchedule, TimeExpressionError> {
    if length.months == 0 && length.days == 0 {
        return match length.ms {
            0 => Err(TimeExpressionError::Past(quote_excerpt(input))),
            ms => Ok(TimerSchedule::InMs(ms)),
        };
    }
    single_moment(add_duration(length, now), input, now)
}

/// Adds months and days on the calendar, which keeps the time of day, and then the milliseconds.
fn add_duration(length: CalendarDuration, now: &Zoned) -> Option<Zoned> {
    let days = Span::new().try_months(length.months).ok()?.try_days(length.days).ok()?;
    let ms = Span::new().try_milliseconds(i64::try_from(length.ms).ok()?).ok()?;
    now.checked_add(days).ok()?.checked_add(ms).ok()
}

fn days_later_at(length: CalendarDuration, clock: clock::ClockTime, now: &Zoned) -> Option<Zoned> {
    let time = *clock.candidate_times(None, false).first()?;
    let day = add_duration(length, now)?.date().checked_add(Span::new().days(time.days)).ok()?;
    day.at(time.hour, time.minute, 0, 0).to_zoned(now.time_zone().clone()).ok()
}

fn single_moment(
    at: Option<Zoned>,
    input: &str,
    now: &Zoned,
) -> Result<TimerSchedule, TimeExpressionError> {
    let past = || TimeExpressionError::Past(quote_excerpt(input));
    let at = at.filter(|at| at > now).ok_or_else(past)?;
    u64::try_from(at.timestamp().as_millisecond()).map(TimerSchedule::AtMs).map_err(|_| past())
}

fn repeating_moment(
    repeat: RepeatExpression,
    now: &Zoned,
) -> Result<TimerSchedule, TimeExpressionError> {
    let moment = match repeat {
        RepeatExpression::Every(every_ms) => TimerSchedule::EveryMs(every_ms),
        RepeatExpression::Cron(cron) => {
            let time_zone = now.time_zone().iana_name().map(str::to_owned);
            TimerSchedule::Calendar { cron, time_zone }
        }
    };
    let now_ms = u64::try_from(now.timestamp().as_millisecond()).unwrap_or_default();
    crate::first_firing_ms(&moment, now_ms, 0)?;
    Ok(moment)
}

/// Parses a timestamp: `2026-12-24 18:00`, `2026-12-24T18:00:00Z`.
fn parse_timestamp(text: &str, now: &Zoned) -> Option<Zoned> {
    let text = text.trim().trim_end_matches(['.', '!']);
    if let Ok(at) = text.parse::<Timestamp>() {
        return Some(at.to_zoned(now.time_zone().clone()));
    }
    if !text.contains(':') {
        return None;
    }
    text.parse::<DateTime>().ok()?.to_zoned(now.time_zone().clone()).ok()
}

fn quote_excerpt(input: &str) -> String {
    text::escape_excerpt(input, QUOTE_CHARS_MAX)
}
