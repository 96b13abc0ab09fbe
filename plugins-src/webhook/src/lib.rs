//! A listener that submits HTTP requests as input to a session.

use sallyport_sdk::{
    http::Response,
    inbox::{self, InboxError},
    listener::Listener,
    prelude::*,
    serve::{self, BadRequest, Request},
};

/// Maximum length of a sender's name, in characters. Longer names are cut.
const FROM_CHARS_MAX: usize = 80;

/// The body of a request.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Hook {
    /// The input.
    text: String,
    /// The sender.
    #[serde(default)]
    from: Option<String>,
}

/// A listener without signals, since requests arrive only over HTTP.
#[derive(Debug, Default)]
struct Webhook;

impl Listener for Webhook {}

/// Answers a request: `POST` submits input, and `GET …/health` reports that the plugin is running.
fn answer(request: Request) -> Response {
    match (request.method.as_str(), request.last_segment()) {
        ("POST", _) => post(&request),
        ("GET" | "HEAD", "health") => serve::json(200, &json!({ "status": "ok" })),
        _ => refusal(405, "send input with POST").header("Allow", "POST"),
    }
}

fn post(request: &Request) -> Response {
    let hook = match read(request) {
        Ok(Some(hook)) => hook,
        Ok(None) => return refusal(415, "send application/json or text/plain"),
        Err(bad) => return bad.into(),
    };
    match inbox::submit(&hook.text, hook.from.as_deref().and_then(name).as_deref()) {
        Ok(()) => serve::json(202, &json!({ "accepted": true })),
        Err(error) => refusal(status(&error), &error.to_string()),
    }
}

/// Parses the body of a request; `None` if its media type is not supported.
fn read(request: &Request) -> Result<Option<Hook>, BadRequest> {
    match request.media_type().as_str() {
        "application/json" => request.json().map(Some),
        "text/plain" => Ok(Some(Hook { text: request.text()?.to_owned(), from: None })),
        _ => Ok(None),
    }
}

fn name(from: &str) -> Option<String> {
    let from: String = from.trim().chars().take(FROM_CHARS_MAX).collect();
    (!from.is_empty()).then_some(from)
}

fn status(error: &InboxError) -> u16 {
    match error {
        InboxError::NotGranted => 403,
        InboxError::Invalid { .. } => 400,
        InboxError::Full { .. } => 503,
        InboxError::Failed { .. } => 500,
    }
}

fn refusal(status: u16, reason: &str) -> Response {
    serve::json(status, &json!({ "error": reason }))
}

sallyport_sdk::export_plugin!(listener = Webhook, http = answer);

#[cfg(test)]
mod tests {
    use sallyport_sdk::testing::{self, Power};

    use super::*;

    fn send(method: &str, path: &str, media_type: &str, body: &str) -> (u16, Value) {
        let request = Request::new(method, path).header("content-type", media_type).body(body);
        let response = answer(request);
        (response.status, response.json().unwrap())
    }

    #[test]
    fn what_is_posted_becomes_input_with_its_sender() {
        testing::grant([Power::Inbox]);
        let long = "x".repeat(FROM_CHARS_MAX + 1);
        for (media_type, body, text, from) in [
            (
                "application/json",
                json!({ "text": "Hi", "from": "Kim" }).to_string(),
                "Hi",
                Some("Kim"),
            ),
            ("application/json; charset=utf-8", r#"{"text":"Hi"}"#.to_owned(), "Hi", None),
            ("application/json", r#"{"text":"Hi","from":" "}"#.to_owned(), "Hi", None),
            (
                "application/json",
                json!({ "text": "a", "from": long }).to_string(),
                "a",
                Some(&long[..FROM_CHARS_MAX]),
            ),
            ("text/plain", "It rings. ünd".to_owned(), "It rings. ünd", None),
        ] {
            assert_eq!(send("POST", "/hooks", media_type, &body), (202, json!({"accepted": true})));
            let input = (text.to_owned(), from.map(str::to_owned));
            assert_eq!(testing::submitted(), [input]);
        }
    }

    #[test]
    fn what_cannot_be_taken_is_refused_with_its_status() {
        testing::grant([Power::Inbox]);
        for (method, path, media_type, body, status) in [
            ("POST", "/hooks", "application/json", "{", 400),
            ("POST", "/hooks", "application/json", "[]", 400),
            ("POST", "/hooks", "application/json", r#"{"from":"Kim"}"#, 400),
            ("POST", "/hooks", "application/json", r#"{"text":"a","admin":true}"#, 400),
            ("POST", "/hooks", "application/json", r#"{"text":" "}"#, 400),
            ("POST", "/hooks", "text/plain", "", 400),
            ("POST", "/hooks", "text/html", "<p>", 415),
            ("POST", "/hooks", "", "text=a", 415),
            ("GET", "/hooks", "", "", 405),
            ("DELETE", "/hooks/health", "", "", 405),
        ] {
            let (found, body) = send(method, path, media_type, body);
            assert_eq!(found, status, "{method} {path} {media_type}");
            assert!(body["error"].is_string());
        }
        assert_eq!(testing::submitted(), []);
        assert_eq!(
            answer(Request::new("POST", "/").header("Content-Type", "text/plain").body([0xff]))
                .status,
            400
        );
    }

    #[test]
    fn health_is_told_without_a_session() {
        assert_eq!(send("GET", "/hooks/health", "", ""), (200, json!({ "status": "ok" })));
        let (status, _) = send("POST", "/hooks", "text/plain", "Hi");
        assert_eq!(status, 403);
    }
}
