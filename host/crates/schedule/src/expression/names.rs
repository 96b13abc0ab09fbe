//! Parses single words: numbers, ordinals, weekdays and months.

use jiff::civil::Weekday;

use super::reader::WordCursor;

/// Maximum number of digits. No count needs as many.
const FIGURES_MAX: usize = 6;

const NUMBERS: &str = "zero one two three four five six seven eight nine ten eleven twelve \
    thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty";

const TENS: &str = "twenty thirty forty fifty sixty";

const ORDINALS: &str = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh \
    twelfth";

const WEEKDAYS: &str = "monday tuesday wednesday thursday friday saturday sunday";

const MONTHS: &str = "january february march april may june july august september october november \
    december";

/// Minimum length of an abbreviated name: `mon`, `thurs`, `sept`.
const SHORT_BYTES_MIN: usize = 3;

/// Whether a name is singular or plural.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GrammaticalNumber {
    One,
    Many,
}

/// Returns the first place of a word of a list that `is_it` accepts, from 0.
fn find_place(list: &str, is_it: impl Fn(&str) -> bool) -> Option<u32> {
    list.split(' ').zip(0..).find(|(name, _)| is_it(name)).map(|(_, place)| place)
}

pub(crate) fn is_digits(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Parses a whole number, in digits or as a word.
pub(super) fn parse_number(word: &str) -> Option<u32> {
    if word.len() <= FIGURES_MAX && is_digits(word) {
        return word.parse().ok();
    }
    let small = |word: &str| find_place(NUMBERS, |name| name == word);
    let tens = |word: &str| find_place(TENS, |name| name == word).map(|tens| tens * 10 + 20);
    if let Some((begin, ones)) = word.split_once('-') {
        return Some(tens(begin)? + small(ones).filter(|ones| (1..10).contains(ones))?);
    }
    small(word).or_else(|| tens(word))
}

/// Parses an ordinal: `first`, `21st`.
pub(super) fn parse_ordinal(reader: &mut WordCursor<'_>) -> Option<u32> {
    let named = |word: &str| find_place(ORDINALS, |name| name == word);
    reader.parse_word(named).map(|place| place + 1).or_else(|| {
        reader.try_parse(|reader| {
            let place = reader.parse_word(parse_number)?;
            reader.consume_any(&["st", "nd", "rd", "th"]).then_some(place)
        })
    })
}

/// Parses a day of the month, such as `21st` or `21`.
pub(super) fn parse_month_day(reader: &mut WordCursor<'_>) -> Option<i8> {
    let day = parse_ordinal(reader).or_else(|| reader.parse_word(parse_number))?;
    day_of_month(day)
}

/// Checks the number of a day of the month.
pub(super) fn day_of_month(number: u32) -> Option<i8> {
    i8::try_from(number).ok().filter(|day| (1..=31).contains(day))
}

/// Parses `monday`, `mon`, and `mondays` as a plural.
pub(super) fn parse_weekday(word: &str) -> Option<(Weekday, GrammaticalNumber)> {
    let one = find_place(WEEKDAYS, |name| is_abbreviation(word, name));
    let many = || find_place(WEEKDAYS, |name| word.strip_suffix('s') == Some(name));
    let (place, count) = one
        .map(|place| (place, GrammaticalNumber::One))
        .or_else(|| Some((many()?, GrammaticalNumber::Many)))?;
    Some((Weekday::from_monday_zero_offset(i8::try_from(place).ok()?).ok()?, count))
}

/// Parses the name of a month, and returns its number.
pub(super) fn parse_month(word: &str) -> Option<i8> {
    i8::try_from(find_place(MONTHS, |name| is_abbreviation(word, name))? + 1).ok()
}

fn is_abbreviation(word: &str, name: &str) -> bool {
    word.len() >= SHORT_BYTES_MIN && name.starts_with(word)
}
