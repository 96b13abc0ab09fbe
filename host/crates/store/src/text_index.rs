//! Preparing texts and queries for the full-text index of either database.
//!
//! The index splits a text at everything except letters, marks and digits. In scripts without
//! spaces between words, each letter becomes a word of its own, and a searched word becomes a
//! phrase of them, so it is found anywhere, however short it is. An index of trigrams would only
//! find words of three letters and more, would be several times as large, and would not know whole
//! words.

use std::cmp::Reverse;

use sallyport_lexical::is_unspaced;

/// Separates letters that are words of their own. Control characters are removed from texts before
/// they are indexed, so this and the next two characters have no other meaning.
const LETTER_SEPARATOR: char = '\u{1f}';

/// Marks the start of a match.
pub(crate) const MATCH_BEGIN: char = '\u{1d}';

/// Marks the end of a match.
pub(crate) const MATCH_END: char = '\u{1e}';

/// Most bytes of a text that are indexed. Users search for what was written in a conversation,
/// which is shorter; the start of a long tool result identifies it.
const INDEXED_BYTES_MAX: usize = 16 << 10;

/// Shortest prefix, in bytes, that matches longer words: three Latin letters, two of most other
/// alphabets, one of Korean. A shorter prefix matches so many words that the result is useless and
/// the search takes seconds.
const PREFIX_BYTES_MIN: usize = 3;

/// Most words of a text that is compared with others by its words. Each costs a walk through the
/// index; the longest words describe the text best.
const MATCH_ANY_WORDS_MAX: usize = 64;

/// Returns the text to index.
pub(crate) fn to_indexed_text(text: &str) -> String {
    separate_words(&text[..text.floor_char_boundary(INDEXED_BYTES_MAX)])
}

/// Restores a piece of indexed text to its original form.
pub(crate) fn restore_indexed_text(piece: &str) -> String {
    piece.replace(LETTER_SEPARATOR, "")
}

/// A part of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum QueryTerm {
    /// Exactly these words, next to each other.
    Exact(String),
    /// These words, of which the last may be longer. The whole word ranks above longer ones.
    Prefix(String),
}

/// Splits a query into the parts that all have to match. Nothing in it is a command.
pub(crate) fn split_query(text: &str) -> Vec<QueryTerm> {
    let mut terms = Vec::new();
    for (number, part) in text.split('"').enumerate() {
        let part = separate_words(part);
        if number % 2 == 1 {
            terms.extend(has_word(&part).then_some(QueryTerm::Exact(part)));
        } else {
            terms.extend(part.split_whitespace().filter(|word| has_word(word)).map(query_term));
        }
    }
    terms
}

/// Returns the words of a text that is compared with others by its words.
pub(crate) fn distinct_words(text: &str) -> Vec<String> {
    let split = to_indexed_text(text);
    let is_separator = |c: char| c.is_whitespace() || c == LETTER_SEPARATOR || c == '"';
    let mut words: Vec<&str> = split.split(is_separator).filter(|word| has_word(word)).collect();
    words.sort_unstable_by_key(|word| (Reverse(word.len()), *word));
    words.dedup();
    words.truncate(MATCH_ANY_WORDS_MAX);
    words.into_iter().map(str::to_owned).collect()
}

/// Writes a query in the syntax of SQLite's index. All words are quoted, because the index
/// interprets everything else. `None` if the text has no words.
pub(crate) fn match_all_query(text: &str) -> Option<String> {
    let terms: Vec<String> = split_query(text).iter().map(render_term).collect();
    (!terms.is_empty()).then(|| terms.join(" AND "))
}

/// Writes a query that matches any of a text's words. `None` if the text has none.
pub(crate) fn match_any_query(text: &str) -> Option<String> {
    let words: Vec<String> =
        distinct_words(text).iter().map(|word| format!("\"{word}\"")).collect();
    (!words.is_empty()).then(|| words.join(" OR "))
}

fn query_term(word: &str) -> QueryTerm {
    let word = word.to_owned();
    if word.len() < PREFIX_BYTES_MIN { QueryTerm::Exact(word) } else { QueryTerm::Prefix(word) }
}

/// A word that may be longer is queried twice, so that the whole word ranks above longer words.
fn render_term(term: &QueryTerm) -> String {
    match term {
        QueryTerm::Exact(words) => format!("\"{words}\""),
        QueryTerm::Prefix(word) => format!("(\"{word}\" OR \"{word}\" *)"),
    }
}

/// The index contains no word of punctuation only, so a query for one would match nothing.
fn has_word(text: &str) -> bool {
    text.contains(char::is_alphanumeric)
}

fn separate_words(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && c != '\n' && c != '\t' {
            out.push(' ');
        } else if is_unspaced(c) {
            out.extend([LETTER_SEPARATOR, c, LETTER_SEPARATOR]);
        } else {
            out.push(c);
        }
    }
    out
}
