//! The keys of a run: who knows one may speak to what it opens.
//!
//! There are two, so that a program which brings input cannot answer questions. That of the UI is
//! made when the program starts. A browser gets it once, in the address that is printed; from then
//! on a cookie carries it, which no script of a page can read and no page of another site can have
//! sent. That of the listeners is made likewise, or is a secret of the user's. Programs send it as
//! `Authorization: Bearer`, or in the address of a web socket; no browser keeps it, so no page that a
//! listener serves at the address of a UI can speak to that.

use std::{fmt, net::SocketAddr};

use http::{HeaderMap, HeaderValue, Uri, header};
use rustix::rand::{GetRandomFlags, getrandom};
use sallyport_contract::Secret;
use url::form_urlencoded;

use super::check::one;

/// The part of an address that carries the key.
const QUERY: &str = "token";

/// Length of a key that is made here: nobody finds it by trying.
const KEY_BYTES: usize = 32;

/// Shortest key of the user's own: 16 letters and digits at random are out of anybody's reach.
const SECRET_CHARS_MIN: usize = 16;

/// What opens the UI, or all listeners, in one run.
pub struct Key {
    text: Secret,
    /// Compared in place of the text, since that takes the same time whatever is wrong.
    digest: blake3::Hash,
    holder: Holder,
}

/// Who has a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// A person, whose browser keeps it.
    Person,
    /// Programs, which send it every time.
    Programs,
    /// Programs as well; it is the user's own, and not to be shown.
    Owner,
}

/// Why there is no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("the system gives no random numbers")]
    NoRandom,
    #[error(
        "the token has {chars} characters, at least {SECRET_CHARS_MIN} letters, digits, - or _ are \
         needed"
    )]
    Weak { chars: usize },
}

/// What the credentials of a request amount to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pass {
    /// It may go on.
    Known,
    /// It may, if it begins a web socket.
    Socket,
    /// It may, and is sent to the address without the key; the browser keeps it in this cookie.
    Welcome { location: String, cookie: HeaderValue },
    /// It may not.
    Unknown,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").finish_non_exhaustive()
    }
}

impl Key {
    /// Makes a key that nobody knows.
    ///
    /// # Errors
    ///
    /// The system gives no random numbers.
    pub fn random(holder: Holder) -> Result<Self, KeyError> {
        let mut bytes = [0; KEY_BYTES];
        let filled = getrandom(&mut bytes, GetRandomFlags::empty());
        if filled != Ok(KEY_BYTES) {
            return Err(KeyError::NoRandom);
        }
        Ok(Self::new(blake3::Hash::from_bytes(bytes).to_hex().to_string(), holder))
    }

    /// Takes a secret of the user's as the key of programs.
    ///
    /// # Errors
    ///
    /// It is too short, or has characters that do not fit into an address.
    pub fn of(secret: &Secret) -> Result<Self, KeyError> {
        let text = secret.expose();
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if text.len() < SECRET_CHARS_MIN || !text.chars().all(fits) {
            return Err(KeyError::Weak { chars: text.chars().count() });
        }
        Ok(Self::new(text.to_owned(), Holder::Owner))
    }

    pub(super) fn new(text: String, holder: Holder) -> Self {
        let digest = blake3::hash(text.as_bytes());
        Self { text: Secret::new(text), digest, holder }
    }

    fn shown(&self) -> &str {
        if self.holder == Holder::Owner { "TOKEN" } else { self.text.expose() }
    }

    /// An address with the key in it, to be shown to the user.
    pub fn address(&self, address: &str) -> String {
        format!("{address}?{QUERY}={}", self.shown())
    }

    /// The line of a head with the key in it, to be shown to the user.
    pub fn header(&self) -> String {
        format!("Authorization: Bearer {}", self.shown())
    }

    fn opens(&self, text: &str) -> bool {
        blake3::hash(text.as_bytes()) == self.digest
    }

    /// Looks at the credentials of a request. The key in an address counts where a person has
    /// followed it, and where a web socket begins.
    pub(super) fn look(&self, site: SocketAddr, uri: &Uri, headers: &HeaderMap) -> Pass {
        match taken_out(uri.query().unwrap_or_default()) {
            QueryToken::Once { token, .. } if !self.opens(&token) => Pass::Unknown,
            QueryToken::Once { rest, .. } => self.followed(site, uri.path(), &rest),
            QueryToken::Repeated => Pass::Unknown,
            QueryToken::None if self.is_opened_by(site, headers) => Pass::Known,
            QueryToken::None => Pass::Unknown,
        }
    }

    /// The address held the key.
    fn followed(&self, site: SocketAddr, path: &str, rest: &str) -> Pass {
        // Two slashes would begin the name of another machine.
        let path = format!("/{}", path.trim_start_matches('/'));
        let location = if rest.is_empty() { path } else { format!("{path}?{rest}") };
        match self.cookie(site) {
            Some(cookie) => Pass::Welcome { location, cookie },
            None => Pass::Socket,
        }
    }

    /// Where there is an `Authorization` it decides, since a request that says two things means
    /// neither for sure. Cookies may be several: any page of this machine can add one.
    fn is_opened_by(&self, site: SocketAddr, headers: &HeaderMap) -> bool {
        match headers.contains_key(header::AUTHORIZATION) {
            true => bearer(headers).is_some_and(|token| self.opens(token)),
            false => cookies(headers, &cookie_name(site)).any(|token| self.opens(token)),
        }
    }

    fn cookie(&self, site: SocketAddr) -> Option<HeaderValue> {
        if self.holder != Holder::Person {
            return None;
        }
        let (name, token) = (cookie_name(site), self.text.expose());
        let text = format!("{name}={token}; Path=/; HttpOnly; SameSite=Strict");
        let mut value = HeaderValue::from_str(&text).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

/// Cookies do not tell ports apart, so the name does.
fn cookie_name(site: SocketAddr) -> String {
    format!("sallyport-{}", site.port())
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let text = one(headers, header::AUTHORIZATION)?;
    let (scheme, token) = text.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn cookies<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a str> {
    let lines = headers.get_all(header::COOKIE).into_iter().filter_map(|line| line.to_str().ok());
    let pairs =
        lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(move |(found, _)| *found == name).map(|(_, token)| token)
}

/// What a query says about the key.
enum QueryToken {
    /// Nothing.
    None,
    /// This, beside the rest of the query.
    Once { token: String, rest: String },
    /// Several things, of which different readers would take different ones.
    Repeated,
}

fn taken_out(query: &str) -> QueryToken {
    let (tokens, rest): (Vec<&str>, Vec<&str>) =
        query.split('&').partition(|part| token_of(part).is_some());
    match tokens.as_slice() {
        [] => QueryToken::None,
        [part] => {
            QueryToken::Once { token: token_of(part).unwrap_or_default(), rest: rest.join("&") }
        }
        _ => QueryToken::Repeated,
    }
}

/// The value of one part of a query, if it names the key.
fn token_of(part: &str) -> Option<String> {
    let (name, value) = form_urlencoded::parse(part.as_bytes()).next()?;
    (name == QUERY).then(|| value.into_owned())
}

/// Takes everything out of a head that says who has passed: no plugin is to see it.
pub(super) fn hide(headers: &mut HeaderMap) {
    headers.remove(header::AUTHORIZATION);
    headers.remove(header::COOKIE);
}

#[cfg(test)]
mod tests {
    use super::*;

    const SITE: SocketAddr =
        SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 80);

    fn key() -> Key {
        Key::new("0123456789abcdef".to_owned(), Holder::Person)
    }

    #[track_caller]
    fn check(uri: &str, header: Option<(&'static str, &str)>, want: &Pass) {
        let mut headers = HeaderMap::new();
        if let Some((name, value)) = header {
            headers.insert(name, value.parse().unwrap());
        }
        assert_eq!(key().look(SITE, &uri.parse().unwrap(), &headers), *want, "{uri} {header:?}");
    }

    #[test]
    fn only_who_knows_the_key_passes() {
        for (name, value, want) in [
            ("authorization", "Bearer 0123456789abcdef", Pass::Known),
            ("authorization", "bearer  0123456789abcdef ", Pass::Known),
            ("cookie", "a=b; sallyport-80=0123456789abcdef", Pass::Known),
            ("authorization", "Basic 0123456789abcdef", Pass::Unknown),
            ("authorization", "Bearer 0123456789abcde", Pass::Unknown),
            ("authorization", "Bearer ", Pass::Unknown),
            ("authorization", "0123456789abcdef", Pass::Unknown),
            ("cookie", "sallyport-81=0123456789abcdef", Pass::Unknown),
            ("cookie", "sallyport-80=0123456789ABCDEF", Pass::Unknown),
            ("cookie", "sallyport-80", Pass::Unknown),
        ] {
            check("/ui", Some((name, value)), &want);
        }
        check("/ui", None, &Pass::Unknown);
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
            check(uri, None, &Pass::Welcome { location: location.to_owned(), cookie });
        }
        let known = Some(("authorization", "Bearer 0123456789abcdef"));
        check("/ui?token=wrong", known, &Pass::Unknown);
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
            check(&uri, None, &Pass::Unknown);
        }
        let mut headers = HeaderMap::new();
        let [good, bad] = ["Bearer 0123456789abcdef", "Bearer 0"].map(|text| text.parse().unwrap());
        let uri = "/ui".parse().unwrap();
        headers.append(header::AUTHORIZATION, good);
        assert_eq!(key().look(SITE, &uri, &headers), Pass::Known);
        headers.append(header::AUTHORIZATION, bad);
        assert_eq!(key().look(SITE, &uri, &headers), Pass::Unknown);
        let cookie = "sallyport-80=0123456789abcdef".parse().unwrap();
        headers.append(header::COOKIE, cookie);
        assert_eq!(key().look(SITE, &uri, &headers), Pass::Unknown);
    }

    #[test]
    fn no_browser_keeps_the_key_of_programs() {
        for holder in [Holder::Programs, Holder::Owner] {
            let key = Key::new("0123456789abcdef".to_owned(), holder);
            let uri = "/hooks?token=0123456789abcdef".parse().unwrap();
            assert_eq!(key.look(SITE, &uri, &HeaderMap::new()), Pass::Socket);
        }
    }

    #[test]
    fn keys_are_made_at_random_and_weak_ones_refused() {
        let (one, other) =
            (Key::random(Holder::Person).unwrap(), Key::random(Holder::Person).unwrap());
        assert_eq!(one.text.expose().len(), 64);
        assert!(!one.opens(other.text.expose()) && one.opens(one.text.expose()));
        for (text, fits) in [
            ("0123456789abcdef", true),
            ("0123456789abcde", false),
            ("0123456789abcde;", false),
            ("0123456789abcde\n", false),
            ("ääääääääääääääää", false),
        ] {
            assert_eq!(Key::of(&Secret::new(text.to_owned())).is_ok(), fits, "{text:?}");
        }
    }
}
