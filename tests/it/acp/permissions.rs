//! Questions: what a client shows, and what each answer means.

use serde_json::json;

use super::{asking_home, echo};
use crate::support::{
    AcpClient, Home, OpenAi, Reply,
    acp::{choices, shown},
};

fn names(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(id, kind)| ((*id).to_owned(), (*kind).to_owned())).collect()
}

/// Calls that echo, and an answer at the end of every second turn.
fn script(calls: &[&'static str]) -> Vec<Reply> {
    calls.iter().flat_map(|id| [echo(id, id), Reply::Text("done")]).collect()
}

#[test]
fn a_question_shows_all_that_a_yes_covers() {
    let model = OpenAi::start(script(&["c1"]));
    let home = asking_home(&model);
    let mut client = AcpClient::greeted(&home);
    let session = client.new_session("/");
    let turn = client.prompt(&session, "go");
    let question = client.question(0);
    assert_eq!(question["params"]["sessionId"], session.as_str());
    assert_eq!(
        choices(&question),
        names(&[
            ("once", "allow_once"),
            ("session", "allow_always"),
            ("always", "allow_always"),
            ("no", "reject_once"),
            ("no-session", "reject_always"),
        ])
    );
    let words = shown(&question);
    for line in [
        "Allow hostile.echo to run?",
        "argument: text = \"c1\"",
        "can: GET https://hostile.example/",
        "\"always\" adds to your policy:",
        "| tool = \"hostile.echo\"",
    ] {
        assert!(words.lines().any(|one| one == line), "no {line:?} in {words}");
    }
    assert!(words.starts_with("```text\n") && words.ends_with("\n```"), "{words}");
    client.choose(&question, "no");
    assert_eq!(client.stop_reason(turn), "end_turn");
    assert_eq!(client.close(), 0);
}

#[test]
fn only_a_clear_yes_lets_a_call_run() {
    let selected = |id: &str| json!({ "outcome": { "outcome": "selected", "optionId": id } });
    let rows = [
        (selected("once"), "completed"),
        (selected("no"), "failed"),
        (selected("yes"), "failed"),
        (json!({ "outcome": { "outcome": "cancelled" } }), "failed"),
        (json!({ "outcome": { "outcome": "selected" } }), "failed"),
        (json!({ "nonsense": true }), "failed"),
        (json!(null), "failed"),
    ];
    let ids = ["c1", "c2", "c3", "c4", "c5", "c6", "c7"];
    let model = OpenAi::start(script(&ids));
    let home = asking_home(&model);
    let mut client = AcpClient::greeted(&home);
    let session = client.new_session("/");
    for (number, (answer, status)) in rows.iter().enumerate() {
        let turn = client.prompt(&session, "go");
        let question = client.question(number);
        client.reply(&question, answer);
        assert_eq!(client.stop_reason(turn), "end_turn");
        let call = question["params"]["toolCall"]["toolCallId"].as_str().unwrap();
        assert_eq!(client.finished_call(call)["status"], *status, "{answer}");
    }
    // An answer that comes twice, or to no question, changes nothing.
    let first = client.question(0);
    client.choose(&first, "once");
    client.send(&json!({ "jsonrpc": "2.0", "id": 4711, "result": selected("once") }));
    client.send(&json!({ "jsonrpc": "2.0", "id": "x", "error": { "code": 1, "message": "" } }));
    client.new_session("/");
    assert_eq!(client.close(), 0);
}

#[test]
fn an_answer_holds_as_long_as_it_says() {
    // The choice, whether the call runs, and whether the next one in the session, in another
    // session, and in a later program asks again.
    let rows = [
        ("once", "completed", true, true, true),
        ("session", "completed", false, true, true),
        ("always", "completed", false, false, false),
        ("no", "failed", true, true, true),
        ("no-session", "failed", false, true, true),
    ];
    for (choice, status, asks_again, asks_elsewhere, asks_later) in rows {
        let model = OpenAi::start(script(&["c1", "c2", "c3", "c4"]));
        let home = asking_home(&model);
        let mut client = AcpClient::greeted(&home);
        let session = client.new_session("/");
        let turn = client.prompt(&session, "go");
        let question = client.question(0);
        client.choose(&question, choice);
        assert_eq!(client.stop_reason(turn), "end_turn");
        let call = question["params"]["toolCall"]["toolCallId"].as_str().unwrap();
        assert_eq!(client.finished_call(call)["status"], status, "{choice}");
        let mut asked = 1;
        asked += check_asks(&mut client, &session, asked, asks_again, choice);
        let other = client.new_session("/");
        check_asks(&mut client, &other, asked, asks_elsewhere, choice);
        assert_eq!(client.close(), 0);
        let mut client = AcpClient::greeted(&home);
        let session = client.new_session("/");
        check_asks(&mut client, &session, 0, asks_later, choice);
        assert_eq!(client.close(), 0);
    }
}

/// Runs a turn, and checks whether it asks. Returns the number of questions.
#[track_caller]
fn check_asks(
    client: &mut AcpClient,
    session: &str,
    asked: usize,
    asks: bool,
    choice: &str,
) -> usize {
    let turn = client.prompt(session, "again");
    if asks {
        let question = client.question(asked);
        client.choose(&question, "no");
    }
    assert_eq!(client.stop_reason(turn), "end_turn");
    let is_question = |one: &&serde_json::Value| one["method"] == "session/request_permission";
    let all = client.messages().iter().filter(is_question).count();
    assert_eq!(all - asked, usize::from(asks), "{choice}");
    all - asked
}

#[test]
fn a_missing_grant_is_a_question_too() {
    let model = OpenAi::start(vec![
        Reply::call("c1", "files__list", &json!({ "path": "/notes" })),
        Reply::Text("done"),
    ]);
    let home = Home::new()
        .env("OPENAI_BASE_URL", model.base_url())
        .env("SALLYPORT_MODEL", "m")
        .plugins(&["files"])
        .user_file("project/a.md", "text");
    let folder = home.user_path("project");
    let folder = folder.to_str().unwrap();
    let mut client = AcpClient::greeted(&home);
    let session = client.new_session(folder);
    let turn = client.prompt(&session, "list");
    let question = client.question(0);
    let words = shown(&question);
    assert!(words.contains("Grant what is missing?"), "{words}");
    assert!(words.contains(&format!("path = \"{folder}\"")), "{words}");
    client.choose(&question, "once");
    assert_eq!(client.stop_reason(turn), "end_turn");
    let policy = std::fs::read_to_string(home.path("policy.toml")).unwrap_or_default();
    assert!(!policy.contains(folder), "once writes nothing: {policy}");
    home.run(&["audit", "show"]).ended(0).answers(&["once"]);
    assert_eq!(client.close(), 0);
}

#[test]
fn a_question_ends_with_its_turn() {
    let model = OpenAi::start(script(&["c1", "c2"]));
    let home = asking_home(&model);
    let mut client = AcpClient::greeted(&home);
    let session = client.new_session("/");
    let turn = client.prompt(&session, "go");
    let question = client.question(0);
    client.cancel_turn(&session);
    assert_eq!(client.stop_reason(turn), "cancelled");
    let withdrawn = client.of_method("$/cancel_request");
    assert_eq!(withdrawn["params"]["requestId"], question["id"], "{withdrawn}");
    client.choose(&question, "once");
    let call = question["params"]["toolCall"]["toolCallId"].as_str().unwrap();
    assert_eq!(client.finished_call(call)["status"], "failed");
    assert_eq!(client.close(), 0);
    home.run(&["audit", "verify"]).ended(0);
}
