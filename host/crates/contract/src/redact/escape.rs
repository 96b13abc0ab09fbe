//! The escapes that programs apply to a text in transit, undone one at a time: `%2F` of URLs, `\/`
//! and `\u002f` of JSON and programming languages, `&#x2F;` and `&sol;` of markup, `=2F` of mail.
//!
//! Encoders disagree about which characters need an escape, so everything that looks like one is
//! read as one. Whether it was meant as one cannot be known; the reader of the result follows both
//! readings.

use super::entities;

/// Longest escape that is undone, in bytes: a character of two UTF-16 units, each written as in
/// JSON, or a number with some twenty leading zeros.
pub(super) const ESCAPE_BYTES_MAX: usize = 32;

/// A family of escapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EscapeFamily {
    /// Of URLs, of JSON and programming languages, of markup.
    Signs,
    /// Of mail (quoted-printable). They are a separate family because in URLs and forms an equals
    /// sign precedes every value.
    Mail,
}

/// The meaning of the first bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ParsedEscape {
    /// A possible escape that needs more bytes.
    Incomplete,
    /// Not an escape.
    None,
    /// An escape of this many bytes, and the text that it encodes.
    Decoded(usize, DecodedText),
}

/// At most one character, in UTF-8, or one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DecodedText {
    bytes: [u8; 4],
    len: usize,
}

impl DecodedText {
    const EMPTY: Self = Self { bytes: [0; 4], len: 0 };

    fn from_byte(byte: u8) -> Self {
        Self { bytes: [byte, 0, 0, 0], len: 1 }
    }

    fn from_char(c: char) -> Self {
        let mut bytes = [0; 4];
        let len = c.encode_utf8(&mut bytes).len();
        Self { bytes, len }
    }

    /// Encodes a code point; an invalid one becomes the replacement character.
    fn from_code_point(number: u32) -> Self {
        Self::from_char(char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl EscapeFamily {
    /// Whether an escape of this family can begin with this byte.
    pub(super) fn can_begin_with(self, byte: u8) -> bool {
        match self {
            Self::Signs => matches!(byte, b'%' | b'\\' | b'&'),
            Self::Mail => byte == b'=',
        }
    }

    /// Reads the escape at the start of the bytes. `is_all` means that no bytes follow them.
    pub(super) fn parse_escape(self, bytes: &[u8], is_all: bool) -> ParsedEscape {
        let read = match bytes.first() {
            Some(b'%') if self == Self::Signs => parse_percent(bytes),
            Some(b'\\') if self == Self::Signs => parse_backslash(bytes, is_all),
            Some(b'&') if self == Self::Signs => parse_markup(bytes, is_all),
            Some(b'=') if self == Self::Mail => parse_quoted_printable(bytes),
            _ => ParsedEscape::None,
        };
        match read {
            ParsedEscape::Incomplete if is_all || bytes.len() >= ESCAPE_BYTES_MAX => {
                ParsedEscape::None
            }
            read => read,
        }
    }

    /// Reads the escape that the second of two backslashes at the start of the bytes begins, where
    /// its text differs from what an escaped backslash leaves. A backslash before an escaped text
    /// pairs with the first one of that text, so both readings must be followed.
    pub(super) fn parse_shifted_escape(self, bytes: &[u8], is_all: bool) -> ParsedEscape {
        match bytes {
            [b'\\', b'\\'] if self == Self::Signs && !is_all => ParsedEscape::Incomplete,
            [b'\\', b'\\', sign, ..] if self == Self::Signs && sign.is_ascii_alphabetic() => {
                self.parse_escape(&bytes[1..], is_all)
            }
            _ => ParsedEscape::None,
        }
    }
}

/// Undoes every escape of the [`Signs`](EscapeFamily::Signs) family once.
pub(super) fn undo_escapes(mut bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(bytes.len());
    while let Some((first, rest)) = bytes.split_first() {
        let window = &bytes[..bytes.len().min(ESCAPE_BYTES_MAX)];
        match EscapeFamily::Signs.parse_escape(window, window.len() == bytes.len()) {
            ParsedEscape::Decoded(used, text) => {
                plain.extend_from_slice(text.as_bytes());
                bytes = &bytes[used..];
            }
            ParsedEscape::Incomplete | ParsedEscape::None => {
                plain.push(*first);
                bytes = rest;
            }
        }
    }
    plain
}

/// `%2F`, and `%u002F` as browsers once wrote it.
fn parse_percent(bytes: &[u8]) -> ParsedEscape {
    match bytes.get(1) {
        Some(b'u' | b'U') => parse_hex_escape(bytes, 2, 4, DecodedText::from_code_point),
        _ => parse_hex_escape(bytes, 1, 2, |byte| DecodedText::from_byte(byte as u8)),
    }
}

/// `\x2F`, `\u002F`, `\u{2f}`, `\U0000002F`, `\n`, and any sign after a backslash.
fn parse_backslash(bytes: &[u8], is_all: bool) -> ParsedEscape {
    match bytes.get(1) {
        None => ParsedEscape::Incomplete,
        Some(b'x') => parse_hex_escape(bytes, 2, 2, |byte| DecodedText::from_byte(byte as u8)),
        Some(b'u') if bytes.get(2) == Some(&b'{') => parse_braced(bytes),
        Some(b'u') => parse_utf16_unit(bytes),
        Some(b'U') => parse_hex_escape(bytes, 2, 8, DecodedText::from_code_point),
        Some(b'n') => ParsedEscape::Decoded(2, DecodedText::from_byte(b'\n')),
        Some(b'r') => ParsedEscape::Decoded(2, DecodedText::from_byte(b'\r')),
        Some(b't') => ParsedEscape::Decoded(2, DecodedText::from_byte(b'\t')),
        Some(b'b') => ParsedEscape::Decoded(2, DecodedText::from_byte(8)),
        Some(b'f') => ParsedEscape::Decoded(2, DecodedText::from_byte(12)),
        Some(b'%' | b'&') => match EscapeFamily::Signs.parse_escape(&bytes[1..], is_all) {
            // JSON within a URL or markup that does not escape the backslash itself.
            ParsedEscape::Decoded(..) => ParsedEscape::None,
            ParsedEscape::Incomplete => ParsedEscape::Incomplete,
            ParsedEscape::None => ParsedEscape::Decoded(2, DecodedText::from_byte(bytes[1])),
        },
        Some(sign) if sign.is_ascii_punctuation() || *sign == b' ' => {
            ParsedEscape::Decoded(2, DecodedText::from_byte(*sign))
        }
        Some(_) => ParsedEscape::None,
    }
}

/// A UTF-16 unit, as in JSON; two of them may form one character.
fn parse_utf16_unit(bytes: &[u8]) -> ParsedEscape {
    const BYTES: usize = "\\u0000".len();
    let Some(first) = parse_hex_digits(bytes, 2, 4) else { return incomplete_escape(bytes, 2, 4) };
    if !(0xd800..0xdc00).contains(&first) {
        return ParsedEscape::Decoded(BYTES, DecodedText::from_code_point(first));
    }
    let second = &bytes[BYTES..];
    let goes_on = second.iter().zip(b"\\u").all(|(byte, want)| byte == want);
    let Some(number) = parse_hex_digits(second, 2, 4).filter(|_| goes_on) else {
        return match goes_on && incomplete_escape(second, 2, 4) == ParsedEscape::Incomplete {
            true => ParsedEscape::Incomplete,
            false => ParsedEscape::Decoded(BYTES, DecodedText::from_code_point(first)),
        };
    };
    match number.checked_sub(0xdc00).filter(|low| *low < 0x400) {
        Some(low) => ParsedEscape::Decoded(
            2 * BYTES,
            DecodedText::from_code_point(0x10000 + ((first - 0xd800) << 10) + low),
        ),
        None => ParsedEscape::Decoded(BYTES, DecodedText::from_code_point(first)),
    }
}

fn parse_braced(bytes: &[u8]) -> ParsedEscape {
    let inner = &bytes[3..];
    let count = inner.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    match inner.get(count) {
        None => ParsedEscape::Incomplete,
        Some(b'}') if count > 0 => ParsedEscape::Decoded(
            count + 4,
            DecodedText::from_code_point(digits_value(&inner[..count], 16)),
        ),
        Some(_) => ParsedEscape::None,
    }
}

/// `&#47;`, `&#x2F;`, `&sol;`, with any number of leading zeros, and without a semicolon where
/// browsers accept that.
fn parse_markup(bytes: &[u8], is_all: bool) -> ParsedEscape {
    let (digits_at, base) = match bytes.get(1..) {
        Some([b'#', b'x' | b'X', ..]) => (3, 16),
        Some([b'#', ..]) => (2, 10),
        _ => return parse_named_entity(bytes, is_all),
    };
    let inner = &bytes[digits_at..];
    let count = inner.iter().take_while(|byte| char::from(**byte).is_digit(base)).count();
    let end = match inner.get(count) {
        None if !is_all || count == 0 => return ParsedEscape::Incomplete,
        Some(_) if count == 0 => return ParsedEscape::None,
        Some(b';') => digits_at + count + 1,
        _ => digits_at + count,
    };
    ParsedEscape::Decoded(end, DecodedText::from_code_point(digits_value(&inner[..count], base)))
}

fn parse_named_entity(bytes: &[u8], is_all: bool) -> ParsedEscape {
    let inner = &bytes[1..];
    let count = inner.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    let name = &inner[..count.min(entities::NAME_BYTES_MAX)];
    if inner.get(count) == Some(&b';')
        && let Some(c) = entities::named_entity(&inner[..count])
    {
        return ParsedEscape::Decoded(count + 2, DecodedText::from_char(c));
    }
    if count == inner.len() && count <= entities::NAME_BYTES_MAX && !is_all {
        return ParsedEscape::Incomplete;
    }
    let bare =
        (1..=name.len()).rev().find_map(|end| Some((end, entities::bare_entity(&name[..end])?)));
    bare.map_or(ParsedEscape::None, |(end, c)| {
        ParsedEscape::Decoded(end + 1, DecodedText::from_char(c))
    })
}

/// `=2F`, and a soft line break.
fn parse_quoted_printable(bytes: &[u8]) -> ParsedEscape {
    match bytes {
        [_, b'\n', ..] => ParsedEscape::Decoded(2, DecodedText::EMPTY),
        [_, b'\r', b'\n', ..] => ParsedEscape::Decoded(3, DecodedText::EMPTY),
        [_, b'\r'] => ParsedEscape::Incomplete,
        _ => parse_hex_escape(bytes, 1, 2, |byte| DecodedText::from_byte(byte as u8)),
    }
}

/// Reads exactly `count` hexadecimal digits at a position.
fn parse_hex_escape(
    bytes: &[u8],
    at: usize,
    count: usize,
    text: impl FnOnce(u32) -> DecodedText,
) -> ParsedEscape {
    match parse_hex_digits(bytes, at, count) {
        Some(number) => ParsedEscape::Decoded(at + count, text(number)),
        None => incomplete_escape(bytes, at, count),
    }
}

fn parse_hex_digits(bytes: &[u8], at: usize, count: usize) -> Option<u32> {
    let digits = bytes.get(at..at + count)?;
    digits.iter().all(u8::is_ascii_hexdigit).then(|| digits_value(digits, 16))
}

/// Returns [`ParsedEscape::Open`] if the missing digits may still come.
fn incomplete_escape(bytes: &[u8], at: usize, count: usize) -> ParsedEscape {
    let begun = bytes.get(at..).unwrap_or_default();
    let may_go_on = begun.len() < count && begun.iter().all(u8::is_ascii_hexdigit);
    if may_go_on { ParsedEscape::Incomplete } else { ParsedEscape::None }
}

/// The number that the digits write; one that overflows is not a character in any case.
fn digits_value(digits: &[u8], base: u32) -> u32 {
    let digits = digits.iter().filter_map(|digit| char::from(*digit).to_digit(base));
    digits.fold(0, |value: u32, digit| value.saturating_mul(base).saturating_add(digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(used: usize, text: &str) -> ParsedEscape {
        let mut bytes = [0; 4];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        ParsedEscape::Decoded(used, DecodedText { bytes, len: text.len() })
    }

    #[test]
    fn an_escape_is_read_as_far_as_it_goes() {
        for (text, want) in [
            ("%2Fx", of(3, "/")),
            ("%2f", of(3, "/")),
            ("%2", ParsedEscape::Incomplete),
            ("%2g", ParsedEscape::None),
            ("%u002Fx", of(6, "/")),
            (r"\x2f", of(4, "/")),
            (r"\u002F", of(6, "/")),
            (r"\u00e9", of(6, "é")),
            (r"\ud83d\ude00", of(12, "😀")),
            (r"\ud83d", ParsedEscape::Incomplete),
            (r"\ud83d\ude0", ParsedEscape::Incomplete),
            (r"\ud83d\n", of(6, "\u{fffd}")),
            (r"\ud83d\u0041", of(6, "\u{fffd}")),
            (r"\u{1f600}", of(9, "😀")),
            (r"\u{}", ParsedEscape::None),
            (r"\U0001f600", of(10, "😀")),
            (r"\/", of(2, "/")),
            (r"\\", of(2, "\\")),
            (r"\n", of(2, "\n")),
            (r"\q", ParsedEscape::None),
            ("\\", ParsedEscape::Incomplete),
            ("&#47;", of(5, "/")),
            ("&#47x", of(4, "/")),
            ("&#0000047;", of(10, "/")),
            ("&#x2F;", of(6, "/")),
            ("&#X002f;", of(8, "/")),
            ("&#x2", ParsedEscape::Incomplete),
            ("&#;", ParsedEscape::None),
            ("&#99999999999;", of(14, "\u{fffd}")),
            ("&sol;", of(5, "/")),
            ("&amp;", of(5, "&")),
            ("&ampx;", of(4, "&")),
            ("&eacute;", of(8, "é")),
            ("&eacute ", of(7, "é")),
            ("&sol ", ParsedEscape::None),
            ("&nothing;", of(4, "¬")),
            ("&zero;", ParsedEscape::None),
            (r"\&-", of(2, "&")),
            (r"\&quot;", ParsedEscape::None),
            (r"\%22", ParsedEscape::None),
            (r"\%2", ParsedEscape::Incomplete),
            ("&am", ParsedEscape::Incomplete),
            ("& ", ParsedEscape::None),
            ("x", ParsedEscape::None),
        ] {
            assert_eq!(EscapeFamily::Signs.parse_escape(text.as_bytes(), false), want, "{text}");
        }
        for (text, want) in [
            ("=2Fx", of(3, "/")),
            ("=\r\nx", of(3, "")),
            ("=\nx", of(2, "")),
            ("=\r", ParsedEscape::Incomplete),
            ("=x", ParsedEscape::None),
        ] {
            assert_eq!(EscapeFamily::Mail.parse_escape(text.as_bytes(), false), want, "{text:?}");
        }
    }

    #[test]
    fn at_the_end_nothing_is_open() {
        for (text, want) in [("&#47", of(4, "/")), ("&amp", of(4, "&")), ("%2", ParsedEscape::None)]
        {
            assert_eq!(EscapeFamily::Signs.parse_escape(text.as_bytes(), true), want, "{text}");
        }
        assert_eq!(
            EscapeFamily::Signs.parse_escape(&[b'&'; ESCAPE_BYTES_MAX], false),
            ParsedEscape::None
        );
        let zeros = format!("&#{}", "0".repeat(ESCAPE_BYTES_MAX));
        assert_eq!(
            EscapeFamily::Signs.parse_escape(&zeros.as_bytes()[..ESCAPE_BYTES_MAX], false),
            ParsedEscape::None
        );
    }

    #[test]
    fn all_escapes_of_a_text_are_undone_once() {
        assert_eq!(undo_escapes(br"%41&#66;\u0043%2544&amp;"), b"ABC%44&");
    }
}
