//! The web console: what browsers need to use the same routes that programs use.
//!
//! A browser logs in once with a token and gets a cookie, which stands for the token from then on;
//! `same_site` keeps other pages from using it.

mod attempts;
mod login;
mod logins;
mod same_site;

use std::sync::Arc;

use axum::{
    Router, middleware,
    routing::{get, post},
};

pub(crate) use attempts::LoginAttempts;
pub(crate) use login::{PeerAddress, find_login, forget_login};
pub(crate) use logins::ConsoleLogins;
pub(crate) use same_site::check_same_site;

use crate::{
    access::{RouteAccess, RouteGuard, guard_route},
    role::UserRole,
    server::Service,
};

/// The routes of the console. They are for its own pages, so the OpenAPI document leaves them out.
pub(crate) fn routes(service: &Arc<Service>) -> Router<Arc<Service>> {
    let access = RouteAccess::Role(UserRole::User);
    let guard = RouteGuard { service: Arc::clone(service), access };
    let guarded = middleware::from_fn_with_state(guard, guard_route);
    Router::new()
        .route("/console/login", post(login::log_in))
        .route("/console/logout", post(login::log_out))
        .route("/console/user", get(login::show_user).route_layer(guarded))
}
