//! The addresses of the page, below whatever path the operator chose.
//!
//! | | |
//! |---|---|
//! | `GET ` | the page |
//! | `GET events?after=N` | what is new since entry N |
//! | `POST input` | `{"text": "…"}` |
//! | `POST confirm` | `{"id": "7", "approved": true}` |
//! | `POST cancel` | `{}` |

use sallyport_sdk::{
    http::Response,
    prelude::*,
    serve::{self, BadRequest, Request},
    session,
    ui::{self, CommandError},
};

use crate::{log::Log, page};

/// What `POST input` carries.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    text: String,
}

/// What `POST confirm` carries.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Confirmation {
    id: String,
    approved: bool,
}

/// What `POST cancel` carries.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// Answers a request.
pub(crate) fn answer(request: Request) -> Response {
    let response = match (request.method.as_str(), request.last_segment()) {
        ("GET" | "HEAD", "events") => events(&request),
        ("GET" | "HEAD", _) => return page::response(),
        ("POST", "input") => command(&request, |Input { text }| ui::submit_input(&text)),
        ("POST", "confirm") => command(&request, confirm),
        ("POST", "cancel") => command(&request, |Nothing {}| ui::cancel()),
        ("POST", _) => refusal(404, "there is nothing here"),
        _ => refusal(405, "only GET and POST are understood").header("Allow", "GET, HEAD, POST"),
    };
    response.header("Cache-Control", "no-store").header("X-Content-Type-Options", "nosniff")
}

fn events(request: &Request) -> Response {
    let after = request.query_value("after").unwrap_or_default();
    let after = after.parse().unwrap_or(0);
    session::with(|log: &mut Log| serve::json(200, &json!(log.news(after))))
}

/// A page of another site cannot send JSON here without asking first, and nobody answers that.
fn command<T: serde::de::DeserializeOwned>(
    request: &Request,
    run: impl FnOnce(T) -> Result<(), CommandError>,
) -> Response {
    if request.media_type() != "application/json" {
        return refusal(415, "send application/json");
    }
    let body: Result<T, BadRequest> = request.json();
    match body.map(run) {
        Ok(Ok(())) => serve::json(202, &json!({ "accepted": true })),
        Ok(Err(error)) => refusal(status(&error), &error.to_string()),
        Err(bad) => bad.into(),
    }
}

/// The question leaves the page at once, so that nobody answers it a second time.
fn confirm(Confirmation { id, approved }: Confirmation) -> Result<(), CommandError> {
    let approved = approved && session::with(|log: &mut Log| log.is_whole(&id));
    let outcome = ui::confirm(&id, approved);
    if matches!(outcome, Ok(()) | Err(CommandError::NoSuchQuestion)) {
        session::with(|log: &mut Log| log.close(&id));
    }
    outcome
}

fn status(error: &CommandError) -> u16 {
    match error {
        CommandError::NotGranted => 403,
        CommandError::NoSuchQuestion => 409,
        CommandError::Invalid { .. } => 400,
        CommandError::Full { .. } => 503,
        CommandError::Failed { .. } => 500,
    }
}

fn refusal(status: u16, reason: &str) -> Response {
    serve::json(status, &json!({ "error": reason }))
}
