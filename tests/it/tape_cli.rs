//! Tapes: a run is recorded, and played again without a model, a plugin or a network.

use std::fs;

use serde_json::{Value, json};

use crate::support::{
    Home, OpenAi, Reply,
    events::{events, of_kind},
};

const RECORD: [&str; 6] = ["run", "-m", "scripted", "--record", "tape", "what time is it?"];
const REPLAY: [&str; 3] = ["run", "--replay", "tape"];

/// A tape with a call and an answer, and what was printed when it was made.
fn recorded() -> (Home, String) {
    let model = OpenAi::start(vec![
        Reply::call("call_a", "clock__get_time", &json!({ "timezone": "Asia/Tokyo" })),
        Reply::Text("It is late in Tokyo."),
    ]);
    let home = Home::new()
        .plugins(&["clock"])
        .env("OPENAI_BASE_URL", model.base_url())
        .env("OPENAI_API_KEY", "sk-the-secret-key");
    let printed = home.run(&RECORD).ended(0).stdout;
    assert_eq!(model.bodies().len(), 2);
    (home, printed)
}

/// The tape alone, where there is nothing else.
fn elsewhere(tape: &str) -> Home {
    Home::new().user_file("tape", tape)
}

fn tape(home: &Home) -> String {
    fs::read_to_string(home.user_path("tape")).unwrap()
}

#[test]
fn a_tape_gives_the_same_again_where_there_is_nothing_else() {
    let (home, printed) = recorded();
    let tape = tape(&home);
    assert!(!tape.contains("sk-the-secret-key"));
    let alone = elsewhere(&tape);
    assert_eq!(alone.run(&REPLAY).ended(0).stdout, printed);
    let told = alone.run(&[&REPLAY[..], &["--output", "jsonl"]].concat()).ended(0);
    let again = alone.run(&[&REPLAY[..], &["--output", "jsonl"]].concat()).ended(0);
    assert_eq!(told.stdout, again.stdout);
    let calls = events(&told);
    assert_eq!(of_kind(&calls, "call-finished")[0]["result"]["timezone"], "Asia/Tokyo");
    alone.run(&["session", "list", "--output", "json"]).ended(0).answers(&["[]"]);
}

#[test]
fn what_differs_is_named() {
    let (home, _) = recorded();
    let changed = tape(&home).replace("Asia/Tokyo\\\"", "Asia/Kyoto\\\"");
    let lines: Vec<Value> =
        changed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.len() > 4);
    let asked = tape(&home).replacen("what time is it?", "what day is it?", 1);
    let rows = [
        (asked, "/messages/0/text"),
        ("not a tape".to_owned(), "this is not a tape"),
        (String::new(), "this is not a tape"),
        (tape(&home).lines().take(3).map(|line| format!("{line}\n")).collect(), "the tape ends"),
    ];
    for (text, words) in rows {
        let ran = elsewhere(&text).run(&[&REPLAY[..], &["--output", "jsonl"]].concat());
        let ran = ran.ended(1).remarks(&[words]);
        assert_eq!(events(&ran).last().unwrap()["type"], "error");
    }
}

#[test]
fn a_tape_begins_where_its_session_does_and_overwrites_nothing() {
    let (home, _) = recorded();
    let before = tape(&home);
    home.run(&RECORD).ended(2).remarks(&["cannot create tape", "no file is overwritten"]);
    assert_eq!(tape(&home), before);
    for other in [&["--continue"][..], &["--session", "x"], &["--replay", "tape"]] {
        home.run(&[&["run", "--record", "other", "hi"], other].concat()).ended(2);
    }
    for flag in [&["hi"][..], &["--model", "offline"], &["--max-turns", "1"], &["--speak"]] {
        home.run(&[&REPLAY[..], flag].concat()).ended(2);
    }
}

/// The replay printed a general hint where the run had printed the text for the policy.
#[test]
fn a_replayed_error_of_a_plugin_has_the_hint_of_the_recorded_one() {
    let home = Home::new().plugins(&["provider-gemini"]);
    let provider = ["run", "--provider", "plugin:provider-gemini", "-m", "gemini"];
    let recorded = home.run(&[&provider[..], &["--record", "tape", "hi"]].concat()).ended(3);
    let replayed = elsewhere(&tape(&home)).run(&REPLAY).ended(3);
    for ran in [recorded, replayed] {
        ran.remarks(&["hint: to allow it: sallyport policy grant provider-gemini --requested"]);
    }
}
