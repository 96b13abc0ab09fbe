//! One segment of a glob: a pattern of file names.

use super::Fault;

/// A pattern of names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamePattern {
    tokens: Vec<Token>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    /// `*`: any text, also none.
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

impl NamePattern {
    pub(super) fn parse(text: &str) -> Result<Self, Fault> {
        let mut tokens = Vec::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            rest = &rest[first.len_utf8()..];
            tokens.push(match first {
                '*' => Token::Star,
                '?' => Token::AnyCharacter,
                '[' => {
                    let (class, after) = rest.split_once(']').ok_or(OPEN_CLASS)?;
                    rest = after;
                    class_token(class)?
                }
                _ => Token::Character(plain(first)?),
            });
        }
        Ok(Self { tokens })
    }

    /// Whether a name matches. It takes at most as many steps as the product of both lengths: only
    /// the last star is ever tried again, as an earlier one could not find more.
    pub(super) fn matches(&self, name: &str) -> bool {
        let name: Vec<char> = name.chars().collect();
        let (mut token, mut at) = (0, 0);
        // The token behind the last star, and the character that the star would take next.
        let mut again = None;
        while at < name.len() {
            match self.tokens.get(token) {
                Some(Token::Star) => {
                    token += 1;
                    again = Some((token, at));
                }
                Some(one) if one.takes(name[at]) => {
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
        self.tokens[token..].iter().all(|token| *token == Token::Star)
    }
}

const OPEN_CLASS: Fault = ("`[` is not closed", "write [abc], or [[] for the bracket itself");

fn class_token(class: &str) -> Result<Token, Fault> {
    match class.strip_prefix('!') {
        Some(rest) => ranges(rest).map(Token::Without),
        None => ranges(class).map(Token::Within),
    }
}

fn ranges(class: &str) -> Result<Vec<(char, char)>, Fault> {
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

fn plain(character: char) -> Result<char, Fault> {
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

impl Token {
    fn takes(&self, character: char) -> bool {
        let within = |ranges: &[(char, char)]| {
            ranges.iter().any(|(first, last)| (*first..=*last).contains(&character))
        };
        match self {
            Self::Star => false,
            Self::AnyCharacter => true,
            Self::Character(own) => *own == character,
            Self::Within(ranges) => within(ranges),
            Self::Without(ranges) => !within(ranges),
        }
    }
}
