//! The web console: pages for people over the same routes that programs use.
//!
//! The pages are files that are compiled in. A browser logs in once, with a token or at an identity
//! server, and gets a cookie, which stands for the user from then on; `browser_login` keeps other
//! pages from using it.

mod assets;
mod login;
mod notice_page;
mod sign_on;
mod sign_on_page;

use std::sync::Arc;

use axum::{
    Router, middleware,
    routing::{get, post},
};

pub(crate) use assets::HTML_TYPE;
pub(crate) use notice_page::{NoticePage, show_notice};
pub(crate) use sign_on::{answer_url, read_answer};

use crate::{
    access::{RouteAccess, RouteGuard, guard_route},
    role::UserRole,
    service::Service,
};

/// The routes of the console. They are for its own pages, so the OpenAPI document leaves them out.
pub(crate) fn routes(service: &Arc<Service>) -> Router<Arc<Service>> {
    let access = RouteAccess::Role(UserRole::User);
    let guard = RouteGuard { service: Arc::clone(service), access };
    let guarded = middleware::from_fn_with_state(guard, guard_route);
    Router::new()
        .route("/console", get(assets::page))
        .route("/console/{asset}", get(assets::asset))
        .route("/console/login", post(login::log_in))
        .route("/console/logout", post(login::log_out))
        .route("/console/sign-on", get(sign_on::offer).post(sign_on::begin))
        .route(sign_on::CALLBACK_PATH, get(sign_on::finish))
        .route("/console/user", get(login::show_user).route_layer(guarded))
}
