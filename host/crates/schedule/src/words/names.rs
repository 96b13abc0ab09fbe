//! What single words mean: numbers, places in a row, days of the week, months.

use jiff::civil::Weekday;

use super::reader::Reader;

/// Longest number that is read. No count of anything here has as many figures.
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

/// Shortest form of a long name: `mon`, `thurs`, `sept`.
const SHORT_BYTES_MIN: usize = 3;

/// How often a name comes: once, or each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    One,
    Many,
}

/// A whole number in figures or as a word.
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

/// A place in a row: `first`, `21st`.
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

/// `monday`, `mon`, and `mondays` as each of them.
pub(super) fn weekday(word: &str) -> Option<(Weekday, Count)> {
    WEEKDAYS.iter().find_map(|(name, day)| {
        if is_short(word, name) {
            return Some((*day, Count::One));
        }
        (word.strip_suffix('s') == Some(name)).then_some((*day, Count::Many))
    })
}

/// The number of a month by its name.
pub(super) fn month(word: &str) -> Option<i8> {
    let place = MONTHS.iter().position(|name| is_short(word, name))?;
    i8::try_from(place + 1).ok()
}

fn is_short(word: &str, name: &str) -> bool {
    word.len() >= SHORT_BYTES_MIN && name.starts_with(word)
}

/// The name of a day of the week, as it is written.
pub(crate) fn weekday_name(day: Weekday) -> String {
    let name = WEEKDAYS.iter().find(|(_, known)| *known == day).map_or("", |(name, _)| name);
    capitalized(name)
}

/// The name of a month, as it is written.
pub(crate) fn month_name(month: i8) -> String {
    let place = usize::try_from(month - 1).unwrap_or_default();
    capitalized(MONTHS.get(place).copied().unwrap_or_default())
}

fn capitalized(name: &str) -> String {
    let (first, rest) = name.split_at(name.len().min(1));
    first.to_uppercase() + rest
}
