//! Moments: "tomorrow at 9", "in 20 minutes", "every weekday at 8:30".
//!
//! What they mean, the tool knows that wants them in words. Here it is only found where one begins and
//! where it ends: it begins with a word that leads to a time, such as "in" before a length of time,
//! and goes on as long as words speak of days and hours.

use std::ops::Range;

use super::clues::Clues;
use super::{duration, number};
use crate::offline::tokens::{Kind, Sentence, Word};

/// Words of one moment. Nobody needs more, and the rest of a long text is content.
const WORDS_MAX: usize = 16;

/// Words that are a moment by themselves.
const DAYS: &[&str] = &[
    "today",
    "tonight",
    "tomorrow",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];

/// Other days, and parts of a day and of a year.
const PARTS: &[&str] = &[
    "day",
    "days",
    "weekday",
    "weekdays",
    "weekend",
    "weekends",
    "week",
    "weeks",
    "month",
    "months",
    "year",
    "years",
    "morning",
    "mornings",
    "afternoon",
    "evening",
    "evenings",
    "night",
    "noon",
    "midday",
    "midnight",
    "hour",
    "hours",
    "minute",
    "minutes",
    "second",
    "seconds",
    "mondays",
    "tuesdays",
    "wednesdays",
    "thursdays",
    "fridays",
    "saturdays",
    "sundays",
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
    "am",
    "pm",
    "o'clock",
    "half",
    "past",
    "quarter",
    "other",
];

/// Words between the others. A moment does not end in one.
const JOINTS: &[&str] =
    &["at", "on", "in", "the", "a", "an", "of", "and", "every", "each", "next", "this"];

/// Finds the first moment among the words that are not used.
pub(in crate::offline) fn find(sentence: &Sentence<'_>, used: &[bool]) -> Option<Range<usize>> {
    let is_free = |at: usize| !used.get(at).copied().unwrap_or(false);
    let words = &sentence.words;
    let begin = (0..words.len()).find(|&at| is_free(at) && begins(sentence, at))?;
    let last = words.len().min(begin + WORDS_MAX);
    let (mut at, mut end) = (begin + 1, begin + 1);
    // A colon stands within "8:30", any other pause behind a moment.
    while at < last && is_free(at) && matches!(words[at - 1].pause, None | Some(':')) {
        at += match time_words(sentence, at) {
            0 if JOINTS.contains(&words[at].lower.as_str()) => 1,
            0 => break,
            time => {
                end = at + time;
                time
            }
        };
    }
    Some(begin..end)
}

/// Returns a moment as the person said it.
pub(super) fn fill(clues: &mut Clues<'_, '_>) -> Option<String> {
    let found = find(clues.sentence, clues.used())?;
    Some(clues.take(found).to_owned())
}

fn begins(sentence: &Sentence<'_>, at: usize) -> bool {
    let word = &sentence.words[at];
    let is_ordinal_at = |at: usize| sentence.words.get(at).is_some_and(|w| is_ordinal(&w.lower));
    let goes_on = || time_words(sentence, at + 1) > 0;
    word.kind == Kind::Word
        && match word.lower.as_str() {
            "in" => duration::words_at(sentence, at + 1).is_some(),
            "on" => goes_on() || is_ordinal_at(at + 2),
            "at" | "every" | "each" | "next" | "this" => goes_on(),
            day => DAYS.contains(&day),
        }
}

/// How many words from here on are one piece of a moment: a length of time, a number, a day.
fn time_words(sentence: &Sentence<'_>, at: usize) -> usize {
    let measured = duration::words_at(sentence, at);
    let counted = || number::read(sentence, at).map(|(_, words)| words);
    let named = || usize::from(sentence.words.get(at).is_some_and(is_named));
    measured.or_else(counted).unwrap_or_else(named)
}

fn is_named(word: &Word<'_>) -> bool {
    let lower = word.lower.as_str();
    let is_day = DAYS.contains(&lower) || PARTS.contains(&lower);
    word.kind == Kind::Word && (is_day || is_clock(lower) || is_ordinal(lower))
}

/// `9am`, `5pm`, `8h`.
fn is_clock(lower: &str) -> bool {
    ends_a_number(lower, &["am", "pm", "h"])
}

/// `1st`, `24th`.
fn is_ordinal(lower: &str) -> bool {
    ends_a_number(lower, &["st", "nd", "rd", "th"])
}

fn ends_a_number(lower: &str, endings: &[&str]) -> bool {
    let digits = endings.iter().find_map(|ending| lower.strip_suffix(ending));
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_found_from_their_first_word_to_their_last() {
        let rows = [
            ("remind me tomorrow at 9 to call mum", Some("tomorrow at 9")),
            ("remind me to call mum in 20 minutes", Some("in 20 minutes")),
            ("in an hour and a half to go", Some("in an hour and a half")),
            ("to stretch every weekday at 8:30", Some("every weekday at 8:30")),
            ("every 2 hours to drink", Some("every 2 hours")),
            ("lunch on Friday at noon with Ann", Some("on Friday at noon")),
            ("at 5pm to leave", Some("at 5pm")),
            ("in twenty minutes to go", Some("in twenty minutes")),
            ("every twenty minutes", Some("every twenty minutes")),
            ("at half past nine to march", Some("at half past nine")),
            ("tomorrow: call mum", Some("tomorrow")),
            ("tomorrow", Some("tomorrow")),
            ("on the 24th of december at 18:00", Some("on the 24th of december at 18:00")),
            ("on 24th december at 18:00", Some("on 24th december at 18:00")),
            ("on 2026-12-24 at 18:00", Some("on 2026-12-24 at 18:00")),
            ("tomorrow, at home", Some("tomorrow")),
            ("meet Ann tonight at the pub", Some("tonight")),
            ("in the kitchen at home on paper", None),
            ("a \"tomorrow\" in quotes", None),
            ("", None),
        ];
        for (text, want) in rows {
            let sentence = Sentence::new(text);
            let found = find(&sentence, &[]).map(|words| sentence.slice(words));
            assert_eq!(found, want, "{text}");
        }
    }
}
