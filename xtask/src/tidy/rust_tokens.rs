//! The tokens of a source file, as far as the rules need them: without comments, the contents of
//! texts, and tests.

/// What precedes an item that only tests have.
const TEST_MARKS: [&[&str]; 2] =
    [&["#", "[", "cfg", "(", "test", ")", "]"], &["#", "[", "cfg", "(", "all", "(", "test", ","]];

/// The tokens of a file without its tests.
pub(super) fn production_tokens(text: &str) -> Vec<&str> {
    let tokens = tokens(text);
    let (mut kept, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        if TEST_MARKS.iter().any(|mark| tokens[at..].starts_with(mark)) {
            at = item_end(&tokens, at);
        } else {
            kept.push(tokens[at]);
            at += 1;
        }
    }
    kept
}

/// Whether a token is a name, a keyword or a number.
pub(super) fn is_word(token: &str) -> bool {
    token.starts_with(|first: char| first.is_alphanumeric() || first == '_')
}

/// Where the item ends whose first attribute is at `at`.
fn item_end(tokens: &[&str], mut at: usize) -> usize {
    while tokens.get(at) == Some(&"#") {
        at = group_end(tokens, at + 1);
    }
    let mut angles = 0_i32;
    while let Some(token) = tokens.get(at) {
        match *token {
            "(" | "[" => at = group_end(tokens, at),
            "{" => {
                at = group_end(tokens, at);
                return at + usize::from(tokens.get(at) == Some(&";"));
            }
            ";" => return at + 1,
            "," if angles <= 0 => return at + 1,
            ")" | "]" | "}" => return at,
            other => {
                let is_arrow = at > 0 && matches!(tokens[at - 1], "-" | "=");
                match other {
                    "<" => angles += 1,
                    ">" if !is_arrow => angles -= 1,
                    _ => {}
                }
                at += 1;
            }
        }
    }
    at
}

/// Where the group ends whose bracket is at `at`.
fn group_end(tokens: &[&str], mut at: usize) -> usize {
    let mut open = 0_usize;
    while let Some(token) = tokens.get(at) {
        at += 1;
        match *token {
            "(" | "[" | "{" => open += 1,
            ")" | "]" | "}" => open = open.saturating_sub(1),
            _ => {}
        }
        if open == 0 {
            break;
        }
    }
    at
}

/// The words and signs of a text. `::` is one sign, any other has one character.
fn tokens(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (length, is_token) = match first {
            '"' => (quoted_length(rest, '"'), false),
            '\'' => character_length(rest).map_or((1, true), |length| (length, false)),
            _ if rest.starts_with("//") => (rest.find('\n').unwrap_or(rest.len()), false),
            _ if rest.starts_with("/*") => (comment_length(rest), false),
            _ if rest.starts_with("::") => (2, true),
            _ if is_word(rest) => match raw_text_length(rest) {
                Some(length) => (length, false),
                None => (word_length(rest), true),
            },
            _ => (first.len_utf8(), !first.is_whitespace()),
        };
        let (token, after) = rest.split_at(length);
        found.extend(is_token.then_some(token));
        rest = after;
    }
    found
}

fn word_length(text: &str) -> usize {
    text.find(|next: char| !next.is_alphanumeric() && next != '_').unwrap_or(text.len())
}

/// The length of a text in quotes.
fn quoted_length(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, next) in text.char_indices().skip(1) {
        match next {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if next == quote => return at + next.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// The length of a character in quotes. `None` for a lifetime, or a label.
fn character_length(text: &str) -> Option<usize> {
    let mut inside = text.chars().skip(1);
    let (first, second) = (inside.next()?, inside.next()?);
    (first == '\\' || second == '\'').then(|| quoted_length(text, '\''))
}

/// The length of a text such as `r#"…"#`. `None` if there is none.
fn raw_text_length(text: &str) -> Option<usize> {
    let marked = ["r", "br", "cr"].iter().find_map(|mark| text.strip_prefix(mark))?;
    let quoted = marked.trim_start_matches('#');
    let end = format!("\"{}", "#".repeat(marked.len() - quoted.len()));
    let inside = quoted.strip_prefix('"')?;
    let length = inside.find(&end).map_or(inside.len(), |at| at + end.len());
    Some(text.len() - inside.len() + length)
}

/// The length of a comment that may have others inside.
fn comment_length(text: &str) -> usize {
    let (mut open, mut at) = (0_usize, 0);
    while let Some(next) = text[at..].chars().next() {
        if text[at..].starts_with("/*") {
            (open, at) = (open + 1, at + 2);
        } else if text[at..].starts_with("*/") {
            (open, at) = (open - 1, at + 2);
            if open == 0 {
                break;
            }
        } else {
            at += next.len_utf8();
        }
    }
    at
}
