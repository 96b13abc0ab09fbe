//! `--trace`: the spans of a command, the file, and what the file does not contain.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::{Value, json};

use crate::support::{Home, OpenAi, Reply};

/// The finished spans of a trace, whose closing bracket is optional.
fn spans(trace: &str) -> Vec<Value> {
    let lines = trace.lines().skip(1);
    lines.map(|line| serde_json::from_str(line.trim_end_matches(',')).unwrap()).collect()
}

fn span<'a>(spans: &'a [Value], name: &str) -> &'a Value {
    let found = spans.iter().find(|span| span["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {spans:#?}"))
}

fn end(span: &Value) -> f64 {
    span["ts"].as_f64().unwrap() + span["dur"].as_f64().unwrap()
}

/// Checks that a span lies within another one, in the same row of a viewer.
fn check_within(spans: &[Value], inner: &str, outer: &str) {
    let (inner, outer) = (span(spans, inner), span(spans, outer));
    assert_eq!(inner["tid"], outer["tid"], "{inner} {outer}");
    assert!(inner["ts"].as_f64() >= outer["ts"].as_f64() && end(inner) <= end(outer), "{spans:?}");
}

#[test]
fn a_trace_has_each_step_of_a_turn_and_no_argument() {
    let model = OpenAi::start(vec![
        Reply::call("call_a", "clock__get_time", &json!({ "timezone": "Asia/Tokyo" })),
        Reply::Text("Late."),
    ]);
    let home = Home::new().plugins(&["clock"]).env("OPENAI_BASE_URL", model.base_url());
    let file = home.user_path("trace.json");
    let path = file.to_str().unwrap();
    home.run(&["--trace", path, "run", "-m", "scripted", "What time is it in Tokyo?"]).ended(0);
    let trace = fs::read_to_string(&file).unwrap();
    assert!(!trace.contains("Tokyo") && !trace.contains("Late"), "{trace}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let spans = spans(&trace);
    span(&spans, "open_host");
    assert_eq!(spans.iter().filter(|span| span["name"] == "model_request").count(), 2);
    assert_eq!(span(&spans, "call")["args"]["tool"], "clock.get_time");
    assert_eq!(span(&spans, "call")["args"]["outcome"], "completed");
    for (inner, outer) in [
        ("model_request", "turn"),
        ("decide", "turn"),
        ("call", "turn"),
        ("write_decision", "call"),
        ("run_guest", "call"),
    ] {
        check_within(&spans, inner, outer);
    }
}

#[test]
fn a_trace_overwrites_nothing_and_says_what_it_lacks() {
    let home = Home::new().plugins(&["clock"]).user_file("kept", "mine");
    let kept = home.user_path("kept");
    let call = ["call", "clock.get_time", "{}", "--trace"];
    let refused = home.run(&[&call[..], &[kept.to_str().unwrap()]].concat()).ended(2);
    refused.remarks(&["cannot create", "no file is overwritten"]);
    assert_eq!(fs::read_to_string(kept).unwrap(), "mine");
    home.run(&[&call[..], &["/nowhere/trace"]].concat()).ended(2).remarks(&["cannot create"]);
}
