//! The page of a log-in at the identity server that failed. One that succeeds leads to the console.

use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use maud::{DOCTYPE, Markup, html};

use super::{assets::made_page, attempts::BLOCKED_SECONDS};
use crate::sign_on::SignOnRefusal;

/// Says why a log-in failed, and what to do.
pub(super) fn refused(refusal: &SignOnRefusal) -> Response {
    respond(refusal.status(), &format!("{}.", sentence(&refusal.to_string())), refusal.hint())
}

/// Says that an address failed too often.
pub(super) fn blocked() -> Response {
    let why = "Too many failed log-ins came from your address.";
    let mut page = respond(StatusCode::TOO_MANY_REQUESTS, why, "Try again in a minute.");
    page.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(BLOCKED_SECONDS));
    page
}

fn respond(status: StatusCode, why: &str, hint: &str) -> Response {
    made_page(status, document(why, hint).into_string())
}

fn document(why: &str, hint: &str) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="robots" content="noindex";
                link rel="icon" href="data:,";
                link rel="stylesheet" href="/console/console.css";
                title { "Log-in failed · Sallyport" }
            }
            body {
                main id="main" {
                    div.login {
                        h1 { "You are not logged in" }
                        p.trouble role="alert" { (why) }
                        p { (hint) }
                        p { a href="/console" { "Back to the log-in" } }
                    }
                }
            }
        }
    }
}

/// A text with a capital letter at its beginning.
fn sentence(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_server_stay_text() {
        let hostile = "<script>alert(1)</script>\" onload=\"x".to_owned();
        let refusal = SignOnRefusal::ByServer(hostile);
        let page = document(&sentence(&refusal.to_string()), refusal.hint()).into_string();
        assert!(page.contains("The identity server refused: &lt;script&gt;"), "{page}");
        assert!(!page.contains("<script"), "{page}");
    }
}
