//! Durations and sizes as written in a file: `10s`, `128MiB`.

use std::{fmt, str::FromStr, time::Duration};

use crate::source::{HintedError, quoted};

const TIME_UNITS_MS: [(&str, u64); 4] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];

const BYTE_UNITS: [(&str, u64); 4] =
    [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];

/// A duration with its unit: `1500ms`, `10s`, `2m`, `1h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeSpan(pub Duration);

/// A number of bytes with its unit: `512B`, `64KiB`, `128MiB`, `1GiB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

/// Why a text is not a duration or a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// It is not a whole number followed by a known unit.
    #[error("{} is not {wanted}", quoted(text))]
    Form {
        /// The text.
        text: String,
        /// The expected kind of value.
        wanted: &'static str,
        /// How to write it.
        hint: &'static str,
    },
    /// The number does not fit in 64 bits.
    #[error("{} is too large", quoted(text))]
    TooLarge {
        /// The text.
        text: String,
    },
}

impl HintedError for UnitError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Form { hint, .. } => Some((*hint).to_owned()),
            Self::TooLarge { .. } => None,
        }
    }
}

impl FromStr for TimeSpan {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let wanted = ("a length of time", "write a whole number and a unit: 1500ms, 10s, 2m, 1h");
        parse_scaled(text, &TIME_UNITS_MS, wanted).map(|ms| Self(Duration::from_millis(ms)))
    }
}

impl FromStr for ByteSize {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let wanted = ("a size", "write a whole number and a unit: 512B, 64KiB, 128MiB, 1GiB");
        parse_scaled(text, &BYTE_UNITS, wanted).map(Self)
    }
}

fn parse_scaled(
    text: &str,
    units: &[(&str, u64)],
    (wanted, hint): (&'static str, &'static str),
) -> Result<u64, UnitError> {
    let form = || UnitError::Form { text: text.to_owned(), wanted, hint };
    let too_large = || UnitError::TooLarge { text: text.to_owned() };
    let digits_end = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(form)?;
    let (digits, suffix) = text.split_at(digits_end);
    let (_, factor) = units.iter().find(|(unit, _)| *unit == suffix).ok_or_else(form)?;
    if digits.is_empty() {
        return Err(form());
    }
    let number: u64 = digits.parse().map_err(|_| too_large())?;
    number.checked_mul(*factor).ok_or_else(too_large)
}

impl fmt::Display for TimeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        write_scaled(f, ms, &TIME_UNITS_MS)
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0, &BYTE_UNITS)
    }
}

/// Writes the number in the largest unit that divides it without a remainder.
fn write_scaled(f: &mut fmt::Formatter<'_>, number: u64, units: &[(&str, u64)]) -> fmt::Result {
    let whole = |(_, factor): &&(&str, u64)| number != 0 && number.is_multiple_of(*factor);
    let (unit, factor) = units.iter().rev().find(whole).unwrap_or(&units[0]);
    write!(f, "{}{unit}", number / factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_read_and_write() {
        let rows = [("1500ms", 1500, "1500ms"), ("10s", 10_000, "10s"), ("120s", 120_000, "2m")];
        for (text, ms, shown) in rows {
            let span: TimeSpan = text.parse().unwrap();
            assert_eq!(span, TimeSpan(Duration::from_millis(ms)));
            assert_eq!(span.to_string(), shown);
        }
        assert_eq!(TimeSpan(Duration::ZERO).to_string(), "0ms");
    }

    #[test]
    fn sizes_read_and_write() {
        let rows = [("64KiB", 65_536, "64KiB"), ("1024MiB", 1 << 30, "1GiB"), ("7B", 7, "7B")];
        for (text, bytes, shown) in rows {
            let size: ByteSize = text.parse().unwrap();
            assert_eq!(size, ByteSize(bytes));
            assert_eq!(size.to_string(), shown);
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "10", "s", "1.5s", "-1s", "10 s", "10S", "10sec", "１0s", "+1s"] {
            assert!(matches!(text.parse::<TimeSpan>(), Err(UnitError::Form { .. })), "{text}");
        }
        for text in ["", "10", "MiB", "10MB", "10mib", "1 GiB", "0x10B"] {
            assert!(matches!(text.parse::<ByteSize>(), Err(UnitError::Form { .. })), "{text}");
        }
        for text in ["99999999999999999999B", "99999999999GiB"] {
            assert!(matches!(text.parse::<ByteSize>(), Err(UnitError::TooLarge { .. })), "{text}");
        }
        assert!("99999999999999999h".parse::<TimeSpan>().is_err());
    }
}
