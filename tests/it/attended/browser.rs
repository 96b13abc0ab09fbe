//! A conversation of plugins alone: a guide says who the assistant is, a provider answers from a
//! loopback server, a web hook brings the input, and a page in a real browser shows it and asks.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::{authority, home, post};
use crate::support::{
    Browser, Home, OpenAi, Reply, Response, Running, Server, home::repository, patience::until_so,
};

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
    assert_eq!(browser.complaints(), [""; 0]);

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

/// A chat on the page, with a model that follows a script and a folder that the plugin may change.
fn chat(script: Vec<Reply>) -> (OpenAi, Home) {
    let model = OpenAi::start(script);
    let home = home(&["ui-html", "files", "clock"], "").user_file("notes/todo.txt", "plain");
    let path = home.user_path("notes");
    let home = home.policy(format!(
        r#"
[plugin.ui-html]
ui = {{ confirm = true }}
listen = ["http://127.0.0.1:0/ui"]

[plugin.files]
fs = [{{ path = {path:?}, mount = "/data", access = "read-write" }}]
"#
    ));
    let home = home.env("OPENAI_BASE_URL", model.base_url()).env("OPENAI_API_KEY", "k");
    (model, home)
}

const CHAT: [&str; 5] = ["chat", "--model", "scripted-model", "--ui", "ui-html"];

#[test]
fn the_empty_page_shows_the_model_the_tools_and_how_to_approve() {
    let Some(browser) = Browser::start() else { return };
    let (_model, home) = chat(vec![Reply::Text("Hello.")]);
    let program = Running::start(&home, &CHAT);
    browser.open(&program.behind("ui-html shows the session at "));
    browser.sees("#model", "scripted-model");
    let shown = browser.sees("#welcome", "Start a conversation");
    for words in ["clock.get_time", "Approvals", "does not start before you allow it"] {
        assert!(shown.contains(words), "{words} in {shown}");
    }
    browser.click("#welcome .ideas button");
    let typed = browser.script("return document.getElementById('input').value");
    assert_eq!(typed, "What time is it in Tokyo?");
    browser.click("#tab-plugins");
    let files = browser.sees("#plugins [data-plugin=files]", "/data");
    assert!(files.contains("0.1.0") && files.contains("digest "), "{files}");
    browser.sees("#plugins [data-plugin=clock]", "nothing granted");
    browser.click("#send");
    browser.sees(".message.assistant", "Hello.");
    let hidden = "return [document.getElementById('welcome').hidden, \
                  document.getElementById('view-plugins').hidden]";
    assert_eq!(browser.script(hidden), json!([true, true]), "the conversation is in view");
    assert_eq!(browser.complaints(), [""; 0]);
}

#[test]
fn a_question_shows_version_digest_and_rule_and_the_audit_its_answer() {
    let Some(browser) = Browser::start() else { return };
    let call = ("1", "files__list", r#"{"path":"/data"}"#.to_owned());
    let (_model, home) = chat(vec![Reply::Calls(vec![call]), Reply::Text("One file.")]);
    let program = Running::start(&home, &CHAT);
    browser.open(&program.behind("ui-html shows the session at "));
    browser.types("#input", "What is there?");
    browser.click("#send");
    browser.sees(".question", "Allow files.list?");
    let plugin = home.run(&["plugin", "show", "files", "--output", "json"]).ended(0);
    let plugin: Value = serde_json::from_str(&plugin.stdout).unwrap();
    let shown = browser.sees(".question .facts", plugin["digest"].as_str().unwrap());
    assert!(shown.contains("files 0.1.0") && shown.contains("/data"), "{shown}");
    browser.click(".question .always summary");
    let rule = browser.sees(".question .always .rule", "[[rule]]");
    assert!(rule.contains("files.list") && rule.contains("allow"), "{rule}");
    browser.click(".question button.approve");
    browser.sees(".message.assistant", "One file.");
    browser.sees(".call[data-tool='files.list'] .line", "allowed by you");
    browser.click(".call[data-tool='files.list'] summary");
    browser.sees(".call[data-tool='files.list'] pre", "todo.txt");
    browser.click("#tab-audit");
    browser.sees("#audit tr[data-kind=decision]", "files.list");
    let audit = browser.sees("#audit tr[data-kind=call]", "files.list");
    assert!(audit.contains("completed"), "{audit}");
    assert_eq!(browser.complaints(), [""; 0]);
}

/// An answer of more than 64 KiB ended in "…", and a turned phone showed the middle of it.
#[test]
fn a_long_answer_unfolds_and_a_turned_page_stays_at_its_end() {
    let Some(browser) = Browser::start() else { return };
    let long = format!("{}\n\nThe last word.", "A line of a long answer.\n\n".repeat(4000));
    let (_model, home) = chat(vec![Reply::Text(long.leak())]);
    let program = Running::start(&home, &CHAT);
    browser.resizes(600, 900);
    browser.open(&program.behind("ui-html shows the session at "));
    browser.types("#input", "Tell me everything.");
    browser.click("#send");
    browser.sees(".message.assistant .rest", "Show the remaining");
    for (width, height) in [(900, 450), (600, 900), (900, 450)] {
        browser.resizes(width, height);
        let below = "const view = document.getElementById('view-chat'); \
                     return [innerWidth, view.scrollHeight - view.scrollTop - view.clientHeight]";
        until_so("the end in view", || {
            let seen: Vec<f64> = serde_json::from_value(browser.script(below)).unwrap();
            seen[0] == f64::from(width) && seen[1] < 2.0
        });
    }
    browser.click(".message.assistant .rest");
    browser.sees(".message.assistant", "The last word.");
    browser.loses(".message.assistant .rest");
    assert_eq!(browser.complaints(), [""; 0]);
}

/// Where a picture of the page is kept, for whoever wants to look.
fn picture(name: &str) -> std::path::PathBuf {
    repository().join(format!("target/tmp/{name}.png"))
}
