//! Words for the text search of PostgreSQL, which finds what SQLite's index finds.
//!
//! The server's own parsers differ by language and know no scripts without spaces. So texts and
//! queries are split here, in the same way: a word is a run of letters, marks and digits, compared
//! without case and accents. The server gets the words with their places, and finds them by its
//! index.

use std::{collections::BTreeMap, fmt::Write};

use unicode_general_category::{GeneralCategory, get_general_category};
use unicode_normalization::UnicodeNormalization;

use crate::{
    sessions::SnippetPiece,
    text_index::{self, QueryTerm},
};

/// Longest word, in bytes. The server takes twice as many; a longer word is found by its start.
const WORD_BYTES_MAX: usize = 1000;

/// The highest place that the server knows. Words behind it count as there.
const PLACE_MAX: usize = 16_383;

/// Words of context in a snippet: two lines of a terminal.
const SNIPPET_WORDS: usize = 24;

/// Words in front of the first match of a snippet that does not begin with the text.
const SNIPPET_LEAD: usize = 4;

/// A word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Word {
    /// As it is compared.
    folded: String,
    /// Where it begins and ends, in bytes.
    range: (usize, usize),
}

/// The words of a text, for its row.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct IndexedWords {
    /// The text whose words they are, from which snippets are cut; `None` for a text without words.
    pub(super) text: Option<String>,
    /// The words with their places, as the server reads them.
    pub(super) vector: Option<String>,
    /// How many words there are.
    pub(super) count: i64,
}

/// A query as the server and the ranking read it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WordQuery {
    /// What has to match, as the server reads it.
    pub(super) condition: String,
    /// The words that count.
    pub(super) words: Vec<String>,
    /// Whether each word may be the start of a longer one.
    pub(super) are_prefixes: Vec<bool>,
    phrases: Vec<Phrase>,
}

/// Words that stand next to each other.
#[derive(Debug, Clone, PartialEq)]
struct Phrase {
    words: Vec<String>,
    is_prefix: bool,
}

impl IndexedWords {
    /// Splits a text.
    pub(super) fn from_text(text: &str) -> Self {
        Self::from_indexed(text_index::to_indexed_text(text))
    }

    /// Splits a text that was prepared for the index.
    pub(super) fn from_indexed(text: String) -> Self {
        let words = split_words(&text);
        if words.is_empty() {
            return Self::default();
        }
        let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, word) in words.iter().enumerate() {
            places.entry(&word.folded).or_default().push((at + 1).min(PLACE_MAX));
        }
        let mut vector = String::with_capacity(text.len() * 2);
        for (word, places) in places {
            let places: Vec<String> = places.iter().map(ToString::to_string).collect();
            // A word has neither quotes nor backslashes.
            let _ = write!(vector, "'{word}':{} ", places.join(","));
        }
        let count = words.len() as i64;
        Self { vector: Some(vector), count, text: Some(text) }
    }
}

impl WordQuery {
    /// A query whose words all have to match. `None` if it finds nothing.
    pub(super) fn all_of(text: &str) -> Option<Self> {
        let terms = text_index::split_query(text);
        let phrases: Vec<Phrase> = terms.iter().map(Phrase::from_term).collect();
        let is_empty = phrases.is_empty() || phrases.iter().any(|phrase| phrase.words.is_empty());
        (!is_empty).then(|| Self::from_phrases(phrases, " & "))
    }

    /// A query for any of the words of a text. `None` if it has none.
    pub(super) fn any_of(text: &str) -> Option<Self> {
        let words = text_index::distinct_words(text);
        let phrases = words.into_iter().map(|word| Phrase::from_term(&QueryTerm::Exact(word)));
        let phrases: Vec<Phrase> = phrases.filter(|phrase| !phrase.words.is_empty()).collect();
        (!phrases.is_empty()).then(|| Self::from_phrases(phrases, " | "))
    }

    fn from_phrases(phrases: Vec<Phrase>, operator: &str) -> Self {
        let conditions: Vec<String> = phrases.iter().map(Phrase::condition).collect();
        let (mut words, mut are_prefixes) = (Vec::new(), Vec::new());
        for phrase in &phrases {
            let last = phrase.words.len() - 1;
            for (at, word) in phrase.words.iter().enumerate() {
                words.push(word.clone());
                are_prefixes.push(false);
                // So a whole word counts twice, and ranks above longer words.
                if phrase.is_prefix && at == last {
                    words.push(word.clone());
                    are_prefixes.push(true);
                }
            }
        }
        Self { condition: conditions.join(operator), words, are_prefixes, phrases }
    }

    /// Cuts the part of an indexed text that has the most matches.
    pub(super) fn snippet(&self, text: &str) -> Vec<SnippetPiece> {
        let words = split_words(text);
        let matches = self.find_matches(&words);
        let window = best_window(&matches, words.len());
        cut_snippet(text, &words, &matches, window)
    }

    /// The first and the last word of each match, in the order of the text, without overlaps.
    fn find_matches(&self, words: &[Word]) -> Vec<Match> {
        let mut found: Vec<Match> = Vec::new();
        for (number, phrase) in self.phrases.iter().enumerate() {
            let starts = (0..words.len()).filter(|start| phrase.matches_at(words, *start));
            found.extend(starts.map(|first| Match {
                first,
                last: first + phrase.words.len() - 1,
                phrase: number,
            }));
        }
        found.sort_by_key(|found| (found.first, found.last));
        let mut apart: Vec<Match> = Vec::new();
        for next in found {
            match apart.last_mut() {
                Some(before) if next.first <= before.last => {
                    before.last = before.last.max(next.last);
                }
                _ => apart.push(next),
            }
        }
        apart
    }
}

/// A place where a phrase matches.
#[derive(Debug, Clone, Copy)]
struct Match {
    first: usize,
    last: usize,
    phrase: usize,
}

impl Phrase {
    fn from_term(term: &QueryTerm) -> Self {
        let (text, is_prefix) = match term {
            QueryTerm::Exact(text) => (text, false),
            QueryTerm::Prefix(text) => (text, true),
        };
        let words = split_words(text).into_iter().map(|word| word.folded).collect();
        Self { words, is_prefix }
    }

    fn condition(&self) -> String {
        let words: Vec<String> = self.words.iter().map(|word| format!("'{word}'")).collect();
        let end = if self.is_prefix { ":*" } else { "" };
        format!("({}{end})", words.join(" <-> "))
    }

    fn matches_at(&self, words: &[Word], start: usize) -> bool {
        let Some(there) = words.get(start..start + self.words.len()) else { return false };
        let last = self.words.len() - 1;
        there.iter().zip(&self.words).enumerate().all(|(at, (word, wanted))| {
            word.folded == *wanted
                || (self.is_prefix && at == last && word.folded.starts_with(wanted.as_str()))
        })
    }
}

/// The words from one number up to another that show most: different phrases first, then matches.
fn best_window(matches: &[Match], words: usize) -> (usize, usize) {
    let last_start = words.saturating_sub(SNIPPET_WORDS);
    let starts = matches.iter().map(|found| found.first.saturating_sub(SNIPPET_LEAD));
    let starts = std::iter::once(0).chain(starts.map(|start| start.min(last_start)));
    let value = |start: usize| {
        let within = |found: &&Match| found.first >= start && found.last < start + SNIPPET_WORDS;
        let shown: Vec<usize> = matches.iter().filter(within).map(|found| found.phrase).collect();
        let mut phrases = shown.clone();
        phrases.sort_unstable();
        phrases.dedup();
        (phrases.len(), shown.len())
    };
    // Of equal ones the first.
    let best = starts.first_best_by_key(value);
    (best, (best + SNIPPET_WORDS).min(words))
}

/// Cuts the words of a window out of a text, with what is between them.
fn cut_snippet(
    text: &str,
    words: &[Word],
    matches: &[Match],
    (from, to): (usize, usize),
) -> Vec<SnippetPiece> {
    if words.is_empty() {
        return Vec::new();
    }
    let begin = if from == 0 { 0 } else { words[from].range.0 };
    let end = if to == words.len() { text.len() } else { words[to - 1].range.1 };
    let mut pieces = Vec::new();
    let mut push = |text: &str, found: bool| {
        let text = text_index::restore_indexed_text(text);
        if !text.is_empty() {
            pieces.push(SnippetPiece { text, found });
        }
    };
    let mut at = begin;
    if from > 0 {
        push("…", false);
    }
    for found in matches.iter().filter(|found| found.first >= from && found.last < to) {
        let (start, stop) = (words[found.first].range.0, words[found.last].range.1);
        push(&text[at..start], false);
        push(&text[start..stop], true);
        at = stop;
    }
    push(&text[at..end], false);
    if to < words.len() {
        push("…", false);
    }
    pieces
}

/// Chooses the first of the items with the highest value.
trait FirstBest: Iterator<Item = usize> + Sized {
    fn first_best_by_key<K: Ord>(self, value: impl Fn(usize) -> K) -> usize {
        let mut best: Option<(K, usize)> = None;
        for item in self {
            let own = value(item);
            if best.as_ref().is_none_or(|(known, _)| own > *known) {
                best = Some((own, item));
            }
        }
        best.map_or(0, |(_, item)| item)
    }
}

impl<I: Iterator<Item = usize>> FirstBest for I {}

/// Splits a text that was prepared for the index.
fn split_words(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut begin = None;
    for (at, c) in text.char_indices() {
        match (is_in_word(c), begin) {
            (true, None) => begin = Some(at),
            (false, Some(start)) => {
                words.push(fold_word(text, start, at));
                begin = None;
            }
            _ => {}
        }
    }
    words.extend(begin.map(|start| fold_word(text, start, text.len())));
    words
}

/// The characters of which SQLite's index makes words.
fn is_in_word(c: char) -> bool {
    use GeneralCategory as C;
    c.is_ascii_alphanumeric()
        || matches!(
            get_general_category(c),
            C::UppercaseLetter
                | C::LowercaseLetter
                | C::TitlecaseLetter
                | C::ModifierLetter
                | C::OtherLetter
                | C::NonspacingMark
                | C::SpacingMark
                | C::EnclosingMark
                | C::DecimalNumber
                | C::LetterNumber
                | C::OtherNumber
                | C::PrivateUse
        )
}

fn fold_word(text: &str, start: usize, end: usize) -> Word {
    let word = &text[start..end];
    let mut folded = String::with_capacity(word.len());
    for c in word.chars() {
        if is_hangul(c) {
            folded.push(c);
        } else {
            folded.extend(c.nfd().filter(|c| !is_accent(*c)).flat_map(char::to_lowercase));
        }
    }
    if folded.is_empty() {
        // Accents alone, which are nothing without a letter, but a place of their own.
        folded.push_str(word);
    }
    folded.truncate(folded.floor_char_boundary(WORD_BYTES_MAX));
    Word { folded, range: (start, end) }
}

/// A syllable is not the start of a longer one, though its letters are.
fn is_hangul(c: char) -> bool {
    ('\u{ac00}'..='\u{d7a3}').contains(&c)
}

/// The accents of European letters. The marks of other scripts are parts of their words.
fn is_accent(c: char) -> bool {
    ('\u{300}'..='\u{36f}').contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(query: &str, text: &str) -> String {
        let indexed = IndexedWords::from_text(text).text.unwrap_or_default();
        let pieces = WordQuery::all_of(query).map(|query| query.snippet(&indexed));
        let mark = |piece: &SnippetPiece| match piece.found {
            true => format!("[{}]", piece.text),
            false => piece.text.clone(),
        };
        pieces.unwrap_or_default().iter().map(mark).collect()
    }

    #[test]
    fn texts_and_queries_are_split_alike() {
        let check = |text: &str, want: &str| {
            let words: Vec<String> = split_words(&text_index::to_indexed_text(text))
                .into_iter()
                .map(|word| word.folded)
                .collect();
            assert_eq!(words.join(" "), want, "{text}");
        };
        check("call std::env::var(\"HOME\") in foo_bar.rs", "call std env var home in foo bar rs");
        check("un Café près de l'Élysée", "un cafe pres de l elysee");
        check("cafe\u{301}", "cafe");
        check("北京a", "北 京 a");
        check("Привет, Ёлка", "привет елка");
        check("हिन्दी", "हिन्दी");
        check("서울에서", "서울에서");
        check("->🎉", "");
    }

    #[test]
    fn a_query_is_what_has_to_match() {
        let check = |query: &str, want: Option<&str>| {
            let found = WordQuery::all_of(query).map(|query| query.condition);
            assert_eq!(found.as_deref(), want, "{query}");
        };
        check("cat pi", Some("('cat':*) & ('pi')"));
        check("\"cat picture\"", Some("('cat' <-> 'picture')"));
        check("foo_bar", Some("('foo' <-> 'bar':*)"));
        check("'; --", None);
        check("Ⓐ cat", None);
    }

    #[test]
    fn a_snippet_has_the_most_matches() {
        let far = format!("a {}b c", "word ".repeat(40));
        let near = format!("…{}[b c]", "word ".repeat(22));
        let rows = [
            ("cat noir", "Un Cat très Noir.", "Un [Cat] très [Noir]."),
            ("\"b c\"", "a b\nc d", "a [b\nc] d"),
            ("bb", "aa bb", "aa [bb]"),
            ("\"b c\"", &far, &near),
        ];
        for (query, text, want) in rows {
            assert_eq!(shown(query, text), want, "{query}");
        }
    }
}
