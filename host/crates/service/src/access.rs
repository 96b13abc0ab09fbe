//! Who may use a route.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, header};

use crate::{
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

/// The user of a request, with the hash of the token that was shown. A stream checks it again.
#[derive(Debug, Clone)]
pub(crate) struct RequestCaller {
    pub(crate) user: ServiceUser,
    pub(crate) token_hash: [u8; 32],
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
    let caller = match find_caller(&guard.service, request.headers(), role) {
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
    headers: &HeaderMap,
    role: UserRole,
) -> Result<RequestCaller, Problem> {
    let token = bearer_token(headers).ok_or_else(|| {
        let problem = Problem::new(ProblemKind::Unauthorized, "a token is missing");
        problem.with_detail("send it as `Authorization: Bearer TOKEN`")
    })?;
    let unknown = || Problem::new(ProblemKind::Unauthorized, "the token is not valid");
    let token_hash = hash_token(token);
    let user = service.tokens.find_user_of_hash(&token_hash).ok_or_else(unknown)?;
    if user.role < role {
        let title = format!("this needs the role {role}, and yours is {}", user.role);
        return Err(Problem::new(ProblemKind::RoleMissing, title));
    }
    Ok(RequestCaller { user, token_hash })
}

/// The token of a request. A request with several has none, because it is not clear which counts.
fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let (value, None) = (values.next()?, values.next()) else { return None };
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("Bearer").then(|| token.trim())
}
