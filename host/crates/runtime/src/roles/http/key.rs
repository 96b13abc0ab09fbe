//! The keys of a run of the host. A client that knows a key has access to the routes it opens.
//!
//! There are two, so that a program that brings input cannot answer questions. The UI's key is
//! generated when the program starts. A browser gets it once, in the printed address. Afterwards a
//! cookie carries it, which no script can read and which the browser does not send for a page of
//! another site. The listeners' key is generated as well, or is a secret of the user's. Programs
//! send it as `Authorization: Bearer`, or in the address of a WebSocket. No browser stores it, so a
//! listener's page cannot be opened in a browser to reach the UI at the same address.

use std::{fmt, net::SocketAddr};

use http::{HeaderMap, HeaderValue, Uri, header};
use rustix::rand::{GetRandomFlags, getrandom};
use sallyport_contract::Secret;
use sallyport_http_server::single_header_value;
use url::form_urlencoded;

/// The query parameter that contains the key.
const TOKEN_PARAMETER: &str = "token";

/// Length of a generated key in bytes, too long to guess.
const KEY_BYTES: usize = 32;

/// Shortest key of the user's own: 16 random letters and digits cannot be guessed.
const SECRET_CHARS_MIN: usize = 16;

/// The key to the UI, or to all listeners, in one run.
pub struct AccessKey {
    text: Secret,
    /// Compared instead of the text, because comparing digests takes the same time for every wrong
    /// key.
    digest: blake3::Hash,
    holder: AccessKeyHolder,
}

/// The holder of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessKeyHolder {
    /// The user, whose browser stores it.
    User,
    /// Programs, which send it with every request.
    Programs,
    /// Programs too, but the key is the user's own secret and is never shown.
    Owner,
}

/// Why there is not a usable key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessKeyError {
    #[error("the system gives no random numbers")]
    NoRandom,
    #[error(
        "the token has {chars} characters, at least {SECRET_CHARS_MIN} letters, digits, - or _ are \
         needed"
    )]
    Weak { chars: usize },
}

/// The result of checking the credentials of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CredentialCheckResult {
    /// The request is allowed.
    Allowed,
    /// The request is allowed if it starts a WebSocket.
    AllowedForSocket,
    /// The request is redirected to the address without the key, which the browser keeps in this
    /// cookie.
    Redirect { location: String, cookie: HeaderValue },
    /// The request is refused.
    Refused,
}

impl fmt::Debug for AccessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").finish_non_exhaustive()
    }
}

impl AccessKey {
    /// Generates a key.
    ///
    /// # Errors
    ///
    /// The system provides no random numbers.
    pub fn random(holder: AccessKeyHolder) -> Result<Self, AccessKeyError> {
        let mut bytes = [0; KEY_BYTES];
        let filled = getrandom(&mut bytes, GetRandomFlags::empty());
        if filled != Ok(KEY_BYTES) {
            return Err(AccessKeyError::NoRandom);
        }
        Ok(Self::new(blake3::Hash::from_bytes(bytes).to_hex().to_string(), holder))
    }

    /// Uses a secret of the user's as the key of programs.
    ///
    /// # Errors
    ///
    /// The secret is too short, or contains characters other than ASCII letters, digits, `-` and
    /// `_`.
    pub fn from_secret(secret: &Secret) -> Result<Self, AccessKeyError> {
        let text = secret.expose();
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if text.len() < SECRET_CHARS_MIN || !text.chars().all(fits) {
            return Err(AccessKeyError::Weak { chars: text.chars().count() });
        }
        Ok(Self::new(text.to_owned(), AccessKeyHolder::Owner))
    }

    pub(super) fn new(text: String, holder: AccessKeyHolder) -> Self {
        let digest = blake3::hash(text.as_bytes());
        Self { text: Secret::new(text), digest, holder }
    }

    fn display_text(&self) -> &str {
        if self.holder == AccessKeyHolder::Owner { "TOKEN" } else { self.text.expose() }
    }

    /// An address that contains the key, to show to the user.
    pub fn address_with_key(&self, address: &str) -> String {
        format!("{address}?{TOKEN_PARAMETER}={}", self.display_text())
    }

    /// A header line that contains the key, to show to the user.
    pub fn authorization_header(&self) -> String {
        format!("Authorization: Bearer {}", self.display_text())
    }

    fn is_match(&self, text: &str) -> bool {
        blake3::hash(text.as_bytes()) == self.digest
    }

    /// Checks the credentials of a request. A key in the address counts where a user follows it,
    /// and where a WebSocket starts.
    pub(super) fn check_credentials(
        &self,
        site: SocketAddr,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> CredentialCheckResult {
        let query = uri.query().unwrap_or_default();
        let (tokens, rest): (Vec<&str>, Vec<&str>) =
            query.split('&').partition(|part| token_value(part).is_some());
        match tokens[..] {
            [] if self.has_valid_credentials(site, headers) => CredentialCheckResult::Allowed,
            [part] if token_value(part).is_some_and(|token| self.is_match(&token)) => {
                self.accept_query_key(site, uri.path(), &rest.join("&"))
            }
            // Of several keys, different readers would pick different ones.
            _ => CredentialCheckResult::Refused,
        }
    }

    /// Handles a request whose address contained the key.
    fn accept_query_key(&self, site: SocketAddr, path: &str, rest: &str) -> CredentialCheckResult {
        // A browser would take two leading slashes as the name of another host.
        let path = format!("/{}", path.trim_start_matches('/'));
        let location = if rest.is_empty() { path } else { format!("{path}?{rest}") };
        match self.session_cookie(site) {
            Some(cookie) => CredentialCheckResult::Redirect { location, cookie },
            None => CredentialCheckResult::AllowedForSocket,
        }
    }

    /// An `Authorization` header decides alone, because a request with contradicting credentials is
    /// ambiguous. There may be several cookies: any page of this machine can add one.
    fn has_valid_credentials(&self, site: SocketAddr, headers: &HeaderMap) -> bool {
        match headers.contains_key(header::AUTHORIZATION) {
            true => bearer_token(headers).is_some_and(|token| self.is_match(token)),
            false => cookie_values(headers, &cookie_name(site)).any(|token| self.is_match(token)),
        }
    }

    fn session_cookie(&self, site: SocketAddr) -> Option<HeaderValue> {
        if self.holder != AccessKeyHolder::User {
            return None;
        }
        let (name, token) = (cookie_name(site), self.text.expose());
        let text = format!("{name}={token}; Path=/; HttpOnly; SameSite=Strict");
        let mut value = HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

/// The cookie's name contains the port, because browsers share cookies between ports.
fn cookie_name(site: SocketAddr) -> String {
    format!("sallyport-{}", site.port())
}

fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let text = single_header_value(headers, header::AUTHORIZATION)?;
    let (scheme, token) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn cookie_values<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(header::COOKIE).into_iter().filter_map(|line| line.to_str().ok());
    let pairs =
        lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(move |(found, _)| *found == name).map(|(_, token)| token)
}

/// The value of one part of a query, if it is the key.
fn token_value(part: &str) -> Option<String> {
    let (name, value) = form_urlencoded::parse(part.as_bytes()).next()?;
    (name == TOKEN_PARAMETER).then(|| value.into_owned())
}

/// Removes the credentials from a head, so that no plugin sees them.
pub(super) fn remove_credentials(headers: &mut HeaderMap) {
    headers.remove(header::AUTHORIZATION);
    headers.remove(header::COOKIE);
}

#[cfg(test)]
mod tests {
    use super::*;

    const SITE: SocketAddr =
        SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 80);

    fn key() -> AccessKey {
        AccessKey::new("0123456789abcdef".to_owned(), AccessKeyHolder::User)
    }

    #[track_caller]
    fn check(uri: &str, header: Option<(&'static str, &str)>, want: &CredentialCheckResult) {
        let mut headers = HeaderMap::new();
        if let Some((name, value)) = header {
            headers.insert(name, value.parse().unwrap());
        }
        assert_eq!(
            key().check_credentials(SITE, &uri.parse().unwrap(), &headers),
            *want,
            "{uri} {header:?}"
        );
    }

    #[test]
    fn only_who_knows_the_key_passes() {
        for (name, value, want) in [
            ("authorization", "Bearer 0123456789abcdef", CredentialCheckResult::Allowed),
            ("authorization", "bearer  0123456789abcdef ", CredentialCheckResult::Allowed),
            ("cookie", "a=b; sallyport-80=0123456789abcdef", CredentialCheckResult::Allowed),
            ("authorization", "Basic 0123456789abcdef", CredentialCheckResult::Refused),
            ("authorization", "Bearer 0123456789abcde", CredentialCheckResult::Refused),
            ("authorization", "Bearer ", CredentialCheckResult::Refused),
            ("authorization", "0123456789abcdef", CredentialCheckResult::Refused),
            ("cookie", "sallyport-81=0123456789abcdef", CredentialCheckResult::Refused),
            ("cookie", "sallyport-80=0123456789ABCDEF", CredentialCheckResult::Refused),
            ("cookie", "sallyport-80", CredentialCheckResult::Refused),
        ] {
            check("/ui", Some((name, value)), &want);
        }
        check("/ui", None, &CredentialCheckResult::Refused);
    }

    #[test]
    fn the_key_leaves_the_address_at_once() {
        let cookie = "sallyport-80=0123456789abcdef; Path=/; HttpOnly; SameSite=Strict";
        for (uri, location) in [
            ("/ui?token=0123456789abcdef", "/ui"),
            ("/ui/?a=1&token=0123456789abcdef&b=2", "/ui/?a=1&b=2"),
            ("/?to%6ben=0123456789abcdef", "/"),
            ("//evil.example/?token=0123456789abcdef", "/evil.example/"),
        ] {
            let cookie = HeaderValue::from_static(cookie);
            check(
                uri,
                None,
                &CredentialCheckResult::Redirect { location: location.to_owned(), cookie },
            );
        }
        let known = Some(("authorization", "Bearer 0123456789abcdef"));
        check("/ui?token=wrong", known, &CredentialCheckResult::Refused);
    }

    #[test]
    fn h86_a_key_that_is_told_twice_opens_nothing() {
        let good = "token=0123456789abcdef";
        for uri in [
            format!("/ui?{good}&token=0"),
            format!("/ui?token=0&{good}"),
            format!("/ui?{good}&{good}"),
            format!("/ui?{good}&a=1&to%6ben=0"),
            format!("/ui?{good}&token"),
        ] {
            check(&uri, None, &CredentialCheckResult::Refused);
        }
        let mut headers = HeaderMap::new();
        let [good, bad] = ["Bearer 0123456789abcdef", "Bearer 0"].map(|text| text.parse().unwrap());
        let uri = "/ui".parse().unwrap();
        headers.append(header::AUTHORIZATION, good);
        assert_eq!(key().check_credentials(SITE, &uri, &headers), CredentialCheckResult::Allowed);
        headers.append(header::AUTHORIZATION, bad);
        assert_eq!(key().check_credentials(SITE, &uri, &headers), CredentialCheckResult::Refused);
        let cookie = "sallyport-80=0123456789abcdef".parse().unwrap();
        headers.append(header::COOKIE, cookie);
        assert_eq!(key().check_credentials(SITE, &uri, &headers), CredentialCheckResult::Refused);
    }

    #[test]
    fn no_browser_keeps_the_key_of_programs() {
        for holder in [AccessKeyHolder::Programs, AccessKeyHolder::Owner] {
            let key = AccessKey::new("0123456789abcdef".to_owned(), holder);
            let uri = "/hooks?token=0123456789abcdef".parse().unwrap();
            assert_eq!(
                key.check_credentials(SITE, &uri, &HeaderMap::new()),
                CredentialCheckResult::AllowedForSocket
            );
        }
    }

    #[test]
    fn keys_are_made_at_random_and_weak_ones_refused() {
        let (one, other) = (
            AccessKey::random(AccessKeyHolder::User).unwrap(),
            AccessKey::random(AccessKeyHolder::User).unwrap(),
        );
        assert_eq!(one.text.expose().len(), 64);
        assert!(!one.is_match(other.text.expose()) && one.is_match(one.text.expose()));
        for (text, fits) in [
            ("0123456789abcdef", true),
            ("0123456789abcde", false),
            ("0123456789abcde;", false),
            ("0123456789abcde\n", false),
            ("ääääääääääääääää", false),
        ] {
            assert_eq!(
                AccessKey::from_secret(&Secret::new(text.to_owned())).is_ok(),
                fits,
                "{text:?}"
            );
        }
    }
}
