//! Splits names and descriptions into words, for documents and queries alike.
//!
//! Names come in every style: `get_time`, `getTime`, `HTTPServer`, `base64`. Words end where
//! letters, digits and capitals change. The only rule of a language is that an English plural
//! becomes its singular: models search for "file" as well as "files".

use crate::script::is_unspaced;

/// Maximum length of a word, in characters. Longer ones are usually keys and digests.
const WORD_CHARS_MAX: usize = 40;

/// Returns the words of a text, in lower case. Words of more than 40 characters are skipped.
pub fn words(text: &str) -> impl Iterator<Item = String> {
    let mut rest = text;
    let pieces = std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c| Class::of(c) == Class::Between);
        let (piece, behind) = rest.split_at(piece_bytes(rest));
        rest = behind;
        (!piece.is_empty()).then_some(piece)
    });
    pieces.filter(|piece| piece.chars().count() <= WORD_CHARS_MAX).map(singular)
}

/// The class of a character.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Capital,
    Digit,
    /// A character of a script without spaces. It is a word of its own.
    Sign,
    Between,
}

impl Class {
    fn of(c: char) -> Self {
        match c {
            '0'..='9' => Self::Digit,
            c if is_unspaced(c) => Self::Sign,
            c if c.is_uppercase() => Self::Capital,
            c if c.is_alphanumeric() => Self::Letter,
            _ => Self::Between,
        }
    }
}

/// Returns the length of the text's first word, in bytes.
fn piece_bytes(text: &str) -> usize {
    let mut chars = text.char_indices().map(|(at, c)| (at, Class::of(c)));
    let Some((mut last_at, mut last)) = chars.next() else { return 0 };
    for (at, class) in chars {
        match (last, class) {
            // The last of several capitals belongs to the letters after it.
            (Class::Capital, Class::Letter) if last_at > 0 => return last_at,
            (Class::Capital, Class::Letter) => {}
            (Class::Sign, _) => return at,
            (last, class) if last != class => return at,
            _ => {}
        }
        (last_at, last) = (at, class);
    }
    text.len()
}

fn singular(piece: &str) -> String {
    let mut word = piece.to_lowercase();
    if word.len() < 4 || !word.is_ascii() || ["ss", "us", "is"].iter().any(|e| word.ends_with(e)) {
        return word;
    }
    if word.len() > 4 && word.ends_with("ies") {
        word.truncate(word.len() - 3);
        word.push('y');
    } else if ["sses", "xes", "zes", "ches", "shes"].iter().any(|end| word.ends_with(end)) {
        word.truncate(word.len() - 2);
    } else if word.ends_with('s') {
        word.truncate(word.len() - 1);
    }
    word
}
