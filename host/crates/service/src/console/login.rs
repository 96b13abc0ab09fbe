//! Logging in with a token, and logging out.

use std::{io, sync::Arc};

use axum::{
    Extension,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use sallyport_runtime::clock::now_ms;
use serde::{Deserialize, Serialize};

use crate::{
    browser_login::{BLOCKED_SECONDS, LOGIN_COOKIE, LoginBasis, check_same_site, forget_login},
    caller::RequestCaller,
    peer_address::PeerAddress,
    problem::{Problem, ProblemKind},
    request_body::{JsonBody, JsonReply},
    role::{ServiceUser, UserRole},
    service::Service,
    token_file::hash_token,
};

const NO_RANDOM: &str = "the system has no random bytes for a log-in";

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
    let basis = LoginBasis::Token(token_hash);
    let is_over_tls = service.names.is_over_tls(&headers);
    let cookie = begin_login(&service, &headers, is_over_tls, &user.name, basis)
        .map_err(|_| Problem::new(ProblemKind::Internal, NO_RANDOM))?;
    Ok(([(header::SET_COOKIE, cookie)], JsonReply(ConsoleUser::from(user))).into_response())
}

/// Begins a log-in, and returns the header that sets its cookie. A browser that logs in again leaves
/// its earlier log-in.
///
/// # Errors
///
/// The system has no random bytes.
pub(super) fn begin_login(
    service: &Service,
    headers: &HeaderMap,
    is_over_tls: bool,
    user: &str,
    basis: LoginBasis,
) -> io::Result<HeaderValue> {
    let id = service.logins.begin(user, basis, now_ms())?;
    forget_login(&service.logins, &service.names, headers);
    Ok(LOGIN_COOKIE.set(headers, is_over_tls, id.expose()))
}

pub(super) fn too_many_attempts() -> Response {
    let title = "too many failed log-ins came from your address; try again in a minute";
    let mut refused = Problem::too_many(title).into_response();
    refused.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(BLOCKED_SECONDS));
    refused
}

pub(super) async fn log_out(
    State(service): State<Arc<Service>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    check_same_site(&Method::POST, &headers)?;
    forget_login(&service.logins, &service.names, &headers);
    let cookie = LOGIN_COOKIE.remove(&headers, service.names.is_over_tls(&headers));
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]).into_response())
}

pub(super) async fn show_user(
    Extension(caller): Extension<RequestCaller>,
) -> JsonReply<ConsoleUser> {
    JsonReply(caller.user.into())
}
