//! The page of a log-in at the identity server that failed. One that succeeds leads to the console.

use axum::response::Response;
use http::{HeaderValue, StatusCode, header};

use super::notice_page::{NoticePage, show_notice};
use crate::{browser_login::BLOCKED_SECONDS, sign_on::SignOnRefusal};

/// Shows why a log-in failed, and what to do.
pub(super) fn refused(refusal: &SignOnRefusal) -> Response {
    respond(refusal.status(), &format!("{refusal}."), refusal.hint())
}

/// Shows that an address failed too often.
pub(super) fn blocked() -> Response {
    let why = "Too many failed log-ins came from your address.";
    let mut page = respond(StatusCode::TOO_MANY_REQUESTS, why, "Try again in a minute.");
    page.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(BLOCKED_SECONDS));
    page
}

fn respond(status: StatusCode, why: &str, hint: &str) -> Response {
    let page = NoticePage {
        title: "Log-in failed",
        heading: "You are not logged in",
        why,
        hint,
        back: ("/console", "Back to the log-in"),
    };
    show_notice(status, &page)
}
