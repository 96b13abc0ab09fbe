//! The files of the console, compiled in.

use axum::{
    extract::Path,
    response::{IntoResponse, Response},
};
use http::{HeaderName, HeaderValue, StatusCode, header};

use crate::problem::Problem;

/// What a page may do: run its own scripts and styles, and speak with this service. Nothing of
/// another host, nothing inline, no frame around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                      connect-src 'self'; img-src 'self' data:; form-action 'self'; \
                      frame-ancestors 'none'; base-uri 'none'";

/// The media type of pages.
pub(crate) const HTML_TYPE: &str = "text/html; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// A name below `/console/`, with its media type and its text.
type ConsoleAsset = (&'static str, &'static str, &'static str);

/// Every file except the page, which has no name of its own.
const ASSETS: &[ConsoleAsset] = &[
    ("api.js", SCRIPT, include_str!("assets/api.js")),
    ("app.js", SCRIPT, include_str!("assets/app.js")),
    ("approval_card.js", SCRIPT, include_str!("assets/approval_card.js")),
    ("approval_form.js", SCRIPT, include_str!("assets/approval_form.js")),
    ("approval_list.js", SCRIPT, include_str!("assets/approval_list.js")),
    ("approvals.js", SCRIPT, include_str!("assets/approvals.js")),
    ("audit.js", SCRIPT, include_str!("assets/audit.js")),
    ("chat.js", SCRIPT, include_str!("assets/chat.js")),
    ("connections.js", SCRIPT, include_str!("assets/connections.js")),
    ("console.css", STYLE, include_str!("assets/console.css")),
    ("dom.js", SCRIPT, include_str!("assets/dom.js")),
    ("grants.js", SCRIPT, include_str!("assets/grants.js")),
    ("history.js", SCRIPT, include_str!("assets/history.js")),
    ("login.js", SCRIPT, include_str!("assets/login.js")),
    ("markdown.js", SCRIPT, include_str!("assets/markdown.js")),
    ("plugins.js", SCRIPT, include_str!("assets/plugins.js")),
    ("schema_form.js", SCRIPT, include_str!("assets/schema_form.js")),
    ("session_view.js", SCRIPT, include_str!("assets/session_view.js")),
    ("transcript.js", SCRIPT, include_str!("assets/transcript.js")),
    ("usage.js", SCRIPT, include_str!("assets/usage.js")),
];

const PAGE: ConsoleAsset = ("", HTML_TYPE, include_str!("assets/index.html"));

pub(super) async fn page() -> Response {
    respond(&PAGE)
}

pub(super) async fn asset(Path(name): Path<String>) -> Result<Response, Problem> {
    let found = ASSETS.iter().find(|(known, ..)| *known == name);
    found.map(respond).ok_or_else(|| Problem::not_found("the console has no such file"))
}

fn respond((_, media_type, text): &ConsoleAsset) -> Response {
    (page_headers(media_type), *text).into_response()
}

/// A page that is made for one answer.
pub(super) fn made_page(status: StatusCode, html: String) -> Response {
    (status, page_headers(HTML_TYPE), html).into_response()
}

fn page_headers(media_type: &'static str) -> [(HeaderName, HeaderValue); 3] {
    [
        (header::CONTENT_TYPE, HeaderValue::from_static(media_type)),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            HeaderValue::from_static("same-origin"),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use super::*;

    #[test]
    fn no_file_runs_text_or_loads_from_elsewhere() {
        let ways = [
            "innerHTML",
            "outerHTML",
            "insertAdjacent",
            "document.write",
            "DOMParser",
            "eval",
            "Function(",
            "style=",
            "onclick=",
            "onload=",
            "setAttribute(\"on",
            "<style",
            "localStorage",
            "http://",
            "https://",
            "url(",
            "@import",
        ];
        for (name, _, text) in ASSETS.iter().chain([&PAGE]) {
            for way in ways {
                assert!(!text.contains(way), "{name} contains {way}");
            }
            let lines = text.lines().count();
            assert!(lines <= 300, "{name} has {lines} lines; split it");
        }
        let (.., page) = PAGE;
        assert_eq!(page.matches("<script").count(), 1);
        assert!(page.contains("<script type=\"module\" src=\"/console/app.js\"></script>"));
    }

    #[test]
    fn every_file_is_served_and_every_import_is_a_file() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/console/assets");
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let files: BTreeSet<String> = files.map(|name| name.into_string().unwrap()).collect();
        let mut served: BTreeSet<String> =
            ASSETS.iter().map(|(name, ..)| (*name).to_owned()).collect();
        for (name, _, text) in ASSETS {
            let imports = text.lines().filter_map(|line| line.split_once(" from \"./"));
            for (_, rest) in imports {
                let import = rest.trim_end_matches("\";");
                assert!(served.contains(import), "{name} imports {import}");
            }
        }
        served.insert("index.html".to_owned());
        assert_eq!(files, served);
    }
}
