//! Regular turns, and turns in which the model fails.

use std::sync::atomic::Ordering;

use sallyport_model::{FinishReason, ReplyDelta};

use super::{
    model::{Line, broken, calling, calls, finishes, refused, says, script},
    *,
};

#[tokio::test]
async fn a_turn_without_calls_ends_with_the_answer() {
    let rows = [
        (says("hi"), ["message hi", "end answered hi"].as_slice()),
        (
            finishes("cut o", FinishReason::Length),
            &[
                "message cut o",
                "notice the answer was cut at the model's length limit",
                "end answered cut o",
            ],
        ),
        (
            finishes("", FinishReason::ContentFilter),
            &["message ", "notice the provider withheld the answer", "end answered "],
        ),
        (says(" "), &["message  ", "notice the model gave no answer", "end answered  "]),
        (
            finishes("", FinishReason::ToolCalls),
            &["message ", "notice the model gave no answer", "end answered "],
        ),
        (
            finishes("x", FinishReason::Other("MALFORMED_FUNCTION_CALL".into())),
            &[
                "message x",
                "notice the provider ended the answer for a reason of its own: \
                 MALFORMED_FUNCTION_CALL",
                "end answered x",
            ],
        ),
    ];
    for (line, expected) in rows {
        check(vec![line], expected).await;
    }
}

#[tokio::test]
async fn a_call_is_made_and_the_model_reads_its_result() {
    let talk = check(
        vec![calls(&[("a", "t__echo", r#"{"x":1}"#)]), says("done")],
        &[
            "message ",
            r#"call a t.echo {"x":1}"#,
            r#"finished a t.echo completed {"x":1}"#,
            "message done",
            "end answered done",
        ],
    )
    .await;
    check_shown(
        &talk,
        &["user hello", r#"assistant [a t__echo {"x":1}] (opaque)"#, r#"tool a t__echo {"x":1}"#],
    );
}

#[tokio::test]
async fn states_frame_what_happens() {
    let mut talk = Talk::new(script(vec![calls(&[("a", "t__echo", "")]), says("done")]));
    talk.submit("hello").await;
    let mut events = lines(&talk.until_end().await);
    events.extend(talk.until_line("state Ready").await);
    let expected = [
        "state Ready",
        "turn 1 hello",
        "state Thinking",
        "message ",
        "state Executing",
        "call a t.echo {}",
        "finished a t.echo completed {}",
        "state Thinking",
        "message done",
        "end answered done",
        "state Ready",
    ];
    assert_eq!(events, expected);
}

#[tokio::test]
async fn calls_of_one_answer_run_together_and_one_that_fails_costs_the_others_nothing() {
    // Each `meets` waits for the other, so running them one after the other would never end.
    let wanted = [("a", "t__meets", ""), ("b", "t__fails", ""), ("c", "t__meets", "")];
    let talk = check(
        vec![calls(&wanted), says("done")],
        &[
            "message ",
            "call a t.meets {}",
            "call b t.fails {}",
            "call c t.meets {}",
            r#"finished a t.meets completed "met""#,
            r#"finished b t.fails failed {"error":"no such city","outcome":"failed"}"#,
            r#"finished c t.meets completed "met""#,
            "message done",
            "end answered done",
        ],
    )
    .await;
    check_shown(
        &talk,
        &[
            "user hello",
            "assistant [a t__meets ][b t__fails ][c t__meets ] (opaque)",
            r#"tool a t__meets "met""#,
            r#"tool! b t__fails {"error":"no such city","outcome":"failed"}"#,
            r#"tool c t__meets "met""#,
        ],
    );
}

#[tokio::test]
async fn a_denied_call_does_not_cancel_its_siblings() {
    let wanted = [("a", "t__echo", "1"), ("b", "t__denied", ""), ("c", "t__echo", "3")];
    let denied = r#"denied {"error":"denied: policy.toml:3","outcome":"denied"}"#;
    let finished = format!("finished b t.denied {denied}");
    let talk = check(
        vec![calls(&wanted), says("done")],
        &[
            "message ",
            "call a t.echo 1",
            "call b t.denied {}",
            "call c t.echo 3",
            "finished a t.echo completed 1",
            &finished,
            "finished c t.echo completed 3",
            "message done",
            "end answered done",
        ],
    )
    .await;
    assert_eq!(talk.probe.runs.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn an_answer_that_was_cut_does_not_turn_missing_arguments_into_none() {
    for (finish, outcome) in
        [(FinishReason::Length, "invalid-arguments"), (FinishReason::Stop, "completed")]
    {
        let reply = calling(&[("a", "t__echo", "")], finish);
        let mut talk = Talk::new(script(vec![Line::Answers(reply), says("done")]));
        let events = talk.turn("hello").await.join("\n");
        assert!(events.contains(&format!("finished a t.echo {outcome} ")), "{events}");
    }
}

#[tokio::test]
async fn words_arrive_in_order_and_before_the_message() {
    let words: Vec<String> = (0..1000).map(|n| n.to_string()).collect();
    let mut deltas = vec![ReplyDelta::Reasoning { text: "well".into() }];
    deltas.extend(words.iter().cloned().map(ReplyDelta::text));
    let Line::Answers(reply) = says("all") else { unreachable!() };
    let mut talk = Talk::new(script(vec![Line::Streams(deltas, reply)]));
    let mut expected = vec!["reasoning well".to_owned()];
    expected.extend(words.iter().map(|word| format!("text {word}")));
    expected.extend(["message all".to_owned(), "end answered all".to_owned()]);
    assert_eq!(talk.turn("hello").await, expected);
}

#[tokio::test]
async fn the_conversation_goes_on_after_every_end() {
    let echo = || calls(&[("a", "t__echo", "")]);
    let done = ["assistant [a t__echo ] (opaque)", "tool a t__echo {}"];
    let rows: [(Vec<Line>, Vec<&str>); 7] = [
        (vec![says("hi")], vec!["user first", "assistant hi"]),
        (vec![says("")], vec![]),
        (vec![Line::Fails(broken("x"))], vec![]),
        (vec![Line::Fails(refused(400))], vec![]),
        (
            vec![echo(), Line::Fails(broken("x"))],
            vec!["user first", done[0], done[1], "assistant [stopped: no answer came]"],
        ),
        (vec![echo(), Line::Fails(refused(413))], vec![]),
        (vec![echo(), says("")], vec!["user first", done[0], done[1], "assistant [no answer]"]),
    ];
    for (mut lines, mut expected) in rows {
        lines.push(says("again"));
        let mut talk = Talk::new(script(lines));
        talk.turn("first").await;
        assert_eq!(talk.turn("second").await, ["message again", "end answered again"]);
        expected.push("user second");
        check_shown(&talk, &expected);
    }
}

#[tokio::test]
async fn a_lost_model_ends_the_turn_with_its_reason() {
    check(
        vec![Line::Fails(broken("half an answer"))],
        &["end model failed the answer of scripted is broken: half an answer"],
    )
    .await;
}

#[tokio::test]
async fn the_system_prompt_leads() {
    let options = SessionOptions { system_prompt: Some("be brief".into()), ..options() };
    let mut talk = Talk::with(options, script(vec![says("hi")]));
    talk.turn("hello").await;
    check_shown(&talk, &["system be brief", "user hello"]);
}

#[tokio::test]
async fn inputs_wait_for_the_present_turn_and_too_many_are_told() {
    let mut talk = Talk::new(|index| match index {
        0 => Line::Hangs,
        _ => says("hi"),
    });
    talk.submit("first").await;
    talk.until_line("text hm").await;
    for _ in 0..17 {
        talk.submit("more").await;
    }
    talk.send(FrontEndCommand::Cancel).await;
    let mut events = talk.until_end().await;
    for _ in 0..16 {
        events.extend(talk.until_end().await);
    }
    let count = |wanted: &str| lines(&events).iter().filter(|line| *line == wanted).count();
    assert_eq!(count("notice too many inputs are waiting, this one was dropped"), 1);
    assert_eq!((count("end cancelled"), count("end answered hi")), (1, 16));
}

#[tokio::test]
async fn inputs_that_say_nothing_or_far_too_much_do_not_reach_the_model() {
    let mut talk = Talk::new(script(vec![says("hi")]));
    assert_eq!(talk.turn(" \n").await, ["end refused the input is empty"]);
    let long = "x".repeat(1024 * 1024 + 1);
    let refused = "end refused the input has 1048577 bytes, at most 1048576 are accepted";
    assert_eq!(talk.turn(&long).await, [refused]);
    assert_eq!(talk.turn("hello").await, ["message hi", "end answered hi"]);
    check_shown(&talk, &["user hello"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_script_gives_the_same_events() {
    async fn play() -> Vec<String> {
        let many: Vec<_> = (0..40).map(|n| n.to_string()).collect();
        let wanted: Vec<_> = many.iter().map(|n| ("same", "t__echo", n.as_str())).collect();
        let mixed = [("a", "t__breaks", ""), ("b", "t__denied", ""), ("c", "nope", "{")];
        let lines = vec![calls(&wanted), calls(&mixed), says("done"), Line::Fails(broken("x"))];
        let mut talk = Talk::new(script(lines));
        let mut events = talk.turn("first").await;
        events.extend(talk.turn("second").await);
        events
    }
    let first = play().await;
    for _ in 0..20 {
        assert_eq!(play().await, first);
    }
}

#[tokio::test]
async fn the_tools_of_a_turn_are_those_of_its_begin() {
    let echo = |id: &str| calls(&[(id, "t__echo", "{}")]);
    let lines = vec![echo("a"), says("one"), echo("b"), says("two"), echo("c"), says("three")];
    let mut talk = Talk::new(script(lines));
    assert!(talk.turn("with it").await.contains(&"finished a t.echo completed {}".to_owned()));
    talk.probe.is_without_echo.store(true, Ordering::SeqCst);
    let events = talk.turn("without it").await.join("\n");
    assert!(events.contains("there is no tool") && events.ends_with("answered two"), "{events}");
    talk.probe.is_without_echo.store(false, Ordering::SeqCst);
    assert!(talk.turn("again").await.contains(&"finished c t.echo completed {}".to_owned()));
}
