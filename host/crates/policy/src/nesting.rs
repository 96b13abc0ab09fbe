//! The nesting depth of a TOML text, measured before a tree is built from it.
//!
//! The parser limits brackets and the dots of one key separately. A text that multiplies the two
//! still makes a tree thousands of levels deep, and dropping such a tree overflows the stack. So
//! this module limits their sum on the flat token stream.

use toml_parser::{Source, lexer::TokenKind};

/// Most levels, of brackets and of dots in keys together, at any place of a file: far more than a
/// manifest needs, and few enough for the stack of a worker thread.
const LEVELS_MAX: usize = 64;

/// An open bracket, and the number of levels from it and the dots of its current key.
struct TomlNestingFrame {
    closes_with: TokenKind,
    levels: usize,
}

/// Returns the offset at which a text exceeds the nesting limit.
pub(crate) fn find_too_deep(text: &str) -> Option<usize> {
    let mut frames = vec![TomlNestingFrame { closes_with: TokenKind::Eof, levels: 1 }];
    let mut levels = 1;
    for token in Source::new(text).lex() {
        advance_frames(&mut frames, &mut levels, token.kind());
        if levels > LEVELS_MAX {
            return Some(token.span().start());
        }
    }
    None
}

fn advance_frames(frames: &mut Vec<TomlNestingFrame>, levels: &mut usize, token: TokenKind) {
    let Some(frame) = frames.last_mut() else { return };
    match token {
        TokenKind::LeftSquareBracket | TokenKind::LeftCurlyBracket => {
            let square = token == TokenKind::LeftSquareBracket;
            let (square_end, curly_end) =
                (TokenKind::RightSquareBracket, TokenKind::RightCurlyBracket);
            let closes_with = if square { square_end } else { curly_end };
            frames.push(TomlNestingFrame { closes_with, levels: 1 });
            *levels += 1;
        }
        // An unmatched closing bracket is an error, but the parser continues after it. It must not
        // hide the levels around it.
        TokenKind::RightSquareBracket | TokenKind::RightCurlyBracket => {
            if frame.closes_with == token {
                *levels -= frame.levels;
                frames.pop();
            }
        }
        TokenKind::Dot => {
            frame.levels += 1;
            *levels += 1;
        }
        TokenKind::Comma | TokenKind::Newline => {
            *levels -= frame.levels - 1;
            frame.levels = 1;
        }
        TokenKind::Equals
        | TokenKind::Whitespace
        | TokenKind::Comment
        | TokenKind::LiteralString
        | TokenKind::BasicString
        | TokenKind::MlLiteralString
        | TokenKind::MlBasicString
        | TokenKind::Atom
        | TokenKind::Eof => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_add_up_and_go_down_again() {
        let brackets = |levels: usize| format!("a = {}", "[".repeat(levels));
        let tables = |levels: usize| "{a.b.c.d.e.f.g = ".repeat(levels / 7);
        let rows = [
            (brackets(63), false),
            (brackets(64), true),
            (format!("x{} = 1", ".a".repeat(63)), false),
            (format!("x{} = 1", ".a".repeat(64)), true),
            (format!("x = {}", tables(63)), false),
            (format!("x = {}", tables(70)), true),
            (format!("x = {}", tables(70).replace("= ", "= ]")), true),
            ("a.b.c = { d.e = 1, f.g = [1.5, 2.5] }\n".repeat(1000), false),
            (format!("# {0}\na = '{0}'\nb = \"{0}\"", ".[".repeat(99)), false),
        ];
        for (text, want) in rows {
            assert_eq!(find_too_deep(&text).is_some(), want, "{text}");
        }
        assert_eq!(find_too_deep(&brackets(99)), Some(67));
    }
}
