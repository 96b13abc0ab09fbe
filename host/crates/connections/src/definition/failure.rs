//! What a definition declares about results and failures.
//!
//! A key of `common_errors` fits a failure if it is the service's own code, the HTTP status, or a
//! word for the kind of failure ([`WORDS`]). The first of these that fits is used.

use std::collections::BTreeMap;

use sallyport_contract::FailureKind;

/// What a definition declares about results and failures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputGuidance {
    /// The message about a success, with `{placeholders}`.
    pub success_message: Option<String>,
    /// Messages about failures.
    pub common_errors: BTreeMap<String, String>,
}

/// What is known of a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailureFacts {
    /// Its kind.
    pub kind: FailureKind,
    /// The HTTP status, if a service answered.
    pub status: Option<u16>,
    /// The service's own code.
    pub code: Option<String>,
    /// Whether the call took too long.
    pub is_timeout: bool,
}

/// A kind of failure that keys have words for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FailureClass {
    SignIn,
    Forbidden,
    Missing,
    Arguments,
    TooMany,
    Conflict,
    Timeout,
    Unavailable,
    Any,
}

/// The words of keys. The page docs/definitions.md has the same table, and a test compares them.
const WORDS: [(FailureClass, &[&str]); 9] = [
    (
        FailureClass::SignIn,
        &["auth_failed", "auth_required", "unauthorized", "token_expired", "not_connected"],
    ),
    (FailureClass::TooMany, &["quota_exceeded", "rate_limited", "rate_limit", "too_many_requests"]),
    (FailureClass::Forbidden, &["forbidden", "permission_denied", "access_denied"]),
    (FailureClass::Missing, &["not_found"]),
    (
        FailureClass::Arguments,
        &["invalid_arguments", "invalid_input", "bad_request", "validation_error"],
    ),
    (FailureClass::Conflict, &["conflict", "already_exists"]),
    (FailureClass::Timeout, &["timeout", "timed_out"]),
    (
        FailureClass::Unavailable,
        &["unavailable", "service_unavailable", "network_error", "server_error"],
    ),
    (FailureClass::Any, &["api_error", "failed", "error", "default"]),
];

impl FailureFacts {
    /// A failure without an answer of a service.
    pub fn from_kind(kind: FailureKind) -> Self {
        Self { kind, status: None, code: None, is_timeout: false }
    }

    /// A call that took too long.
    pub fn timeout() -> Self {
        Self { is_timeout: true, ..Self::from_kind(FailureKind::Unavailable) }
    }

    /// A failure that a service reports.
    pub fn from_answer(status: u16, code: Option<String>) -> Self {
        let kind = match status {
            401 => FailureKind::AuthRequired,
            404 | 410 => FailureKind::NotFound,
            400 | 422 => FailureKind::InvalidArguments,
            429 | 500.. => FailureKind::Unavailable,
            200..300 => FailureKind::BadOutput,
            _ => FailureKind::Failed,
        };
        Self { kind, status: Some(status), code, is_timeout: false }
    }

    /// The same failure, for the reason that too many requests were sent.
    pub(super) fn with_rate_limit(self) -> Self {
        Self { kind: FailureKind::Unavailable, ..self }
    }

    /// The classes that it belongs to, the closest first.
    fn classes(&self) -> Vec<FailureClass> {
        let code = self.code.as_deref().map(normal_form).unwrap_or_default();
        let is_about_quota = code.contains("quota") || code.contains("limit");
        let closest = match (self.status, self.kind) {
            _ if self.is_timeout => Some(FailureClass::Timeout),
            (Some(429), _) => Some(FailureClass::TooMany),
            (Some(403), _) if is_about_quota => Some(FailureClass::TooMany),
            // A later call can succeed, so a limit was met.
            (Some(403), FailureKind::Unavailable) => Some(FailureClass::TooMany),
            (Some(401), _) | (_, FailureKind::AuthRequired) => Some(FailureClass::SignIn),
            (Some(403), _) => Some(FailureClass::Forbidden),
            (Some(409), _) => Some(FailureClass::Conflict),
            (Some(408 | 504), _) => Some(FailureClass::Timeout),
            (_, FailureKind::NotFound) => Some(FailureClass::Missing),
            (_, FailureKind::InvalidArguments) => Some(FailureClass::Arguments),
            (_, FailureKind::LimitReached) => Some(FailureClass::TooMany),
            (_, FailureKind::Unavailable) => Some(FailureClass::Unavailable),
            _ => None,
        };
        closest.into_iter().chain([FailureClass::Any]).collect()
    }
}

impl OutputGuidance {
    /// The definition's own message about a failure.
    pub fn message_about(&self, facts: &FailureFacts) -> Option<&str> {
        let by_key = |wanted: &str| {
            let mut entries = self.common_errors.iter();
            let found = entries.find(|(key, _)| normal_form(key) == normal_form(wanted));
            found.map(|(_, message)| message.as_str())
        };
        let code = facts.code.as_deref().and_then(by_key);
        let status = facts.status.map(|status| status.to_string());
        let status = || {
            let status = status.as_deref()?;
            by_key(status).or_else(|| by_key(&format!("http_{status}")))
        };
        let words = || {
            let classes = facts.classes();
            let words = classes.iter().flat_map(|class| words_of(*class));
            words.copied().find_map(by_key)
        };
        code.or_else(status).or_else(words)
    }
}

fn words_of(class: FailureClass) -> &'static [&'static str] {
    WORDS.iter().find(|(known, _)| *known == class).map_or(&[], |(_, words)| words)
}

/// A key without regard to case and to how its words are joined.
fn normal_form(key: &str) -> String {
    key.chars().filter(char::is_ascii_alphanumeric).map(|sign| sign.to_ascii_lowercase()).collect()
}

/// All words, for the test that compares them with the page.
pub fn common_error_words() -> Vec<&'static str> {
    WORDS.iter().flat_map(|(_, words)| words.iter().copied()).collect()
}
