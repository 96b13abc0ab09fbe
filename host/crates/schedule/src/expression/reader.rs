//! A cursor over the words of a text, with backtracking.

/// Words without meaning of their own.
const FILLER_WORDS: [&str; 5] = ["at", "on", "by", "the", ","];

/// Splits a text into lower-case words. Digits are separated from what follows them (`2h30m`,
/// `9:30pm`, `24th`), points of abbreviations are removed, and commas are words of their own.
pub(super) fn split_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for part in text.to_lowercase().replace(',', " , ").split_whitespace() {
        let word = remove_periods(part);
        if word.contains('-') {
            words.push(word);
        } else {
            split_digits(&word, &mut words);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Turns `p.m.` into `pm`, but keeps `1.5`.
fn remove_periods(word: &str) -> String {
    let word = word.trim_end_matches(['.', '!', '?', ';']);
    if word.contains(|c: char| c.is_ascii_digit()) {
        word.to_owned()
    } else {
        word.replace('.', "")
    }
}

fn split_digits(word: &str, words: &mut Vec<String>) {
    let mut current = String::new();
    for c in word.chars() {
        if !current.is_empty() && current.ends_with(is_name_char) != is_name_char(c) {
            words.push(std::mem::take(&mut current));
        }
        current.push(c);
    }
    words.push(current);
}

/// Letters, and the apostrophe in `o'clock`.
fn is_name_char(c: char) -> bool {
    c.is_alphabetic() || matches!(c, '\'' | '’')
}

/// The words that are left to read.
#[derive(Debug, Clone, Copy)]
pub(super) struct WordCursor<'w> {
    rest: &'w [String],
}

impl<'w> WordCursor<'w> {
    pub(super) fn new(words: &'w [String]) -> Self {
        Self { rest: words }
    }

    pub(super) fn is_at_end(self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn next_word(&mut self) -> Option<&'w str> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    /// Consumes these words if they are next; otherwise nothing.
    pub(super) fn consume_words(&mut self, words: &str) -> bool {
        self.try_parse(|reader| {
            words.split(' ').all(|word| reader.next_word() == Some(word)).then_some(())
        })
        .is_some()
    }

    /// Consumes one of these if it is next.
    pub(super) fn consume_any(&mut self, words: &[&str]) -> bool {
        words.iter().any(|word| self.consume_words(word))
    }

    /// Consumes the first of these phrases that is next, and returns its meaning.
    pub(super) fn parse_phrase<T: Copy>(&mut self, phrases: &[(&str, T)]) -> Option<T> {
        phrases.iter().find(|(words, _)| self.consume_words(words)).map(|(_, meaning)| *meaning)
    }

    /// Consumes one of these and what `read` accepts after it, or nothing.
    pub(super) fn parse_after<T>(
        &mut self,
        words: &[&str],
        read: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<T> {
        self.try_parse(|reader| reader.consume_any(words).then(|| read(reader)).flatten())
    }

    /// Skips words without meaning of their own.
    pub(super) fn skip_fillers(&mut self) {
        while self.consume_any(&FILLER_WORDS) {}
    }

    /// Applies a parser, and consumes nothing if it fails.
    pub(super) fn try_parse<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let mut ahead = *self;
        let value = read(&mut ahead)?;
        *self = ahead;
        Some(value)
    }

    /// Consumes one word if `known` accepts it.
    pub(super) fn parse_word<T>(&mut self, known: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        self.try_parse(|reader| reader.next_word().and_then(known))
    }
}
