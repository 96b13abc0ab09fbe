//! Numbers, in digits and in words.

use serde_json::{Number, Value};

use super::clues::Clues;
use super::params::Param;
use crate::offline::tokens::{self, Kind, Sentence};

/// Largest whole number that every reader of JSON keeps exactly: 2^53.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// How far from a parameter's name its number may stand: "with a radius of 5", "radius = 5".
const REACH: usize = 3;

/// Longest number in words. Without an end, "one hundred one hundred" and so on would be read again
/// from each of its words.
const WORDS_MAX: usize = 16;

const ONES: &[&str] = &[
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
];

const TENS: &[&str] =
    &["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];

/// Reads a number that begins at a word. Returns it with the count of its words.
pub(super) fn read(sentence: &Sentence<'_>, at: usize) -> Option<(f64, usize)> {
    let word = sentence.words.get(at)?;
    match word.kind {
        Kind::Number => Some((tokens::number(word.text)?, 1)),
        Kind::Word => in_words(sentence, at),
        _ => None,
    }
}

/// A number in words, as far as it has been said: "two hundred and ten" passes 2, 200, 210.
#[derive(Default)]
struct Spoken {
    thousands: f64,
    rest: Option<f64>,
}

impl Spoken {
    /// Takes the next word, if the number goes on with it.
    fn take(&mut self, word: &str) -> bool {
        let (rest, said) = (self.rest.unwrap_or(0.0), self.rest.is_some());
        match (small(word), large(word)) {
            (Some(value), _) if self.goes_on(value) => self.rest = Some(rest + value),
            (_, Some(factor)) if said && factor < 1_000.0 => self.rest = Some(rest * factor),
            (_, Some(factor)) if said => {
                self.thousands += rest * factor;
                self.rest = Some(0.0);
            }
            _ => return false,
        }
        true
    }

    /// "twenty five" is one number, "five six" are two.
    fn goes_on(&self, value: f64) -> bool {
        self.rest.is_none_or(|rest| {
            let after_tens = rest % 10.0 == 0.0 && rest > 0.0 && value < 10.0;
            let after_large = rest % 100.0 == 0.0 && (rest > 0.0 || self.thousands > 0.0);
            after_tens || after_large
        })
    }

    fn value(&self) -> Option<f64> {
        self.rest.map(|rest| self.thousands + rest)
    }
}

/// "five", "twenty five", "a hundred", "two hundred and ten", "three thousand".
fn in_words(sentence: &Sentence<'_>, at: usize) -> Option<(f64, usize)> {
    let lower = |at: usize| sentence.words.get(at).map_or("", |word| word.lower.as_str());
    let (mut spoken, mut next) = (Spoken::default(), at);
    if matches!(lower(at), "a" | "an") && large(lower(at + 1)).is_some() {
        (spoken.rest, next) = (Some(1.0), at + 1);
    }
    while next - at < WORDS_MAX {
        let joint = next > at && lower(next) == "and" && large(lower(next - 1)).is_some();
        if joint && small(lower(next + 1)).is_some() {
            next += 1;
        }
        if !spoken.take(lower(next)) {
            break;
        }
        next += 1;
    }
    Some((spoken.value()?, next - at))
}

fn small(word: &str) -> Option<f64> {
    let of = |list: &[&str]| list.iter().position(|name| *name == word);
    let value = of(ONES).or_else(|| of(TENS).map(|n| (n + 2) * 10))?;
    u32::try_from(value).ok().map(f64::from)
}

fn large(word: &str) -> Option<f64> {
    match word {
        "hundred" => Some(100.0),
        "thousand" => Some(1_000.0),
        "million" => Some(1_000_000.0),
        _ => None,
    }
}

/// Returns the number for a parameter: the one beside its name, or, for a required one, the first
/// that stands beside no other's name.
pub(super) fn fill(
    clues: &mut Clues<'_, '_>,
    param: &Param<'_>,
    others: &[Param<'_>],
) -> Option<Value> {
    let fits = |found: &Found| value(param, found.value).is_some();
    let numbers: Vec<Found> = all(clues).into_iter().filter(fits).collect();
    let beside = numbers.iter().find(|found| is_beside(clues, found, param));
    let foreign = |found: &&Found| {
        others.iter().any(|other| other.name != param.name && is_beside(clues, found, other))
    };
    let first = || {
        let own = numbers.iter().find(|found| !foreign(found));
        own.or(numbers.first()).filter(|_| param.required)
    };
    let found = beside.or_else(first)?;
    clues.take(found.at..found.at + found.words);
    value(param, found.value)
}

/// Returns every free number.
pub(super) fn fill_all(clues: &mut Clues<'_, '_>, item: &Param<'_>) -> Vec<Value> {
    let mut values = Vec::new();
    for found in all(clues) {
        if let Some(value) = value(item, found.value) {
            clues.take(found.at..found.at + found.words);
            values.push(value);
        }
    }
    values
}

struct Found {
    at: usize,
    words: usize,
    value: f64,
}

fn all(clues: &Clues<'_, '_>) -> Vec<Found> {
    let (mut all, mut at) = (Vec::new(), 0);
    while at < clues.words().len() {
        match read(clues.sentence, at).filter(|_| clues.is_free(at)) {
            Some((value, words)) => {
                all.push(Found { at, words, value });
                at += words;
            }
            None => at += 1,
        }
    }
    all
}

/// The name stands shortly before the number, or right behind it as in "5 meters".
fn is_beside(clues: &Clues<'_, '_>, found: &Found, param: &Param<'_>) -> bool {
    let before = found.at.saturating_sub(REACH)..found.at;
    let behind = found.at + found.words..found.at + found.words + 1;
    let names =
        |at: usize| clues.words().get(at).is_some_and(|word| param.words.contains(&word.stem));
    before.chain(behind).any(names)
}

/// Returns a number as a parameter takes it, if it may be that at all.
pub(super) fn value(param: &Param<'_>, number: f64) -> Option<Value> {
    let limit = |key: &str| param.schema.get(key).and_then(Value::as_f64);
    let in_range = limit("minimum").is_none_or(|min| number >= min)
        && limit("maximum").is_none_or(|max| number <= max)
        && limit("exclusiveMinimum").is_none_or(|min| number > min)
        && limit("exclusiveMaximum").is_none_or(|max| number < max);
    let types = param.schema.get("type").map(Value::to_string).unwrap_or_default().to_lowercase();
    let integer = types.contains("int") || types.contains("long");
    if !in_range || (integer && number.fract() != 0.0) {
        None
    } else if number.fract() == 0.0 && number.abs() <= EXACT_MAX {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53")]
        let whole = number as i64;
        Some(Value::Number(whole.into()))
    } else {
        Number::from_f64(number).map(Value::Number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_digits_and_words() {
        let rows = [
            ("5", Some((5.0, 1))),
            ("five", Some((5.0, 1))),
            ("twenty", Some((20.0, 1))),
            ("twenty-five minutes", Some((25.0, 2))),
            ("five six", Some((5.0, 1))),
            ("a hundred", Some((100.0, 2))),
            ("two hundred and ten things", Some((210.0, 4))),
            ("three thousand five hundred", Some((3500.0, 4))),
            ("one and a half", Some((1.0, 1))),
            ("two and three", Some((2.0, 1))),
            ("1,000", Some((1000.0, 1))),
            ("a dog", None),
            ("hundred", None),
            ("", None),
        ];
        for (text, want) in rows {
            assert_eq!(read(&Sentence::new(text), 0), want, "{text}");
        }
    }
}
