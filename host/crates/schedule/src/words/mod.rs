//! Parses English time expressions.
//!
//! A text is one of four things: a duration from now on, a repetition, a timestamp, or a day and a
//! time. It must be understood as a whole. Anything else is an error; the parser never guesses from
//! a part of it.

mod clock;
mod day;
mod length;
pub(crate) mod names;
mod reader;
mod repeat;

use jiff::{Span, Timestamp, Zoned, civil::DateTime, tz::TimeZone};
use sallyport_contract::{services::TimerSchedule, text};

use crate::error::{MomentError, WordsError};
use day::{Said, Unresolved};
use length::Length;
use reader::Reader;
use repeat::Repeat;

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
pub fn words(said: &str, now: &Zoned) -> Result<TimerSchedule, WordsError> {
    let not_understood = || WordsError::NotUnderstood { text: quote(said) };
    if said.len() > TEXT_BYTES_MAX {
        return Err(not_understood());
    }
    if let Some(at) = point(said, now) {
        return once(Some(at), said, now);
    }
    let words = reader::split(said);
    if words.iter().any(|word| day::is_ambiguous(word)) {
        return Err(WordsError::Ambiguous { text: quote(said) });
    }
    let mut reader = Reader::new(&words);
    reader.eat_any(&LEADS);
    if let Some(length) = reader.attempt(|reader| whole(reader, read_length)) {
        return from_now(length, said, now);
    }
    if let Some(repeat) = reader.attempt(|reader| whole(reader, Repeat::read)) {
        return repeated(repeat, now);
    }
    if let Some((length, clock)) = reader.attempt(|reader| whole(reader, read_days_and_clock)) {
        return once(in_days(length, clock, now), said, now);
    }
    let read = reader.attempt(|reader| whole(reader, Said::read));
    let read = read.ok_or_else(|| match reader.attempt(repeat::read_weeks_apart) {
        Some(()) => WordsError::WeeksApart { text: quote(said) },
        None => not_understood(),
    })?;
    match read.resolve(now) {
        Ok(at) => once(Some(at), said, now),
        Err(Unresolved::Past) => once(None, said, now),
        Err(Unresolved::NoSuchDay) => Err(WordsError::NoSuchDay { text: quote(said) }),
        Err(Unresolved::TooFar) => Err(MomentError::TooFar.into()),
    }
}

/// Returns the duration that a text means, in milliseconds: `8 minutes`, `for half an hour`.
/// Returns `None` for any other text, for months, whose length differs, and for two durations in
/// one text (`5 minutes 10 minutes`).
pub fn length_ms(said: &str) -> Option<u64> {
    if said.len() > TEXT_BYTES_MAX {
        return None;
    }
    let words = reader::split(said);
    let units: Vec<_> = words.iter().filter_map(|word| length::unit(word)).collect();
    if units.iter().enumerate().any(|(at, unit)| units[..at].contains(unit)) {
        return None;
    }
    let length =
        whole(&mut Reader::new(&words), read_length).filter(|length| length.months == 0)?;
    u64::from(length.days).checked_mul(length::DAY_MS)?.checked_add(length.ms)
}

/// Returns whether a text is a moment or a repetition, regardless of the current time.
pub fn is_moment(said: &str) -> bool {
    words(said, &Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC)).is_ok()
}

/// Applies a parser that must consume the rest of the text.
fn whole<T>(reader: &mut Reader<'_>, read: impl FnOnce(&mut Reader<'_>) -> Option<T>) -> Option<T> {
    let value = read(reader)?;
    reader.eat("please");
    reader.is_at_end().then_some(value)
}

/// `in 20 minutes`, `for an hour`, `20 minutes from now`.
fn read_length(reader: &mut Reader<'_>) -> Option<Length> {
    reader.eat_any(&["in", "for", "after"]);
    let length = Length::read(reader)?;
    reader.eat_any(&["from now", "later"]);
    Some(length)
}

/// `in 3 days at 9`.
fn read_days_and_clock(reader: &mut Reader<'_>) -> Option<(Length, clock::Clock)> {
    let length = read_length(reader).filter(|length| length.ms == 0)?;
    reader.skip_fillers();
    Some((length, clock::Clock::read(reader)?))
}

fn from_now(length: Length, said: &str, now: &Zoned) -> Result<TimerSchedule, WordsError> {
    if length.months == 0 && length.days == 0 {
        return match length.ms {
            0 => Err(WordsError::Past { text: quote(said) }),
            ms => Ok(TimerSchedule::InMs(ms)),
        };
    }
    once(later(length, now), said, now)
}

/// Adds months and days on the calendar, which keeps the time of day, and then the milliseconds.
fn later(length: Length, now: &Zoned) -> Option<Zoned> {
    let days = Span::new().try_months(length.months).ok()?.try_days(length.days).ok()?;
    let ms = Span::new().try_milliseconds(i64::try_from(length.ms).ok()?).ok()?;
    now.checked_add(days).ok()?.checked_add(ms).ok()
}

fn in_days(length: Length, clock: clock::Clock, now: &Zoned) -> Option<Zoned> {
    let time = *clock.times(None, false).first()?;
    let day = later(length, now)?.date().checked_add(Span::new().days(time.days)).ok()?;
    day.at(time.hour, time.minute, 0, 0).to_zoned(now.time_zone().clone()).ok()
}

fn once(at: Option<Zoned>, said: &str, now: &Zoned) -> Result<TimerSchedule, WordsError> {
    let past = || WordsError::Past { text: quote(said) };
    let at = at.filter(|at| at > now).ok_or_else(past)?;
    u64::try_from(at.timestamp().as_millisecond()).map(TimerSchedule::AtMs).map_err(|_| past())
}

fn repeated(repeat: Repeat, now: &Zoned) -> Result<TimerSchedule, WordsError> {
    let moment = match repeat {
        Repeat::Every(every_ms) => TimerSchedule::EveryMs(every_ms),
        Repeat::Cron(cron) => {
            let time_zone = now.time_zone().iana_name().map(str::to_owned);
            TimerSchedule::Calendar { cron, time_zone }
        }
    };
    let now_ms = u64::try_from(now.timestamp().as_millisecond()).unwrap_or_default();
    crate::first(&moment, now_ms, 0)?;
    Ok(moment)
}

/// Parses a timestamp: `2026-12-24 18:00`, `2026-12-24T18:00:00Z`.
fn point(text: &str, now: &Zoned) -> Option<Zoned> {
    let text = text.trim().trim_end_matches(['.', '!']);
    if let Ok(at) = text.parse::<Timestamp>() {
        return Some(at.to_zoned(now.time_zone().clone()));
    }
    if !text.contains(':') {
        return None;
    }
    text.parse::<DateTime>().ok()?.to_zoned(now.time_zone().clone()).ok()
}

fn quote(said: &str) -> String {
    text::escape_excerpt(said, QUOTE_CHARS_MAX)
}
