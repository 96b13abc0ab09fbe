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

/// Counts in words, in hundredths.
const COUNTS: [(&str, u32); 4] = [("a couple of", 200), ("a couple", 200), ("a", 100), ("an", 100)];

/// Fractions of a unit, in hundredths: `half an hour`, `three quarters of an hour`.
const FRACTIONS: [(&str, u32); 6] = [
    ("half", 50),
    ("a quarter of", 25),
    ("quarter of", 25),
    ("one quarter of", 25),
    ("three quarters of", 75),
    ("3 quarters of", 75),
];

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
        let count = reader.parse_phrase(&COUNTS).or_else(|| reader.parse_word(parse_hundredths))?;
        let half = reader.consume_words("and a half");
        let unit = reader.parse_word(parse_unit)?;
        let half = half || reader.consume_words("and a half");
        let count = count.checked_add(if half { 50 } else { 0 })?;
        Self::default().checked_add(unit.checked_mul(count)?)
    }
}

fn parse_fraction_of_unit(reader: &mut WordCursor<'_>) -> Option<CalendarDuration> {
    let hundredths = reader.parse_phrase(&FRACTIONS)?;
    reader.consume_any(&["an", "a"]);
    reader.parse_word(parse_unit)?.checked_mul(hundredths)
}

/// Parses a number with an optional fraction of one or two digits, such as 125 for `1.25`.
fn parse_hundredths(word: &str) -> Option<u32> {
    let (whole, fraction) = word.split_once('.').unwrap_or((word, "0"));
    let scale = match fraction.len() {
        1 => 10,
        2 => 1,
        _ => return None,
    };
    let whole = names::parse_number(whole)?.checked_mul(100)?;
    whole.checked_add(names::parse_number(fraction)? * scale)
}

pub(super) fn parse_unit(word: &str) -> Option<TimeUnit> {
    Some(match word {
        "s" | "sec" | "secs" | "second" | "seconds" => TimeUnit::Ms(SECOND_MS),
        "m" | "min" | "mins" | "minute" | "minutes" => TimeUnit::Ms(MINUTE_MS),
        "h" | "hr" | "hrs" | "hour" | "hours" => TimeUnit::Ms(HOUR_MS),
        "d" | "day" | "days" => TimeUnit::Days(1),
        "w" | "week" | "weeks" => TimeUnit::Days(7),
        "fortnight" | "fortnights" => TimeUnit::Days(14),
        "month" | "months" => TimeUnit::Months(1),
        "year" | "years" => TimeUnit::Months(12),
        _ => return None,
    })
}

impl TimeUnit {
    /// Multiplies a unit by hundredths. Half a day is twelve hours, but half a month has no defined
    /// length.
    fn checked_mul(self, hundredths: u32) -> Option<CalendarDuration> {
        let (whole, part) = (hundredths / 100, hundredths % 100);
        let (months, days, ms) = match self {
            Self::Ms(ms) => (0, 0, ms.checked_mul(u64::from(hundredths))? / 100),
            Self::Days(days) => {
                let ms = DAY_MS * u64::from(days) * u64::from(part) / 100;
                (0, days.checked_mul(whole)?, ms)
            }
            Self::Months(months) if part * months % 100 == 0 => {
                (months.checked_mul(hundredths)? / 100, 0, 0)
            }
            Self::Months(_) => return None,
        };
        Some(CalendarDuration { months, days, ms })
    }
}
