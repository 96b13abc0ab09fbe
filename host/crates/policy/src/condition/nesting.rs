//! The nesting depth of a condition, measured before it is parsed.
//!
//! The parser, the evaluator and every walk over an expression recurse once for each level, on the
//! stack of the thread that reads a policy or decides about a call. A level is an open bracket, or
//! an operator in the current run of text: `a.b.c` nests as deeply as `((a))`. A comma, `&&` and
//! `||` begin a new run.

use super::ConditionError;

/// Most levels at any place: several times more than a readable condition needs. One level costs up
/// to 16 KiB of stack.
pub(super) const LEVELS_MAX: usize = 32;

/// Signs that consist of two characters.
const PAIRS: [&[u8]; 6] = [b"==", b"!=", b"<=", b">=", b"&&", b"||"];

/// Characters that may follow a backslash.
const PLAIN_ESCAPES: &[u8] = b"abfnrtv\\?\"'`";

/// An open bracket.
struct NestingFrame {
    /// One for the bracket itself, and one for each question mark since the last comma: the rest
    /// nests in each of these.
    fixed: usize,
    /// The operators of the current run.
    run: usize,
}

struct NestingLevels(Vec<NestingFrame>);

/// Checks the nesting of a text.
///
/// The parser must read the same text as a string that this scanner does; otherwise, brackets could
/// hide in it. So the scanner follows the parser's rules for strings, and refuses their rarer
/// forms.
pub(super) fn check_nesting(text: &str) -> Result<(), ConditionError> {
    let mut levels = NestingLevels(vec![NestingFrame { fixed: 0, run: 0 }]);
    let mut rest = text.as_bytes();
    while let Some(&first) = rest.first() {
        let length = match first {
            b'"' | b'\'' => string_length(rest)?,
            b'/' if rest.starts_with(b"//") => line_length(rest),
            _ if is_word_byte(&first) => levels.consume_word(rest)?,
            _ => levels.consume_sign(rest)?,
        };
        rest = &rest[length..];
    }
    Ok(())
}

impl NestingLevels {
    /// Consumes a name, a number, a keyword or a raw string, and returns its length.
    fn consume_word(&mut self, rest: &[u8]) -> Result<usize, ConditionError> {
        let length = rest.iter().take_while(|byte| is_word_byte(byte)).count();
        let (word, after) = rest.split_at(length);
        match (word, after.first()) {
            (b"r" | b"R", Some(b'"' | b'\'')) => Ok(length + raw_string_length(after)?),
            (_, Some(b'"' | b'\'')) => Err(ConditionError::Text),
            (b"in", _) => self.change_frame(|frame| frame.run += 1).map(|()| length),
            _ => Ok(length),
        }
    }

    /// Consumes anything else, and returns its length.
    fn consume_sign(&mut self, rest: &[u8]) -> Result<usize, ConditionError> {
        match rest[0] {
            b'(' | b'[' | b'{' => self.0.push(NestingFrame { fixed: 1, run: 0 }),
            // An unmatched closing bracket is a mistake that the parser reports.
            b')' | b']' | b'}' if self.0.len() > 1 => drop(self.0.pop()),
            _ => {}
        }
        self.change_frame(|frame| match rest[0] {
            b',' => *frame = NestingFrame { fixed: frame.fixed.min(1), run: 0 },
            b'&' | b'|' => frame.run = 0,
            b'?' => frame.fixed += 1,
            // A bracketed part is one more link of a chain: `a[0][1]`.
            b')' | b']' | b'}' => frame.run += 1,
            b'.' | b'!' | b'-' | b'+' | b'*' | b'/' | b'%' | b'<' | b'>' | b'=' => frame.run += 1,
            _ => {}
        })?;
        Ok(if PAIRS.iter().any(|pair| rest.starts_with(pair)) { 2 } else { 1 })
    }

    /// Changes the innermost frame, and checks the sum over all frames.
    fn change_frame(
        &mut self,
        change: impl FnOnce(&mut NestingFrame),
    ) -> Result<(), ConditionError> {
        if let Some(frame) = self.0.last_mut() {
            change(frame);
        }
        let levels: usize = self.0.iter().map(|frame| frame.fixed + frame.run).sum();
        if levels > LEVELS_MAX { Err(ConditionError::TooDeep) } else { Ok(()) }
    }
}

fn is_word_byte(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_'
}

fn line_length(rest: &[u8]) -> usize {
    rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
}

/// The length of a string, including its quotation marks.
fn string_length(rest: &[u8]) -> Result<usize, ConditionError> {
    let mut end = 1;
    loop {
        match rest.get(end) {
            Some(byte) if *byte == rest[0] => return consume_closing_quote(rest, end),
            Some(b'\\') => end += escape_length(&rest[end..])?,
            Some(b'\n' | b'\r') | None => return Err(ConditionError::Text),
            Some(_) => end += 1,
        }
    }
}

/// The length of a raw string, in which a backslash is literal.
fn raw_string_length(rest: &[u8]) -> Result<usize, ConditionError> {
    let ends = |byte: &u8| *byte == rest[0] || matches!(byte, b'\n' | b'\r');
    let inside = rest[1..].iter().position(ends).ok_or(ConditionError::Text)?;
    consume_closing_quote(rest, inside + 1)
}

/// Consumes the quotation mark at `end`, unless it belongs to a triple quotation mark.
fn consume_closing_quote(rest: &[u8], end: usize) -> Result<usize, ConditionError> {
    let is_triple = end == 1 && rest.get(2) == Some(&rest[0]);
    if rest[end] == rest[0] && !is_triple { Ok(end + 1) } else { Err(ConditionError::Text) }
}

fn escape_length(rest: &[u8]) -> Result<usize, ConditionError> {
    let (digits, is_digit): (usize, fn(&u8) -> bool) = match rest.get(1) {
        Some(sign) if PLAIN_ESCAPES.contains(sign) => return Ok(2),
        Some(b'x' | b'X') => (2, u8::is_ascii_hexdigit),
        Some(b'u') => (4, u8::is_ascii_hexdigit),
        Some(b'U') => (8, u8::is_ascii_hexdigit),
        Some(b'0'..=b'3') => (2, |byte| (b'0'..=b'7').contains(byte)),
        Some(_) | None => return Err(ConditionError::Text),
    };
    let all = rest.get(2..2 + digits).is_some_and(|code| code.iter().all(is_digit));
    if all { Ok(2 + digits) } else { Err(ConditionError::Text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEEP: &str = "the condition nests too deeply";
    const TEXT: &str =
        "the condition holds a text that does not end, or an escape that is not known";

    #[track_caller]
    fn check_rows(rows: &[(String, &str)]) {
        for (text, want) in rows {
            let said =
                check_nesting(text).map_or_else(|error| error.to_string(), |()| String::new());
            assert_eq!(said, *want, "{text}");
        }
    }

    #[test]
    fn levels_add_up_and_go_down_again() {
        let open = |times| "(".repeat(times);
        check_rows(&[
            (open(32), ""),
            (open(33), DEEP),
            ("[{(".repeat(11), DEEP),
            ("! ".repeat(33), DEEP),
            (format!("args{}", ".a".repeat(33)), DEEP),
            (format!("args{}", "[1]".repeat(33)), DEEP),
            (format!("args{}", ".size()".repeat(17)), DEEP),
            (format!("1{}", "+1".repeat(33)), DEEP),
            (format!("1{}", " in 1".repeat(33)), DEEP),
            (format!("1{}", "<=1".repeat(32)), ""),
            (format!("{}1", "true?1:".repeat(33)), DEEP),
            (format!("{}1", "true && true ?1:".repeat(33)), DEEP),
            (format!("{}x{}", open(16), ".a".repeat(17)), DEEP),
            (format!("x{}", " && args.a.b == 1".repeat(100)), ""),
            (format!("x{}", " || !(args.a in [1, 2])".repeat(80)), ""),
            (format!("[{}]", "args.a ? 1 : 2, ".repeat(100)), ""),
            (")".repeat(20) + &open(13), DEEP),
        ]);
    }

    #[test]
    fn what_stands_in_strings_and_comments_does_not_nest() {
        let many = "(".repeat(40);
        check_rows(&[
            (format!("'{many}' == \"{many}\""), ""),
            (format!(r#"r'{many}\' == R"\{many}""#), ""),
            (format!("// {many}\n1"), ""),
            (format!(r"'\'{many}' == '\u00e9\x41\U0001f600\101\\'"), ""),
            (format!("// {many}\n{many}"), DEEP),
            (format!(r"r'\'{many}"), DEEP),
            (format!("''{many}"), DEEP),
            (format!("\"{many}"), TEXT),
            (format!("'{many}\n'"), TEXT),
            (format!("r'{many}\n'"), TEXT),
            (format!("r'{many}"), TEXT),
            (format!(r"'\q'{many}"), TEXT),
            (format!(r"'\u00z9'{many}"), TEXT),
            (format!(r"'\x4'{many}"), TEXT),
            (format!(r"'\401'{many}"), TEXT),
            ("'\\".to_owned(), TEXT),
            (format!("'''{many}'''"), TEXT),
            (format!(r#"r"""{many}""""#), TEXT),
            (format!(r"1r'\'{many}'"), TEXT),
            (format!("b'{many}'"), TEXT),
        ]);
    }
}
