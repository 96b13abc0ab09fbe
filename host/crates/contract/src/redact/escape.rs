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
pub(super) enum Family {
    /// Of URLs, of JSON and programming languages, of markup.
    Signs,
    /// Of mail (quoted-printable). They are a separate family because in URLs and forms an equals
    /// sign precedes every value.
    Mail,
}

/// The meaning of the first bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Escape {
    /// A possible escape that needs more bytes.
    Open,
    /// Not an escape.
    None,
    /// An escape of this many bytes, and the text that it encodes.
    Of(usize, Text),
}

/// At most one character, in UTF-8, or one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Text {
    bytes: [u8; 4],
    len: usize,
}

impl Text {
    const EMPTY: Self = Self { bytes: [0; 4], len: 0 };

    fn of_byte(byte: u8) -> Self {
        Self { bytes: [byte, 0, 0, 0], len: 1 }
    }

    fn of_char(c: char) -> Self {
        let mut bytes = [0; 4];
        let len = c.encode_utf8(&mut bytes).len();
        Self { bytes, len }
    }

    /// Encodes a code point; an invalid one becomes the replacement character.
    fn of_number(number: u32) -> Self {
        Self::of_char(char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Family {
    /// Whether an escape of this family can begin with this byte.
    pub(super) fn begins_with(self, byte: u8) -> bool {
        match self {
            Self::Signs => matches!(byte, b'%' | b'\\' | b'&'),
            Self::Mail => byte == b'=',
        }
    }

    /// Reads the escape at the start of the bytes. `is_all` means that no bytes follow them.
    pub(super) fn read(self, bytes: &[u8], is_all: bool) -> Escape {
        let read = match bytes.first() {
            Some(b'%') if self == Self::Signs => percent(bytes),
            Some(b'\\') if self == Self::Signs => backslash(bytes, is_all),
            Some(b'&') if self == Self::Signs => markup(bytes, is_all),
            Some(b'=') if self == Self::Mail => mail(bytes),
            _ => Escape::None,
        };
        match read {
            Escape::Open if is_all || bytes.len() >= ESCAPE_BYTES_MAX => Escape::None,
            read => read,
        }
    }
}

/// Undoes every escape of the [`Signs`](Family::Signs) family once.
pub(super) fn undone(mut bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(bytes.len());
    while let Some((first, rest)) = bytes.split_first() {
        let window = &bytes[..bytes.len().min(ESCAPE_BYTES_MAX)];
        match Family::Signs.read(window, window.len() == bytes.len()) {
            Escape::Of(used, text) => {
                plain.extend_from_slice(text.bytes());
                bytes = &bytes[used..];
            }
            Escape::Open | Escape::None => {
                plain.push(*first);
                bytes = rest;
            }
        }
    }
    plain
}

/// `%2F`, and `%u002F` as browsers once wrote it.
fn percent(bytes: &[u8]) -> Escape {
    match bytes.get(1) {
        Some(b'u' | b'U') => number(bytes, 2, 4, Text::of_number),
        _ => number(bytes, 1, 2, |byte| Text::of_byte(byte as u8)),
    }
}

/// `\x2F`, `\u002F`, `\u{2f}`, `\U0000002F`, `\n`, and any sign after a backslash.
fn backslash(bytes: &[u8], is_all: bool) -> Escape {
    match bytes.get(1) {
        None => Escape::Open,
        Some(b'x') => number(bytes, 2, 2, |byte| Text::of_byte(byte as u8)),
        Some(b'u') if bytes.get(2) == Some(&b'{') => braced(bytes),
        Some(b'u') => unit(bytes),
        Some(b'U') => number(bytes, 2, 8, Text::of_number),
        Some(b'n') => Escape::Of(2, Text::of_byte(b'\n')),
        Some(b'r') => Escape::Of(2, Text::of_byte(b'\r')),
        Some(b't') => Escape::Of(2, Text::of_byte(b'\t')),
        Some(b'b') => Escape::Of(2, Text::of_byte(8)),
        Some(b'f') => Escape::Of(2, Text::of_byte(12)),
        Some(b'%' | b'&') => match Family::Signs.read(&bytes[1..], is_all) {
            // JSON within a URL or markup that does not escape the backslash itself.
            Escape::Of(..) => Escape::None,
            Escape::Open => Escape::Open,
            Escape::None => Escape::Of(2, Text::of_byte(bytes[1])),
        },
        Some(sign) if sign.is_ascii_punctuation() || *sign == b' ' => {
            Escape::Of(2, Text::of_byte(*sign))
        }
        Some(_) => Escape::None,
    }
}

/// A UTF-16 unit, as in JSON; two of them may form one character.
fn unit(bytes: &[u8]) -> Escape {
    const BYTES: usize = "\\u0000".len();
    let Some(first) = digits(bytes, 2, 4) else { return unfinished(bytes, 2, 4) };
    if !(0xd800..0xdc00).contains(&first) {
        return Escape::Of(BYTES, Text::of_number(first));
    }
    let second = &bytes[BYTES..];
    let goes_on = second.iter().zip(b"\\u").all(|(byte, want)| byte == want);
    let Some(number) = digits(second, 2, 4).filter(|_| goes_on) else {
        return match goes_on && unfinished(second, 2, 4) == Escape::Open {
            true => Escape::Open,
            false => Escape::Of(BYTES, Text::of_number(first)),
        };
    };
    match number.checked_sub(0xdc00).filter(|low| *low < 0x400) {
        Some(low) => {
            Escape::Of(2 * BYTES, Text::of_number(0x10000 + ((first - 0xd800) << 10) + low))
        }
        None => Escape::Of(BYTES, Text::of_number(first)),
    }
}

fn braced(bytes: &[u8]) -> Escape {
    let inner = &bytes[3..];
    let count = inner.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    match inner.get(count) {
        None => Escape::Open,
        Some(b'}') if count > 0 => {
            Escape::Of(count + 4, Text::of_number(value(&inner[..count], 16)))
        }
        Some(_) => Escape::None,
    }
}

/// `&#47;`, `&#x2F;`, `&sol;`, with any number of leading zeros, and without a semicolon where
/// browsers accept that.
fn markup(bytes: &[u8], is_all: bool) -> Escape {
    let (digits_at, base) = match bytes.get(1..) {
        Some([b'#', b'x' | b'X', ..]) => (3, 16),
        Some([b'#', ..]) => (2, 10),
        _ => return named(bytes, is_all),
    };
    let inner = &bytes[digits_at..];
    let count = inner.iter().take_while(|byte| char::from(**byte).is_digit(base)).count();
    let end = match inner.get(count) {
        None if !is_all || count == 0 => return Escape::Open,
        Some(_) if count == 0 => return Escape::None,
        Some(b';') => digits_at + count + 1,
        _ => digits_at + count,
    };
    Escape::Of(end, Text::of_number(value(&inner[..count], base)))
}

fn named(bytes: &[u8], is_all: bool) -> Escape {
    let inner = &bytes[1..];
    let count = inner.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    let name = &inner[..count.min(entities::NAME_BYTES_MAX)];
    if inner.get(count) == Some(&b';')
        && let Some(c) = entities::named(&inner[..count])
    {
        return Escape::Of(count + 2, Text::of_char(c));
    }
    if count == inner.len() && count <= entities::NAME_BYTES_MAX && !is_all {
        return Escape::Open;
    }
    let bare = (1..=name.len()).rev().find_map(|end| Some((end, entities::bare(&name[..end])?)));
    bare.map_or(Escape::None, |(end, c)| Escape::Of(end + 1, Text::of_char(c)))
}

/// `=2F`, and a soft line break.
fn mail(bytes: &[u8]) -> Escape {
    match bytes {
        [_, b'\n', ..] => Escape::Of(2, Text::EMPTY),
        [_, b'\r', b'\n', ..] => Escape::Of(3, Text::EMPTY),
        [_, b'\r'] => Escape::Open,
        _ => number(bytes, 1, 2, |byte| Text::of_byte(byte as u8)),
    }
}

/// Reads exactly `count` hexadecimal digits at a position.
fn number(bytes: &[u8], at: usize, count: usize, text: impl FnOnce(u32) -> Text) -> Escape {
    match digits(bytes, at, count) {
        Some(number) => Escape::Of(at + count, text(number)),
        None => unfinished(bytes, at, count),
    }
}

fn digits(bytes: &[u8], at: usize, count: usize) -> Option<u32> {
    let digits = bytes.get(at..at + count)?;
    digits.iter().all(u8::is_ascii_hexdigit).then(|| value(digits, 16))
}

/// Returns [`Escape::Open`] if the missing digits may still come.
fn unfinished(bytes: &[u8], at: usize, count: usize) -> Escape {
    let begun = bytes.get(at..).unwrap_or_default();
    let may_go_on = begun.len() < count && begun.iter().all(u8::is_ascii_hexdigit);
    if may_go_on { Escape::Open } else { Escape::None }
}

/// The number that the digits write; one that overflows is not a character in any case.
fn value(digits: &[u8], base: u32) -> u32 {
    let digits = digits.iter().filter_map(|digit| char::from(*digit).to_digit(base));
    digits.fold(0, |value: u32, digit| value.saturating_mul(base).saturating_add(digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(used: usize, text: &str) -> Escape {
        let mut bytes = [0; 4];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Escape::Of(used, Text { bytes, len: text.len() })
    }

    #[test]
    fn an_escape_is_read_as_far_as_it_goes() {
        for (text, want) in [
            ("%2Fx", of(3, "/")),
            ("%2f", of(3, "/")),
            ("%2", Escape::Open),
            ("%2g", Escape::None),
            ("%u002Fx", of(6, "/")),
            (r"\x2f", of(4, "/")),
            (r"\u002F", of(6, "/")),
            (r"\u00e9", of(6, "é")),
            (r"\ud83d\ude00", of(12, "😀")),
            (r"\ud83d", Escape::Open),
            (r"\ud83d\ude0", Escape::Open),
            (r"\ud83d\n", of(6, "\u{fffd}")),
            (r"\ud83d\u0041", of(6, "\u{fffd}")),
            (r"\u{1f600}", of(9, "😀")),
            (r"\u{}", Escape::None),
            (r"\U0001f600", of(10, "😀")),
            (r"\/", of(2, "/")),
            (r"\\", of(2, "\\")),
            (r"\n", of(2, "\n")),
            (r"\q", Escape::None),
            ("\\", Escape::Open),
            ("&#47;", of(5, "/")),
            ("&#47x", of(4, "/")),
            ("&#0000047;", of(10, "/")),
            ("&#x2F;", of(6, "/")),
            ("&#X002f;", of(8, "/")),
            ("&#x2", Escape::Open),
            ("&#;", Escape::None),
            ("&#99999999999;", of(14, "\u{fffd}")),
            ("&sol;", of(5, "/")),
            ("&amp;", of(5, "&")),
            ("&ampx;", of(4, "&")),
            ("&eacute;", of(8, "é")),
            ("&eacute ", of(7, "é")),
            ("&sol ", Escape::None),
            ("&nothing;", of(4, "¬")),
            ("&zero;", Escape::None),
            (r"\&-", of(2, "&")),
            (r"\&quot;", Escape::None),
            (r"\%22", Escape::None),
            (r"\%2", Escape::Open),
            ("&am", Escape::Open),
            ("& ", Escape::None),
            ("x", Escape::None),
        ] {
            assert_eq!(Family::Signs.read(text.as_bytes(), false), want, "{text}");
        }
        for (text, want) in [
            ("=2Fx", of(3, "/")),
            ("=\r\nx", of(3, "")),
            ("=\nx", of(2, "")),
            ("=\r", Escape::Open),
            ("=x", Escape::None),
        ] {
            assert_eq!(Family::Mail.read(text.as_bytes(), false), want, "{text:?}");
        }
    }

    #[test]
    fn at_the_end_nothing_is_open() {
        for (text, want) in [("&#47", of(4, "/")), ("&amp", of(4, "&")), ("%2", Escape::None)] {
            assert_eq!(Family::Signs.read(text.as_bytes(), true), want, "{text}");
        }
        assert_eq!(Family::Signs.read(&[b'&'; ESCAPE_BYTES_MAX], false), Escape::None);
        let zeros = format!("&#{}", "0".repeat(ESCAPE_BYTES_MAX));
        assert_eq!(Family::Signs.read(&zeros.as_bytes()[..ESCAPE_BYTES_MAX], false), Escape::None);
    }

    #[test]
    fn all_escapes_of_a_text_are_undone_once() {
        assert_eq!(undone(br"%41&#66;\u0043%2544&amp;"), b"ABC%44&");
    }
}
