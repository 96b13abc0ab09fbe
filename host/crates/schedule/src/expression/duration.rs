//! Parses a duration: `20 minutes`, `an hour and a half`, `2h30m`, `three days`.

use super::{names, reader::WordCursor};

const SECOND_MS: u64 = 1000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
const HOUR_MS: u64 = 60 * MINUTE_MS;
pub(super) const DAY_MS: u64 = 24 * HOUR_MS;

/// Maximum duration: about a century. It is longer than any reminder needs, and sums cannot
/// overflow.
const DAYS_MAX: u64 = 36_500;

/// A duration. Days and months are calendar days and months, whose lengths differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CalendarDuration {
    pub(super) months: u32,
    pub(super) days: u32,
    pub(super) ms: u64,
}

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeUnit {
    Ms(u64),
    Days(u32),
    Months(u32),
}

/// A count in hundredths, such as 125 for `1.25`.
#[derive(Debug, Clone, Copy)]
struct HundredthsCount(u32);

impl CalendarDuration {
    pub(super) fn parse(reader: &mut WordCursor<'_>) -> Option<Self> {
        let mut length = Self::parse_term(reader)?;
        while let Some(more) = reader.try_parse(|reader| {
            reader.consume_any(&["and", ","]);
            Self::parse_term(reader)
        }) {
            length = length.checked_add(more)?;
        }
        Some(length)
    }

    /// Returns the sum; `None` if it exceeds the maximum.
    fn checked_add(self, other: Self) -> Option<Self> {
        let sum = Self {
            months: self.months.checked_add(other.months)?,
            days: self.days.checked_add(other.days)?,
            ms: self.ms.checked_add(other.ms)?,
        };
        (sum.min_days() <= DAYS_MAX).then_some(sum)
    }

    fn min_days(self) -> u64 {
        u64::from(self.months) * 28 + u64::from(self.days) + self.ms / DAY_MS
    }

    /// Parses a count and its unit, with an optional `and a half`.
    fn parse_term(reader: &mut WordCursor<'_>) -> Option<Self> {
        if let Some(half) = reader.try_parse(parse_fraction_of_unit) {
            return Some(half);
        }
        let count = parse_count(reader)?;
        let half = reader.consume_words("and a half");
        let unit = reader.parse_word(parse_unit)?;
        let half = half || reader.consume_words("and a half");
        let count = HundredthsCount(count.0.checked_add(if half { 50 } else { 0 })?);
        Self::default().checked_add(unit.checked_mul(count)?)
    }
}

/// `half an hour`, `half a minute`, `a quarter of an hour`, `three quarters of an hour`.
fn parse_fraction_of_unit(reader: &mut WordCursor<'_>) -> Option<CalendarDuration> {
    let hundredths = if reader.consume_words("half") {
        50
    } else if reader.consume_any(&["a quarter of", "quarter of", "one quarter of"]) {
        25
    } else if reader.consume_any(&["three quarters of", "3 quarters of"]) {
        75
    } else {
        return None;
    };
    reader.consume_any(&["an", "a"]);
    reader.parse_word(parse_unit)?.checked_mul(HundredthsCount(hundredths))
}

fn parse_count(reader: &mut WordCursor<'_>) -> Option<HundredthsCount> {
    if reader.consume_any(&["a couple of", "a couple"]) {
        return Some(HundredthsCount(200));
    }
    if reader.consume_any(&["a", "an"]) {
        return Some(HundredthsCount(100));
    }
    reader.parse_word(parse_decimal)
}

/// Parses a number with an optional fraction of one or two digits.
fn parse_decimal(word: &str) -> Option<HundredthsCount> {
    let (whole, fraction) = word.split_once('.').unwrap_or((word, "0"));
    let scale = match fraction.len() {
        1 => 10,
        2 => 1,
        _ => return None,
    };
    let whole = names::parse_number(whole)?.checked_mul(100)?;
    Some(HundredthsCount(whole.checked_add(names::parse_number(fraction)? * scale)?))
}

pub(super) fn parse_unit(word: &str) -> Option<TimeUnit> {
    let unit = match word {
        "s" | "sec" | "secs" | "second" | "seconds" => TimeUnit::Ms(SECOND_MS),
        "m" | "min" | "mins" | "minute" | "minutes" => TimeUnit::Ms(MINUTE_MS),
        "h" | "hr" | "hrs" | "hour" | "hours" => TimeUnit::Ms(HOUR_MS),
        "d" | "day" | "days" => TimeUnit::Days(1),
        "w" | "week" | "weeks" => TimeUnit::Days(7),
        "fortnight" | "fortnights" => TimeUnit::Days(14),
        "month" | "months" => TimeUnit::Months(1),
        "year" | "years" => TimeUnit::Months(12),
        _ => return None,
    };
    Some(unit)
}

impl TimeUnit {
    /// Multiplies a unit. Half a day is twelve hours, but half a month has no defined length.
    fn checked_mul(self, count: HundredthsCount) -> Option<CalendarDuration> {
        let (whole, part) = (count.0 / 100, count.0 % 100);
        match self {
            Self::Ms(ms) => {
                let ms = ms.checked_mul(u64::from(count.0))? / 100;
                Some(CalendarDuration { ms, ..CalendarDuration::default() })
            }
            Self::Days(days) => Some(CalendarDuration {
                days: days.checked_mul(whole)?,
                ms: DAY_MS * u64::from(days) * u64::from(part) / 100,
                ..CalendarDuration::default()
            }),
            Self::Months(months) if part * months % 100 == 0 => {
                let months = months.checked_mul(count.0)? / 100;
                Some(CalendarDuration { months, ..CalendarDuration::default() })
            }
            Self::Months(_) => None,
        }
    }
}
