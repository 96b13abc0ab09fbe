//! Parses JSON with unpaired UTF-16 surrogates.
//!
//! Tokens can end in the middle of a character. The service then escapes one surrogate without its
//! pair. A Rust string cannot contain it, so it becomes U+FFFD.

use sallyport_sdk::prelude::Value;

/// The escaped replacement character.
const LOST: &str = "\\ufffd";

/// Parses JSON that may contain unpaired surrogates.
///
/// # Errors
///
/// The text is not JSON, even after the replacement.
pub(crate) fn read(text: &str) -> serde_json::Result<Value> {
    serde_json::from_str(text).or_else(|error| match without_halves(text) {
        Some(mended) => serde_json::from_str(&mended).map_err(|_| error),
        None => Err(error),
    })
}

/// Replaces every unpaired surrogate; returns `None` if there is none.
fn without_halves(text: &str) -> Option<String> {
    let mut mended = String::new();
    let mut kept = 0;
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('\\')) {
        let start = at + found;
        at = match (unit(text, start), unit(text, start + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => start + 12,
            (Some(0xd800..=0xdfff), _) => {
                mended.push_str(&text[kept..start]);
                mended.push_str(LOST);
                kept = start + 6;
                kept
            }
            // A backslash and the character that it escapes, which may be a backslash too.
            _ => start + 1 + text[start + 1..].chars().next().map_or(0, char::len_utf8),
        };
    }
    (kept > 0).then(|| mended + &text[kept..])
}

/// Returns the UTF-16 unit of the `\u` escape at a position.
fn unit(text: &str, at: usize) -> Option<u16> {
    let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u16::from_str_radix(digits, 16).ok()).flatten()
}
