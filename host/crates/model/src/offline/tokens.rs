//! A sentence, cut into words that know where they stand.
//!
//! Arguments are cut out of the sentence as the person wrote it, so every word remembers its place.
//! Cutting is one pass: a long paste costs as much as its length.

use super::stem::stem;

/// What a word looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Plain.
    Word,
    /// Digits, perhaps with sign, fraction and separators.
    Number,
    /// Anything in quotation marks.
    Quoted,
    /// An address with a scheme.
    Url,
    /// A host or a file name: `example.com`, `todo.txt`.
    Dotted,
    /// A path in a file system.
    Path,
    /// A mail address.
    Email,
}

/// One word.
#[derive(Debug, Clone)]
pub(super) struct Word<'t> {
    /// As written, without quotation marks and punctuation around it.
    pub(super) text: &'t str,
    /// Where it begins in the sentence, quotation mark included.
    pub(super) start: usize,
    /// Where it ends.
    pub(super) end: usize,
    /// What it looks like.
    pub(super) kind: Kind,
    /// In lower case.
    pub(super) lower: String,
    /// Without its ending.
    pub(super) stem: String,
    /// The punctuation behind it, when a phrase may end there.
    pub(super) pause: Option<char>,
}

/// A sentence and its words.
#[derive(Debug, Clone)]
pub(super) struct Sentence<'t> {
    pub(super) text: &'t str,
    pub(super) words: Vec<Word<'t>>,
}

/// Pairs of quotation marks. The plain ones close with themselves.
const QUOTES: [(char, char); 7] =
    [('"', '"'), ('“', '”'), ('„', '“'), ('«', '»'), ('`', '`'), ('\'', '\''), ('‘', '’')];

/// Punctuation beyond ASCII. All other symbols, such as emojis, are words.
const PUNCTUATION: &str = "…–—“”„‘’«»¿¡、。！？，：；";

/// Punctuation at which a phrase may end.
const PAUSES: &str = ",;:.!?、。！？，：；";

/// Units that are written right behind a number: `90s`, `1h`.
const SHORT_UNITS: &[&str] =
    &["ms", "s", "sec", "secs", "m", "min", "mins", "h", "hr", "hrs", "d", "k"];

impl<'t> Sentence<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let mut cutter = Cutter { text, words: Vec::new(), unclosed: [false; QUOTES.len()] };
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            at = if c.is_whitespace() { at + c.len_utf8() } else { cutter.next(at, c) };
        }
        Self { text, words: cutter.words }
    }

    /// Returns what stands from one word up to another, as written.
    pub(super) fn slice(&self, words: std::ops::Range<usize>) -> &'t str {
        match &self.words[words] {
            [] => "",
            [word] => word.text,
            [first, .., last] => &self.text[first.start..last.end],
        }
    }
}

struct Cutter<'t> {
    text: &'t str,
    words: Vec<Word<'t>>,
    /// Which marks have no partner in the rest of the text. Looking once is enough.
    unclosed: [bool; QUOTES.len()],
}

impl<'t> Cutter<'t> {
    /// Cuts what begins at `at` and returns where it ends.
    fn next(&mut self, at: usize, c: char) -> usize {
        if let Some(end) = self.quoted(at, c) {
            return end;
        }
        let rest = &self.text[at..];
        let is_end = |(i, c): &(usize, char)| {
            c.is_whitespace() || (*i > 0 && QUOTES[..4].iter().any(|(open, _)| open == c))
        };
        let end = at + rest.char_indices().find(is_end).map_or(rest.len(), |(i, _)| i);
        self.chunk(at, end);
        end
    }

    /// Cuts a quotation. One in single marks has to end where a word ends, else it is an apostrophe.
    fn quoted(&mut self, at: usize, c: char) -> Option<usize> {
        let kind = QUOTES.iter().position(|(open, _)| *open == c)?;
        if self.unclosed[kind] {
            return None;
        }
        let (open, close) = QUOTES[kind];
        let begin = at + open.len_utf8();
        let inside = &self.text[begin..];
        let ends_word = |i: usize| {
            let next = inside[i + close.len_utf8()..].chars().next();
            !matches!(close, '\'' | '’') || next.is_none_or(|c| !c.is_alphanumeric())
        };
        let Some((length, _)) = inside.match_indices(close).find(|(i, _)| ends_word(*i)) else {
            self.unclosed[kind] = true;
            return None;
        };
        let end = begin + length + close.len_utf8();
        self.push(&self.text[begin..begin + length], at, end, Kind::Quoted);
        Some(end)
    }

    /// Cuts a piece without white space into what it is made of.
    fn chunk(&mut self, start: usize, end: usize) {
        let chunk = &self.text[start..end];
        let core = chunk.trim_end_matches(is_punctuation);
        // A dot may begin a path: `./x`.
        let lead = core.len() - core.trim_start_matches(|c| c != '.' && is_punctuation(c)).len();
        if lead < core.len() {
            self.core(&core[lead..], start + lead);
        }
        let behind = &chunk[chunk.trim_end_matches(is_punctuation).len()..];
        let pause = behind.chars().find(|c| PAUSES.contains(*c));
        if let Some(last) = self.words.last_mut().filter(|_| pause.is_some()) {
            last.pause = pause;
        }
    }

    fn core(&mut self, core: &'t str, start: usize) {
        let end = start + core.len();
        match look(core) {
            Kind::Word => self.plain(core, start),
            kind => self.push(core, start, end, kind),
        }
    }

    /// Cuts at everything that is not part of a word, and between a number and its unit.
    fn plain(&mut self, core: &'t str, start: usize) {
        let digits =
            core.len() - core.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        let (number, unit) = core.split_at(digits);
        if !number.is_empty() && SHORT_UNITS.contains(&unit.to_lowercase().as_str()) {
            self.push(number, start, start + digits, Kind::Number);
            self.push(unit, start + digits, start + core.len(), Kind::Word);
            return;
        }
        let mut at = 0;
        for part in core.split(|c: char| !is_word_char(c)) {
            let begin = start + at;
            if !part.is_empty() {
                let kind = if is_number(part) { Kind::Number } else { Kind::Word };
                self.push(part, begin, begin + part.len(), kind);
            }
            at += part.len();
            at += core[at..].chars().next().map_or(0, char::len_utf8);
        }
    }

    fn push(&mut self, text: &'t str, start: usize, end: usize, kind: Kind) {
        let lower = text.to_lowercase();
        let stem = stem(&lower);
        self.words.push(Word { text, start, end, kind, lower, stem, pause: None });
    }
}

fn is_punctuation(c: char) -> bool {
    ",;:.!?()[]{}<>*\"'`".contains(c) || PUNCTUATION.contains(c)
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '\'' || c == '’' || (!c.is_ascii() && !PUNCTUATION.contains(c))
}

fn look(core: &str) -> Kind {
    if core.contains("://") {
        Kind::Url
    } else if is_path(core) {
        Kind::Path
    } else if core.split_once('@').is_some_and(|(who, host)| !who.is_empty() && is_dotted(host)) {
        Kind::Email
    } else if is_number(core) {
        Kind::Number
    } else if is_dotted(core) {
        Kind::Dotted
    } else {
        Kind::Word
    }
}

fn is_path(core: &str) -> bool {
    let rooted = ["/", "./", "../", "~/"].iter().any(|root| core.starts_with(root));
    let file = core.rsplit('/').next().is_some_and(|file| file.contains('.'));
    rooted || (core.contains('/') && file && !is_dotted(core))
}

/// A name with dots: labels, the last of letters. A path may follow, as in `example.com/x`.
fn is_dotted(core: &str) -> bool {
    let name = core.split(['/', '?', '#']).next().unwrap_or(core);
    let label = |label: &str| {
        !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_')
    };
    let last = name.rsplit('.').next().unwrap_or("");
    name.contains('.')
        && name.split('.').all(label)
        && last.chars().count() >= 2
        && last.chars().any(char::is_alphabetic)
}

fn is_number(text: &str) -> bool {
    number(text).is_some()
}

/// Reads digits with sign, fraction, separators for thousands, currency or percent sign.
pub(super) fn number(text: &str) -> Option<f64> {
    let bare = text.trim_start_matches(['$', '€', '£', '#']).trim_end_matches(['%', '€', '°']);
    let plain = bare.replace(',', "");
    let digits = plain.trim_start_matches(['-', '+']);
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    if is_number { plain.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &[(&str, Kind)]) {
        let sentence = Sentence::new(text);
        let got: Vec<_> = sentence.words.iter().map(|word| (word.text, word.kind)).collect();
        assert_eq!(got, want, "{text}");
        for word in &sentence.words {
            assert!(text[word.start..word.end].contains(word.text), "{text}");
        }
    }

    #[test]
    fn words_are_told_by_their_look() {
        use Kind::*;
        check("What's up, Doc?", &[("What's", Word), ("up", Word), ("Doc", Word)]);
        check("open https://x.org/a?b=1.", &[("open", Word), ("https://x.org/a?b=1", Url)]);
        check("open example.com!", &[("open", Word), ("example.com", Dotted)]);
        check("example.com/a/b", &[("example.com/a/b", Dotted)]);
        check("read /notes/to-do.txt", &[("read", Word), ("/notes/to-do.txt", Path)]);
        check("./a ~/b a/b.txt", &[("./a", Path), ("~/b", Path), ("a/b.txt", Path)]);
        check("Europe/Berlin", &[("Europe", Word), ("Berlin", Word)]);
        check("bob@example.com", &[("bob@example.com", Email)]);
        check(
            "5 -2.5 1,000 50% $20",
            &[("5", Number), ("-2.5", Number), ("1,000", Number), ("50%", Number), ("$20", Number)],
        );
        check(
            "90s 1h 5x",
            &[("90", Number), ("s", Word), ("1", Number), ("h", Word), ("5x", Word)],
        );
        check("system-info", &[("system", Word), ("info", Word)]);
        check("I ❤️ you", &[("I", Word), ("❤️", Word), ("you", Word)]);
        check("東京の天気", &[("東京の天気", Word)]);
        check("", &[]);
        check(" \n ,.; ", &[]);
    }

    #[test]
    fn quotations_are_one_word() {
        use Kind::*;
        check(r#"write "buy milk" to"#, &[("write", Word), ("buy milk", Quoted), ("to", Word)]);
        check("“a b” „c d“ «e f»", &[("a b", Quoted), ("c d", Quoted), ("e f", Quoted)]);
        check("'don't do it' now", &[("don't do it", Quoted), ("now", Word)]);
        check("it's Bob's", &[("it's", Word), ("Bob's", Word)]);
        check(r#"an "open end"#, &[("an", Word), ("open", Word), ("end", Word)]);
        check(r#"""#, &[]);
        check(r#"say"hi""#, &[("say", Word), ("hi", Quoted)]);
    }

    #[test]
    fn pauses_are_kept() {
        let sentence = Sentence::new("Hi, you there: yes - ok.");
        let pauses: Vec<_> = sentence.words.iter().map(|word| word.pause).collect();
        assert_eq!(pauses, [Some(','), None, Some(':'), None, Some('.')]);
        assert_eq!(sentence.slice(1..3), "you there");
    }
}
