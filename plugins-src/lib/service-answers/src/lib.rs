//! What services answer to a request that failed, for plugins that run the actions of a definition.
//!
//! Many services answer `{"error": {"message": …}}`, with words that name the cause in different
//! places beside it.

use sallyport_sdk::{http::Response, prelude::*};

/// Fields that name the cause of an error with a word, in the error or in its causes.
const CAUSE_FIELDS: [&str; 4] = ["reason", "code", "type", "param"];

/// Lists of causes in an error.
const CAUSE_LISTS: [&str; 2] = ["errors", "details"];

/// An answer that reports a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedAnswer {
    /// The status.
    pub status: u16,
    /// The message of the service, or the status if there is none that is understood.
    pub said: String,
    /// When to try again, as the end of a sentence; empty if the service does not say so.
    pub retry_text: String,
    causes: String,
}

impl FailedAnswer {
    /// Reads an answer. Anything is accepted, also HTML or nothing.
    pub fn read(response: &Response) -> Self {
        let answer = response.json::<Value>().unwrap_or_default();
        let error = &answer["error"];
        let message = error["message"].as_str().filter(|message| !message.is_empty());
        Self {
            status: response.status,
            said: message.map_or_else(
                || format!("the answer has status {}", response.status),
                str::to_owned,
            ),
            retry_text: retry_text(response),
            causes: cause_words(error),
        }
    }

    /// Whether a word that names the cause contains this text, which is in lower case.
    pub fn is_about(&self, text: &str) -> bool {
        self.causes.contains(text)
    }
}

/// The words that name the causes of an error, in lower case.
fn cause_words(error: &Value) -> String {
    let lists = CAUSE_LISTS.iter().filter_map(|list| error[*list].as_array());
    let causes = lists.flatten().chain([error]);
    let words =
        causes.flat_map(|cause| CAUSE_FIELDS.iter().filter_map(|field| cause[*field].as_str()));
    words.collect::<Vec<_>>().join(" ").to_ascii_lowercase()
}

fn retry_text(response: &Response) -> String {
    match response.header_value("retry-after").map(str::parse::<u32>) {
        Some(Ok(seconds)) => format!("; try again in {seconds} seconds"),
        // A date, which a model cannot compare with its own time.
        Some(Err(_)) | None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_of_a_failure_is_read() {
        for (body, said, cause) in [
            (r#"{"error": {"message": "m", "reason": "NO_DEVICE"}}"#, "m", "no_device"),
            (
                r#"{"error": {"message": "m", "code": 401, "errors": [{"reason": "authError"}]}}"#,
                "m",
                "autherror",
            ),
            (
                r#"{"error": {"details": [{"reason": "SCOPE"}]}}"#,
                "the answer has status 403",
                "scope",
            ),
            (
                r#"{"error": {"message": "", "code": null, "param": "tools"}}"#,
                "the answer has status 403",
                "tools",
            ),
            (r#"{"error": "invalid_token"}"#, "the answer has status 403", ""),
            ("<html>Bad Gateway</html>", "the answer has status 403", ""),
            ("", "the answer has status 403", ""),
            ("[]", "the answer has status 403", ""),
        ] {
            let failed = FailedAnswer::read(&Response::new(403, body));
            assert_eq!(failed.said, said, "{body}");
            assert!(failed.is_about(cause) && !failed.is_about("other"), "{body}: {failed:?}");
        }
    }

    #[test]
    fn a_time_to_try_again_is_said_if_it_is_a_number() {
        for (value, want) in [
            ("7", "; try again in 7 seconds"),
            ("-1", ""),
            ("99999999999", ""),
            ("Wed, 21 Oct 2026 07:28:00 GMT", ""),
        ] {
            let response = Response::new(429, "").header("Retry-After", value);
            assert_eq!(FailedAnswer::read(&response).retry_text, want, "{value}");
        }
    }
}
