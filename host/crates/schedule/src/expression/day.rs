//! Parses a single day and time: `tomorrow at 9`, `on Friday at noon`, `24 December at 18:00`.

use jiff::{
    Span, Zoned,
    civil::{Date, Weekday},
};

use super::{
    clock::{self, ClockTime, DayPart, TimeOfDay},
    names::{self, GrammaticalNumber},
    reader::WordCursor,
};

/// The default hour of a day: the usual start of work.
pub(super) const DAY_HOUR: i8 = 9;

/// How many years ahead a day of the year is searched. The next 29 February can be eight years
/// away.
const YEARS_MAX: i16 = 8;

/// A parsed day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DayExpression {
    InDays(i32),
    Next(Weekday),
    Coming(Weekday),
    OnDate(Date),
    /// A date with its year that no calendar has, such as 29 February 2027.
    NoSuchDate,
    OnMonthDay {
        month: i8,
        day: i8,
    },
    OnDayOfMonth(i8),
}

impl DayExpression {
    /// An impossible date is a day of its own kind, so that no parser tries the day and the month
    /// without the year.
    fn from_date(year: i16, month: i8, day: i8) -> Self {
        Date::new(year, month, day).map_or(Self::NoSuchDate, Self::OnDate)
    }
}

const TODAY: DayExpression = DayExpression::InDays(0);

const RELATIVE_DAYS: [(&str, DayExpression); 4] = [
    ("today", TODAY),
    ("tomorrow", DayExpression::InDays(1)),
    ("day after tomorrow", DayExpression::InDays(2)),
    ("next week", DayExpression::InDays(7)),
];

/// Why a text does not mean a future time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResolveFailure {
    Past,
    NoSuchDay,
    /// The time is beyond the range of the calendar.
    TooFar,
}

/// The parsed day, part of the day and time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct DayAndTime {
    day: Option<DayExpression>,
    part: Option<DayPart>,
    clock: Option<ClockTime>,
}

impl DayAndTime {
    /// Parses day and time in any order, each at most once.
    pub(super) fn parse(reader: &mut WordCursor<'_>) -> Option<Self> {
        let mut expression = Self::default();
        loop {
            reader.skip_fillers();
            if !expression.parse_next_part(reader) {
                break;
            }
        }
        (expression != Self::default()).then_some(expression)
    }

    fn parse_next_part(&mut self, reader: &mut WordCursor<'_>) -> bool {
        if self.day.is_none()
            && let Some((day, part)) = reader.try_parse(parse_day)
        {
            (self.day, self.part) = (Some(day), self.part.or(part));
            return true;
        }
        if self.clock.is_none() {
            self.clock = ClockTime::parse(reader);
            if self.clock.is_some() {
                return true;
            }
        }
        if self.part.is_none() {
            self.part = reader.try_parse(parse_day_part);
            return self.part.is_some();
        }
        false
    }

    /// Returns the first matching time after now.
    ///
    /// # Errors
    ///
    /// No such time exists.
    pub(super) fn resolve(self, now: &Zoned) -> Result<Zoned, ResolveFailure> {
        let is_today = matches!(self.day, None | Some(TODAY));
        let otherwise = self.day.filter(|_| !is_today).map(|_| DAY_HOUR);
        let times = clock::candidate_times(self.clock, self.part, is_today, otherwise);
        let days = self.candidate_days(now.date());
        let candidates = days.iter().flat_map(|day| times.iter().map(|time| (*day, *time)));
        let first = candidates
            .filter_map(|(day, time)| zoned_time(now, day, time))
            .find(|moment| moment > now);
        first.ok_or_else(|| match days.as_slice() {
            [] => ResolveFailure::NoSuchDay,
            days if days.iter().any(|day| *day > now.date()) => ResolveFailure::TooFar,
            _ => ResolveFailure::Past,
        })
    }

    /// Returns the possible days, in order.
    fn candidate_days(self, today: Date) -> Vec<Date> {
        match self.day {
            None => dates_ahead(today, &[0, 1]),
            Some(DayExpression::InDays(days)) => dates_ahead(today, &[days]),
            Some(DayExpression::Next(weekday)) => {
                let days = (days_until(today, weekday) + 6) % 7 + 1;
                dates_ahead(today, &[days])
            }
            Some(DayExpression::Coming(weekday)) => {
                let days = days_until(today, weekday);
                dates_ahead(today, &[days, days + 7])
            }
            Some(DayExpression::OnDate(date)) => vec![date],
            Some(DayExpression::NoSuchDate) => Vec::new(),
            Some(DayExpression::OnMonthDay { month, day }) => {
                let years = today.year()..=today.year().saturating_add(YEARS_MAX);
                years.filter_map(|year| Date::new(year, month, day).ok()).collect()
            }
            Some(DayExpression::OnDayOfMonth(day)) => {
                let months = (0..12)
                    .filter_map(|n| today.first_of_month().checked_add(Span::new().months(n)).ok());
                let of_month = |month: Date| Date::new(month.year(), month.month(), day).ok();
                months.filter_map(of_month).collect()
            }
        }
    }
}

/// Returns the days until the next day of this name; 0 if today is one.
fn days_until(today: Date, weekday: Weekday) -> i32 {
    i32::from(today.weekday().until(weekday))
}

fn dates_ahead(today: Date, days: &[i32]) -> Vec<Date> {
    days.iter().filter_map(|days| today.checked_add(Span::new().days(*days)).ok()).collect()
}

/// Returns a time on a day. A time that the clock skips on that day is as much later.
fn zoned_time(now: &Zoned, day: Date, time: TimeOfDay) -> Option<Zoned> {
    let day = day.checked_add(Span::new().days(time.days)).ok()?;
    day.at(time.hour, time.minute, 0, 0).to_zoned(now.time_zone().clone()).ok()
}

/// Parses `in the morning` without a day.
pub(super) fn parse_day_part(reader: &mut WordCursor<'_>) -> Option<DayPart> {
    reader.consume_words("in");
    reader.skip_fillers();
    DayPart::parse(reader)
}

/// Parses a day, with the part of the day that its name includes.
fn parse_day(reader: &mut WordCursor<'_>) -> Option<(DayExpression, Option<DayPart>)> {
    if reader.consume_words("tonight") {
        return Some((TODAY, Some(DayPart::Night)));
    }
    if let Some(part) = reader.parse_after(&["this"], DayPart::parse) {
        return Some((TODAY, Some(part)));
    }
    let day = reader
        .parse_phrase(&RELATIVE_DAYS)
        .or_else(|| reader.try_parse(parse_weekday_day))
        .or_else(|| reader.try_parse(parse_date))?;
    Some((day, DayPart::parse(reader)))
}

fn parse_weekday_day(reader: &mut WordCursor<'_>) -> Option<DayExpression> {
    let next = reader.consume_words("next");
    if !next {
        reader.consume_any(&["this", "coming"]);
    }
    let (weekday, count) = reader.parse_word(names::parse_weekday)?;
    match count {
        GrammaticalNumber::One if next => Some(DayExpression::Next(weekday)),
        GrammaticalNumber::One => Some(DayExpression::Coming(weekday)),
        GrammaticalNumber::Many => None,
    }
}

/// `2026-12-24`, `24 December`, `December 24th, 2026`, `the 24th`, `the 24th of December`.
fn parse_date(reader: &mut WordCursor<'_>) -> Option<DayExpression> {
    if let Some(date) = reader.parse_word(parse_numeric_date) {
        return Some(date);
    }
    let Some((month, day)) = reader.try_parse(parse_day_and_month) else {
        let day = names::day_of_month(names::parse_ordinal(reader)?)?;
        return Some(DayExpression::OnDayOfMonth(day));
    };
    let year = reader.try_parse(|reader| {
        reader.consume_words(",");
        reader.parse_word(|word| word.parse().ok().filter(|year: &i16| *year > 1969))
    });
    match year {
        Some(year) => Some(DayExpression::from_date(year, month, day)),
        None => Some(DayExpression::OnMonthDay { month, day }),
    }
}

/// Parses a word that is a date alone: `2026-12-24`, `2026/12/24`, `24.12.2026`, `12/24/2026`,
/// `24/12/2026`. Only digits and dashes reach the date parser, which would otherwise accept a date
/// with a time and drop the time.
fn parse_numeric_date(word: &str) -> Option<DayExpression> {
    if let Some([day, month, year]) = split_numbers(word, '.') {
        return full_date(year, month, day);
    }
    match split_numbers(word, '/') {
        Some([year, month, day]) if year > 31 => full_date(year, month, day),
        Some([one, other, _]) if can_be_either(one, other) => None,
        Some([day, month @ ..=12, year]) | Some([month, day, year]) => full_date(year, month, day),
        None if names::is_digits(&word.replace('-', "")) => match word.parse() {
            Ok(date) => Some(DayExpression::OnDate(date)),
            Err(_) => {
                split_numbers(word, '-').and_then(|[year, month, day]| full_date(year, month, day))
            }
        },
        None => None,
    }
}

/// Returns true for two numbers of which each can be the month. Some people write the day first,
/// others the month.
fn can_be_either(one: u32, other: u32) -> bool {
    one != other && [one, other].iter().all(|number| (1..=12).contains(number))
}

/// Returns whether a word is a date that means different days to different readers.
pub(super) fn is_ambiguous_date(word: &str) -> bool {
    let pair = split_numbers(word, '/').map(|[one, other]| (one, other));
    let triple =
        split_numbers(word, '/').and_then(|[one, other, year]| (year > 31).then_some((one, other)));
    pair.or(triple).is_some_and(|(one, other)| can_be_either(one, other))
}

fn split_numbers<const COUNT: usize>(word: &str, between: char) -> Option<[u32; COUNT]> {
    let number =
        |part: &str| part.parse().ok().filter(|_: &u32| part.len() <= 4 && names::is_digits(part));
    word.split(between).map(number).collect::<Option<Vec<u32>>>()?.try_into().ok()
}

fn full_date(year: u32, month: u32, day: u32) -> Option<DayExpression> {
    let year = i16::try_from(year).ok().filter(|year| *year > 1969)?;
    let month = i8::try_from(month).ok().filter(|month| (1..=12).contains(month))?;
    Some(DayExpression::from_date(year, month, names::day_of_month(day)?))
}

/// Parses a day and a month, in either order.
pub(super) fn parse_day_and_month(reader: &mut WordCursor<'_>) -> Option<(i8, i8)> {
    if let Some(month) = reader.parse_word(names::parse_month) {
        reader.consume_words("the");
        return Some((month, names::parse_month_day(reader)?));
    }
    let day = names::parse_month_day(reader)?;
    reader.consume_words("of");
    Some((reader.parse_word(names::parse_month)?, day))
}
