//! Parses single words: numbers, ordinals, weekdays and months.

use jiff::civil::Weekday;

use super::reader::Reader;

/// Maximum number of digits. No count needs as many.
const FIGURES_MAX: usize = 6;

const NUMBERS: [&str; 21] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
];

const TENS: [(&str, u32); 5] =
    [("twenty", 20), ("thirty", 30), ("forty", 40), ("fifty", 50), ("sixty", 60)];

const ORDINALS: [&str; 12] = [
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
    "eleventh", "twelfth",
];

const WEEKDAYS: [(&str, Weekday); 7] = [
    ("monday", Weekday::Monday),
    ("tuesday", Weekday::Tuesday),
    ("wednesday", Weekday::Wednesday),
    ("thursday", Weekday::Thursday),
    ("friday", Weekday::Friday),
    ("saturday", Weekday::Saturday),
    ("sunday", Weekday::Sunday),
];

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// Minimum length of an abbreviated name: `mon`, `thurs`, `sept`.
const SHORT_BYTES_MIN: usize = 3;

/// Whether a name is singular or plural.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    One,
    Many,
}

/// Parses a whole number, in digits or as a word.
pub(super) fn number(word: &str) -> Option<u32> {
    if word.len() <= FIGURES_MAX && word.bytes().all(|byte| byte.is_ascii_digit()) {
        return word.parse().ok();
    }
    if let Some((tens, ones)) = word.split_once('-') {
        let ones = small(ones).filter(|ones| (1..10).contains(ones))?;
        return Some(self::tens(tens)? + ones);
    }
    small(word).or_else(|| tens(word))
}

fn small(word: &str) -> Option<u32> {
    NUMBERS.iter().position(|name| *name == word).and_then(|number| u32::try_from(number).ok())
}

fn tens(word: &str) -> Option<u32> {
    TENS.iter().find(|(name, _)| *name == word).map(|(_, tens)| *tens)
}

/// Parses an ordinal: `first`, `21st`.
pub(super) fn ordinal(reader: &mut Reader<'_>) -> Option<u32> {
    let named = |word: &str| ORDINALS.iter().position(|name| *name == word);
    if let Some(place) = reader.one(named) {
        return u32::try_from(place + 1).ok();
    }
    reader.attempt(|reader| {
        let place = reader.one(number)?;
        reader.eat_any(&["st", "nd", "rd", "th"]).then_some(place)
    })
}

/// Parses `monday`, `mon`, and `mondays` as a plural.
pub(super) fn weekday(word: &str) -> Option<(Weekday, Count)> {
    WEEKDAYS.iter().find_map(|(name, day)| {
        if is_short(word, name) {
            return Some((*day, Count::One));
        }
        (word.strip_suffix('s') == Some(name)).then_some((*day, Count::Many))
    })
}

/// Parses the name of a month, and returns its number.
pub(super) fn month(word: &str) -> Option<i8> {
    let place = MONTHS.iter().position(|name| is_short(word, name))?;
    i8::try_from(place + 1).ok()
}

fn is_short(word: &str, name: &str) -> bool {
    word.len() >= SHORT_BYTES_MIN && name.starts_with(word)
}

/// Returns the capitalized name of a weekday.
pub(crate) fn weekday_name(day: Weekday) -> String {
    let name = WEEKDAYS.iter().find(|(_, known)| *known == day).map_or("", |(name, _)| name);
    capitalized(name)
}

/// Returns the capitalized name of a month.
pub(crate) fn month_name(month: i8) -> String {
    let place = usize::try_from(month - 1).unwrap_or_default();
    capitalized(MONTHS.get(place).copied().unwrap_or_default())
}

fn capitalized(name: &str) -> String {
    let (first, rest) = name.split_at(name.len().min(1));
    first.to_uppercase() + rest
}
