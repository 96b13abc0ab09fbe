//! The escapes of JSON strings: `\"`, `\/`, `\u00e9`.

use std::{collections::BTreeSet, fmt::Write};

use super::Case;

/// What an encoder escapes beside `"`, `\` and controls.
struct Habit {
    /// Signs that it writes with a backslash and their letter.
    short: &'static str,
    /// Signs that it writes by their number.
    numbered: &'static str,
    beyond_ascii: BeyondAscii,
    case: Case,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BeyondAscii {
    Kept,
    Numbered,
}
use BeyondAscii::{Kept, Numbered};
use Case::{Lower, Upper};

/// What every encoder escapes: JSON is not JSON without.
const MINIMAL: Habit = habit("", "", Kept, Lower);

/// The line separators that JavaScript once could not bear are numbered by those who think of
/// scripts in pages.
const HABITS: [Habit; 15] = [
    MINIMAL,
    habit("", "", Kept, Upper),
    habit("", "", Numbered, Lower),
    habit("", "", Numbered, Upper),
    habit("/", "", Kept, Lower),
    habit("/", "", Numbered, Lower),
    habit("/", "", Numbered, Upper),
    habit("", "\u{7f}", Numbered, Lower),
    habit("", "<>&\u{2028}\u{2029}", Kept, Lower),
    habit("", "<>&\u{2028}\u{2029}", Kept, Upper),
    habit("", "<>&'", Numbered, Lower),
    habit("", "<>&'=\u{2028}\u{2029}", Kept, Lower),
    habit("", "<>&'\"", Kept, Upper),
    habit("/", "<>&'\"", Numbered, Upper),
    habit("", "<>&'\"+`\u{7f}", Numbered, Upper),
];

const fn habit(
    short: &'static str,
    numbered: &'static str,
    beyond_ascii: BeyondAscii,
    case: Case,
) -> Habit {
    Habit { short, numbered, beyond_ascii, case }
}

pub(super) fn forms(text: &str) -> BTreeSet<String> {
    HABITS.iter().map(|habit| habit.spell(text)).collect()
}

/// JSON as a text within JSON, each by an encoder that does only what it must, or both by one.
pub(super) fn forms_within(text: &str) -> BTreeSet<String> {
    let inner = minimal(text);
    let spellings = HABITS.iter().flat_map(|habit| {
        let own = habit.spell(text);
        [minimal(&own), habit.spell(&own), habit.spell(&inner)]
    });
    spellings.collect()
}

/// A text, perhaps escaped already, with the escapes that JSON needs.
pub(super) fn minimal(text: &str) -> String {
    MINIMAL.spell(text)
}

/// Every character by its number.
pub(super) fn every_unit(text: &str, case: Case) -> String {
    text.chars().fold(String::new(), |mut spelt, c| {
        number(&mut spelt, c, case);
        spelt
    })
}

impl Habit {
    fn spell(&self, text: &str) -> String {
        let mut spelt = String::with_capacity(text.len());
        for c in text.chars() {
            if self.numbered.contains(c) || (self.beyond_ascii == Numbered && !c.is_ascii()) {
                number(&mut spelt, c, self.case);
            } else if let Some(letter) = letter(c).or(self.short.contains(c).then_some(c)) {
                spelt.extend(['\\', letter]);
            } else if c < ' ' {
                number(&mut spelt, c, self.case);
            } else {
                spelt.push(c);
            }
        }
        spelt
    }
}

/// The letter of a character's short escape.
fn letter(c: char) -> Option<char> {
    match c {
        '"' | '\\' => Some(c),
        '\u{8}' => Some('b'),
        '\u{c}' => Some('f'),
        '\n' => Some('n'),
        '\r' => Some('r'),
        '\t' => Some('t'),
        _ => None,
    }
}

/// JSON counts in units of UTF-16: a character beyond them is two.
fn number(spelt: &mut String, c: char, case: Case) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        // Writing to a String cannot fail.
        let _ = write!(spelt, "\\u{}", case.four_digits(*unit));
    }
}
