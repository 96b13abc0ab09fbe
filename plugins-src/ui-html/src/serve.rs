//! The HTTP endpoints of the page, below the path that the operator chose.
//!
//! | | |
//! |---|---|
//! | `GET ` | the page |
//! | `GET events?after=N` | the news since entry N |
//! | `GET entry?number=N` | the whole text of entry N |
//! | `GET session` | the model, the tools, what plugins may do, and the audit |
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
        ("GET" | "HEAD", "entry") => entry(&request),
        ("GET" | "HEAD", "session") => {
            session::with(|log: &mut Log| serve::json(200, &json!(log.facts)))
        }
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
    let after = number(request, "after").unwrap_or(0);
    session::with(|log: &mut Log| serve::json(200, &json!(log.news(after))))
}

fn entry(request: &Request) -> Response {
    let number = number(request, "number");
    session::with(|log: &mut Log| match number.and_then(|number| log.text(number)) {
        Some(text) => serve::json(200, &json!({ "text": text })),
        None => refusal(404, "this entry is not kept"),
    })
}

fn number(request: &Request, name: &str) -> Option<u64> {
    request.query_value(name)?.parse().ok()
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
    session::with(|log: &mut Log| match outcome {
        Ok(()) => log.answered(&id, approved),
        Err(CommandError::NoSuchQuestion) => log.close(&id),
        Err(_) => {}
    });
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
