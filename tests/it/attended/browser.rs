//! A conversation of plugins alone: a guide says who the assistant is, a provider answers from a
//! loopback server, a web hook brings the input, and a page in a real browser shows it and asks.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::{authority, home, post};
use crate::support::{Browser, Response, Running, Server, home::repository};

/// What the service answers: two calls, then words.
const ANSWER: &str = "It is **noon** by the tall clock, sir.\n\n- the clock was asked\n- the machine \
                      was not\n\nWill there be anything else?";

/// A service that speaks as Gemini does.
fn service() -> Server {
    let asked = AtomicUsize::new(0);
    Server::start(move |request| {
        if !request.target.ends_with(":streamGenerateContent?alt=sse") {
            return Response::with(404, &[], "");
        }
        let call =
            |name: &str, args: Value| json!({ "functionCall": { "name": name, "args": args } });
        let parts = match asked.fetch_add(1, Ordering::SeqCst) {
            0 => json!([
                call("clock__get_time", json!({ "timezone": "UTC" })),
                call("system-info__get_system_info", json!({})),
            ]),
            _ => json!([{ "text": ANSWER }]),
        };
        let content = json!({ "role": "model", "parts": parts });
        let candidate = json!({ "content": content, "finishReason": "STOP", "index": 0 });
        let usage = json!({ "promptTokenCount": 10, "candidatesTokenCount": 5 });
        let body = json!({ "candidates": [candidate], "usageMetadata": usage });
        let headers = [("content-type", "text/event-stream")];
        Response::with(200, &headers, &format!("data: {body}\r\n\r\n"))
    })
}

fn policy(service: &Server) -> String {
    let url = service.url();
    format!(
        r#"
[plugin.webhook]
listen = ["http://127.0.0.1:0/hooks"]

[plugin.ui-html]
ui = {{ confirm = true }}
listen = ["http://127.0.0.1:0/ui"]

[plugin.provider-gemini]
net = [{{ allow = "POST {url}/v1beta/**", to-private = true }}]
secrets = [{{ name = "gemini", to = "{url}", header = "x-goog-api-key" }}]

[secret.gemini]
env = "GEMINI_API_KEY"

[[rule]]
tool = "clock.*"
decision = "ask"

[[rule]]
tool = "system-info.*"
decision = "ask"
"#
    )
}

const PLUGINS: [&str; 6] =
    ["webhook", "ui-html", "provider-gemini", "guide-butler", "clock", "system-info"];

const LISTEN: [&str; 9] = [
    "listen",
    "--listener",
    "webhook",
    "--ui",
    "ui-html",
    "--guide",
    "guide-butler",
    "--provider",
    "plugin:provider-gemini",
];

#[test]
fn a_conversation_of_plugins_alone_in_a_real_browser() {
    let Some(browser) = Browser::start() else { return };
    let service = service();
    let config = format!("[settings.provider-gemini]\nbase_url = \"{}\"\n", service.url());
    let home =
        home(&PLUGINS, &policy(&service)).config(config).env("GEMINI_API_KEY", "k-4711-secret");
    let program = Running::start(&home, &LISTEN);
    let hook = program.behind("webhook listens at ");
    let page = program.behind("ui-html shows the session at ");
    browser.open(&page);
    browser.sees("#state", "ready");
    assert!(!browser.url().contains("token"), "{}", browser.url());
    assert_eq!(browser.script("return document.cookie"), "", "no script sees the token");

    let bearer = program.behind("Bearer ");
    let body = json!({ "text": "What time is it, and what machine is this?", "from": "Kim" });
    assert_eq!(post(&authority(&hook), "/hooks", &bearer, &body.to_string()).status, 202);
    browser.sees("#transcript .message.user", "What time is it");
    browser.sees("#transcript .message.user .author", "Kim, by webhook");
    let asked = browser.sees(".question", "Allow clock.get_time?");
    assert!(asked.contains("Asked because of: rule at policy.toml:"), "{asked}");
    browser.picture(&picture("ui-html-question"));
    browser.click(".question button.approve");
    browser.sees(".question", "Allow system-info.get_system_info?");
    browser.click(".question button.deny");
    browser.loses(".question");
    browser.sees(".message.assistant", "by the tall clock, sir.");
    browser.sees(".call[data-tool=\"clock.get_time\"]", "completed");
    browser.sees(".call[data-tool=\"system-info.get_system_info\"]", "denied");
    browser.sees("#state", "ready");
    browser.types("#input", "Thank you.");
    browser.click("#send");
    browser.sees(".message.user:nth-of-type(n+3)", "Thank you.");
    browser.picture(&picture("ui-html"));

    let (code, _, stderr) = program.interrupted();
    assert_eq!(code, 0, "{stderr}");
    check_requests(&service);
}

/// The persona and the outcomes got to the model; the key did, and nowhere else.
#[track_caller]
fn check_requests(service: &Server) {
    let seen = service.seen();
    assert_eq!(seen.len(), 3);
    let keys: Vec<_> = seen.iter().map(|request| request.header("x-goog-api-key")).collect();
    assert_eq!(keys, [Some("k-4711-secret"); 3]);
    let first: Value = serde_json::from_str(&seen[0].body).unwrap();
    assert!(first["systemInstruction"].to_string().contains("butler"), "{first}");
    let second = &seen[1].body;
    assert!(second.contains("UTC") && second.contains("denied"), "{second}");
    assert!(!seen.iter().any(|request| request.body.contains("4711")));
}

/// Where a picture of the page is kept, for whoever wants to look.
fn picture(name: &str) -> std::path::PathBuf {
    repository().join(format!("target/tmp/{name}.png"))
}
