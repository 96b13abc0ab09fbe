//! Who may use a route.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, Method, header};
use sallyport_http_server::single_header_value;

use crate::{
    browser_login::{check_same_site, find_login, forget_login},
    caller::RequestCaller,
    problem::{Problem, ProblemKind},
    role::UserRole,
    service::Service,
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

impl RequestCaller {
    /// Whether the token, or the log-in with what it stands for, is still valid.
    pub(crate) fn is_valid(&self, service: &Service) -> bool {
        self.is_still_shown(&service.tokens, &service.logins)
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
    let caller = match find_login(&service.names, headers) {
        Some(login_hash) if !headers.contains_key(header::AUTHORIZATION) => {
            check_same_site(method, headers)?;
            let caller = RequestCaller::from_login(login_hash, &service.tokens, &service.logins);
            caller.ok_or_else(|| {
                forget_login(&service.logins, &service.names, headers);
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

/// The caller whom a token names.
///
/// # Errors
///
/// There is no token, or it is not valid.
pub(crate) fn caller_of_token(
    service: &Service,
    headers: &HeaderMap,
) -> Result<RequestCaller, Problem> {
    let token = bearer_token(headers).ok_or_else(|| {
        let problem = Problem::new(ProblemKind::Unauthorized, "a token is missing");
        problem.with_detail("send it as `Authorization: Bearer TOKEN`")
    })?;
    let unknown = || Problem::new(ProblemKind::Unauthorized, "the token is not valid");
    let caller = RequestCaller::from_token(hash_token(token), &service.tokens, &service.logins);
    caller.ok_or_else(unknown)
}

/// The token of a request. A request with several has none, because it is not clear which counts.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = single_header_value(headers, header::AUTHORIZATION)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("Bearer").then(|| token.trim())
}
