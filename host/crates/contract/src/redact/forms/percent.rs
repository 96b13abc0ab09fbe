//! The escapes of URLs and forms: `%2F`.

use std::collections::BTreeSet;

use super::Case;

/// Which signs an encoder leaves as they are, beside letters and digits.
struct Habit {
    kept: &'static str,
    /// How it writes a blank.
    blank: Blank,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Blank {
    Escaped,
    Plus,
}

/// What encodes a value that is a part of a URL: every sign that could have a meaning is escaped.
const COMPONENT: Habit = Habit { kept: "-._~", blank: Blank::Escaped };

const HABITS: [Habit; 15] = [
    COMPONENT,
    // A value within a path, by libraries that leave its slashes.
    Habit { kept: "-._~/", blank: Blank::Escaped },
    // JavaScript: a component, a whole URL.
    Habit { kept: "-._~!*'()", blank: Blank::Escaped },
    Habit { kept: "-._~!*'();/?:@&=+$,#", blank: Blank::Escaped },
    // Forms: of browsers, of other libraries.
    Habit { kept: "-._*", blank: Blank::Plus },
    Habit { kept: "-._", blank: Blank::Plus },
    Habit { kept: "-._~", blank: Blank::Plus },
    // A segment of a path or a part of a query, by the letter of the standard and by habit.
    Habit { kept: "-._~!$&'()*+,;=:@", blank: Blank::Escaped },
    Habit { kept: "-._~!$&'()*+,;=:@/?", blank: Blank::Escaped },
    Habit { kept: "-._~$&+=:@", blank: Blank::Escaped },
    // URL parsers: user and password, path, one segment of it, query, fragment.
    Habit { kept: "!$%&'()*+,-._~", blank: Blank::Escaped },
    Habit { kept: "!$%&'()*+,-./:;=@[\\]_|~", blank: Blank::Escaped },
    Habit { kept: "!$&'()*+,-.:;=@[]_|~", blank: Blank::Escaped },
    Habit { kept: "!$%&()*+,-./:;=?@[\\]^_`{|}~", blank: Blank::Escaped },
    Habit { kept: "!#$%&'()*+,-./:;=?@[\\]^_{|}~", blank: Blank::Escaped },
];

pub(super) fn forms(text: &str) -> BTreeSet<String> {
    let spellings = HABITS.iter().flat_map(|habit| Case::BOTH.map(|case| habit.spell(text, case)));
    spellings.collect()
}

/// A text, perhaps escaped already, as a component.
pub(super) fn component(text: &str) -> String {
    COMPONENT.spell(text, Case::Upper)
}

/// Every byte escaped, letters and digits too.
pub(super) fn every_byte(text: &str, case: Case) -> String {
    text.bytes().map(|byte| escaped(byte, case)).collect()
}

impl Habit {
    fn spell(&self, text: &str, case: Case) -> String {
        let mut spelt = String::with_capacity(text.len());
        for byte in text.bytes() {
            match char::from(byte) {
                ' ' if self.blank == Blank::Plus => spelt.push('+'),
                c if c.is_ascii_alphanumeric() || self.kept.contains(c) => spelt.push(c),
                _ => spelt.push_str(&escaped(byte, case)),
            }
        }
        spelt
    }
}

fn escaped(byte: u8, case: Case) -> String {
    format!("%{}", case.two_digits(byte))
}
