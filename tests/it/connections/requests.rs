//! Actions that say their own request, against servers that check what they are sent.

use serde_json::{Value, json};

use crate::support::{Home, Response, Server, warden::entry};

/// A plugin with one action that may do everything at this server.
fn home_with_action(server: &Server, auth: &str, action: &str) -> Home {
    let definition = format!(
        r#"{{"plugin": {{"name": "p", "version": "1.0.0", "description": "d"{auth}}},
            "actions": {{"do": {{"description": "d", "parameters": {{"type": "object",
            "required": ["id"], "properties": {{"id": {{"type": "string"}}, "n": {{"type": "integer"}}}}}},
            {action}}}}}}}"#
    );
    let policy = format!(
        "[plugin.p]\nnet = [{}]\n[[rule]]\ntool = \"p.*\"\ndecision = \"allow\"\n",
        entry(server, "")
    );
    Home::new().file("plugins/p.json", definition).policy(policy)
}

#[test]
fn an_action_sends_its_request_and_fills_its_message() {
    let server = Server::saying(r#"{"data": {"sources": [1, 2], "title": "x"}}"#);
    let url = server.url();
    let action = format!(
        r#""request": {{"method": "POST", "url": "{url}/items/{{id}}", "query": {{"n": "{{n}}"}},
            "headers": {{"X-Id": "{{id}}"}}, "json": {{"id": "{{id}}", "n": "{{n}}"}}, "result": "data"}},
            "output_guidance": {{"success_message": "Found {{source_count}} sources for {{id}}"}}"#
    );
    let auth =
        r#", "auth_config": {"auth_type": "platform_key", "client_secret": "${SERVICE_KEY}"}"#;
    let home = home_with_action(&server, auth, &action).env("SERVICE_KEY", "the-service-key-zq47");
    let (report, code) = home.call("p.do", &json!({"id": "a b", "n": 3}));
    assert_eq!((&report["outcome"], code), (&json!("completed"), 0), "{report}");
    assert_eq!(report["result"]["data"]["sources"], json!([1, 2]), "{report}");
    assert!(report.to_string().contains("Found 2 sources for a b"), "{report}");
    let seen = &server.seen()[0];
    assert_eq!((seen.method.as_str(), seen.target.as_str()), ("POST", "/items/a%20b?n=3"));
    assert_eq!(seen.header("x-id"), Some("a b"));
    assert_eq!(seen.header("authorization"), Some("Bearer the-service-key-zq47"));
    assert_eq!(serde_json::from_str::<Value>(&seen.body).unwrap(), json!({"id": "a b", "n": 3}));
    assert!(!report.to_string().contains("zq47"), "{report}");
    home.run(&["audit", "show", "--output", "json"])
        .ended(0)
        .answers(&["/items/a"])
        .hides(&["zq47"]);
}

#[test]
fn without_a_grant_nothing_is_sent() {
    let server = Server::saying("{}");
    let action = format!(r#""request": {{"url": "{}/items/{{id}}"}}"#, server.url());
    let home = home_with_action(&server, "", &action)
        .policy("[[rule]]\ntool = \"p.*\"\ndecision = \"allow\"\n");
    let (report, _) = home.call("p.do", &json!({"id": "1"}));
    assert_eq!(report["outcome"], "denied", "{report}");
    assert!(server.seen().is_empty());
    // The definition's own addresses are its request.
    home.run(&["plugin", "show", "p"]).ended(0).answers(&[&format!("{}/items/*", server.url())]);
}

#[test]
fn what_a_service_answers_becomes_a_result_or_a_plain_failure() {
    let html = ("text/html", "<html>Bad Gateway</html>");
    for (status, (media_type, body), own, want) in [
        (502, html, "{}", "the service answered 502 with an HTML page"),
        (200, html, "{}", "the service answered 200 with an HTML page"),
        (500, ("application/json", ""), "{}", "the service answered 500 with nothing"),
        (404, ("application/json", r#"{"message": "no such item"}"#), "{}", "no such item"),
        (429, ("application/json", "{}"), r#"{"rate_limited": "Slow down."}"#, "Slow down."),
        (401, ("application/json", "{}"), r#"{"auth_failed": "Sign in."}"#, "Sign in."),
        (302, ("text/plain", ""), "{}", "the service answered 302 with nothing"),
    ] {
        let server = Server::start(move |_| {
            let headers = [("content-type", media_type), ("location", "http://evil.example/")];
            Response::with(status, &headers, body)
        });
        let action = format!(
            r#""request": {{"url": "{}/items/{{id}}"}}, "output_guidance": {{"common_errors": {own}}}"#,
            server.url()
        );
        let (report, _) = home_with_action(&server, "", &action).call("p.do", &json!({"id": "1"}));
        assert!(report.to_string().contains(want), "{status}: {report}");
        assert_ne!(report["outcome"], "completed", "{report}");
        assert_eq!(server.seen().len(), 1, "{status}");
    }
}

#[test]
fn an_argument_cannot_leave_its_path_and_pages_have_a_bound() {
    let server = Server::start(|request| {
        let number = request.target.rsplit_once("page=").map_or("1", |(_, number)| number);
        Response::ok(&format!(r#"{{"items": [{number}], "next": "x{number}"}}"#))
    });
    let action = format!(
        r#""request": {{"url": "{}/items/{{id}}", "result": "items",
            "pages": {{"next": "number", "query": "page", "max": 3}}}}"#,
        server.url()
    );
    let home = home_with_action(&server, "", &action);
    for id in ["..", ".", ""] {
        let (report, _) = home.call("p.do", &json!({ "id": id }));
        assert_eq!(report["outcome"], "invalid-arguments", "{report}");
    }
    assert!(server.seen().is_empty());
    let (report, _) = home.call("p.do", &json!({"id": "1"}));
    assert_eq!(report["result"], json!({"items": [1, 2, 3], "has_more": true}), "{report}");
    assert_eq!(server.seen().len(), 3);
}
