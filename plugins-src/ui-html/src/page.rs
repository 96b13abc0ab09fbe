//! The page: one self-contained file, rendered for every request.

use data_encoding::BASE64;
use sallyport_sdk::{http::Response, log, settings};
use sha2::{Digest, Sha256};

/// The page, with placeholders.
const HTML: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = concat!(
    include_str!("page/markdown.js"),
    include_str!("page/views.js"),
    include_str!("page/page.js")
);

/// Returns the page. The policy allows only this script and this style, by digest, so that injected
/// markup has no effect.
pub(crate) fn response() -> Response {
    let html = HTML
        .replace("{{title}}", &escaped(&title()))
        .replace("{{style}}", STYLE)
        .replace("{{script}}", SCRIPT);
    let (script, style) = (digest(SCRIPT), digest(STYLE));
    let policy = format!(
        "default-src 'none'; script-src '{script}'; style-src '{style}'; connect-src 'self'; \
         img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    Response::new(200, html)
        .header("Content-Type", "text/html; charset=utf-8")
        .header("Content-Security-Policy", policy)
        .header("Cache-Control", "no-store")
        .header("Referrer-Policy", "no-referrer")
        .header("X-Content-Type-Options", "nosniff")
}

/// Returns the policy's name for an element with exactly this text.
fn digest(text: &str) -> String {
    format!("sha256-{}", BASE64.encode(&Sha256::digest(text)))
}

fn title() -> String {
    settings::get::<Option<String>>("title")
        .unwrap_or_else(|error| {
            log::warn(error);
            None
        })
        .unwrap_or_else(|| "Sallyport".to_owned())
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    // Keep the title from containing a placeholder.
    out.replace("{{", "{\u{200b}{")
}
