//! Decodes one JSON string while it arrives.

/// The state of decoding a string.
#[derive(Debug, Default)]
pub(super) struct StringDecoder {
    state: DecoderState,
    /// The first half of a surrogate pair; the second must follow.
    high_surrogate: Option<u32>,
}

#[derive(Debug, Default, Clone, Copy)]
enum DecoderState {
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
pub(super) enum DecodeStep {
    /// A decoded character.
    Char(char),
    /// Nothing yet, in the middle of an escape.
    Pending,
    /// The string is closed.
    End,
}

/// The source is not a JSON string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InvalidJsonString;

impl StringDecoder {
    /// Decodes the next character of the source, after the opening quote. Unescaped control
    /// characters are accepted: small models forget to escape them in long replies.
    pub(super) fn decode_char(&mut self, c: char) -> Result<DecodeStep, InvalidJsonString> {
        match self.state {
            DecoderState::Plain => self.decode_plain(c),
            DecoderState::Backslash => self.decode_escape(c),
            DecoderState::Hex { value, digits } => self.decode_hex_digit(value, digits, c),
        }
    }

    fn decode_plain(&mut self, c: char) -> Result<DecodeStep, InvalidJsonString> {
        match c {
            '\\' => {
                self.state = DecoderState::Backslash;
                Ok(DecodeStep::Pending)
            }
            _ if self.high_surrogate.is_some() => Err(InvalidJsonString),
            '"' => Ok(DecodeStep::End),
            _ => Ok(DecodeStep::Char(c)),
        }
    }

    fn decode_escape(&mut self, c: char) -> Result<DecodeStep, InvalidJsonString> {
        self.state = DecoderState::Plain;
        let c = match c {
            'u' => {
                self.state = DecoderState::Hex { value: 0, digits: 0 };
                return Ok(DecodeStep::Pending);
            }
            _ if self.high_surrogate.is_some() => return Err(InvalidJsonString),
            '"' | '\\' | '/' => c,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            _ => return Err(InvalidJsonString),
        };
        Ok(DecodeStep::Char(c))
    }

    fn decode_hex_digit(
        &mut self,
        value: u32,
        digits: u8,
        c: char,
    ) -> Result<DecodeStep, InvalidJsonString> {
        let value = value * 16 + c.to_digit(16).ok_or(InvalidJsonString)?;
        if digits < 3 {
            self.state = DecoderState::Hex { value, digits: digits + 1 };
            return Ok(DecodeStep::Pending);
        }
        self.state = DecoderState::Plain;
        self.decode_utf16_unit(value)
    }

    /// Decodes one UTF-16 code unit.
    fn decode_utf16_unit(&mut self, unit: u32) -> Result<DecodeStep, InvalidJsonString> {
        let code = match (self.high_surrogate.take(), unit) {
            (None, 0xd800..=0xdbff) => {
                self.high_surrogate = Some(unit);
                return Ok(DecodeStep::Pending);
            }
            (None, _) => unit,
            (Some(high), 0xdc00..=0xdfff) => 0x10000 + ((high - 0xd800) << 10) + (unit - 0xdc00),
            (Some(_), _) => return Err(InvalidJsonString),
        };
        char::from_u32(code).map(DecodeStep::Char).ok_or(InvalidJsonString)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes the source up to its closing quote.
    fn decode(source: &str) -> Result<Option<String>, InvalidJsonString> {
        let (mut unescape, mut out) = (StringDecoder::default(), String::new());
        for c in source.chars() {
            match unescape.decode_char(c)? {
                DecodeStep::Char(c) => out.push(c),
                DecodeStep::Pending => {}
                DecodeStep::End => return Ok(Some(out)),
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
            assert_eq!(decode(source), Err(InvalidJsonString), "{source}");
        }
    }
}
