//! Decodes one JSON string while it arrives.

/// The state of decoding a string.
#[derive(Debug, Default)]
pub(super) struct Unescape {
    at: At,
    /// The first half of a surrogate pair; the second must follow.
    high: Option<u32>,
}

#[derive(Debug, Default, Clone, Copy)]
enum At {
    #[default]
    Plain,
    Backslash,
    Hex {
        value: u32,
        digits: u8,
    },
}

/// The result of one more character of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// A decoded character.
    Char(char),
    /// Nothing yet, in the middle of an escape.
    Pending,
    /// The string is closed.
    End,
}

/// The source is not a JSON string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotAString;

impl Unescape {
    /// Decodes the next character of the source, after the opening quote. Unescaped control
    /// characters are accepted: small models forget to escape them in long replies.
    pub(super) fn take(&mut self, c: char) -> Result<Step, NotAString> {
        match self.at {
            At::Plain => self.plain(c),
            At::Backslash => self.escape(c),
            At::Hex { value, digits } => self.hex(value, digits, c),
        }
    }

    fn plain(&mut self, c: char) -> Result<Step, NotAString> {
        match c {
            '\\' => {
                self.at = At::Backslash;
                Ok(Step::Pending)
            }
            _ if self.high.is_some() => Err(NotAString),
            '"' => Ok(Step::End),
            _ => Ok(Step::Char(c)),
        }
    }

    fn escape(&mut self, c: char) -> Result<Step, NotAString> {
        self.at = At::Plain;
        let c = match c {
            'u' => {
                self.at = At::Hex { value: 0, digits: 0 };
                return Ok(Step::Pending);
            }
            _ if self.high.is_some() => return Err(NotAString),
            '"' | '\\' | '/' => c,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            _ => return Err(NotAString),
        };
        Ok(Step::Char(c))
    }

    fn hex(&mut self, value: u32, digits: u8, c: char) -> Result<Step, NotAString> {
        let value = value * 16 + c.to_digit(16).ok_or(NotAString)?;
        if digits < 3 {
            self.at = At::Hex { value, digits: digits + 1 };
            return Ok(Step::Pending);
        }
        self.at = At::Plain;
        self.unit(value)
    }

    /// Decodes one UTF-16 code unit.
    fn unit(&mut self, unit: u32) -> Result<Step, NotAString> {
        let code = match (self.high.take(), unit) {
            (None, 0xd800..=0xdbff) => {
                self.high = Some(unit);
                return Ok(Step::Pending);
            }
            (None, _) => unit,
            (Some(high), 0xdc00..=0xdfff) => 0x10000 + ((high - 0xd800) << 10) + (unit - 0xdc00),
            (Some(_), _) => return Err(NotAString),
        };
        char::from_u32(code).map(Step::Char).ok_or(NotAString)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes the source up to its closing quote.
    fn decode(source: &str) -> Result<Option<String>, NotAString> {
        let (mut unescape, mut out) = (Unescape::default(), String::new());
        for c in source.chars() {
            match unescape.take(c)? {
                Step::Char(c) => out.push(c),
                Step::Pending => {}
                Step::End => return Ok(Some(out)),
            }
        }
        Ok(None)
    }

    #[test]
    fn strings_are_decoded_as_json_says() {
        let rows = [
            (r#"""#, Some("")),
            (r#"Grüße 東京""#, Some("Grüße 東京")),
            (r#"\"\\\/\b\f\n\r\t""#, Some("\"\\/\u{8}\u{c}\n\r\t")),
            (r#"\u00e9\u6771\uD83D\ude00""#, Some("é東😀")),
            (r#"a\u"#, None),
            ("two\nlines\"", Some("two\nlines")),
        ];
        for (source, want) in rows {
            assert_eq!(decode(source), Ok(want.map(str::to_owned)), "{source}");
        }
    }

    #[test]
    fn what_json_refuses_is_refused() {
        let rows = [r"\x", r"\u00g0", r"\ud83d.", r#"\ud83d""#, r"\ud83d\n", r"\ud83dA", r"\ude00"];
        for source in rows {
            assert_eq!(decode(source), Err(NotAString), "{source}");
        }
    }
}
