//! Issues and pull requests, by a definition without code, against a server that answers as the
//! real service does: it wants a name of the program, has pages, limits, and messages of its own.

use serde_json::{Value, json};

use super::{logins::connect_to, policy_of};
use crate::support::{
    Home, Response,
    home::repository,
    identity::{Identity, IdentityServer},
    server::Request,
};

/// Answers before the service where the real one does not get as far.
fn refuse_what_the_service_refuses(_: &Identity, request: &Request) -> Option<Response> {
    let is_service = request.target.starts_with("/repos/") || request.target.starts_with("/search");
    let has = |name: &str, value: &str| request.header(name).is_some_and(|all| all.contains(value));
    let message = match () {
        () if !is_service => return None,
        () if !has("user-agent", "sallyport/") => "Request forbidden by administrative rules.",
        () if !has("accept", "application/vnd.github+json") => "Must accept the media type",
        () => return None,
    };
    Some(refusal(403, &[], message))
}

fn refusal(status: u16, headers: &[(&str, &str)], message: &str) -> Response {
    let headers = [&[("content-type", "application/json; charset=utf-8")], headers].concat();
    Response::with(status, &headers, &json!({ "message": message }).to_string())
}

fn issues(numbers: impl Iterator<Item = u32>) -> Response {
    let all: Vec<Value> =
        numbers.map(|number| json!({ "number": number, "title": "Pages are lost" })).collect();
    Response::ok(&json!(all).to_string())
}

/// A user whose account is connected to the server. `is_asked`: the definition's own question stays.
fn connected(is_asked: bool) -> (IdentityServer, Home) {
    let identity = IdentityServer::start_before(refuse_what_the_service_refuses);
    let url = identity.server.url();
    let path = repository().join("plugins-src/definitions/github.json");
    let definition = std::fs::read_to_string(path)
        .unwrap()
        .replace("https://github.com/login/oauth/authorize", &format!("{url}/authorize"))
        .replace("https://github.com/login/oauth/access_token", &format!("{url}/token"))
        .replace("https://api.github.com/user", &format!("{url}/profile"))
        .replace("https://api.github.com", &url);
    let definition =
        if is_asked { definition } else { definition.replace("\"true\"", "\"false\"") };
    let requests = [
        "GET /repos/*/*/issues",
        "GET /repos/*/*/pulls",
        "GET /search/issues",
        "POST /repos/*/*/issues",
    ];
    let home = Home::new()
        .file("plugins/github.json", definition)
        .policy(policy_of("github", &url, &requests))
        .env("GITHUB_CLIENT_ID", "the-client")
        .env("GITHUB_CLIENT_SECRET", crate::support::identity::CLIENT_SECRET)
        .env("SALLYPORT_BROWSER", "none");
    connect_to("github", &home, &identity);
    (identity, home)
}

#[test]
fn issues_and_pull_requests_are_listed_by_page_and_searched() {
    let (identity, home) = connected(true);
    let repository = json!({ "owner": "rust-lang", "repo": "a b" });
    let labelled = json!({ "owner": "o", "repo": "r", "state": "all", "labels": "bug,p1" });
    let found = r#"{"total_count": 1, "incomplete_results": false, "items": [{"number": 7}]}"#;
    for (tool, arguments, answers, asked, result) in [
        (
            "list_issues",
            &repository,
            vec![issues(1..51), issues(51..53)],
            vec![
                "GET /repos/rust-lang/a%20b/issues?per_page=50&state=open",
                "GET /repos/rust-lang/a%20b/issues?per_page=50&state=open&page=2",
            ],
            (52, false),
        ),
        (
            "list_issues",
            &labelled,
            vec![issues(1..51), issues(51..101)],
            vec![
                "GET /repos/o/r/issues?labels=bug%2Cp1&per_page=50&state=all",
                "GET /repos/o/r/issues?labels=bug%2Cp1&per_page=50&state=all&page=2",
            ],
            (100, true),
        ),
        (
            "list_pull_requests",
            &repository,
            vec![issues(0..0)],
            vec!["GET /repos/rust-lang/a%20b/pulls?per_page=50&state=open"],
            (0, false),
        ),
    ] {
        identity.with(|state| (state.accepted.clear(), state.answers = answers));
        let (report, code) = home.call(&format!("github.{tool}"), arguments);
        assert_eq!((&report["outcome"], code), (&json!("completed"), 0), "{report}");
        assert_eq!(report["result"]["items"].as_array().map(Vec::len), Some(result.0), "{report}");
        assert_eq!(report["result"]["has_more"], json!(result.1), "{report}");
        let accepted = identity.with(|state| state.accepted.clone());
        assert_eq!(accepted.iter().map(|(what, _)| what.as_str()).collect::<Vec<_>>(), asked);
    }
    identity.with(|state| (state.accepted.clear(), state.answers = vec![Response::ok(found)]));
    let query = json!({ "query": "repo:o/r is:open \"a & b\"" });
    let (report, _) = home.call("github.search_issues", &query);
    assert_eq!(report["result"], json!([{ "number": 7 }]), "{report}");
    let asked = "GET /search/issues?per_page=30&q=repo%3Ao%2Fr+is%3Aopen+%22a+%26+b%22";
    assert_eq!(identity.with(|state| state.accepted[0].0.clone()), asked);
}

#[test]
fn an_issue_is_opened_after_a_question_and_without_the_fields_that_are_left_out() {
    let (identity, home) = connected(true);
    let issue = json!({ "owner": "o", "repo": "r", "title": "Ünïcode \"quoted\"" });
    let (report, code) = home.call("github.create_issue", &issue);
    assert_eq!(code, 6, "nobody is there to confirm: {report}");
    assert!(report.to_string().contains("in o/r?"), "{report}");
    assert!(identity.with(|state| state.accepted.is_empty()));
    let opened = r#"{"number": 9, "html_url": "https://github.example/o/r/issues/9"}"#;
    let headers = [("content-type", "application/json"), ("location", "https://github.example/9")];
    let (identity, home) = connected(false);
    identity.with(|state| state.answers = vec![Response::with(201, &headers, opened)]);
    let (report, _) = home.call("github.create_issue", &issue);
    assert_eq!(report["outcome"], "completed", "{report}");
    let message = "Opened issue 9: https://github.example/o/r/issues/9";
    assert!(report.to_string().contains(message), "{report}");
    let (_, body) = identity.with(|state| state.accepted[0].clone());
    assert_eq!(body, r#"{"title":"Ünïcode \"quoted\""}"#);
}

#[test]
fn each_refusal_of_the_service_is_said_plainly() {
    let (identity, home) = connected(true);
    let limit = "API rate limit exceeded for user ID 7.";
    let invalid = "Validation Failed";
    for (answer, outcome, want) in [
        (refusal(404, &[], "Not Found"), "failed", "There is no such repository"),
        (refusal(410, &[], "Issues are disabled for this repo"), "failed", "switched off"),
        (refusal(422, &[], invalid), "invalid-arguments", invalid),
        (refusal(403, &[("x-ratelimit-remaining", "0")], limit), "failed", limit),
        (refusal(403, &[("retry-after", "60")], "secondary limit"), "failed", "60 seconds"),
        (refusal(403, &[], "Resource not accessible"), "failed", "Resource not accessible"),
        (refusal(429, &[("retry-after", "5")], "slow down"), "failed", "after 5 seconds"),
        (refusal(503, &[], "No server is available"), "failed", "No server is available"),
        (Response::with(502, &[("content-type", "text/html")], "<html>"), "failed", "502"),
    ] {
        identity.with(|state| state.answers = vec![answer]);
        let (report, _) = home.call("github.list_issues", &json!({ "owner": "o", "repo": "r" }));
        assert_eq!(report["outcome"], outcome, "{want}: {report}");
        assert!(report.to_string().contains(want), "{want}: {report}");
    }
    let limited = refusal(403, &[("x-ratelimit-remaining", "0")], limit);
    identity.with(|state| state.answers = vec![limited]);
    let (report, _) = home.call("github.search_issues", &json!({ "query": "is:open" }));
    assert!(report.to_string().contains("GitHub allows 30 searches a minute."), "{report}");
    assert_eq!(identity.with(|state| state.refreshes), 0, "no refusal is about the token");
    // The token has ended.
    identity.with(|state| (state.access.clear(), state.answers = vec![issues(0..0)]));
    let (report, _) = home.call("github.list_issues", &json!({ "owner": "o", "repo": "r" }));
    assert_eq!(report["outcome"], "completed", "{report}");
    assert_eq!(identity.with(|state| state.refreshes), 1);
}
