//! Tests of the page and its endpoints, as a browser uses them.

use data_encoding::BASE64;
use sallyport_sdk::{
    http::Response,
    prelude::*,
    serve::Request,
    session,
    testing::{self, Power},
    ui::{Activity, Author, CallRequest, CallResult, Command, Format, Message},
};
use sha2::{Digest, Sha256};

use super::*;

fn happens(event: Event) {
    session::with(|log: &mut Log| log.on_event(event));
}

fn get(path: &str) -> Response {
    serve::answer(Request::new("GET", path))
}

fn events(after: &str) -> Value {
    get(&format!("/ui/events?after={after}")).json().unwrap()
}

fn post(path: &str, body: &str) -> u16 {
    let request = Request::new("POST", path).header("Content-Type", "application/json");
    serve::answer(request.body(body)).status
}

fn question(id: u64) {
    testing::question(id);
    let mut request = CallRequest::new(id, "files.remove", json!({ "path": "/a<b>" }));
    request.security_warning = Some("It can change files.".to_owned());
    happens(Event::ToolCallRequested(request));
}

#[test]
fn everything_that_happens_gets_to_the_page() {
    let message = Message {
        format: Format::Markdown,
        origin: Some("webhook".to_owned()),
        ..Message::new(Author::User, "<b>Hi</b>")
    };
    happens(Event::NewMessage(message));
    happens(Event::StateChanged(Activity::Thinking));
    happens(Event::Delta("Good ".to_owned()));
    happens(Event::Delta("mor".to_owned()));
    let result = |outcome: &str, data| {
        let (call_id, tool) = ("call-1".to_owned(), "lamp.on".to_owned());
        Event::ToolCallFinished(CallResult { call_id, tool, outcome: outcome.to_owned(), data })
    };
    happens(result("completed", json!({ "big": "data" })));
    happens(result("failed", json!({ "outcome": "failed", "error": "no lamp" })));
    question(7);
    assert_eq!(
        events("0"),
        json!({
            "next": 3,
            "skipped": false,
            "events": [
                { "number": 0, "kind": "message", "author": "user", "format": "markdown",
                  "text": "<b>Hi</b>", "bytes": 9, "more": 0, "origin": "webhook" },
                { "number": 1, "kind": "call", "tool": "lamp.on", "outcome": "completed",
                  "answer": null, "text": "{\n  \"big\": \"data\"\n}", "bytes": 19, "more": 0 },
                { "number": 2, "kind": "call", "tool": "lamp.on", "outcome": "failed",
                  "answer": null, "text": "no lamp", "bytes": 7, "more": 0 },
            ],
            "questions": [{ "id": "7", "tool": "files.remove",
                "arguments": "{\n  \"path\": \"/a<b>\"\n}", "warning": "It can change files.",
                "is_cut": false }],
            "state": "thinking",
            "draft": "Good mor",
            "draft_is_cut": false,
            "facts": 0,
        })
    );
    happens(Event::NewMessage(Message::new(Author::Assistant, "Good morning.")));
    happens(Event::ConfirmationClosed("7".to_owned()));
    let news = events("3");
    assert_eq!((&news["draft"], &news["questions"]), (&json!(""), &json!([])));
    assert_eq!(news["events"][0]["text"], "Good morning.");
    assert_eq!(events("")["next"], 4);
    assert_eq!(events("-1")["events"].as_array().unwrap().len(), 4);
}

#[test]
fn facts_and_long_texts_have_addresses_of_their_own() {
    happens(Event::Other(json!({ "type": "session", "model": "m", "tools": [] })));
    assert_eq!(events("0")["facts"], 1);
    let told: Value = get("/ui/session").json().unwrap();
    assert_eq!((&told["model"], &told["records"]), (&json!("m"), &json!([])));
    happens(Event::NewMessage(Message::new(Author::User, "all of it")));
    let told: Value = get("/ui/entry?number=0").json().unwrap();
    assert_eq!(told, json!({ "text": "all of it" }));
    for query in ["", "?number=1", "?number=-1", "?number=x"] {
        assert_eq!(get(&format!("/ui/entry{query}")).status, 404, "{query}");
    }
}

#[test]
fn a_finished_call_shows_what_the_user_answered() {
    testing::grant([Power::Ui]);
    for (id, answer) in [(7_u64, "approved"), (8, "denied")] {
        testing::question(id);
        let call_id = format!("call-{id}");
        let request = CallRequest::new(id, "lamp.on", json!({}));
        happens(Event::ToolCallRequested(CallRequest { call_id: call_id.clone(), ..request }));
        let body = json!({ "id": id.to_string(), "approved": answer == "approved" });
        assert_eq!(post("/ui/confirm", &body.to_string()), 202);
        let (tool, outcome) = ("lamp.on".to_owned(), "completed".to_owned());
        let result = CallResult { call_id, tool, outcome, data: Value::Null };
        happens(Event::ToolCallFinished(result.clone()));
        happens(Event::ToolCallFinished(result));
        let after = events("0")["next"].as_u64().unwrap() - 2;
        let told = events(&after.to_string());
        let answers = [&told["events"][0]["answer"], &told["events"][1]["answer"]];
        assert_eq!(answers, [&json!(answer), &Value::Null]);
    }
}

#[test]
fn what_the_person_does_becomes_a_command() {
    testing::grant([Power::Ui]);
    question(7);
    question(8);
    assert_eq!(post("/ui/input", r#"{"text":"Hello"}"#), 202);
    assert_eq!(post("/ui/confirm", r#"{"id":"7","approved":true}"#), 202);
    assert_eq!(post("/ui/confirm", r#"{"id":"8","approved":false}"#), 202);
    assert_eq!(post("/ui/cancel", "{}"), 202);
    happens(Event::Line("typed".to_owned()));
    let confirm =
        |id: u64, approved| Command::Confirm { confirmation_id: id.to_string(), approved };
    let submit = |text: &str| Command::SubmitInput(text.to_owned());
    assert_eq!(
        testing::commands(),
        [submit("Hello"), confirm(7, true), confirm(8, false), Command::Cancel, submit("typed")]
    );
    assert_eq!(events("0")["questions"], json!([]));
}

#[test]
fn what_cannot_be_done_is_refused_with_its_status() {
    for path in ["/ui/input", "/input"] {
        assert_eq!(post(path, r#"{"text":"Hello"}"#), 403);
    }
    testing::grant([Power::Ui]);
    question(7);
    for (path, body, status) in [
        ("/ui/confirm", r#"{"id":"9","approved":true}"#, 409),
        ("/ui/confirm", r#"{"id":"7","approved":false}"#, 202),
        ("/ui/confirm", r#"{"id":"7","approved":true}"#, 409),
        ("/ui/confirm", r#"{"id":7,"approved":true}"#, 400),
        ("/ui/confirm", r#"{"id":"7"}"#, 400),
        ("/ui/confirm", r#"{"id":-1,"approved":true}"#, 400),
        ("/ui/input", "{", 400),
        ("/ui/input", r#"{"text":""}"#, 400),
        ("/ui/input", r#"{"text":"a","admin":1}"#, 400),
        ("/ui/cancel", "7", 400),
        ("/ui/", "{}", 404),
        ("/ui/other", "{}", 404),
    ] {
        assert_eq!(post(path, body), status, "{path} {body}");
    }
    let form = Request::new("POST", "/ui/input").header("Content-Type", "text/plain");
    assert_eq!(serve::answer(form.body(r#"{"text":"a"}"#)).status, 415);
    assert_eq!(serve::answer(Request::new("DELETE", "/ui")).status, 405);
    let confirm = Command::Confirm { confirmation_id: "7".to_owned(), approved: false };
    assert_eq!(testing::commands(), [confirm]);
}

#[test]
fn the_page_is_whole_and_shut() {
    testing::settings(json!({ "title": "<i>\"Ada\" & {{script}}" }));
    for path in ["/", "/ui", "/ui/", "/ui/deeper"] {
        let page = get(path);
        let policy = page.header_value("content-security-policy").unwrap().to_owned();
        let html = page.text().unwrap();
        for (tag, rule) in [("script", "script-src"), ("style", "style-src")] {
            let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
            assert_eq!(html.matches(&format!("<{tag}")).count(), 1);
            let inside = html.split(&open).nth(1).unwrap().split(&close).next().unwrap();
            let digest = BASE64.encode(&Sha256::digest(inside));
            assert!(policy.contains(&format!("{rule} 'sha256-{digest}'")), "{policy}");
        }
        assert!(policy.starts_with("default-src 'none';"), "{policy}");
        assert!(html.contains("<title>&lt;i&gt;&quot;Ada&quot; &amp; {\u{200b}{script}}</title>"));
        for id in ["transcript", "questions", "input", "send", "state", "cancel", "welcome", "tabs"]
        {
            assert!(html.contains(&format!("id=\"{id}\"")), "{id}");
        }
    }
}

#[test]
fn nothing_gets_onto_the_page_as_markup() {
    let script = [
        include_str!("page/markdown.js"),
        include_str!("page/views.js"),
        include_str!("page/page.js"),
    ]
    .concat();
    for way in [
        "innerHTML",
        "outerHTML",
        "insertAdjacent",
        "document.write",
        "eval",
        "Function(",
        "setAttribute(\"style",
        "setAttribute(\"on",
    ] {
        assert!(!script.contains(way), "{way}");
    }
    for outside in ["http:", "https:", "//cdn", "url(", "@import"] {
        let html = include_str!("page/page.html");
        let all = [script.as_str(), include_str!("page/page.css"), html].concat();
        assert!(!all.contains(outside), "{outside}");
        assert!(!html.contains(" style=") && !html.contains(" on"), "the policy allows neither");
    }
}

#[test]
fn answers_are_not_kept_by_anybody() {
    for path in ["/ui/", "/ui/events"] {
        assert_eq!(get(path).header_value("cache-control"), Some("no-store"));
        assert_eq!(get(path).header_value("x-content-type-options"), Some("nosniff"));
    }
}
