//! The HTTP endpoints of the page, below the path that the operator chose.
//!
//! | | |
//! |---|---|
//! | `GET ` | the page |
//! | `GET events?after=N` | the news since entry N |
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

/// The body of `POST input`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    text: String,
}

/// The body of `POST confirm`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Confirmation {
    id: String,
    approved: bool,
}

/// The body of `POST cancel`.
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

/// Runs a command with a JSON body. Browsers send JSON to another site only after a CORS preflight,
/// which this plugin does not allow.
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

/// Answers a question. It is removed from the page immediately, so that it cannot be answered
/// twice.
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
