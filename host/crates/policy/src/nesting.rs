//! How deeply a TOML text nests, found out before a tree is built of it.
//!
//! The parser bounds the brackets and the dots of one key, each for itself. A text that multiplies
//! the two still makes a tree thousands of levels deep, and taking such a tree apart overflows the
//! stack. So the sum of both is bounded first, on the flat list of tokens.

use toml_parser::{Source, lexer::TokenKind};

/// Most levels, of brackets and of dots in keys together, at any place of a file: far more than
/// any manifest needs, few enough for the stack of a worker thread.
const LEVELS_MAX: usize = 64;

/// A bracket that is open, and how many levels it and the dots of its current key make.
struct Frame {
    closes_with: TokenKind,
    levels: usize,
}

/// Returns the place at which a text nests more deeply than is read.
pub(crate) fn too_deep(text: &str) -> Option<usize> {
    let mut frames = vec![Frame { closes_with: TokenKind::Eof, levels: 1 }];
    let mut levels = 1;
    for token in Source::new(text).lex() {
        step(&mut frames, &mut levels, token.kind());
        if levels > LEVELS_MAX {
            return Some(token.span().start());
        }
    }
    None
}

fn step(frames: &mut Vec<Frame>, levels: &mut usize, token: TokenKind) {
    let Some(frame) = frames.last_mut() else { return };
    match token {
        TokenKind::LeftSquareBracket | TokenKind::LeftCurlyBracket => {
            let square = token == TokenKind::LeftSquareBracket;
            let (square_end, curly_end) =
                (TokenKind::RightSquareBracket, TokenKind::RightCurlyBracket);
            let closes_with = if square { square_end } else { curly_end };
            frames.push(Frame { closes_with, levels: 1 });
            *levels += 1;
        }
        // A bracket that closes nothing is a mistake that the parser reads on after: it must not
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
            assert_eq!(too_deep(&text).is_some(), want, "{text}");
        }
        assert_eq!(too_deep(&brackets(99)), Some(67));
    }
}
