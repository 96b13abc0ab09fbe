//! Reads the service's answers: what was sent, and what went wrong.
//!
//! A message that may have been sent is reported as such, because sending it again would send it
//! twice.

use sallyport_sdk::{
    SignIn, ToolError,
    http::{HttpError, Response},
    prelude::*,
};
use service_answers::FailedAnswer;

/// The permission that sending needs.
const SEND_SCOPE: &str = "https://www.googleapis.com/auth/gmail.send";

/// Returns the message that was sent, as the service names it.
pub(crate) fn read_answer(response: Response) -> Result<Value, ToolError> {
    if !(200..=299).contains(&response.status) {
        return Err(read_error(&response));
    }
    let sent: Value = response.json().map_err(unclear_end)?;
    match sent["id"].is_string() {
        true => Ok(sent),
        false => Err(unclear_end(HttpError::Body { reason: "it names no message".to_owned() })),
    }
}

/// The error of a request whose effect is not known.
pub(crate) fn unclear_end(error: HttpError) -> ToolError {
    match error {
        HttpError::Timeout { .. } | HttpError::Unreachable { .. } | HttpError::Body { .. } => {
            let advice = "The message may have been sent: look at the sent mail before you send it \
                          again.";
            ToolError::Unavailable(format!("{error}. {advice}"))
        }
        error => error.into(),
    }
}

fn read_error(response: &Response) -> ToolError {
    let failed = FailedAnswer::read(response);
    let message = format!("Gmail did not send the message: {}", failed.said);
    match failed.status {
        401 => ToolError::AuthRequired(SignIn::new(message).connection("google-mail")),
        403 if failed.is_about("insufficient") => {
            let message = format!("{message}. The account was connected without this permission");
            let sign_in = SignIn::new(message).connection("google-mail").scope(SEND_SCOPE);
            ToolError::AuthRequired(sign_in)
        }
        403 if failed.is_about("limit") || failed.is_about("quota") => {
            ToolError::Unavailable(message)
        }
        400 | 413 => ToolError::InvalidArguments(message),
        429 | 503 => ToolError::Unavailable(message + &failed.retry_text),
        500.. => ToolError::Unavailable(message),
        _ => ToolError::Failed(message),
    }
}

#[cfg(test)]
mod tests {
    use sallyport_sdk::testing;

    use super::*;
    use crate::{SEND_PATH, send_email};

    fn send(answer: Result<Response, HttpError>) -> Result<Output, ToolError> {
        testing::settings(json!({ "gmail_url": "https://mail.example/" }));
        testing::http(move |request| {
            assert_eq!(request.url, format!("https://mail.example{SEND_PATH}"));
            assert!(request.headers.iter().all(|(name, _)| name != "Authorization"));
            answer.clone()
        });
        testing::call::<send_email>(json!({
            "recipients": { "to": ["ann@example.com"] }, "content": { "subject": "Hi" },
        }))
    }

    #[test]
    fn what_was_sent_is_returned() {
        let answer = Response::new(200, r#"{"id": "1", "threadId": "2", "labelIds": ["SENT"]}"#);
        assert_eq!(send(Ok(answer)).unwrap().data["threadId"], "2");
    }

    #[track_caller]
    fn check(answer: Response, kind: &str, want: &str) {
        let error = send(Ok(answer)).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains(want), "{error}");
    }

    #[test]
    fn each_refusal_of_the_service_says_what_to_do() {
        let error = |code: u16, reason: &str, message: &str| {
            let error = json!({"code": code, "message": message, "errors": [{"reason": reason}]});
            Response::new(code, json!({ "error": error }).to_string())
        };
        check(error(401, "authError", "Invalid Credentials"), "auth-required", "Invalid Cred");
        let scope = error(403, "insufficientPermissions", "Request had insufficient scopes.");
        check(scope, "auth-required", "connected without this permission");
        let details =
            json!({"error": {"details": [{"reason": "ACCESS_TOKEN_SCOPE_INSUFFICIENT"}]}});
        check(Response::new(403, details.to_string()), "auth-required", "without this permission");
        check(error(403, "dailyLimitExceeded", "Daily Limit"), "unavailable", "Daily Limit");
        check(error(403, "domainPolicy", "The domain forbids it"), "failed", "The domain forbids");
        let slow = error(429, "rateLimitExceeded", "Too many").header("Retry-After", "30");
        check(slow, "unavailable", "Too many; try again in 30 seconds");
        check(error(400, "invalidArgument", "Invalid To header"), "invalid-arguments", "To header");
        check(Response::new(502, "<html>Bad Gateway</html>"), "unavailable", "status 502");
    }

    #[test]
    fn a_message_that_may_have_been_sent_is_reported_as_such() {
        let origin = || "https://mail.example".to_owned();
        for answer in [
            Ok(Response::new(200, "<html>Sign in</html>")),
            Ok(Response::new(200, "{}")),
            Err(HttpError::Unreachable { origin: origin(), reason: "reset".to_owned() }),
            Err(HttpError::Timeout { origin: origin(), waited: std::time::Duration::MAX }),
        ] {
            let error = send(answer).unwrap_err();
            assert!(error.message().contains("may have been sent"), "{error}");
        }
        let denied = send(Err(HttpError::Denied { origin: origin() })).unwrap_err();
        assert_eq!(denied.kind(), "denied");
    }
}
