//! Maps errors of the service.

use sallyport_sdk::{http::Response, prelude::Value, provider::ProviderError};

use crate::parts::text;

/// Maximum length of the service's own message, in characters.
const WORDS_CHARS_MAX: usize = 500;

/// The start of the service's message for an invalid or expired key. Its status is 400, as for any
/// invalid request.
const NO_KEY: &str = "API key ";

/// Maps a response that is not a success.
pub(crate) fn of(response: &Response) -> ProviderError {
    let mut body: Value = response.json().unwrap_or_default();
    // Some front ends wrap the object in a list.
    let error = match body.get_mut(0) {
        Some(first) => first.take(),
        None => body,
    };
    let words = text(error.get("error").unwrap_or(&Value::Null), "message");
    sorted(response.status, words)
}

/// Maps an error in the middle of an answer.
pub(crate) fn told(error: &Value) -> ProviderError {
    let status = error.get("code").and_then(Value::as_u64).unwrap_or_default();
    sorted(u16::try_from(status).unwrap_or_default(), text(error, "message"))
}

fn sorted(status: u16, words: &str) -> ProviderError {
    let words: String = words.chars().take(WORDS_CHARS_MAX).collect();
    let message = match words.as_str() {
        "" => format!("the service answered with status {status}"),
        words => format!("the service says: {words}"),
    };
    match status {
        401 | 403 => ProviderError::Credentials(message),
        400 if words.starts_with(NO_KEY) => ProviderError::Credentials(message),
        429 | 503 | 529 => ProviderError::Busy { message, retry_after: None },
        500.. => ProviderError::Unreachable(message),
        _ => ProviderError::Refused(message),
    }
}
