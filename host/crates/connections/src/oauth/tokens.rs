//! Tokens, and when they are due for a refresh.

use sallyport_contract::Secret;

use super::response::ServiceTokens;

/// Longest time before its end at which a token is refreshed, in milliseconds.
const EARLY_MS_MAX: u64 = 5 * 60 * 1000;

/// The part of its life before its end at which a token is refreshed. A token that lives for a
/// minute is not refreshed at each call.
const EARLY_PART: u64 = 10;

/// Tokens of one account. Times are in milliseconds since 1970, by this machine's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenSet {
    /// The access token.
    pub access_token: Secret,
    /// The refresh token, if there is one.
    pub refresh_token: Option<Secret>,
    /// When the access token was received.
    pub issued_at_ms: u64,
    /// When it ends; `None` if the service does not say so.
    pub expires_at_ms: Option<u64>,
    /// The permissions that it has, with blanks between them.
    pub scope: String,
}

impl TokenSet {
    /// The tokens of an answer. A service that does not mention the permissions gave those that
    /// were asked for, and one that does not mention a refresh token leaves the old one valid.
    pub(super) fn from_answer(
        answer: ServiceTokens,
        asked: &[String],
        old_refresh_token: Option<&Secret>,
        now_ms: u64,
    ) -> Self {
        let ends_at = |seconds: u64| now_ms.saturating_add(seconds.saturating_mul(1000));
        let refresh_token = answer.refresh_token.filter(|token| !token.is_empty());
        Self {
            access_token: Secret::new(answer.access_token),
            refresh_token: refresh_token.map(Secret::new).or(old_refresh_token.cloned()),
            issued_at_ms: now_ms,
            expires_at_ms: answer.expires_in.map(ends_at),
            scope: answer.scope.as_deref().unwrap_or(asked).join(" "),
        }
    }

    /// Whether the tokens should be refreshed before they are used. Without a refresh token, they
    /// are used until the service refuses them.
    pub fn is_due(&self, now_ms: u64) -> bool {
        let Some(expires_at_ms) = self.expires_at_ms else { return false };
        let life = expires_at_ms.saturating_sub(self.issued_at_ms);
        let early = EARLY_MS_MAX.min(life / EARLY_PART);
        self.refresh_token.is_some() && now_ms >= expires_at_ms.saturating_sub(early)
    }

    /// Whether the access token has ended.
    pub fn has_ended(&self, now_ms: u64) -> bool {
        self.expires_at_ms.is_some_and(|expires_at_ms| now_ms >= expires_at_ms)
    }

    /// The permissions that were asked for and not given.
    pub fn missing_scopes<'a>(&self, asked: &'a [String]) -> Vec<&'a str> {
        let given: Vec<&str> = self.scope.split_whitespace().collect();
        let missing = asked.iter().filter(|scope| !given.contains(&scope.as_str()));
        missing.map(String::as_str).collect()
    }
}
