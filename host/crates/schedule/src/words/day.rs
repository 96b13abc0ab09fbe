//! Parses a single day and time: `tomorrow at 9`, `on Friday at noon`, `24 December at 18:00`.

use jiff::{
    Span, Zoned,
    civil::{Date, Weekday},
};

use super::{
    clock::{self, Clock, Part, TimeOfDay},
    names::{self, Count},
    reader::Reader,
};

/// The default hour of a day: the usual start of work.
pub(super) const DAY_HOUR: i8 = 9;

/// How many years ahead a day of the year is searched. The next 29 February can be eight years
/// away.
const YEARS_MAX: i16 = 8;

/// A parsed day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Day {
    Today,
    In(i32),
    Next(Weekday),
    Coming(Weekday),
    Of(Date),
    OfYear { month: i8, day: i8 },
    OfMonth(i8),
}

/// Why a text does not mean a future time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unresolved {
    Past,
    NoSuchDay,
    /// The time is beyond the range of the calendar.
    TooFar,
}

/// The parsed day, part of the day and time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Said {
    day: Option<Day>,
    part: Option<Part>,
    clock: Option<Clock>,
}

impl Said {
    /// Parses day and time in any order, each at most once.
    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let mut said = Self::default();
        loop {
            reader.skip_fillers();
            if !said.read_one(reader) {
                break;
            }
        }
        (said != Self::default()).then_some(said)
    }

    fn read_one(&mut self, reader: &mut Reader<'_>) -> bool {
        if self.day.is_none()
            && let Some((day, part)) = reader.attempt(read_day)
        {
            self.day = Some(day);
            self.part = self.part.or(part);
            return true;
        }
        if self.clock.is_none()
            && let Some(clock) = Clock::read(reader)
        {
            self.clock = Some(clock);
            return true;
        }
        if self.part.is_none()
            && let Some(part) = reader.attempt(read_part)
        {
            self.part = Some(part);
            return true;
        }
        false
    }

    /// Returns the first matching time after now.
    ///
    /// # Errors
    ///
    /// No such time exists.
    pub(super) fn resolve(self, now: &Zoned) -> Result<Zoned, Unresolved> {
        let is_today = matches!(self.day, None | Some(Day::Today));
        let otherwise = self.day.filter(|_| !is_today).map(|_| DAY_HOUR);
        let times = clock::times(self.clock, self.part, is_today, otherwise);
        let days = self.days(now.date());
        let meant = days.iter().flat_map(|day| times.iter().map(|time| (*day, *time)));
        let first = meant.filter_map(|(day, time)| at(now, day, time)).find(|moment| moment > now);
        first.ok_or_else(|| match days.as_slice() {
            [] => Unresolved::NoSuchDay,
            days if days.iter().any(|day| *day > now.date()) => Unresolved::TooFar,
            _ => Unresolved::Past,
        })
    }

    /// Returns the possible days, in order.
    fn days(self, today: Date) -> Vec<Date> {
        match self.day {
            None => ahead(today, &[0, 1]),
            Some(Day::Today) => vec![today],
            Some(Day::In(days)) => ahead(today, &[days]),
            Some(Day::Next(weekday)) => {
                let days = (until(today, weekday) + 6) % 7 + 1;
                ahead(today, &[days])
            }
            Some(Day::Coming(weekday)) => {
                let days = until(today, weekday);
                ahead(today, &[days, days + 7])
            }
            Some(Day::Of(date)) => vec![date],
            Some(Day::OfYear { month, day }) => {
                let years = today.year()..=today.year().saturating_add(YEARS_MAX);
                years.filter_map(|year| Date::new(year, month, day).ok()).collect()
            }
            Some(Day::OfMonth(day)) => {
                let months = (0..12)
                    .filter_map(|n| today.first_of_month().checked_add(Span::new().months(n)).ok());
                let of_month = |month: Date| Date::new(month.year(), month.month(), day).ok();
                months.filter_map(of_month).collect()
            }
        }
    }
}

/// Returns the days until the next day of this name; 0 if today is one.
fn until(today: Date, weekday: Weekday) -> i32 {
    i32::from(today.weekday().until(weekday))
}

fn ahead(today: Date, days: &[i32]) -> Vec<Date> {
    days.iter().filter_map(|days| today.checked_add(Span::new().days(*days)).ok()).collect()
}

/// Returns a time on a day. A time that the clock skips on that day is as much later.
fn at(now: &Zoned, day: Date, time: TimeOfDay) -> Option<Zoned> {
    let day = day.checked_add(Span::new().days(time.days)).ok()?;
    day.at(time.hour, time.minute, 0, 0).to_zoned(now.time_zone().clone()).ok()
}

/// Parses `in the morning` or `this evening` without a day.
fn read_part(reader: &mut Reader<'_>) -> Option<Part> {
    reader.eat("in");
    reader.skip_fillers();
    Part::read(reader)
}

/// Parses a day, with the part of the day that its name includes.
fn read_day(reader: &mut Reader<'_>) -> Option<(Day, Option<Part>)> {
    if reader.eat("tonight") {
        return Some((Day::Today, Some(Part::Night)));
    }
    if let Some(part) =
        reader.attempt(|reader| reader.eat("this").then(|| Part::read(reader)).flatten())
    {
        return Some((Day::Today, Some(part)));
    }
    let day = reader
        .attempt(read_near)
        .or_else(|| reader.attempt(read_weekday))
        .or_else(|| reader.attempt(read_date))?;
    Some((day, Part::read(reader)))
}

fn read_near(reader: &mut Reader<'_>) -> Option<Day> {
    if reader.eat("today") {
        Some(Day::Today)
    } else if reader.eat("tomorrow") {
        Some(Day::In(1))
    } else if reader.eat("day after tomorrow") {
        Some(Day::In(2))
    } else if reader.eat("next week") {
        Some(Day::In(7))
    } else {
        None
    }
}

fn read_weekday(reader: &mut Reader<'_>) -> Option<Day> {
    let next = reader.eat("next");
    if !next {
        reader.eat_any(&["this", "coming"]);
    }
    let (weekday, count) = reader.one(names::weekday)?;
    match count {
        Count::One if next => Some(Day::Next(weekday)),
        Count::One => Some(Day::Coming(weekday)),
        Count::Many => None,
    }
}

/// `2026-12-24`, `24 December`, `December 24th, 2026`, `the 24th`, `the 24th of December`.
fn read_date(reader: &mut Reader<'_>) -> Option<Day> {
    if let Some(date) = reader.one(date) {
        return Some(Day::Of(date));
    }
    let (month, day) = match reader.attempt(read_day_and_month) {
        Some(both) => both,
        None => {
            let day = names::ordinal(reader)?;
            return day_number(day).map(Day::OfMonth);
        }
    };
    let year = reader.attempt(|reader| {
        reader.eat(",");
        reader.one(|word| word.parse().ok().filter(|year: &i16| *year > 1969))
    });
    match year {
        Some(year) => Date::new(year, month, day).ok().map(Day::Of),
        None => Some(Day::OfYear { month, day }),
    }
}

/// Parses a word that is a date alone: `2026-12-24`, `2026/12/24`, `24.12.2026`, `12/24/2026`,
/// `24/12/2026`. Only digits and dashes reach the date parser, which would otherwise accept a date
/// with a time and drop the time.
fn date(word: &str) -> Option<Date> {
    if let Some([day, month, year]) = figures(word, '.') {
        return in_full(year, month, day);
    }
    match figures(word, '/') {
        Some([year, month, day]) if year > 31 => in_full(year, month, day),
        Some([one, other, year]) => match day_and_month(one, other) {
            Slashed::Day { day, month } => in_full(year, month, day),
            Slashed::Either | Slashed::Neither => None,
        },
        None => word
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'-')
            .then(|| word.parse().ok())?,
    }
}

/// The meaning of two numbers with a slash between them. Some people write the day first, others
/// the month.
enum Slashed {
    Day { day: u32, month: u32 },
    Either,
    Neither,
}

fn day_and_month(one: u32, other: u32) -> Slashed {
    match (one, other) {
        (1..=12, 1..=12) if one != other => Slashed::Either,
        (1..=31, 1..=12) => Slashed::Day { day: one, month: other },
        (1..=12, 1..=31) => Slashed::Day { day: other, month: one },
        _ => Slashed::Neither,
    }
}

/// Returns whether a word is a date that means different days to different readers.
pub(super) fn is_ambiguous(word: &str) -> bool {
    let pair = figures::<2>(word, '/').map(|[one, other]| (one, other));
    let triple =
        figures(word, '/').and_then(|[one, other, year]| (year > 31).then_some((one, other)));
    pair.or(triple).is_some_and(|(one, other)| matches!(day_and_month(one, other), Slashed::Either))
}

fn figures<const COUNT: usize>(word: &str, between: char) -> Option<[u32; COUNT]> {
    let parts: Vec<&str> = word.split(between).collect();
    let parts: [&str; COUNT] = parts.try_into().ok()?;
    let numbers: Vec<u32> = parts
        .into_iter()
        .filter(|part| part.len() <= 4 && part.bytes().all(|byte| byte.is_ascii_digit()))
        .filter_map(|part| part.parse().ok())
        .collect();
    numbers.try_into().ok()
}

fn in_full(year: u32, month: u32, day: u32) -> Option<Date> {
    let year = i16::try_from(year).ok().filter(|year| *year > 1969)?;
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

/// Parses a day and a month, in either order.
pub(super) fn read_day_and_month(reader: &mut Reader<'_>) -> Option<(i8, i8)> {
    if let Some(month) = reader.one(names::month) {
        reader.eat("the");
        let day = names::ordinal(reader).or_else(|| reader.one(names::number))?;
        return Some((month, day_number(day)?));
    }
    let day = names::ordinal(reader).or_else(|| reader.one(names::number))?;
    reader.eat("of");
    let month = reader.one(names::month)?;
    Some((month, day_number(day)?))
}

/// Checks the number of a day of the month.
pub(super) fn day_number(number: u32) -> Option<i8> {
    i8::try_from(number).ok().filter(|day| (1..=31).contains(day))
}
