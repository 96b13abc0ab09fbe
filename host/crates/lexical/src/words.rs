//! Splits names and descriptions into words, for documents and queries alike.
//!
//! Names come in every style: `get_time`, `getTime`, `HTTPServer`, `base64`. Words end where
//! letters, digits and capitals change. The only rule of a language is that an English plural
//! becomes its singular: models search for "file" as well as "files".

use crate::script::is_unspaced;

/// Maximum length of a word, in characters. Longer ones are usually keys and digests.
const WORD_CHARS_MAX: usize = 40;

/// Returns the words of a text, in lower case. Words of more than 40 characters are skipped.
pub fn split_into_words(text: &str) -> impl Iterator<Item = String> {
    let mut rest = text;
    let pieces = std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c| CharClass::from_char(c) == CharClass::Between);
        let (piece, behind) = rest.split_at(first_word_bytes(rest));
        rest = behind;
        (!piece.is_empty()).then_some(piece)
    });
    pieces.filter(|piece| piece.chars().count() <= WORD_CHARS_MAX).map(singular_form)
}

/// Returns whether a list of words, separated by single spaces, contains a word.
pub fn contains_word(list: &str, word: &str) -> bool {
    list.split(' ').any(|known| known == word)
}

/// The class of a character.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CharClass {
    Letter,
    Capital,
    Digit,
    /// A character of a script without spaces. It is a word of its own.
    Sign,
    Between,
}

impl CharClass {
    fn from_char(c: char) -> Self {
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
fn first_word_bytes(text: &str) -> usize {
    let mut chars = text.char_indices().map(|(at, c)| (at, CharClass::from_char(c)));
    let Some((mut last_at, mut last)) = chars.next() else { return 0 };
    for (at, class) in chars {
        match (last, class) {
            // The last of several capitals belongs to the letters after it.
            (CharClass::Capital, CharClass::Letter) if last_at > 0 => return last_at,
            (CharClass::Capital, CharClass::Letter) => {}
            (CharClass::Sign, _) => return at,
            (last, class) if last != class => return at,
            _ => {}
        }
        (last_at, last) = (at, class);
    }
    text.len()
}

fn singular_form(piece: &str) -> String {
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
