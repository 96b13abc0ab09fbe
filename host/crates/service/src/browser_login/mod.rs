//! The log-ins of browsers: their cookies, what they stand for, and what keeps other pages out.

mod attempts;
mod cookie;
mod logins;
mod same_site;

use http::HeaderMap;

pub(crate) use attempts::{BLOCKED_SECONDS, LoginAttempts};
pub(crate) use cookie::{CONNECT_COOKIE, LOGIN_COOKIE, SIGN_ON_COOKIE};
pub(crate) use logins::{ConsoleLogins, LoginBasis};
pub(crate) use same_site::check_same_site;

use crate::{origin::ServiceNames, token_file::hash_token};

/// Returns the hash of the log-in that a request's cookie names, whether it is valid or not. At a
/// name that browsers reach over TLS, a cookie without it was set by a neighbour of the host.
pub(crate) fn find_login(names: &ServiceNames, headers: &HeaderMap) -> Option<[u8; 32]> {
    let id = match names.is_reached_over_tls(headers) {
        true => LOGIN_COOKIE.find_over_tls(headers),
        false => LOGIN_COOKIE.find(headers),
    };
    id.map(hash_token)
}

/// Ends the log-in of a request.
pub(crate) fn forget_login(logins: &ConsoleLogins, names: &ServiceNames, headers: &HeaderMap) {
    if let Some(login) = find_login(names, headers) {
        logins.end(&login);
    }
}
