//! JSON in which the half of a character may stand alone.
//!
//! Tokens end in the middle of characters, and the half that one holds is written down as an escape
//! without its other half. No text can hold it, so it becomes the sign for a character that was lost.

use sallyport_sdk::prelude::Value;

/// What stands for half a character, escaped.
const LOST: &str = "\\ufffd";

/// Reads JSON in which halves of characters may stand alone.
///
/// # Errors
///
/// It is no JSON even then.
pub(crate) fn read(text: &str) -> serde_json::Result<Value> {
    serde_json::from_str(text).or_else(|error| match without_halves(text) {
        Some(mended) => serde_json::from_str(&mended).map_err(|_| error),
        None => Err(error),
    })
}

/// Returns a text with every half that stands alone replaced; nothing where there is none.
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
            // A backslash and what it escapes, which may be another one.
            _ => start + 1 + text[start + 1..].chars().next().map_or(0, char::len_utf8),
        };
    }
    (kept > 0).then(|| mended + &text[kept..])
}

/// Returns the UTF-16 unit that is written as an escape at a place, if one is.
fn unit(text: &str, at: usize) -> Option<u16> {
    let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
    let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hex.then(|| u16::from_str_radix(digits, 16).ok()).flatten()
}
