//! Shortens single results that would fill a window alone.

use std::borrow::Cow;

use sallyport_model::{ChatMessage, ToolResultMessage};
use serde_json::json;

use super::TokenMeter;

/// The divisor of the budget for one result: half of it, so that the input before it and the
/// messages after it have room too.
const RESULT_SHARE: u64 = 2;

/// Returns the messages, with results that are too long for the budget cut to their beginning.
pub(super) fn shorten_results<'a>(
    transcript: &'a [ChatMessage],
    tokens_max: u64,
    meter: &TokenMeter,
) -> Cow<'a, [ChatMessage]> {
    let mut messages = Cow::Borrowed(transcript);
    for (index, message) in transcript.iter().enumerate() {
        if let ChatMessage::Tool(result) = message
            && meter.estimate_tokens(std::slice::from_ref(message)) > tokens_max / RESULT_SHARE
        {
            let shortened =
                shorten_result(result, meter.bytes_for_tokens(tokens_max / RESULT_SHARE));
            if shortened.len() < result.content.len() {
                let result = ToolResultMessage { content: shortened, ..result.clone() };
                messages.to_mut()[index] = ChatMessage::Tool(result);
            }
        }
    }
    messages
}

/// Returns an object with the beginning of a result, of at most `bytes_max` bytes if possible.
fn shorten_result(result: &ToolResultMessage, bytes_max: usize) -> String {
    let mut kept_bytes = bytes_max;
    loop {
        let beginning = &result.content[..result.content.floor_char_boundary(kept_bytes)];
        let shortened = json!({
            "cut": "the result is too long for this conversation, only its beginning is here",
            "bytes": result.content.len(),
            "beginning": beginning,
        });
        let shortened = shortened.to_string();
        if shortened.len() <= bytes_max || kept_bytes == 0 {
            return shortened;
        }
        // Quoting lengthens a text by an unknown amount.
        kept_bytes /= 2;
    }
}
