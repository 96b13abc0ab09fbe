//! Parses single words: numbers, ordinals, weekdays and months.

use jiff::civil::Weekday;

use super::reader::WordCursor;

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
pub(super) enum GrammaticalNumber {
    One,
    Many,
}

/// Parses a whole number, in digits or as a word.
pub(super) fn parse_number(word: &str) -> Option<u32> {
    if word.len() <= FIGURES_MAX && word.bytes().all(|byte| byte.is_ascii_digit()) {
        return word.parse().ok();
    }
    if let Some((tens, ones)) = word.split_once('-') {
        let ones = parse_small_number(ones).filter(|ones| (1..10).contains(ones))?;
        return Some(self::parse_tens(tens)? + ones);
    }
    parse_small_number(word).or_else(|| parse_tens(word))
}

fn parse_small_number(word: &str) -> Option<u32> {
    NUMBERS.iter().position(|name| *name == word).and_then(|number| u32::try_from(number).ok())
}

fn parse_tens(word: &str) -> Option<u32> {
    TENS.iter().find(|(name, _)| *name == word).map(|(_, tens)| *tens)
}

/// Parses an ordinal: `first`, `21st`.
pub(super) fn parse_ordinal(reader: &mut WordCursor<'_>) -> Option<u32> {
    let named = |word: &str| ORDINALS.iter().position(|name| *name == word);
    if let Some(place) = reader.parse_word(named) {
        return u32::try_from(place + 1).ok();
    }
    reader.try_parse(|reader| {
        let place = reader.parse_word(parse_number)?;
        reader.consume_any(&["st", "nd", "rd", "th"]).then_some(place)
    })
}

/// Parses `monday`, `mon`, and `mondays` as a plural.
pub(super) fn parse_weekday(word: &str) -> Option<(Weekday, GrammaticalNumber)> {
    WEEKDAYS.iter().find_map(|(name, day)| {
        if is_abbreviation(word, name) {
            return Some((*day, GrammaticalNumber::One));
        }
        (word.strip_suffix('s') == Some(name)).then_some((*day, GrammaticalNumber::Many))
    })
}

/// Parses the name of a month, and returns its number.
pub(super) fn parse_month(word: &str) -> Option<i8> {
    let place = MONTHS.iter().position(|name| is_abbreviation(word, name))?;
    i8::try_from(place + 1).ok()
}

fn is_abbreviation(word: &str, name: &str) -> bool {
    word.len() >= SHORT_BYTES_MIN && name.starts_with(word)
}

/// Returns the capitalized name of a weekday.
pub(crate) fn weekday_name(day: Weekday) -> String {
    let name = WEEKDAYS.iter().find(|(_, known)| *known == day).map_or("", |(name, _)| name);
    capitalize_name(name)
}

/// Returns the capitalized name of a month.
pub(crate) fn month_name(month: i8) -> String {
    let place = usize::try_from(month - 1).unwrap_or_default();
    capitalize_name(MONTHS.get(place).copied().unwrap_or_default())
}

fn capitalize_name(name: &str) -> String {
    let (first, rest) = name.split_at(name.len().min(1));
    first.to_uppercase() + rest
}
