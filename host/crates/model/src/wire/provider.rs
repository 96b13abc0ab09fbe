//! The provider of an exchange: its name, and the errors that it causes.
//!
//! Every error of an adapter is created here, so that a server's message reaches the user
//! shortened, without control characters and without the key.

use std::time::{Duration, SystemTime};

use reqwest::{
    StatusCode,
    header::{HeaderMap, RETRY_AFTER},
};
use sallyport_contract::{Redactor, Secret, text::escape_excerpt};
use serde_json::Value;

use super::http::ResponseBodyError;
use crate::chat::ModelError;

/// Longest excerpt of a provider's message in an error, in characters. Users read no more.
const MESSAGE_CHARS_MAX: usize = 500;

/// Longest wait that a provider can ask for. A longer one comes from a wrong clock or is not
/// serious.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Phrases by which providers report that a conversation is too long, if they have no code for it
/// or a less specific one.
const TOO_LONG: [&str; 9] = [
    "context length",
    "context window",
    "context size",
    "context limit",
    "context_length",
    "prompt is too long",
    "input is too long",
    "input token count",
    "too many tokens",
];

/// Phrases by which they report an unusable key, in addition to the word for a key.
const NO_KEY: [&str; 9] = [
    "incorrect",
    "invalid",
    "not valid",
    "expired",
    "missing",
    "not found",
    "no ",
    "revoked",
    "provide",
];

/// The reason of a refusal, as far as it makes a difference here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProviderRefusal {
    Key,
    Billing,
    Length,
    Rate,
    Other,
}

impl ProviderRefusal {
    /// A code is more specific than a status, and the message is read only if neither is enough.
    fn from_response(status: u16, code: &str, message: &str) -> Self {
        let words = message.to_ascii_lowercase();
        let says = |all: &[&str]| all.iter().any(|one| words.contains(one));
        let is_about_key = says(&["api key", "api_key", "apikey", "api-key"]) && says(&NO_KEY);
        match (code, status) {
            ("insufficient_quota" | "billing_error", _) | (_, 402) => Self::Billing,
            ("context_length_exceeded" | "exceed_context_size_error", _) => Self::Length,
            ("invalid_api_key" | "authentication_error" | "UNAUTHENTICATED", _) => Self::Key,
            (_, 401 | 403) => Self::Key,
            (_, 429) => Self::Rate,
            (_, 400 | 422) if is_about_key => Self::Key,
            (_, 400 | 413 | 422 | 500) if says(&TOO_LONG) => Self::Length,
            _ => Self::Other,
        }
    }
}

/// The server that is asked, and the key that its messages must not reveal.
#[derive(Debug, Clone)]
pub(crate) struct ProviderIdentity {
    pub(crate) name: String,
    pub(crate) key: Option<Secret>,
}

impl ProviderIdentity {
    /// Returns the error for a failed connection.
    pub(crate) fn unreachable_error(&self, message: &str) -> ModelError {
        ModelError::Unreachable {
            provider: self.name.clone(),
            message: self.redact_message(message),
        }
    }

    /// Returns the error for an answer that is not complete in time.
    pub(crate) fn timeout_error(&self, time: Duration) -> ModelError {
        ModelError::TimedOut { provider: self.name.clone(), time }
    }

    /// Returns the error for an answer that was cut off or violates the protocol.
    pub(crate) fn protocol_error(&self, message: &str) -> ModelError {
        ModelError::Broken { provider: self.name.clone(), message: self.redact_message(message) }
    }

    /// Returns the error for an incomplete body.
    pub(crate) fn body_error(&self, error: &ResponseBodyError) -> ModelError {
        match error {
            ResponseBodyError::Silent { time } => self.timeout_error(*time),
            _ => self.protocol_error(&error.to_string()),
        }
    }

    /// Waits for an answer, at most `time_max`.
    pub(crate) async fn run_with_timeout<T>(
        &self,
        time_max: Duration,
        answer: impl Future<Output = Result<T, ModelError>>,
    ) -> Result<T, ModelError> {
        tokio::time::timeout(time_max, answer)
            .await
            .unwrap_or_else(|_| Err(self.timeout_error(time_max)))
    }

    /// Returns the error for a status that refuses the request. `code` is the provider's code for
    /// the reason.
    pub(crate) fn refusal_error(
        &self,
        status: u16,
        code: &str,
        message: &str,
        retry_after: Option<Duration>,
    ) -> ModelError {
        let (provider, redacted) = (self.name.clone(), self.redact_message(message));
        match ProviderRefusal::from_response(status, code, message) {
            ProviderRefusal::Key => ModelError::Credentials { provider, message: redacted },
            ProviderRefusal::Billing => ModelError::Spent { provider, message: redacted },
            ProviderRefusal::Length => ModelError::TooLong { provider, message: redacted },
            ProviderRefusal::Rate => {
                ModelError::RateLimited { provider, message: redacted, retry_after }
            }
            ProviderRefusal::Other => {
                ModelError::Refused { provider, status, message: redacted, retry_after }
            }
        }
    }

    /// Returns the error for a response that refuses the request, in any of the forms that servers
    /// use. `retry_after` is the wait in its headers.
    pub(crate) fn response_error(
        &self,
        status: StatusCode,
        body: &[u8],
        retry_after: Option<Duration>,
    ) -> ModelError {
        let (code, message, wait) = read_refusal(body);
        let message = match message.as_str() {
            "" => status.canonical_reason().unwrap_or("no reason given"),
            message => message,
        };
        self.refusal_error(status.as_u16(), &code, message, retry_after.or(wait))
    }

    /// Returns the error for an `error` object inside an answer. `status` is the answer's own
    /// status; the object's code takes precedence if it is an HTTP status.
    pub(crate) fn answer_error(&self, status: u16, error: &Value) -> ModelError {
        let status = error_status(error).unwrap_or(status);
        let message = error_message(error).unwrap_or_else(|| error.to_string());
        self.refusal_error(status, &error_code(error), &message, error_wait(error))
    }

    /// Redacts the key before the text is cut, because half a key is still a secret. A key too
    /// short to be a secret stays: it may occur in any word.
    fn redact_message(&self, message: &str) -> String {
        let redactor = Redactor::new(self.key.iter().map(|key| ("key", key)));
        escape_excerpt(redactor.redact_text(message).trim(), MESSAGE_CHARS_MAX)
    }
}

/// Returns the code and the message in the body of a refusal, and the wait that it asks for.
fn read_refusal(body: &[u8]) -> (String, String, Option<Duration>) {
    let error = parse_error(body).unwrap_or_default();
    let words = error_message(&error);
    let words = words.unwrap_or_else(|| String::from_utf8_lossy(body).trim().to_owned());
    (error_code(&error), words, error_wait(&error))
}

/// Returns the most specific of an error object's codes.
fn error_code(error: &Value) -> String {
    let words = ["code", "type", "status"].iter().filter_map(|key| error.get(key)?.as_str());
    let known = |word: &&str| ProviderRefusal::from_response(0, word, "") != ProviderRefusal::Other;
    words.clone().find(known).or_else(|| words.clone().next()).unwrap_or_default().to_owned()
}

fn parse_error(body: &[u8]) -> Option<Value> {
    let mut value: Value = super::json::parse_bytes(body).ok()?;
    match value.get_mut("error").filter(|error| !error.is_null()) {
        Some(error) => Some(error.take()),
        None => Some(value),
    }
}

/// Gemini states the wait only in the details of an error.
fn error_wait(error: &Value) -> Option<Duration> {
    let details = error.get("details")?.as_array()?;
    let text = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    let seconds: f64 = text.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok().map(|wait| wait.min(RETRY_AFTER_MAX))
}

fn error_message(error: &Value) -> Option<String> {
    let text = |key: &str| error.get(key).and_then(Value::as_str);
    error
        .as_str()
        .or_else(|| text("message"))
        .or_else(|| text("detail"))
        .map(str::to_owned)
        .filter(|message| !message.is_empty())
}

/// Returns the status in an error object: a number, or a code that means one.
fn error_status(error: &Value) -> Option<u16> {
    let named = ["code", "status", "type"].iter().filter_map(|key| error.get(key));
    named.filter_map(|code| http_status(code).or_else(|| status_for_code(code.as_str()?))).next()
}

fn http_status(code: &Value) -> Option<u16> {
    let number = code.as_u64().or_else(|| code.as_str()?.parse().ok())?;
    u16::try_from(number).ok().filter(|code| (400..600).contains(code))
}

/// Returns the status for a provider's error code. Inside an answer, the code replaces the status.
fn status_for_code(word: &str) -> Option<u16> {
    Some(match word {
        "invalid_request_error" | "invalid_prompt" | "INVALID_ARGUMENT" => 400,
        "authentication_error" | "invalid_api_key" | "UNAUTHENTICATED" => 401,
        "permission_error" | "PERMISSION_DENIED" => 403,
        "not_found_error" | "model_not_found" | "NOT_FOUND" => 404,
        "request_too_large" => 413,
        "rate_limit_error" | "rate_limit_exceeded" | "RESOURCE_EXHAUSTED" => 429,
        "api_error" | "server_error" | "internal_error" | "INTERNAL" => 500,
        "UNAVAILABLE" => 503,
        "timeout_error" | "DEADLINE_EXCEEDED" => 504,
        "overloaded_error" => 529,
        _ => return None,
    })
}

/// Returns the wait that a server asks for, as seconds or as a date.
pub(crate) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default(),
    };
    Some(wait.min(RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_words_in_every_shape() {
        let rows = [
            (r#"{"error":{"message":"no such model","code":404}}"#, "no such model"),
            (r#"{"error":"plain"}"#, "plain"),
            (r#"{"object":"error","message":"bare"}"#, "bare"),
            (r#"{"detail":"validation"}"#, "validation"),
            (r#"{"error":{"code":7}}"#, r#"{"error":{"code":7}}"#),
            ("<html>bad gateway</html>\n", "<html>bad gateway</html>"),
            ("", ""),
        ];
        for (body, want) in rows {
            assert_eq!(read_refusal(body.as_bytes()).1, want);
        }
    }

    #[test]
    fn waits_are_read_as_seconds_or_dates_and_bounded() {
        let now = httpdate::parse_http_date("Fri, 01 Jan 2027 00:00:00 GMT").unwrap();
        let rows = [
            ("7", Some(7)),
            (" 7 ", Some(7)),
            ("Fri, 01 Jan 2027 00:00:30 GMT", Some(30)),
            ("Fri, 01 Jan 2021 00:00:30 GMT", Some(0)),
            ("99999999999", Some(86_400)),
            ("soon", None),
            ("-3", None),
        ];
        for (text, want) in rows {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, text.parse().unwrap())]);
            assert_eq!(retry_after(&headers, now), want.map(Duration::from_secs), "{text}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }

    #[test]
    fn a_key_is_gone_before_the_text_is_cut() {
        let key = "sk-abcdefgh";
        let provider = ProviderIdentity { name: "p".to_owned(), key: Some(Secret::new(key)) };
        for padding in MESSAGE_CHARS_MAX - 12..MESSAGE_CHARS_MAX + 2 {
            let message = format!("{}{key}\x1b[2J", ".".repeat(padding));
            let redacted = provider.refusal_error(400, "", &message, None).to_string();
            assert!(!redacted.contains("sk-a") && !redacted.contains('\x1b'), "{redacted}");
        }
    }

    #[test]
    fn a_key_is_gone_however_it_is_spelt_and_a_short_one_cuts_no_words() {
        let cleaned = |key: &str, message: &str| {
            let provider = ProviderIdentity { name: "p".to_owned(), key: Some(Secret::new(key)) };
            provider.redact_message(message)
        };
        assert_eq!(cleaned("x", "no text is exact"), "no text is exact");
        assert_eq!(cleaned("", "abc"), "abc");
        let message = r#"bad key "sk-ab\u002fcdef" (c2stYWIvY2RlZg==)"#;
        assert_eq!(cleaned("sk-ab/cdef", message), r#"bad key "[secret key]" ([secret key])"#);
    }

    #[test]
    fn a_refusal_is_what_its_code_or_its_words_say() {
        let of = |status: u16, body: &str| {
            let (code, message, _) = read_refusal(body.as_bytes());
            ProviderRefusal::from_response(status, &code, &message)
        };
        let rows = [
            (400, r#"{"error":"Incorrect API key provided: xa***1."}"#, ProviderRefusal::Key),
            (
                400,
                r#"{"error":{"message":"API key not valid. Please pass a valid API key."}}"#,
                ProviderRefusal::Key,
            ),
            (
                400,
                r#"{"error":{"message":"API key expired. Please renew the API key."}}"#,
                ProviderRefusal::Key,
            ),
            (400, r#"{"error":{"message":"no","code":"invalid_api_key"}}"#, ProviderRefusal::Key),
            (401, "", ProviderRefusal::Key),
            (
                400,
                r#"{"error":{"message":"the key \"x\" of the schema is invalid"}}"#,
                ProviderRefusal::Other,
            ),
            (
                429,
                r#"{"error":{"code":"insufficient_quota","type":"insufficient_quota"}}"#,
                ProviderRefusal::Billing,
            ),
            (
                429,
                r#"{"error":{"code":null,"type":"insufficient_quota"}}"#,
                ProviderRefusal::Billing,
            ),
            (402, r#"{"error":{"message":"Insufficient Balance"}}"#, ProviderRefusal::Billing),
            (429, r#"{"error":{"code":"rate_limit_exceeded"}}"#, ProviderRefusal::Rate),
            (
                400,
                r#"{"error":{"code":"context_length_exceeded","type":"invalid_request_error"}}"#,
                ProviderRefusal::Length,
            ),
            (
                400,
                r#"{"error":{"message":"prompt is too long: 200001 tokens > 200000 maximum"}}"#,
                ProviderRefusal::Length,
            ),
            (
                400,
                r#"{"error":{"message":"The input token count (2) exceeds the maximum"}}"#,
                ProviderRefusal::Length,
            ),
            (
                400,
                r#"{"error":{"code":400,"type":"exceed_context_size_error","message":"x"}}"#,
                ProviderRefusal::Length,
            ),
            (400, r#"{"error":{"message":"something else"}}"#, ProviderRefusal::Other),
            (500, "<html>", ProviderRefusal::Other),
        ];
        for (status, body, want) in rows {
            assert_eq!(of(status, body), want, "{status} {body}");
        }
    }

    #[test]
    fn an_error_inside_an_answer_may_bring_its_own_status() {
        let provider = ProviderIdentity { name: "p".to_owned(), key: None };
        let status =
            |text: &str| match provider.answer_error(200, &serde_json::from_str(text).unwrap()) {
                ModelError::Refused { status, .. } => status,
                ModelError::RateLimited { .. } => 429,
                other => panic!("{other}"),
            };
        assert_eq!(status(r#"{"code":502,"message":"x"}"#), 502);
        assert_eq!(status(r#"{"code":"429","message":"x"}"#), 429);
        assert_eq!(status(r#"{"code":"bad_thing","message":"x"}"#), 200);
        assert_eq!(status(r#"{"type":"overloaded_error","message":"x"}"#), 529);
        assert_eq!(status(r#"{"code":"rate_limit_exceeded","message":"x"}"#), 429);
        assert_eq!(status(r#"{"code":null,"type":"server_error","message":"x"}"#), 500);
        assert_eq!(status(r#"{"code":503,"status":"UNAVAILABLE","message":"x"}"#), 503);
        assert_eq!(status(r#""overloaded""#), 200);
    }

    #[test]
    fn a_wait_is_found_in_the_details() {
        let wait = |delay: &str| {
            let details = format!(r#"[{{"x":1}},{{"retryDelay":"{delay}"}}]"#);
            read_refusal(format!(r#"{{"error":{{"code":429,"details":{details}}}}}"#).as_bytes()).2
        };
        assert_eq!(wait("34.5s"), Some(Duration::from_millis(34_500)));
        assert_eq!(wait("1e300s"), None);
        assert_eq!(wait("1e9s"), Some(RETRY_AFTER_MAX));
        for nonsense in ["-1s", "NaNs", "soon", "5", ""] {
            assert_eq!(wait(nonsense), None, "{nonsense}");
        }
        assert_eq!(read_refusal(b"<html>").2, None);
    }
}
