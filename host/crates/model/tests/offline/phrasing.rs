//! Results of tools, as the user reads them.

use sallyport_model::{ChatMessage, ToolResultMessage};
use serde_json::{Value, json};

use crate::generate;

fn result(content: &str, failed: bool) -> ChatMessage {
    ChatMessage::Tool(ToolResultMessage {
        call_id: "offline_1".to_owned(),
        name: "weather__get_weather".to_owned(),
        content: content.to_owned(),
        failed,
    })
}

fn phrase(results: Vec<ChatMessage>) -> String {
    let asked = ChatMessage::user("what time is it");
    let reply = generate(&[vec![asked], results].concat(), &[]);
    assert_eq!(reply.message.calls, []);
    reply.message.text
}

#[test]
fn results_are_put_into_words() {
    let rows: Vec<(Value, &str)> = vec![
        (json!({ "speech": "It is noon.", "hour": 12 }), "It is noon."),
        (json!({ "message": "Saved.", "speech": "" }), "Saved."),
        (json!("plain text"), "plain text"),
        (json!(42), "42"),
        (json!(true), "yes"),
        (json!(null), "Done."),
        (json!({}), "Done."),
        (json!([]), "There is nothing."),
        (json!(["a", "b"]), "- a\n- b"),
        (
            json!({ "os_name": "Linux", "cores": 2, "on": false }),
            "- cores: 2\n- on: no\n- os name: Linux",
        ),
        (
            json!({ "cpu": { "cores": 2 }, "disks": [{ "size": 1 }, { "size": 2 }], "tags": [] }),
            "- cpu:\n  - cores: 2\n- disks:\n  - size: 1\n  - size: 2\n- tags: none",
        ),
        (
            json!({ "err": "", "out": "# a\nb\n", "all": [{ "n": [1], "s": "x" }] }),
            "- all:\n  -\n    - n:\n      - 1\n    - s: x\n- out:\n  ````\n  # a\n  b\n  ````",
        ),
        (
            json!({ "data": { "n": 1 }, "content": [{ "type": "text", "text": "more" }] }),
            "- n: 1\n\nmore",
        ),
    ];
    for (value, want) in rows {
        assert_eq!(phrase(vec![result(&value.to_string(), false)]), want);
    }
    assert_eq!(phrase(vec![result("not JSON {", false)]), "not JSON {");
    assert_eq!(phrase(vec![result("", false)]), "");
}

#[test]
fn failures_are_told_and_the_hint_stays_as_it_is() {
    let hint = "only the user can allow this, in the policy file:\n[plugin.weather]\nnet = [\n  \"GET https://x/**\",\n]\n";
    let rows = [
        (
            json!({ "outcome": "denied", "error": "weather may not GET https://x: no grant", "hint": hint }),
            format!(
                "weather.get_weather was not allowed: weather may not GET https://x: no grant\n{hint}"
            ),
        ),
        (
            json!({ "outcome": "failed", "error": "no such city" }),
            "weather.get_weather did not work: no such city".to_owned(),
        ),
        (
            json!({ "outcome": "timed-out", "error": "stopped after 10s, its time limit" }),
            "weather.get_weather took too long: stopped after 10s, its time limit".to_owned(),
        ),
        (json!({ "x": 1 }), "weather.get_weather did not work:\n- x: 1".to_owned()),
    ];
    for (value, want) in rows {
        assert_eq!(phrase(vec![result(&value.to_string(), true)]), want);
    }
}

#[test]
fn several_results_follow_one_another() {
    let results = vec![result("\"one\"", false), result("\"two\"", false)];
    assert_eq!(phrase(results), "one\n\ntwo");
}

#[test]
fn long_and_deep_results_are_bounded() {
    let long: Vec<u32> = (0..100_000).collect();
    let deep = (0..50).fold(json!(1), |inner, _| json!({ "a": [inner] }));
    for value in
        [json!(long), deep, json!("é".repeat(100_000)), json!({ "text": "x".repeat(100_000) })]
    {
        let text = phrase(vec![result(&value.to_string(), false)]);
        assert!(text.chars().count() <= 4_001 && text.ends_with('…'), "{}", text.len());
    }
}
