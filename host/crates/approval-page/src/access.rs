//! Who may use the page: the one browser that opened the link, known by its cookie.

use std::{
    io,
    sync::{Mutex, PoisonError},
};

use constant_time_eq::constant_time_eq;
use data_encoding::BASE64URL_NOPAD;
use http::{HeaderMap, header};
use rustix::rand::{GetRandomFlags, getrandom};

/// Random bytes of a link and of a cookie: too many to guess.
const KEY_BYTES: usize = 16;

/// Sent over encrypted connections and to this address only.
const COOKIE_NAME: &str = "__Host-approver";

/// The link, and the browser that has opened it.
pub(crate) struct PageAccess {
    link_key: String,
    /// The cookie of the browser that opened the link.
    cookie: Mutex<Option<String>>,
}

/// What a key of a link is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkState {
    /// It has not been opened.
    Unused,
    /// It was opened before.
    Used,
    /// It is no link of this page.
    Unknown,
}

impl PageAccess {
    /// Makes a link.
    ///
    /// # Errors
    ///
    /// The system gives no random bytes.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { link_key: random_key()?, cookie: Mutex::default() })
    }

    /// The secret part of the link.
    pub(crate) fn link_key(&self) -> &str {
        &self.link_key
    }

    /// Looks at a link without opening it.
    pub(crate) fn link_state(&self, key: &str) -> LinkState {
        match (self.is_link_key(key), self.cookie().is_some()) {
            (false, _) => LinkState::Unknown,
            (true, false) => LinkState::Unused,
            (true, true) => LinkState::Used,
        }
    }

    /// Opens a link for a browser. Returns the value of the header `Set-Cookie`, or `None` if it is no
    /// link, or was opened before.
    pub(crate) fn open_link(&self, key: &str) -> Option<String> {
        let new = random_key().ok()?;
        let mut cookie = self.cookie.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_link_key(key) || cookie.is_some() {
            return None;
        }
        let header = format!("{COOKIE_NAME}={new}; Path=/; Secure; HttpOnly; SameSite=Strict");
        *cookie = Some(new);
        Some(header)
    }

    /// Whether a request comes from the browser that opened the link.
    pub(crate) fn is_allowed(&self, headers: &HeaderMap) -> bool {
        let Some(known) = self.cookie() else { return false };
        let sent = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = sent.flat_map(|value| value.split(';'));
        pairs.any(|pair| match pair.trim().split_once('=') {
            Some((COOKIE_NAME, value)) => constant_time_eq(value.as_bytes(), known.as_bytes()),
            _ => false,
        })
    }

    fn is_link_key(&self, key: &str) -> bool {
        constant_time_eq(key.as_bytes(), self.link_key.as_bytes())
    }

    fn cookie(&self) -> Option<String> {
        self.cookie.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn random_key() -> io::Result<String> {
    let mut bytes = [0; KEY_BYTES];
    // So few bytes come whole, or not at all.
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(BASE64URL_NOPAD.encode(&bytes))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(cookies: &[&str]) -> HeaderMap {
        let values = cookies.iter().map(|cookie| HeaderValue::from_str(cookie).unwrap());
        values.map(|value| (header::COOKIE, value)).collect()
    }

    #[test]
    fn a_link_is_for_the_browser_that_opens_it_first() {
        let access = PageAccess::new().unwrap();
        let key = access.link_key().to_owned();
        assert!(!access.is_allowed(&headers(&["__Host-approver="])), "nobody has opened it");
        assert_eq!(access.open_link("another"), None);
        assert_eq!(access.link_state(&key), LinkState::Unused);
        let set = access.open_link(&key).unwrap();
        assert_eq!(access.open_link(&key), None, "a second browser");
        assert_eq!(access.link_state(&key), LinkState::Used);
        assert_eq!(access.link_state(""), LinkState::Unknown);
        let own = set.split(';').next().unwrap();
        for (cookies, want) in [
            (&[own][..], true),
            (&[&format!("a=b; {own}")], true),
            (&["a=b", own], true),
            (&[], false),
            (&["__Host-approver=x"], false),
            (&[&own[..own.len() - 1]], false),
            (&[&own.to_lowercase()], false),
        ] {
            assert_eq!(access.is_allowed(&headers(cookies)), want, "{cookies:?}");
        }
    }
}
