//! Differences from the tape are reported.

use sallyport_contract::Toolbox;

use super::{
    cast::Line::{Calls, Says},
    *,
};

async fn tape() -> String {
    let script = [Calls(&[("t__echo", r#"{"x":1}"#)]), Says("Done."), Says("Bye.")];
    record(Actor::new(script), &["do it", "thanks"], Redactor::empty()).await.0
}

/// Replays the tape with changed options and inputs, and compares the report.
async fn check(tape: &str, options: SessionOptions, from: &str, to: &str, expected: &str) {
    let change = |input: &mut UserInputMessage| input.text = input.text.replace(from, to);
    let (heard, problem) = play(tape, options, change).await;
    assert_eq!(problem.map(|p| p.to_string()).as_deref(), Some(expected));
    assert!(heard.last().unwrap().contains("ModelFailed"), "{heard:?}");
}

#[tokio::test(start_paused = true)]
async fn a_changed_input_is_named() {
    let tape = tape().await;
    let difference = "request 1 differs from line 3 of the tape, at /messages/1/text: \
                      \"do it\" on the tape, \"do this\" now";
    check(&tape, options(), "it", "this", difference).await;
    let difference = "request 3 differs from line 11 of the tape, at /messages/5/text: \
                      \"thanks\" on the tape, \"than\\u{1b}[31m\" now";
    check(&tape, options(), "ks", "\u{1b}[31m", difference).await;
}

#[tokio::test(start_paused = true)]
async fn a_changed_system_prompt_is_named() {
    let tape = tape().await;
    let without = SessionOptions { system_prompt: None, ..options() };
    let difference = "request 1 differs from line 3 of the tape, at /messages/0/role: \
                      \"system\" on the tape, \"user\" now";
    check(&tape, without, "", "", difference).await;
    let long = "x".repeat(1000);
    let other = SessionOptions { system_prompt: Some(format!("Be brief.{long}")), ..options() };
    let difference = format!(
        "request 1 differs from line 3 of the tape, at /messages/0/text: \
         \"Be brief.\" on the tape, \"Be brief.{}…\" now",
        "x".repeat(71)
    );
    check(&tape, other, "", "", &difference).await;
}

#[tokio::test(start_paused = true)]
async fn a_changed_list_of_tools_is_named() {
    let tape = read(&tape().await);
    let replay = SessionReplay::new(tape.clone(), Redactor::empty());
    let toolbox: Arc<dyn Toolbox> = Arc::new(Stage::redescribed());
    let mut talk = Talk::new(replay.to_chat_model(), toolbox, options());
    talk.turn(tape.inputs()[0].clone(), replay.wait_for_cancellation()).await;
    let difference = "request 1 differs from line 3 of the tape, at /tools/1/description: \
                      \"t.echo for tests\" on the tape, \"t.echo for others\" now";
    assert_eq!(replay.first_problem().unwrap().to_string(), difference);
    let searched = SessionOptions { tool_tokens_max: Some(1), ..options() };
    let (_, problem) = play(&self::tape().await, searched, |_| {}).await;
    let problem = problem.unwrap().to_string();
    assert!(
        problem.contains("/tools/0/description: \"t.denied for tests\" on the tape"),
        "{problem}"
    );
}

#[tokio::test(start_paused = true)]
async fn changed_arguments_of_a_call_are_named() {
    let (reply, rest) = (r#"{\"x\":1}"#, r#"{\"x\":2}"#);
    // The model answers differently than when the call was decided.
    let changed = tape().await.replacen(reply, rest, 1);
    let (_, problem) = play(&changed, options(), |_| {}).await;
    let difference = "call \"c00\" differs from line 5 of the tape, at /arguments: \
                      \"{\"x\":1}\" on the tape, \"{\"x\":2}\" now";
    assert_eq!(problem.unwrap().to_string(), difference);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_goes_on_is_told_that_the_tape_does_not() {
    let text = tape().await;
    let tape = read(&text);
    let replay = SessionReplay::new(tape.clone(), Redactor::empty());
    let mut talk = Talk::new(replay.to_chat_model(), replay.to_toolbox(), options());
    for text in ["do it", "thanks", "more"] {
        talk.turn(text.into(), replay.wait_for_cancellation()).await;
    }
    let ended = "the tape ends with line 13, and another request to the model is not on it";
    assert_eq!(replay.first_problem().unwrap().to_string(), ended);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_taken_back_is_told() {
    let text = tape().await;
    let (before, after) = text.split_once("{\"line\":\"decision\"").unwrap();
    let taken_back = "{\"line\":\"decision\",\"call\":\"c00\",\"tool\":\"t.echo\",\
                      \"arguments\":\"{\\\"x\\\":1}\",\"end\":\"dropped\"}\n";
    let edited = format!("{before}{taken_back}{{\"line\":\"decision\"{after}");
    let (_, problem) = play(&edited, options(), |_| {}).await;
    assert_eq!(problem, Some(ReplayError::UnexpectedWithdrawal { line: 5 }));
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_cancelling_ends_with_the_first_difference() {
    let calls: &[_] = &[("t__hangs", "{}"), ("t__echo", "{}")];
    let (tape, _) = record(Actor::new([Calls(calls)]), &["go"], Redactor::empty()).await;
    let without_report = |line: &&str| !line.contains("\"report\",\"call\":\"c01\"");
    let changed: Vec<&str> = tape.split_inclusive('\n').filter(without_report).collect();
    let (_, problem) = play(&changed.concat(), options(), |_| {}).await;
    let ended = "and the end of call \"c01\" is not on it";
    assert!(problem.unwrap().to_string().ends_with(ended));
}
