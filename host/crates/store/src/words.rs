//! The words of a text, as the index has them, and as somebody asks for them.
//!
//! The index splits a text where anything but letters, marks and digits stands. In scripts that put
//! no spaces between words, each letter is made a word of its own and a word that is looked for is
//! a row of these: it is found wherever it stands, however short it is. Splitting everything into
//! rows of three letters would do the same only for words of three letters and more, in an index
//! several times as large and without a sense of whole words.

use std::cmp::Reverse;

use sallyport_lexical::is_unspaced;

/// Stands between two letters that are words of their own. Texts lose their own control characters
/// on the way into the index, so this and the next two mean only what is said here.
const BETWEEN: char = '\u{1f}';

/// Stands before what was found.
pub(crate) const FOUND_BEGIN: char = '\u{1d}';

/// Stands behind what was found.
pub(crate) const FOUND_END: char = '\u{1e}';

/// Most of a text that is searched. People look for what was said, which is shorter; of a long
/// result of a tool, the start says what it is.
const SEARCHED_BYTES_MAX: usize = 16 << 10;

/// Shortest start of a word that finds longer ones: three letters of Latin, two of most other
/// alphabets, one of Korean. Fewer begin so many words that they tell nothing and take seconds.
const START_BYTES_MIN: usize = 3;

/// Most words of a text that is compared with others by its words. Each costs a walk through the
/// index; the longest of a text say the most about it.
const ANY_WORDS_MAX: usize = 64;

/// The text that goes into the index.
pub(crate) fn indexed(text: &str) -> String {
    split(&text[..text.floor_char_boundary(SEARCHED_BYTES_MAX)])
}

/// A piece of what came out of the index, as it was before.
pub(crate) fn restored(piece: &str) -> String {
    piece.replace(BETWEEN, "")
}

/// Writes a query in the language of the index, in which only what stands between quotes is free of
/// meaning. `None` when nothing is asked for.
pub(crate) fn query(text: &str) -> Option<String> {
    let mut terms = Vec::new();
    for (number, part) in text.split('"').enumerate() {
        let part = split(part);
        if number % 2 == 1 {
            terms.extend(has_word(&part).then(|| format!("\"{part}\"")));
        } else {
            terms.extend(part.split_whitespace().filter(|word| has_word(word)).map(term));
        }
    }
    (!terms.is_empty()).then(|| terms.join(" AND "))
}

/// Writes a query that finds whatever has any of a text's words, in the same language. `None` when
/// it has none.
pub(crate) fn any_of(text: &str) -> Option<String> {
    let split = indexed(text);
    let apart = |c: char| c.is_whitespace() || c == BETWEEN || c == '"';
    let mut words: Vec<&str> = split.split(apart).filter(|word| has_word(word)).collect();
    words.sort_unstable_by_key(|word| (Reverse(word.len()), *word));
    words.dedup();
    words.truncate(ANY_WORDS_MAX);
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    (!quoted.is_empty()).then(|| quoted.join(" OR "))
}

/// A whole word counts twice, so it ranks above a longer one.
fn term(word: &str) -> String {
    if word.len() < START_BYTES_MIN {
        format!("\"{word}\"")
    } else {
        format!("(\"{word}\" OR \"{word}\" *)")
    }
}

/// Signs alone are in no text of the index, so a query that asks for them too would find nothing.
fn has_word(text: &str) -> bool {
    text.contains(char::is_alphanumeric)
}

fn split(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && c != '\n' && c != '\t' {
            out.push(' ');
        } else if is_unspaced(c) {
            out.extend([BETWEEN, c, BETWEEN]);
        } else {
            out.push(c);
        }
    }
    out
}
