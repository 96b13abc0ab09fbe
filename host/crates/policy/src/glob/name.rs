//! One segment of a glob: a pattern of file names.
//!
//! A pattern denies, so the wider reading is the safe one. Some file systems treat differently
//! written names as one: they ignore case, the normalization form of accented letters, invisible
//! characters, or dots and spaces at the end. A pattern matches a name in all of these spellings
//! everywhere, because the file system under a mount can change.

use std::ops::RangeInclusive;

use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};

use super::Fault;

/// A pattern of names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileNamePattern {
    tokens: Vec<FileNameToken>,
    /// The tokens for names in folded form.
    folded: Vec<FileNameToken>,
}

/// A name to compare with patterns, as written and in folded form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoldedFileName {
    original: Vec<char>,
    folded: Vec<char>,
}

impl FoldedFileName {
    pub(super) fn from_text(name: &str) -> Self {
        let folded = fold_text(name);
        let trimmed = folded.trim_end_matches(['.', ' ']);
        Self { original: name.chars().collect(), folded: trimmed.chars().collect() }
    }
}

/// The characters that Unicode allows programs to ignore, and that some file systems do ignore.
const IGNORABLE: [RangeInclusive<char>; 17] = [
    '\u{ad}'..='\u{ad}',
    '\u{34f}'..='\u{34f}',
    '\u{61c}'..='\u{61c}',
    '\u{115f}'..='\u{1160}',
    '\u{17b4}'..='\u{17b5}',
    '\u{180b}'..='\u{180f}',
    '\u{200b}'..='\u{200f}',
    '\u{202a}'..='\u{202e}',
    '\u{2060}'..='\u{206f}',
    '\u{3164}'..='\u{3164}',
    '\u{fe00}'..='\u{fe0f}',
    '\u{feff}'..='\u{feff}',
    '\u{ffa0}'..='\u{ffa0}',
    '\u{fff0}'..='\u{fff8}',
    '\u{1bca0}'..='\u{1bca3}',
    '\u{1d173}'..='\u{1d17a}',
    '\u{e0000}'..='\u{e0fff}',
];

fn is_invisible(character: char) -> bool {
    IGNORABLE.iter().any(|range| range.contains(&character))
}

const DECOMPOSED: DecomposingNormalizerBorrowed<'static> = DecomposingNormalizerBorrowed::new_nfd();

const COMPOSED: ComposingNormalizerBorrowed<'static> = ComposingNormalizerBorrowed::new_nfc();

/// Returns the folded form of a text: one spelling for all texts that a file system may treat as
/// equal.
fn fold_text(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let shown: String = text.chars().filter(|c| !is_invisible(*c)).collect();
    // Upper case first, because several small letters share one capital. Then each letter by
    // itself: lowercasing a whole word can change the form of its last letter.
    let capitals = DECOMPOSED.normalize(&shown).to_uppercase();
    let lowered: String = capitals.chars().flat_map(char::to_lowercase).collect();
    // Composed, so that `?` and a range see one letter as one character.
    COMPOSED.normalize(&lowered).into_owned()
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum FileNameToken {
    /// `*`: any text, including none.
    Star,
    /// `?`: any character.
    AnyCharacter,
    /// This character.
    Character(char),
    /// `[a-z_]`: a character in one of these ranges.
    Within(Vec<(char, char)>),
    /// `[!a-z_]`: a character in none of them.
    Without(Vec<(char, char)>),
}

impl FileNamePattern {
    pub(super) fn parse(text: &str) -> Result<Self, Fault> {
        let mut tokens = Vec::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            rest = &rest[first.len_utf8()..];
            tokens.push(match first {
                '*' => FileNameToken::Star,
                '?' => FileNameToken::AnyCharacter,
                '[' => {
                    let (class, after) = rest.split_once(']').ok_or(OPEN_CLASS)?;
                    rest = after;
                    parse_class(class)?
                }
                _ => FileNameToken::Character(parse_character(first)?),
            });
        }
        Ok(Self { folded: fold_tokens(&tokens), tokens })
    }

    /// Whether a name matches, in any of its spellings.
    pub(super) fn matches(&self, name: &FoldedFileName) -> bool {
        tokens_match(&self.tokens, &name.original) || tokens_match(&self.folded, &name.folded)
    }
}

/// Returns the tokens for folded names. Consecutive letters are folded together: normalization may
/// reorder accents.
fn fold_tokens(tokens: &[FileNameToken]) -> Vec<FileNameToken> {
    let (mut all, mut letters) = (Vec::new(), String::new());
    let take = |letters: &mut String, all: &mut Vec<FileNameToken>| {
        all.extend(fold_text(letters).chars().map(FileNameToken::Character));
        letters.clear();
    };
    for token in tokens {
        match token {
            FileNameToken::Character(letter) => letters.push(*letter),
            FileNameToken::Star
            | FileNameToken::AnyCharacter
            | FileNameToken::Within(_)
            | FileNameToken::Without(_) => {
                take(&mut letters, &mut all);
                all.push(token.clone());
            }
        }
    }
    take(&mut letters, &mut all);
    let ends = all.iter().rposition(|token| !is_trimmed_at_end(token));
    // After a wildcard, trailing dots and spaces are part of the pattern.
    if ends.is_some_and(|last| matches!(all[last], FileNameToken::Character(_))) {
        all.truncate(ends.map_or(0, |last| last + 1));
    }
    all
}

/// Whether some file systems drop a token where a name ends.
fn is_trimmed_at_end(token: &FileNameToken) -> bool {
    matches!(token, FileNameToken::Character('.' | ' '))
}

/// Whether tokens match a whole name. The number of steps is at most the product of both lengths:
/// only the last star is ever retried, since an earlier one could not find more.
fn tokens_match(tokens: &[FileNameToken], name: &[char]) -> bool {
    let (mut token, mut at) = (0, 0);
    // The token after the last star, and the character that the star would take next.
    let mut again = None;
    while at < name.len() {
        match tokens.get(token) {
            Some(FileNameToken::Star) => {
                token += 1;
                again = Some((token, at));
            }
            Some(one) if one.matches_character(name[at]) => {
                token += 1;
                at += 1;
            }
            Some(_) | None => {
                let Some((behind, taken)) = again else { return false };
                (token, at) = (behind, taken + 1);
                again = Some((token, at));
            }
        }
    }
    tokens[token..].iter().all(|token| *token == FileNameToken::Star)
}

const OPEN_CLASS: Fault = ("`[` is not closed", "write [abc], or [[] for the bracket itself");

fn parse_class(class: &str) -> Result<FileNameToken, Fault> {
    match class.strip_prefix('!') {
        Some(rest) => parse_ranges(rest).map(FileNameToken::Without),
        None => parse_ranges(class).map(FileNameToken::Within),
    }
}

fn parse_ranges(class: &str) -> Result<Vec<(char, char)>, Fault> {
    let mut ranges = Vec::new();
    let characters: Vec<char> = class.chars().collect();
    let mut rest = characters.as_slice();
    loop {
        match rest {
            [first, '-', last, after @ ..] => {
                ranges.push((*first, *last));
                rest = after;
            }
            [one, after @ ..] => {
                ranges.push((*one, *one));
                rest = after;
            }
            [] => break,
        }
    }
    let is_sound = !ranges.is_empty() && ranges.iter().all(|(first, last)| first <= last);
    if !is_sound || characters.iter().any(|c| c.is_control()) {
        return Err(("a range of characters is empty", "write ranges upwards, such as [a-z]"));
    }
    Ok(ranges)
}

fn parse_character(character: char) -> Result<char, Fault> {
    match character {
        '{' | '}' => Err(("braces are not part of a pattern", "write one pattern for each choice")),
        ']' => Err(("`]` closes no bracket", "write [abc]")),
        '\\' => Err(("a backslash has no meaning", "write [*] for a star, and / between folders")),
        _ if character.is_control() => {
            Err(("it holds a control character", "write ? in the place of the character"))
        }
        _ => Ok(character),
    }
}

impl FileNameToken {
    fn matches_character(&self, character: char) -> bool {
        match self {
            Self::Star => false,
            Self::AnyCharacter => true,
            Self::Character(own) => *own == character,
            // Ranges are not folded, so the character is tried as a capital and as a small letter
            // too. A negated range excludes only the characters that it lists.
            Self::Within(ranges) => case_variants(character).any(|one| is_in_ranges(ranges, one)),
            Self::Without(ranges) => !is_in_ranges(ranges, character),
        }
    }
}

fn is_in_ranges(ranges: &[(char, char)], character: char) -> bool {
    ranges.iter().any(|(first, last)| (*first..=*last).contains(&character))
}

/// A character with its capital and its small letter, where each is one character.
fn case_variants(character: char) -> impl Iterator<Item = char> {
    let one = |mut letters: Box<dyn Iterator<Item = char>>| {
        letters.next().filter(|_| letters.next().is_none())
    };
    let others = [one(Box::new(character.to_lowercase())), one(Box::new(character.to_uppercase()))];
    std::iter::once(character).chain(others.into_iter().flatten())
}
