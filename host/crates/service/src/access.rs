//! Who may use a route.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, Method, header};
use sallyport_http_server::single_header_value;
use sallyport_runtime::gate::now_ms;

use crate::{
    console::{check_same_site, find_login, forget_login},
    problem::{Problem, ProblemKind},
    role::{ServiceUser, UserRole},
    server::Service,
    token_file::hash_token,
};

/// Who may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RouteAccess {
    /// Everyone, without a token.
    Open,
    /// Users with this role, or one that includes it.
    Role(UserRole),
}

/// The user of a request, with what was shown for it. A stream checks it again.
#[derive(Debug, Clone)]
pub(crate) struct RequestCaller {
    pub(crate) user: ServiceUser,
    /// The hash of the token.
    token_hash: [u8; 32],
    /// The hash of the log-in of the console that stands for the token, if one does.
    login_hash: Option<[u8; 32]>,
}

impl RequestCaller {
    /// Whether the cookie of the console was shown, and not the token itself.
    pub(crate) fn is_browser(&self) -> bool {
        self.login_hash.is_some()
    }

    /// Whether the token, and the log-in that stands for it, are still valid.
    pub(crate) fn is_valid(&self, service: &Service) -> bool {
        let stands = |login| service.logins.token_hash(login, now_ms()) == Some(self.token_hash);
        self.login_hash.as_ref().is_none_or(stands)
            && service.tokens.find_user_of_hash(&self.token_hash).as_ref() == Some(&self.user)
    }
}

/// What the check of one route needs.
#[derive(Clone)]
pub(crate) struct RouteGuard {
    pub(crate) service: Arc<Service>,
    pub(crate) access: RouteAccess,
}

/// Answers a request only if its user may make it, and has not too many others.
pub(crate) async fn guard_route(
    State(guard): State<RouteGuard>,
    mut request: Request,
    next: Next,
) -> Response {
    let RouteAccess::Role(role) = guard.access else { return next.run(request).await };
    let caller = match find_caller(&guard.service, request.method(), request.headers(), role) {
        Ok(caller) => caller,
        Err(problem) => return problem.into_response(),
    };
    let request_use = match guard.service.limits.requests.begin_use(&caller.user.name) {
        Ok(request_use) => request_use,
        Err(problem) => return problem.into_response(),
    };
    request.extensions_mut().insert(caller);
    let response = next.run(request).await;
    drop(request_use);
    response
}

fn find_caller(
    service: &Service,
    method: &Method,
    headers: &HeaderMap,
    role: UserRole,
) -> Result<RequestCaller, Problem> {
    // Whoever sends a token means it, whatever the browser adds.
    let caller = match find_login(headers) {
        Some(login_hash) if !headers.contains_key(header::AUTHORIZATION) => {
            check_same_site(method, headers)?;
            let found = caller_of_login(service, login_hash);
            found.ok_or_else(|| {
                forget_login(service, headers);
                let problem = Problem::new(ProblemKind::Unauthorized, "the log-in has ended");
                problem.with_detail("log in again at /console")
            })?
        }
        _ => caller_of_token(service, headers)?,
    };
    if caller.user.role < role {
        let title = format!("this needs the role {role}, and yours is {}", caller.user.role);
        return Err(Problem::new(ProblemKind::RoleMissing, title));
    }
    Ok(caller)
}

fn caller_of_login(service: &Service, login_hash: [u8; 32]) -> Option<RequestCaller> {
    let token_hash = service.logins.token_hash(&login_hash, now_ms())?;
    let user = service.tokens.find_user_of_hash(&token_hash)?;
    Some(RequestCaller { user, token_hash, login_hash: Some(login_hash) })
}

fn caller_of_token(service: &Service, headers: &HeaderMap) -> Result<RequestCaller, Problem> {
    let token = bearer_token(headers).ok_or_else(|| {
        let problem = Problem::new(ProblemKind::Unauthorized, "a token is missing");
        problem.with_detail("send it as `Authorization: Bearer TOKEN`")
    })?;
    let unknown = || Problem::new(ProblemKind::Unauthorized, "the token is not valid");
    let token_hash = hash_token(token);
    let user = service.tokens.find_user_of_hash(&token_hash).ok_or_else(unknown)?;
    Ok(RequestCaller { user, token_hash, login_hash: None })
}

/// The token of a request. A request with several has none, because it is not clear which counts.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = single_header_value(headers, header::AUTHORIZATION)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("Bearer").then(|| token.trim())
}
