//! Reads fields of an answer with bounds. Every answer is untrusted.

use sallyport_contract::text::escape_excerpt;
use serde_json::Value;
use sse_stream::Sse;

use super::{ProviderIdentity, json};
use crate::chat::{FinishReason, ModelError};

/// Longest unknown finish reason that is passed on. The known ones have about ten characters.
const REASON_CHARS_MAX: usize = 40;

/// Largest token count that is accepted. It is far above every context, and sums of a few counts
/// cannot overflow.
const REPORTED_TOKENS_MAX: u64 = 1 << 40;

/// The data with which some gateways end every stream, regardless of its protocol.
const DONE: &str = "[DONE]";

/// Returns the JSON object in an event; `None` if the event has no data.
pub(crate) fn event_object(
    event: Sse,
    provider: &ProviderIdentity,
) -> Result<Option<Value>, ModelError> {
    let data = event.data.unwrap_or_default();
    if matches!(data.trim(), "" | DONE) {
        return Ok(None);
    }
    match json::parse_text(&data) {
        Ok(object @ Value::Object(_)) => Ok(Some(object)),
        Ok(_) => Err(provider.protocol_error("an event is not an object")),
        Err(error) => Err(provider.protocol_error(&format!("an event is not JSON: {error}"))),
    }
}

/// Returns the text under a key; empty if there is none.
pub(crate) fn text_field<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Returns a number of tokens; 0 if it is missing. `pointer` is a JSON pointer.
pub(crate) fn token_count(usage: &Value, pointer: &str) -> u64 {
    let count = usage.pointer(pointer).and_then(Value::as_u64);
    count.unwrap_or(0).min(REPORTED_TOKENS_MAX)
}

/// Returns a finish reason that the adapter does not know.
pub(crate) fn other_finish_reason(reason: &str) -> FinishReason {
    FinishReason::Other(escape_excerpt(reason, REASON_CHARS_MAX))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn figures_and_reasons_are_bounded() {
        let usage = json!({ "a": { "b": 7 }, "huge": u64::MAX, "text": "9", "less": -1 });
        let rows =
            [("/a/b", 7), ("/huge", REPORTED_TOKENS_MAX), ("/text", 0), ("/less", 0), ("/x", 0)];
        for (pointer, want) in rows {
            assert_eq!(token_count(&usage, pointer), want);
        }
        assert_eq!(other_finish_reason("odd\x1b"), FinishReason::Other("odd\\u{1b}".to_owned()));
        let FinishReason::Other(long) = other_finish_reason(&"x".repeat(10_000)) else {
            panic!("not other")
        };
        assert!(long.len() < 100, "{long}");
    }
}
