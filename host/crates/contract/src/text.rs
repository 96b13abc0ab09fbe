//! Foreign text, made safe for a terminal or a record.
//!
//! Text from a plugin, a model or a server is shown, never obeyed: control characters, escape
//! sequences and invisible or direction-changing characters are made visible. The prose of an
//! answer keeps those that languages and emoji need; see [`ProseEscaper`].

mod prose;

use std::fmt::Write;

pub use prose::{ProseEscaper, escape_prose};

/// Escapes everything that a terminal could obey or a reader could not see. Line breaks and tabs
/// stay.
pub fn escape_multiline(text: &str) -> String {
    escape_except(text, |c| c == '\n' || c == '\t')
}

/// Escapes as [`escape_multiline`] does, and line breaks and tabs as well, so the text fits on one
/// line.
pub fn escape_line(text: &str) -> String {
    escape_except(text, |_| false)
}

/// Escapes as [`escape_line`] does, after cutting the text to `chars_max` characters, and marks a
/// cut with `…`.
pub fn escape_excerpt(text: &str, chars_max: usize) -> String {
    let mut short: String = text.chars().take(chars_max).collect();
    let cut = short.len() < text.len();
    short = escape_line(&short);
    if cut {
        short.push('…');
    }
    short
}

/// A word of a command line, quoted for a shell if it needs to be. Hidden characters are escaped.
pub fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", escape_line(word).replace('\'', r"'\''")),
    }
}

/// Escapes a JSON text as [`escape_multiline`] does, but with JSON escapes, so that a program reads
/// the same value and a terminal obeys nothing.
pub fn escape_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    loop {
        // Nearly everything is visible ASCII, which is copied in one piece.
        let is_visible = |byte: u8| (b' '..=b'~').contains(&byte);
        let end = rest.bytes().position(|byte| !is_visible(byte)).unwrap_or(rest.len());
        let (visible, tail) = rest.split_at(end);
        out.push_str(visible);
        let mut characters = tail.chars();
        let Some(c) = characters.next() else { return out };
        push_json_escaped(&mut out, c);
        rest = characters.as_str();
    }
}

/// Appends a character of a JSON text, as a JSON escape if it is hidden.
fn push_json_escaped(out: &mut String, c: char) {
    if c == '\n' || !is_hidden(c) {
        return out.push(c);
    }
    for unit in c.encode_utf16(&mut [0; 2]) {
        // Writing to a String cannot fail.
        let _ = write!(out, "\\u{unit:04x}");
    }
}

fn escape_except(text: &str, keep: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|c| push_escaped(&mut out, c, keep(c) || !is_hidden(c)));
    out
}

/// Appends a character, verbatim or escaped.
fn push_escaped(out: &mut String, c: char, as_it_is: bool) {
    if as_it_is {
        out.push(c);
    } else if c.is_ascii() {
        out.extend(c.escape_default());
    } else {
        // Writing to a String cannot fail.
        let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
    }
}

/// Controls (C0, C1), zero-width and direction marks, separators, tags, letters that are blank.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{115f}' | '\u{1160}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_what_would_be_obeyed_or_unseen() {
        let rows = [
            ("plain é 漢 👍", "plain é 漢 👍"),
            ("a\x1b[31mred", "a\\u{1b}[31mred"),
            ("a\rb", "a\\rb"),
            ("zero\u{200b}width", "zero\\u{200b}width"),
            ("\u{202e}evil", "\\u{202e}evil"),
            ("tag\u{e0041}", "tag\\u{e0041}"),
            ("c1\u{9b}31m", "c1\\u{9b}31m"),
            ("two\nlines", "two\nlines"),
        ];
        for (input, want) in rows {
            assert_eq!(escape_multiline(input), want);
        }
        assert_eq!(escape_line("two\nlines"), "two\\nlines");
        assert_eq!(escape_excerpt("abcdef", 3), "abc…");
        let json = "{\n\"a\": \"\u{9b}\u{e0041}é\"}";
        assert_eq!(escape_json(json), "{\n\"a\": \"\\u009b\\udb40\\udc41é\"}");
    }
}
