//! A page with one message, for a browser that comes back from elsewhere.

use axum::response::Response;
use http::StatusCode;
use maud::{DOCTYPE, Markup, html};

use super::assets::made_page;

/// The text of the page. It may be foreign.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoticePage<'a> {
    /// The title of the window.
    pub(crate) title: &'a str,
    /// What has happened.
    pub(crate) heading: &'a str,
    /// Why, as a sentence.
    pub(crate) why: &'a str,
    /// What the user can do.
    pub(crate) hint: &'a str,
    /// Where a link leads, and its text.
    pub(crate) back: (&'a str, &'a str),
}

/// Shows a page.
pub(crate) fn show_notice(status: StatusCode, page: &NoticePage<'_>) -> Response {
    made_page(status, document(page).into_string())
}

fn document(page: &NoticePage<'_>) -> Markup {
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
                title { (page.title) " · Sallyport" }
            }
            body {
                main id="main" {
                    div.login {
                        h1 { (page.heading) }
                        p.trouble role="alert" { (sentence(page.why)) }
                        p { (page.hint) }
                        p { a href=(page.back.0) { (page.back.1) } }
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
        let page = NoticePage {
            title: "t",
            heading: "h",
            why: "refused: <script>alert(1)</script>\" onload=\"x",
            hint: "i",
            back: ("/console", "b"),
        };
        let page = document(&page).into_string();
        assert!(page.contains("Refused: &lt;script&gt;"), "{page}");
        assert!(!page.contains("<script"), "{page}");
    }
}
