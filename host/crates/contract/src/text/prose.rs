//! The prose of an answer: escaped like other foreign text, except for the invisible characters
//! that writing needs.
//!
//! Persian, Hindi and related scripts cannot be written without joiners, and emoji families are
//! held together by them. A joiner stays between two letters of such a script or two emoji. A
//! direction mark (not an override, an embedding or an isolate) stays in a line that has
//! right-to-left letters. Elsewhere both are escaped, as in names, paths, arguments and cards.

use super::{is_hidden, push_escaped};

const NON_JOINER: char = '\u{200c}';
const JOINER: char = '\u{200d}';

/// Escapes prose that arrives in pieces.
#[derive(Debug, Clone, Default)]
pub struct ProseEscaper {
    before: Option<char>,
    /// An invisible character whose escaping depends on the next character.
    pending_char: Option<char>,
    /// The line has right-to-left letters.
    has_rtl: bool,
}

/// Escapes prose that is already complete. Line breaks and tabs stay.
pub fn escape_prose(text: &str) -> String {
    let mut prose = ProseEscaper::default();
    let mut out = prose.push(text);
    out.push_str(&prose.finish());
    out
}

impl ProseEscaper {
    /// Returns the next piece, escaped. A trailing character that depends on the next piece is
    /// returned with that piece.
    pub fn push(&mut self, piece: &str) -> String {
        let mut out = String::with_capacity(piece.len());
        for c in piece.chars() {
            self.release_held(&mut out, Some(c));
            self.has_rtl = c != '\n' && (self.has_rtl || is_rtl(c));
            match c {
                JOINER | NON_JOINER | '\u{200e}' | '\u{200f}' | '\u{61c}' => {
                    self.pending_char = Some(c)
                }
                _ => {
                    push_escaped(&mut out, c, c == '\n' || c == '\t' || !is_hidden(c));
                    self.before = Some(c);
                }
            }
        }
        out
    }

    /// Returns the character held back at the end of the text, and resets.
    pub fn finish(&mut self) -> String {
        let mut out = String::new();
        self.release_held(&mut out, None);
        *self = Self::default();
        out
    }

    fn release_held(&mut self, out: &mut String, next: Option<char>) {
        let Some(pending_char) = self.pending_char.take() else { return };
        let is_needed = match pending_char {
            NON_JOINER => both_match(self.before, next, is_joining),
            JOINER => {
                both_match(self.before, next, is_joining) || both_match(self.before, next, is_emoji)
            }
            _ => self.has_rtl || next.is_some_and(is_rtl),
        };
        push_escaped(out, pending_char, is_needed);
        self.before = Some(pending_char);
    }
}

fn both_match(before: Option<char>, next: Option<char>, predicate: fn(char) -> bool) -> bool {
    before.is_some_and(predicate) && next.is_some_and(predicate)
}

/// Letters and signs of scripts in which a joiner changes the shape of its neighbours.
fn is_joining(c: char) -> bool {
    match c {
        // Arabic and its neighbouring blocks, Mongolian, Arabic presentation forms, Adlam.
        '\u{600}'..='\u{8ff}'
        | '\u{1800}'..='\u{18af}'
        | '\u{fb50}'..='\u{fdff}'
        | '\u{fe70}'..='\u{fefc}'
        | '\u{1e900}'..='\u{1e94b}' => c.is_alphabetic(),
        // The scripts of India and Sri Lanka, Burmese, Khmer. `is_alphabetic` does not fit: their
        // viramas are not letters.
        '\u{900}'..='\u{dff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' => {
            !c.is_numeric() && !matches!(c, '\u{964}' | '\u{965}' | '\u{df4}')
        }
        _ => false,
    }
}

/// Pictographs, skin tones, and the emoji variation selector.
fn is_emoji(c: char) -> bool {
    matches!(c,
        '\u{fe0f}' | '\u{2190}'..='\u{21ff}' | '\u{2600}'..='\u{27bf}' | '\u{2b00}'..='\u{2bff}'
        | '\u{1f000}'..='\u{1faff}')
}

/// Right-to-left letters.
fn is_rtl(c: char) -> bool {
    c.is_alphabetic()
        && matches!(c,
            '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}'
            | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}')
}

#[cfg(test)]
mod tests {
    use super::{super::escape_multiline, *};

    #[test]
    fn what_languages_and_emoji_need_is_left_and_the_rest_is_shown() {
        let kept = [
            "می‌خواهم، خانه‌ای",
            "हिन्दी क्‍ष और श्‍रीमान",
            "ක්‍රමය ශ්‍රී",
            "👩‍👩‍👧‍👦 🏳️‍🌈 🙂‍↔️ 👩🏽‍🚀 🐈‍⬛ ❤️‍🔥",
            "שלום\u{200f}! C++\u{200f}",
            "\u{200f}العربية",
            "plain é 漢 👍\n\tx",
        ];
        for text in kept {
            assert_eq!(escape_prose(text), text);
        }
        let shown = [
            ("pass\u{200d}word", "pass\\u{200d}word"),
            ("pass\u{200c}word", "pass\\u{200c}word"),
            ("پ\u{200c}", "پ\\u{200c}"),
            ("می\u{200c}\u{200c}خ", "می\\u{200c}\\u{200c}خ"),
            ("می\u{200c}x", "می\\u{200c}x"),
            ("1\u{200d}2", "1\\u{200d}2"),
            ("👩\u{200d}x", "👩\\u{200d}x"),
            ("a\u{200f}b", "a\\u{200f}b"),
            ("שלום\na\u{200f}b", "שלום\na\\u{200f}b"),
            ("שלום\u{202e}abc", "שלום\\u{202e}abc"),
            ("שלום\u{2067}abc\u{2069}", "שלום\\u{2067}abc\\u{2069}"),
            ("می\u{200b}خ", "می\\u{200b}خ"),
            ("\u{1b}[31m", "\\u{1b}[31m"),
            ("tag\u{e0041}", "tag\\u{e0041}"),
        ];
        for (text, want) in shown {
            assert_eq!(escape_prose(text), want, "{text:?}");
        }
    }

    #[test]
    fn however_it_is_cut_the_same_comes_out() {
        let text = "می‌خواهم 👩‍👧 a\u{200d}b \u{202e}x שלום\u{200f}!\u{200d}";
        let whole = escape_prose(text);
        for at in text.char_indices().map(|(at, _)| at) {
            let mut prose = ProseEscaper::default();
            let (one, other) = text.split_at(at);
            let parts = [prose.push(one), prose.push(other), prose.finish()];
            assert_eq!(parts.concat(), whole);
        }
    }

    #[test]
    fn what_names_show_is_not_changed() {
        assert_eq!(escape_multiline("می\u{200c}خ"), "می\\u{200c}خ");
        assert_eq!(escape_multiline("👩\u{200d}👧"), "👩\\u{200d}👧");
    }
}
