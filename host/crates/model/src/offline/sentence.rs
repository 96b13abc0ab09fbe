//! Splits a sentence into tokens with their positions.
//!
//! Arguments are taken from the sentence exactly as the user wrote it, so every token keeps its
//! position. The text after a colon is one argument or nothing; it is not split.

use std::{collections::HashSet, ops::Range};

use sallyport_lexical::contains_word;
use sallyport_schedule::TimeExpressionError;

use super::language;

/// Most tokens before a colon. No request needs more.
const TOKENS_MAX: usize = 60;

/// Longest point in time or duration, in tokens.
const TIME_TOKENS_MAX: usize = 12;

/// Shortest word that is corrected, in characters. Shorter words have too many neighbours.
const MENDED_CHARS_MIN: usize = 5;

/// Words after which a text follows, as after a colon.
const TEXT_LEADS: &[&str] = &["with the content", "with the text", "that says", "saying"];

/// Pairs of quotation marks. Plain ones are their own closing marks.
const QUOTES: [(&str, &str); 8] = [
    ("```", "```"),
    ("\"", "\""),
    ("“", "”"),
    ("„", "“"),
    ("«", "»"),
    ("`", "`"),
    ("'", "'"),
    ("‘", "’"),
];

/// Endings by which a name is a file rather than a host.
const FILE_ENDINGS: &str = "txt md csv json toml yaml yml log pdf html xml png jpg doc docx odt py rs js c sh zip ini conf";

/// The kind of a token, by its form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    Word,
    Number,
    /// A sum of digits and operators, such as `2+2`, or a part of one.
    Sum,
    Quoted,
    Url,
    /// A host, perhaps with a path: `example.com/news`.
    Host,
    /// A path or a file name.
    Path,
}

/// One token.
#[derive(Debug, Clone)]
pub(super) struct SentenceToken<'t> {
    /// The text as written, without surrounding marks.
    pub(super) text: &'t str,
    /// The position in the text, including surrounding marks.
    pub(super) range: Range<usize>,
    pub(super) kind: TokenKind,
    /// The text in lower case, with corrections.
    pub(super) lower: String,
    /// See [`language::word_root`].
    pub(super) root: String,
    /// The punctuation mark after the token, if any.
    pub(super) pause: Option<char>,
}

/// A sentence and its properties that do not depend on a tool.
#[derive(Debug, Clone)]
pub(super) struct ParsedSentence<'t> {
    pub(super) text: &'t str,
    pub(super) tokens: Vec<SentenceToken<'t>>,
    /// The text after a colon.
    pub(super) tail: Option<&'t str>,
    /// The number of leading tokens that only introduce the request.
    pub(super) lead: usize,
    /// Whether these make it a polite question.
    pub(super) is_polite: bool,
    pub(super) is_question: bool,
    /// Durations, in milliseconds.
    pub(super) lengths: Vec<(Range<usize>, u64)>,
    pub(super) moments: Vec<Range<usize>>,
    /// The times that name a day which no calendar has.
    pub(super) impossible_moments: Vec<(Range<usize>, TimeExpressionError)>,
}

impl<'t> ParsedSentence<'t> {
    /// Splits a text. `names` are the tools' words, to which typing errors are corrected too.
    /// Returns `None` if the text is too long for a request.
    pub(super) fn new(text: &'t str, names: &HashSet<String>) -> Option<Self> {
        let (mut tokens, tail) = tokenize_text(text)?;
        for token in tokens.iter_mut().filter(|token| token.kind == TokenKind::Word) {
            correct_spelling(token, names);
        }
        let tail = take_text_tail(text, &mut tokens).or(tail);
        let lower: Vec<&str> = tokens.iter().map(|token| token.lower.as_str()).collect();
        let (lead, is_polite) = language::count_lead_words(&lower);
        let is_question = text.trim_end().ends_with('?');
        let mut sentence = Self {
            text,
            tokens,
            tail,
            lead,
            is_polite,
            is_question,
            lengths: Vec::new(),
            moments: Vec::new(),
            impossible_moments: Vec::new(),
        };
        sentence.lengths = sentence.find_times(sallyport_schedule::parse_duration_ms);
        sentence.find_moments();
        Some(sentence)
    }

    /// A time with an impossible day is found as a whole. Otherwise a part of it would be taken for
    /// the time, and the year for a word of another argument.
    fn find_moments(&mut self) {
        let times = self.find_times(|phrase| match sallyport_schedule::check_moment(phrase) {
            Ok(()) => Some(None),
            Err(error @ TimeExpressionError::NoSuchDay(_)) => Some(Some(error)),
            Err(_) => None,
        });
        for (range, error) in times {
            match error {
                Some(error) => self.impossible_moments.push((range, error)),
                None if self.is_cut_at_number(&range) => {}
                None => self.moments.push(range),
            }
        }
    }

    /// Returns true if a number follows a time directly. It may belong to the time, as in "24
    /// December 1926" and "tomorrow at 9 30", so the time is not understood.
    fn is_cut_at_number(&self, range: &Range<usize>) -> bool {
        let is_joined = range
            .end
            .checked_sub(1)
            .is_some_and(|last| matches!(self.tokens[last].pause, None | Some(',')));
        let next = self.tokens.get(range.end);
        is_joined && next.is_some_and(|token| token.kind == TokenKind::Number)
    }

    /// Returns true if a word changes the meaning of the sentence.
    pub(super) fn has_meaning_modifier(&self) -> bool {
        let in_time = |at: usize| self.moments.iter().any(|moment| moment.contains(&at));
        let turned = |(at, token): (usize, &SentenceToken<'_>)| {
            let is_free = at >= self.lead && token.kind != TokenKind::Quoted && !in_time(at);
            is_free && language::is_meaning_modifier(&token.lower)
        };
        self.tokens.iter().enumerate().any(turned)
    }

    /// Returns the text of a range of tokens, as written.
    pub(super) fn source_text(&self, range: &Range<usize>) -> &'t str {
        match &self.tokens[range.clone()] {
            [] => "",
            [token] => token.text,
            [first, .., last] => self.text[first.range.start..last.range.end]
                .trim_end_matches([',', ';', '.', '!', '?']),
        }
    }

    /// Returns the text of a range of tokens, with corrections.
    pub(super) fn corrected_text(&self, range: &Range<usize>) -> String {
        let phrase = self.tokens[range.clone()].iter().map(|token| token.lower.as_str());
        phrase.collect::<Vec<_>>().join(" ")
    }

    /// Returns the text in two parts, split at each "and", "then", semicolon and end of a sentence.
    pub(super) fn split_parts(&self) -> Vec<(&'t str, &'t str)> {
        let is_joint = |at: usize| matches!(self.tokens[at].lower.as_str(), "and" | "then");
        let start = |at: usize| self.tokens[at].range.start;
        let places = (1..self.tokens.len()).filter(|&at| {
            let pause = self.tokens[at - 1].pause;
            let ends = matches!(pause, Some(';' | '.' | '!' | '?'));
            (ends || is_joint(at)) && !is_joint(at - 1)
        });
        let parted = places.filter_map(|at| {
            let begin = (at..self.tokens.len()).find(|&at| !is_joint(at))?;
            Some((self.text[..start(at)].trim(), self.text[start(begin)..].trim()))
        });
        parted.collect()
    }

    /// Finds the ranges that `read` accepts as times, the longest at each token.
    fn find_times<T>(&self, read: impl Fn(&str) -> Option<T>) -> Vec<(Range<usize>, T)> {
        let mut found: Vec<(Range<usize>, T)> = Vec::new();
        let mut at = self.lead;
        while at < self.tokens.len() {
            match self.find_time_at(at, &read) {
                Some((range, value)) => {
                    at = range.end;
                    found.push((range, value));
                }
                None => at += 1,
            }
        }
        found
    }

    fn find_time_at<T>(
        &self,
        at: usize,
        read: &impl Fn(&str) -> Option<T>,
    ) -> Option<(Range<usize>, T)> {
        // `schedule` reads some verbs and polite words as part of a time; the matcher does not.
        let is_time = |token: &SentenceToken<'_>| {
            let is_other = matches!(token.lower.as_str(), "please" | "remind" | "wake" | "me");
            matches!(token.kind, TokenKind::Word | TokenKind::Number | TokenKind::Sum) && !is_other
        };
        let last = self.tokens.len().min(at + TIME_TOKENS_MAX);
        let end = (at..last).find(|&end| !is_time(&self.tokens[end])).unwrap_or(last);
        let ranges = (at + 1..=end).rev().map(|end| at..end);
        let is_timely = |token: &SentenceToken<'_>| {
            token.lower.contains(|c: char| c.is_ascii_digit())
                || contains_word(language::TIMES, &token.lower)
        };
        let mut wide = ranges.filter(|range| {
            let is_number = range.len() == 1 && self.tokens[range.start].kind != TokenKind::Word;
            !is_number && self.tokens[range.clone()].iter().any(is_timely)
        });
        wide.find_map(|range| read(&self.corrected_text(&range)).map(|value| (range, value)))
    }
}

/// Splits a text into tokens up to a colon, and returns the text after it. `None` if there are too
/// many tokens.
fn tokenize_text(text: &str) -> Option<(Vec<SentenceToken<'_>>, Option<&str>)> {
    let mut tokens: Vec<SentenceToken<'_>> = Vec::new();
    let mut at = 0;
    while let Some(skipped) = text[at..].find(|c: char| !c.is_whitespace()) {
        at += skipped;
        if tokens.len() >= TOKENS_MAX {
            return None;
        }
        if let Some((inside, end)) = find_quotation(text, at) {
            tokens.push(make_token(inside, at..end, TokenKind::Quoted));
            at = end;
            continue;
        }
        let is_end = |(i, c): (usize, char)| {
            c.is_whitespace() || (i > 0 && matches!(c, '"' | '“' | '„' | '«' | '`'))
        };
        let chunk = text[at..].char_indices().find(|found| is_end(*found));
        let end = at + chunk.map_or(text.len() - at, |(i, _)| i);
        push_tokens(&mut tokens, text, at..end);
        at = end;
        if text[..end].ends_with(':') {
            let tail = text[end..].trim();
            let whole = find_quotation(tail, 0).filter(|(_, end)| *end == tail.len());
            let tail = whole.map_or(tail, |(inside, _)| inside);
            return Some((tokens, (!tail.is_empty()).then_some(tail)));
        }
    }
    Some((tokens, None))
}

/// Returns the inside and the end of a quotation. A single quotation mark must close at the end of
/// a word; otherwise it is an apostrophe.
fn find_quotation(text: &str, at: usize) -> Option<(&str, usize)> {
    let (open, close) = QUOTES.iter().find(|(open, _)| text[at..].starts_with(open))?;
    let begin = at + open.len();
    let inside = &text[begin..];
    let ends_word = |i: usize| {
        let next = inside[i + close.len()..].chars().next();
        !matches!(*close, "'" | "’") || next.is_none_or(|c| !c.is_alphanumeric())
    };
    let (length, _) = inside.match_indices(close).find(|(i, _)| ends_word(*i))?;
    let mut inside = &inside[..length];
    if *open == "```" {
        // The first line names the language.
        inside = inside.split_once('\n').map_or(inside, |(_, code)| code).trim();
    }
    Some((inside, begin + length + close.len()))
}

/// Splits a piece without white space: removes punctuation, and separates a number from its unit.
fn push_tokens<'t>(tokens: &mut Vec<SentenceToken<'t>>, text: &'t str, range: Range<usize>) {
    let is_mark = |c: char| ",;:.!?()[]{}<>*\"'`…–—“”„‘’«»¿¡、。！？，：；".contains(c);
    let chunk = &text[range.clone()];
    let is_sum =
        chunk.contains(|c: char| "+*/%^".contains(c)) && classify_token(chunk) == TokenKind::Sum;
    let core = if is_sum { chunk } else { chunk.trim_end_matches(is_mark) };
    let opening = |c: char| c != '.' && is_mark(c);
    let core = if is_sum { core } else { core.trim_start_matches(opening) };
    let pause = chunk.chars().rev().take_while(|c| is_mark(*c)).last();
    if core.is_empty() {
        if let Some(last) = tokens.last_mut() {
            last.pause = last.pause.or(pause);
        }
        return;
    }
    let start = range.start + chunk.find(core).unwrap_or(0);
    match core.split_once('-').filter(|(number, _)| number.bytes().all(|b| b.is_ascii_digit())) {
        Some((number, unit)) if unit.chars().all(char::is_alphabetic) && !number.is_empty() => {
            let middle = start + number.len();
            tokens.push(make_token(number, start..middle, TokenKind::Number));
            tokens.push(make_token(unit, middle + 1..range.end, classify_token(unit)));
        }
        _ => tokens.push(make_token(core, start..range.end, classify_token(core))),
    }
    if let Some(last) = tokens.last_mut() {
        last.pause = pause;
    }
}

fn make_token(text: &str, range: Range<usize>, kind: TokenKind) -> SentenceToken<'_> {
    let lower = text.to_lowercase().replace('’', "'");
    let root = language::word_root(&lower);
    SentenceToken { text, range, kind, lower, root, pause: None }
}

/// Corrects an unknown word if exactly one known word is one typing error away.
fn correct_spelling(token: &mut SentenceToken<'_>, names: &HashSet<String>) {
    let word = &token.lower;
    let is_known = |word: &str| {
        language::is_known_word(word)
            || names.contains(word)
            || names.contains(&language::word_root(word))
            || sallyport_schedule::is_moment(word)
    };
    if word.chars().count() < MENDED_CHARS_MIN || is_known(word) {
        return;
    }
    let is_near = |known: &&str| {
        known.len().abs_diff(word.len()) <= 1
            && known.len() >= MENDED_CHARS_MIN - 1
            && known.as_bytes()[0] == word.as_bytes()[0]
            && strsim::osa_distance(known, word) == 1
            // A replaced letter is not corrected. It often makes another word: "minuten", "remote".
            && strsim::hamming(known, word).map_or(true, |apart| apart == 2)
    };
    let own = names.iter().map(String::as_str).filter(is_near).map(str::to_owned);
    let mut near: Vec<String> = own.collect();
    near.extend(language::known_words().filter(is_near).map(str::to_owned));
    near.sort_unstable();
    near.dedup();
    if let [known] = near.as_slice() {
        token.root = language::word_root(known);
        token.lower = known.clone();
    }
}

/// Removes the text after "saying" and the like from the tokens, and returns it.
fn take_text_tail<'t>(text: &'t str, tokens: &mut Vec<SentenceToken<'t>>) -> Option<&'t str> {
    let count = |lead: &str| lead.split(' ').count();
    let begins = |at: usize, lead: &str| {
        let words = tokens[at..].iter().take(count(lead)).map(|token| token.lower.as_str());
        words.eq(lead.split(' '))
    };
    let (at, lead) = (0..tokens.len()).find_map(|at| {
        TEXT_LEADS.iter().find(|lead| begins(at, lead)).map(|lead| (at, count(lead)))
    })?;
    let behind = tokens.get(at + lead)?;
    let tail = match behind.kind {
        TokenKind::Quoted if at + lead + 1 == tokens.len() => behind.text,
        _ => text[behind.range.start..].trim(),
    };
    tokens.truncate(at);
    Some(tail)
}

fn classify_token(core: &str) -> TokenKind {
    let bare = core.trim_start_matches(['-', '+']).replace(',', "");
    let is_digit = |c: char| c.is_ascii_digit();
    if core.contains("://") {
        TokenKind::Url
    } else if bare.parse::<f64>().is_ok() && bare.starts_with(is_digit) {
        TokenKind::Number
    } else if is_path_text(core) {
        TokenKind::Path
    } else if core.contains(|c: char| "+-*/%^".contains(c))
        && core.chars().all(|c| c.is_ascii_digit() || "+-*/%^().".contains(c))
    {
        TokenKind::Sum
    } else if is_dotted_name(core) {
        let ending = core.rsplit('.').next().unwrap_or("").to_lowercase();
        if FILE_ENDINGS.split(' ').any(|known| known == ending) {
            TokenKind::Path
        } else {
            TokenKind::Host
        }
    } else {
        TokenKind::Word
    }
}

fn is_path_text(core: &str) -> bool {
    let rooted = ["/", "./", "../", "~/"].iter().any(|root| core.starts_with(root));
    let file = core.rsplit('/').next().is_some_and(|file| file.contains('.'));
    (rooted && core.contains(char::is_alphanumeric))
        || (core.contains('/') && file && !is_dotted_name(core))
}

/// Returns true for a name with dots whose last label has only letters. A path may follow, as in
/// `example.com/x`.
fn is_dotted_name(core: &str) -> bool {
    let name = core.split(['/', '?', '#', ':']).next().unwrap_or(core);
    let label = |label: &str| {
        !label.is_empty() && label.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_')
    };
    let last = name.rsplit('.').next().unwrap_or("");
    name.contains('.')
        && name.split('.').all(label)
        && last.chars().count() >= 1
        && last.chars().all(char::is_alphabetic)
        && name.split('.').any(|label| label.chars().count() > 1)
}
