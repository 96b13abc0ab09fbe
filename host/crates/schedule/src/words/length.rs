//! Parses a duration: `20 minutes`, `an hour and a half`, `2h30m`, `three days`.

use super::{names, reader::Reader};

const SECOND_MS: u64 = 1000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
const HOUR_MS: u64 = 60 * MINUTE_MS;
pub(super) const DAY_MS: u64 = 24 * HOUR_MS;

/// Maximum duration: about a century. It is longer than any reminder needs, and sums cannot
/// overflow.
const DAYS_MAX: u64 = 36_500;

/// A duration. Days and months are calendar days and months, whose lengths differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Length {
    pub(super) months: u32,
    pub(super) days: u32,
    pub(super) ms: u64,
}

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Ms(u64),
    Days(u32),
    Months(u32),
}

/// A count in hundredths, such as 125 for `1.25`.
#[derive(Debug, Clone, Copy)]
struct Hundredths(u32);

impl Length {
    pub(super) fn read(reader: &mut Reader<'_>) -> Option<Self> {
        let mut length = Self::read_part(reader)?;
        while let Some(more) = reader.attempt(|reader| {
            reader.eat_any(&["and", ","]);
            Self::read_part(reader)
        }) {
            length = length.plus(more)?;
        }
        Some(length)
    }

    /// Returns the sum; `None` if it exceeds the maximum.
    fn plus(self, other: Self) -> Option<Self> {
        let sum = Self {
            months: self.months.checked_add(other.months)?,
            days: self.days.checked_add(other.days)?,
            ms: self.ms.checked_add(other.ms)?,
        };
        (sum.days_at_least() <= DAYS_MAX).then_some(sum)
    }

    fn days_at_least(self) -> u64 {
        u64::from(self.months) * 28 + u64::from(self.days) + self.ms / DAY_MS
    }

    /// Parses a count and its unit, with an optional `and a half`.
    fn read_part(reader: &mut Reader<'_>) -> Option<Self> {
        if let Some(half) = reader.attempt(read_half) {
            return Some(half);
        }
        let count = read_count(reader)?;
        let half = reader.eat("and a half");
        let unit = reader.one(unit)?;
        let half = half || reader.eat("and a half");
        let count = Hundredths(count.0.checked_add(if half { 50 } else { 0 })?);
        Self::default().plus(unit.times(count)?)
    }
}

/// `half an hour`, `half a minute`, `a quarter of an hour`, `three quarters of an hour`.
fn read_half(reader: &mut Reader<'_>) -> Option<Length> {
    let hundredths = if reader.eat("half") {
        50
    } else if reader.eat_any(&["a quarter of", "quarter of", "one quarter of"]) {
        25
    } else if reader.eat_any(&["three quarters of", "3 quarters of"]) {
        75
    } else {
        return None;
    };
    reader.eat_any(&["an", "a"]);
    reader.one(unit)?.times(Hundredths(hundredths))
}

fn read_count(reader: &mut Reader<'_>) -> Option<Hundredths> {
    if reader.eat_any(&["a couple of", "a couple"]) {
        return Some(Hundredths(200));
    }
    if reader.eat_any(&["a", "an"]) {
        return Some(Hundredths(100));
    }
    reader.one(decimal)
}

/// Parses a number with an optional fraction of one or two digits.
fn decimal(word: &str) -> Option<Hundredths> {
    let (whole, fraction) = word.split_once('.').unwrap_or((word, "0"));
    let scale = match fraction.len() {
        1 => 10,
        2 => 1,
        _ => return None,
    };
    let whole = names::number(whole)?.checked_mul(100)?;
    Some(Hundredths(whole.checked_add(names::number(fraction)? * scale)?))
}

pub(super) fn unit(word: &str) -> Option<Unit> {
    let unit = match word {
        "s" | "sec" | "secs" | "second" | "seconds" => Unit::Ms(SECOND_MS),
        "m" | "min" | "mins" | "minute" | "minutes" => Unit::Ms(MINUTE_MS),
        "h" | "hr" | "hrs" | "hour" | "hours" => Unit::Ms(HOUR_MS),
        "d" | "day" | "days" => Unit::Days(1),
        "w" | "week" | "weeks" => Unit::Days(7),
        "fortnight" | "fortnights" => Unit::Days(14),
        "month" | "months" => Unit::Months(1),
        "year" | "years" => Unit::Months(12),
        _ => return None,
    };
    Some(unit)
}

impl Unit {
    /// Multiplies a unit. Half a day is twelve hours, but half a month has no defined length.
    fn times(self, count: Hundredths) -> Option<Length> {
        let (whole, part) = (count.0 / 100, count.0 % 100);
        match self {
            Self::Ms(ms) => {
                let ms = ms.checked_mul(u64::from(count.0))? / 100;
                Some(Length { ms, ..Length::default() })
            }
            Self::Days(days) => Some(Length {
                days: days.checked_mul(whole)?,
                ms: DAY_MS * u64::from(days) * u64::from(part) / 100,
                ..Length::default()
            }),
            Self::Months(months) if part * months % 100 == 0 => {
                let months = months.checked_mul(count.0)? / 100;
                Some(Length { months, ..Length::default() })
            }
            Self::Months(_) => None,
        }
    }
}
