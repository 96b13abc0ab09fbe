//! Whole sessions: a replay emits the same events as its recording.

use sallyport_model::ModelError;

use super::{
    cast::Line::{self, Calls, Fails, Hangs, Says},
    *,
};

/// Records a session and replays its tape twice.
async fn check(script: impl IntoIterator<Item = Line>, inputs: &[&str]) -> String {
    check_with(options(), script, inputs).await
}

async fn check_with(
    options: SessionOptions,
    script: impl IntoIterator<Item = Line>,
    inputs: &[&str],
) -> String {
    let actor = Actor::new(script);
    let (tape, recorded) = record_with(options, actor, inputs, Redactor::empty()).await;
    for time in 1..=2 {
        let (heard, problem) = play(&tape, read(&tape).options(), |_| {}).await;
        assert_eq!(problem, None, "{time}");
        assert_eq!(heard, recorded, "{time}");
    }
    tape
}

fn kinds(tape: &str) -> Vec<String> {
    let kind = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["line"].as_str().unwrap().to_owned()
    };
    tape.lines().map(kind).collect()
}

#[tokio::test(start_paused = true)]
async fn words_and_calls() {
    let script = [
        Calls(&[("t__echo", r#"{"x":[1.5,"é"]}"#), ("t.slow", ""), ("t__denied", "{}")]),
        Calls(&[("t__fails", "{}"), ("nothing", "{}"), ("t__echo", r#"{"y":1}"#)]),
        Says("It is done."),
        Says("You are welcome."),
    ];
    let tape = check(script, &["do it", "thanks"]).await;
    let expected = "tape input request answer decision decision decision report report \
                    request answer decision decision report report request answer turn \
                    input request answer turn";
    assert_eq!(kinds(&tape).join(" "), expected);
}

#[tokio::test(start_paused = true)]
async fn kept_results() {
    let options = SessionOptions { result_bytes_max: Some(4096), ..options() };
    let long = format!(r#"{{"x":"{} end"}}"#, "0".repeat(5000)).leak();
    let script = [
        Calls(vec![("t__echo", &*long)].leak()),
        Calls(&[("result", r#"{"result":1,"path":"$.x","byte":-3}"#)]),
        Says("It ends."),
    ];
    let tape = check_with(options, script, &["do it"]).await;
    assert!(tape.contains("kept as result 1") && tape.contains(r#"\"text\":\"end\""#), "{tape}");
}

#[tokio::test(start_paused = true)]
async fn searches_and_summaries() {
    let options = SessionOptions {
        memories: vec!["Bob is tall.".into()],
        memory: MemoryMode::Summary { tokens_max: 400 },
        tool_tokens_max: Some(0),
        ..options()
    };
    let script = [
        Calls(&[("search_tools", r#"{"query":"echo"}"#), ("use_tool", r#"{"name":"t.slow"}"#)]),
        Calls(&[("use_tool", r#"{"name":"t__echo","arguments":{"x":1}}"#), ("t__echo", "{}")]),
        Says("Done."),
        Says("An echo was tried."),
        Says("It was long."),
        Says("Bye."),
    ];
    let long = "and so on ".repeat(99);
    let tape = check_with(options, script, &["find it", &long, "thanks"]).await;
    assert!(tape.contains("You sum up a part of a conversation"), "{tape}");
    assert!(tape.contains("Sum up what we have said and done since then."), "{tape}");
}

#[tokio::test(start_paused = true)]
async fn failures() {
    let broken = || ModelError::Broken { provider: "actor".into(), message: "no end".into() };
    let refused = ModelError::Refused {
        provider: "actor".into(),
        status: 400,
        message: "no".into(),
        retry_after: None,
    };
    let script = [
        Fails(broken()),
        Fails(refused),
        Calls(&[("t__echo", "{}")]),
        Fails(broken()),
        Says("Here I am."),
    ];
    check(script, &["one", "two", "three", "four"]).await;
}

#[tokio::test(start_paused = true)]
async fn cancelled_while_the_model_speaks() {
    let tape = check([Hangs, Says("Yes?")], &["tell me all", "again"]).await;
    assert_eq!(
        kinds(&tape).join(" "),
        "tape input request cancel answer turn input request answer turn"
    );
}

#[tokio::test(start_paused = true)]
async fn cancelled_while_calls_run_or_wait_at_the_gate() {
    let run: &[_] = &[("t__hangs", "{}"), ("t__slow", "{}"), ("t__echo", "{}"), ("t__hangs", "[]")];
    let gate: &[_] = &[("t__echo", "{}"), ("t__gate_hangs", "{}"), ("t__echo", "{}")];
    check([Calls(run), Says("Well.")], &["go", "and now?"]).await;
    check([Calls(gate), Says("Well.")], &["go", "and now?"]).await;
    check([Calls(run), Calls(gate), Calls(run), Says("Well.")], &["a", "b", "c", "d"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_decision_that_came_after_the_cancelling_was_not_waited_for() {
    let calls: &[_] = &[("t__gate_hangs", "{}"), ("t__echo", "{}")];
    let script = [Calls(calls), Says("Well.")];
    let (tape, recorded) = record(Actor::new(script), &["go", "so?"], Redactor::empty()).await;
    let dropped = "\"end\":\"dropped\"";
    assert_eq!(tape.matches(dropped).count(), 1, "{tape}");
    let late = "\"end\":{\"refused\":{\"outcome\":\"cancelled\",\
                \"elapsed_ms\":0,\"memory_bytes_peak\":0}}";
    let tape = tape.replace(dropped, late);
    assert_eq!(play(&tape, options(), |_| {}).await, (recorded, None));
}

/// Many times, because calls that run on several threads at the same time end in any order.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn calls_that_run_at_the_same_time() {
    const CALLS: &[(&str, &str)] = &[
        ("t__echo", "[0]"),
        ("t__fails", "{}"),
        ("t__echo", "[1]"),
        ("t__denied", "{}"),
        ("t__echo", "[2]"),
        ("t__echo", "[3]"),
    ];
    for _ in 0..20 {
        check([Calls(CALLS), Says("Done.")], &["go"]).await;
    }
    for _ in 0..3 {
        let calls: &[_] = &[("t__hangs", "{}"), ("t__slow", "{}"), ("t__hangs", "{}")];
        check([Calls(calls), Says("Well."), Hangs], &["go", "so?", "and?"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn cancelled_when_nothing_could_be_stopped() {
    let (tape, recorded) =
        record(Actor::new([Says("One."), Says("Two.")]), &["a", "b"], Redactor::empty()).await;
    let (first, second) =
        tape.split_once("{\"line\":\"input\",\"message\":{\"text\":\"b\"").unwrap();
    let cancelled = format!(
        "{first}{{\"line\":\"cancel\"}}\n{{\"line\":\"input\",\"message\":{{\"text\":\"b\"{second}"
    );
    let (heard, problem) = play(&cancelled, options(), |_| {}).await;
    assert_eq!((heard, problem), (recorded, None));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_panicked_is_played_as_lost() {
    let script = [Calls(&[("t__panics", "{}"), ("t__echo", "{}")]), Says("Oh.")];
    let (tape, recorded) = record(Actor::new(script), &["go"], Redactor::empty()).await;
    let (first, problem) = play(&tape, options(), |_| {}).await;
    assert_eq!(problem, None);
    assert_eq!(first.len(), recorded.len());
    assert_eq!(play(&tape, options(), |_| {}).await.0, first);
}
