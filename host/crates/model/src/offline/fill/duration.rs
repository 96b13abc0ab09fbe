//! Lengths of time: "8 minutes", "1 hour 30 minutes", "half an hour", "90s".

use std::ops::Range;

use serde_json::Value;

use super::clues::Clues;
use super::number;
use super::params::{Param, Sort};
use crate::offline::tokens::Sentence;

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::offline) enum Unit {
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
}

impl Unit {
    /// Returns the unit that a stem names.
    pub(super) fn called(stem: &str) -> Option<Self> {
        Some(match stem {
            "ms" | "msec" | "milli" | "millisecond" => Self::Millisecond,
            "s" | "sec" | "secs" | "second" => Self::Second,
            "m" | "min" | "mins" | "minut" => Self::Minute,
            "h" | "hr" | "hrs" | "hour" => Self::Hour,
            "day" | "d" => Self::Day,
            "week" => Self::Week,
            _ => return None,
        })
    }

    fn milliseconds(self) -> f64 {
        match self {
            Self::Millisecond => 1.0,
            Self::Second => 1_000.0,
            Self::Minute => 60_000.0,
            Self::Hour => 3_600_000.0,
            Self::Day => 86_400_000.0,
            Self::Week => 604_800_000.0,
        }
    }
}

/// A length of time as it was said: "1 hour 30 minutes" has two parts.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::offline) struct Duration {
    pub(super) words: Range<usize>,
    pub(super) parts: Vec<(f64, Unit)>,
}

impl Duration {
    fn amount_in(&self, unit: Unit) -> f64 {
        let total: f64 = self.parts.iter().map(|(n, part)| n * part.milliseconds()).sum();
        total / unit.milliseconds()
    }
}

/// Finds the first length of time among the words that are not used.
pub(in crate::offline) fn find(sentence: &Sentence<'_>, used: &[bool]) -> Option<Duration> {
    let is_free = |at: &usize| !used.get(*at).copied().unwrap_or(false);
    let begin =
        (0..sentence.words.len()).filter(is_free).find(|&at| part(sentence, at).is_some())?;
    let (mut parts, mut end) = (Vec::new(), begin);
    loop {
        let joint = usize::from(end > begin && lower(sentence, end) == "and");
        let Some((amount, unit, words)) = part(sentence, end + joint) else { break };
        parts.push((amount, unit));
        end += joint + words;
        if let (true, Some(half)) = (is_and_a_half(sentence, end), parts.last_mut()) {
            half.0 += 0.5;
            end += 3;
        }
    }
    Some(Duration { words: begin..end, parts })
}

/// Returns how many words the amount with its unit has that begins at a word, if one does.
pub(super) fn words_at(sentence: &Sentence<'_>, at: usize) -> Option<usize> {
    part(sentence, at).map(|(_, _, words)| words)
}

/// Reads one amount with its unit, and returns it with the count of its words.
fn part(sentence: &Sentence<'_>, at: usize) -> Option<(f64, Unit, usize)> {
    let (amount, words) = amount(sentence, at)?;
    let unit = Unit::called(&sentence.words.get(at + words)?.stem)?;
    Some((amount, unit, words + 1))
}

fn amount(sentence: &Sentence<'_>, at: usize) -> Option<(f64, usize)> {
    match [lower(sentence, at), lower(sentence, at + 1)] {
        ["half", "an" | "a"] => Some((0.5, 2)),
        ["half", _] => Some((0.5, 1)),
        ["quarter", "of"] => Some((0.25, 3)),
        ["a" | "an", "half"] => Some((0.5, 2)),
        ["a" | "an", "quarter"] => Some((0.25, 4)),
        ["a", "couple"] => Some((2.0, 3)),
        ["a" | "an", next] if next != "hundred" && next != "thousand" => Some((1.0, 1)),
        _ => {
            let (amount, words) = number::read(sentence, at)?;
            let half = is_and_a_half(sentence, at + words);
            Some(if half { (amount + 0.5, words + 3) } else { (amount, words) })
        }
    }
}

fn is_and_a_half(sentence: &Sentence<'_>, at: usize) -> bool {
    ["and", "a", "half"].iter().enumerate().all(|(n, word)| lower(sentence, at + n) == *word)
}

fn lower<'s>(sentence: &'s Sentence<'_>, at: usize) -> &'s str {
    sentence.words.get(at).map_or("", |word| word.lower.as_str())
}

/// Returns the amount for every parameter that takes a length of time. With one such parameter it
/// is the whole; with several of different units each has its own part.
pub(super) fn fill(
    clues: &mut Clues<'_, '_>,
    param: &Param<'_>,
    unit: Unit,
    others: &[Param<'_>],
) -> Option<Value> {
    let shared = others
        .iter()
        .filter(|other| matches!(other.sort, Sort::Duration(other) if other != unit))
        .any(|other| other.is_called(&["hour", "minute", "second", "day"]));
    let Some(duration) = find(clues.sentence, clues.used()) else {
        return number::fill(clues, param, others);
    };
    if shared {
        return fill_part(clues, param, unit);
    }
    let value = number::value(param, duration.amount_in(unit))?;
    clues.take(duration.words);
    Some(value)
}

/// Takes only the part with this parameter's unit and leaves the others where they are.
fn fill_part(clues: &mut Clues<'_, '_>, param: &Param<'_>, unit: Unit) -> Option<Value> {
    for at in 0..clues.words().len() {
        if let Some((amount, found, words)) = part(clues.sentence, at)
            && found == unit
            && clues.is_free(at)
        {
            clues.take(at..at + words);
            return number::value(param, amount);
        }
    }
    if param.required { number::value(param, 0.0) } else { None }
}

/// Returns a length of time as the person said it.
pub(super) fn fill_words(clues: &mut Clues<'_, '_>) -> Option<String> {
    let duration = find(clues.sentence, clues.used())?;
    Some(clues.take(duration.words).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read() {
        let rows = [
            ("set a timer for 8 minutes", Some(480.0)),
            ("90 seconds", Some(90.0)),
            ("90s", Some(90.0)),
            ("1 hour 30 minutes", Some(5400.0)),
            ("1 hour and 30 minutes", Some(5400.0)),
            ("1h 30m", Some(5400.0)),
            ("an hour", Some(3600.0)),
            ("half an hour", Some(1800.0)),
            ("a half hour", Some(1800.0)),
            ("an hour and a half", Some(5400.0)),
            ("two and a half hours", Some(9000.0)),
            ("a quarter of an hour", Some(900.0)),
            ("a couple of minutes", Some(120.0)),
            ("twenty-five mins", Some(1500.0)),
            ("500 ms", Some(0.5)),
            ("2 days", Some(172_800.0)),
            ("tomorrow at 8", None),
            ("a minuet", None),
            ("minutes", None),
            ("", None),
        ];
        for (text, want) in rows {
            let found = find(&Sentence::new(text), &[]);
            assert_eq!(found.map(|found| found.amount_in(Unit::Second)), want, "{text}");
        }
    }
}
