//! Reads JSON as servers write it, including invalid surrogates.
//!
//! A token can end in the middle of a character, and some servers write that half: `"\ud83d"`
//! without its other half. No text can contain it, so the parser refuses the whole answer. Here,
//! the half becomes U+FFFD, the replacement character.

use serde::Deserialize;

/// The escaped replacement for half a character.
const REPLACEMENT_ESCAPE: &str = "\\ufffd";

/// Reads JSON that may contain lone halves of characters.
///
/// # Errors
///
/// Returns an error if the text is not JSON even then; it refers to the original text.
pub(crate) fn parse_text<T: for<'de> Deserialize<'de>>(text: &str) -> serde_json::Result<T> {
    serde_json::from_str(text).or_else(|error| match replace_lone_surrogates(text) {
        Some(repaired) => serde_json::from_str(&repaired).map_err(|_| error),
        None => Err(error),
    })
}

/// Reads JSON from bytes, of which some may not be UTF-8.
///
/// # Errors
///
/// Returns an error as [`read`] does.
pub(crate) fn parse_bytes<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> serde_json::Result<T> {
    parse_text(&String::from_utf8_lossy(bytes))
}

/// Returns a text with every lone half replaced; `None` if there is none.
fn replace_lone_surrogates(text: &str) -> Option<String> {
    let mut repaired = String::new();
    let mut kept = 0;
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('\\')) {
        let start = at + found;
        at = match (utf16_unit(text, start), utf16_unit(text, start + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => start + 12,
            (Some(0xd800..=0xdfff), _) => {
                repaired.push_str(&text[kept..start]);
                repaired.push_str(REPLACEMENT_ESCAPE);
                kept = start + 6;
                kept
            }
            // A backslash and the character that it escapes, which may be another backslash.
            _ => start + 1 + text[start + 1..].chars().next().map_or(0, char::len_utf8),
        };
    }
    (kept > 0).then(|| repaired + &text[kept..])
}

/// Returns the UTF-16 unit of an escape at a position, if there is one.
fn utf16_unit(text: &str, at: usize) -> Option<u16> {
    let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u16::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn half_a_character_is_lost_and_nothing_else() {
        let rows = [
            (r#""a\ud83d""#, Some("a\u{fffd}")),
            (r#""\ude00b""#, Some("\u{fffd}b")),
            (r#""\ud83d\ud83d\ude00""#, Some("\u{fffd}😀")),
            (r#""\ud83dx\uDE00é""#, Some("\u{fffd}x\u{fffd}é")),
            (r#""\ud83d\n\ud83d""#, Some("\u{fffd}\n\u{fffd}")),
            (r#""\ud83d\ude00""#, Some("😀")),
            (r#""\\ud83d""#, Some(r"\ud83d")),
            (r#""\\\ud83d""#, Some("\\\u{fffd}")),
            (r#""\ud8""#, None),
            (r#""\ud83d"#, None),
            (r#""\ud83d" x"#, None),
            ("\"\\", None),
        ];
        for (text, want) in rows {
            assert_eq!(parse_text::<String>(text).ok().as_deref(), want, "{text}");
            assert_eq!(parse_bytes::<String>(text.as_bytes()).ok().as_deref(), want, "{text}");
        }
        let error = parse_text::<Value>(r#"{"a":"\ud83d","b":}"#).unwrap_err().to_string();
        assert!(error.contains("hex escape"), "{error}");
        assert_eq!(parse_bytes::<String>(b"\"a\xed\"").unwrap(), "a\u{fffd}");
    }
}
