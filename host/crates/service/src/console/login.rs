//! Logging in and out, and the cookie between the two.

use std::{net::IpAddr, sync::Arc};

use axum::{
    Extension,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header, uri::Authority};
use sallyport_runtime::gate::now_ms;
use serde::{Deserialize, Serialize};

use super::same_site::check_same_site;
use crate::{
    access::RequestCaller,
    problem::{Problem, ProblemKind},
    request_body::{JsonBody, JsonReply},
    role::{ServiceUser, UserRole},
    server::Service,
    token_file::hash_token,
};

/// What the name of the cookie begins with. The port follows, because browsers send the cookies of
/// one port to all others of a host, and two services would overwrite each other's.
const COOKIE_NAME: &str = "sallyport-console-";

/// The prefix with which a browser takes a cookie only over TLS, and from this very host.
const SECURE_PREFIX: &str = "__Host-";

/// The attributes of each cookie. It ends with the browser, or earlier with the log-in.
const COOKIE_ATTRIBUTES: &str = "Path=/; HttpOnly; SameSite=Strict";

/// The address of the other side of the connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerAddress(pub(crate) IpAddr);

/// A token to log in with.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LoginBody {
    token: String,
}

/// The user who is logged in.
#[derive(Debug, Serialize)]
pub(super) struct ConsoleUser {
    name: String,
    role: UserRole,
    /// The version of the service.
    version: &'static str,
}

impl From<ServiceUser> for ConsoleUser {
    fn from(ServiceUser { name, role }: ServiceUser) -> Self {
        Self { name, role, version: env!("CARGO_PKG_VERSION") }
    }
}

pub(super) async fn log_in(
    State(service): State<Arc<Service>>,
    Extension(PeerAddress(peer)): Extension<PeerAddress>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<LoginBody>,
) -> Result<Response, Problem> {
    check_same_site(&Method::POST, &headers)?;
    let now_ms = now_ms();
    if service.login_attempts.is_blocked(peer, now_ms) {
        return Ok(too_many_attempts());
    }
    let token_hash = hash_token(body.token.trim());
    let Some(user) = service.tokens.find_user_of_hash(&token_hash) else {
        service.login_attempts.note_failure(peer, now_ms);
        let problem = Problem::new(ProblemKind::Unauthorized, "the token is not valid");
        return Err(problem.with_detail("it is mistyped, has expired, or was removed"));
    };
    let id = service.logins.begin(&user.name, token_hash, now_ms).map_err(|_| {
        Problem::new(ProblemKind::Internal, "the system has no random bytes for a log-in")
    })?;
    // A browser that logs in again leaves its earlier log-in.
    forget_login(&service, &headers);
    let cookie = cookie(&headers, id.expose(), "");
    Ok(([(header::SET_COOKIE, cookie)], JsonReply(ConsoleUser::from(user))).into_response())
}

fn too_many_attempts() -> Response {
    let title = "too many wrong tokens came from your address; try again in a minute";
    let mut refused = Problem::too_many(title).into_response();
    refused.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("60"));
    refused
}

pub(super) async fn log_out(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    check_same_site(&Method::POST, &headers)?;
    forget_login(&service, &headers);
    let cookie = cookie(&headers, "", "; Max-Age=0");
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
}

pub(super) async fn show_user(
    Extension(caller): Extension<RequestCaller>,
) -> JsonReply<ConsoleUser> {
    JsonReply(caller.user.into())
}

/// Returns the hash of the log-in that a request's cookie names, whether it is valid or not.
pub(crate) fn find_login(headers: &HeaderMap) -> Option<[u8; 32]> {
    let name = cookie_name(headers);
    let secure_name = format!("{SECURE_PREFIX}{name}");
    let of_name = |name| cookie_value(headers, name).map(hash_token);
    // A neighbour of the host cannot set the first one.
    of_name(&secure_name).or_else(|| of_name(&name))
}

/// Ends the log-in of a request.
pub(crate) fn forget_login(service: &Service, headers: &HeaderMap) {
    if let Some(login) = find_login(headers) {
        service.logins.end(&login);
    }
}

/// The value of a cookie. A request with several of the name has none, because it is not clear which
/// counts.
fn cookie_value<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs =
        lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut values = pairs.filter(|(found, _)| *found == name).map(|(_, value)| value);
    let (value, None) = (values.next()?, values.next()) else { return None };
    Some(value)
}

fn cookie(headers: &HeaderMap, value: &str, more: &str) -> HeaderValue {
    let name = cookie_name(headers);
    let text = match is_over_tls(headers) {
        true => format!("{SECURE_PREFIX}{name}={value}; {COOKIE_ATTRIBUTES}; Secure{more}"),
        false => format!("{name}={value}; {COOKIE_ATTRIBUTES}{more}"),
    };
    // It is made of ASCII characters alone.
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

fn cookie_name(headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host.and_then(|host| host.parse::<Authority>().ok());
    let port = host.and_then(|host| host.port_u16()).unwrap_or_default();
    format!("{COOKIE_NAME}{port}")
}

/// Whether the browser speaks TLS, with a proxy in front of the service. It says so itself, in a
/// header that no page can change.
fn is_over_tls(headers: &HeaderMap) -> bool {
    let origin = headers.get(header::ORIGIN).map(HeaderValue::as_bytes);
    origin.is_some_and(|origin| origin.starts_with(b"https://"))
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    fn headers(pairs: &[(HeaderName, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter().cloned();
        pairs.map(|(name, value)| (name, HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn a_cookie_is_bound_to_the_port_and_to_tls() {
        let rows = [
            ("127.0.0.1:8420", "http://127.0.0.1:8420", "sallyport-console-8420=x; ", false),
            ("[::1]:80", "http://[::1]:80", "sallyport-console-80=x; ", false),
            ("team.example", "https://team.example", "__Host-sallyport-console-0=x; ", true),
        ];
        for (host, origin, start, is_secure) in rows {
            let headers = headers(&[(header::HOST, host), (header::ORIGIN, origin)]);
            let made = cookie(&headers, "x", "");
            let made = made.to_str().unwrap();
            assert!(made.starts_with(start) && made.contains(COOKIE_ATTRIBUTES), "{made}");
            assert_eq!(made.ends_with("; Secure"), is_secure, "{made}");
        }
    }

    #[test]
    fn one_cookie_of_the_own_name_counts() {
        let rows = [
            ("sallyport-console-1=a", Some("a")),
            ("x=y; sallyport-console-1=a; z", Some("a")),
            ("__Host-sallyport-console-1=b; sallyport-console-1=a", Some("b")),
            ("sallyport-console-1=a; sallyport-console-1=b", None),
            ("sallyport-console-2=a", None),
            ("sallyport-console-1", None),
            ("", None),
        ];
        for (line, id) in rows {
            let headers = headers(&[(header::HOST, "localhost:1"), (header::COOKIE, line)]);
            assert_eq!(find_login(&headers), id.map(hash_token), "{line}");
        }
    }
}
