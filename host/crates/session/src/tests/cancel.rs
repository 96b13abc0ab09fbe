//! Cancelling a turn, and closing the session, at every moment.

use sallyport_model::ChatMessage;

use super::{
    model::{Line, calls, says, script},
    *,
};

/// Cancels the first turn when its events reach the given line, and returns the rest of them.
async fn cancelled_at(talk: &mut Talk, moment: &str) -> Vec<String> {
    talk.submit("first").await;
    talk.until_line(moment).await;
    talk.send(FrontEndCommand::Cancel).await;
    let rest = lines(&talk.until_end().await);
    assert_eq!(rest[rest.len() - 1], "end cancelled");
    assert_eq!(talk.probe.hanging(), 0);
    rest
}

/// Waits until every dropped future is gone.
async fn nothing_hangs(probe: &Probe) {
    let gone = async {
        while probe.hanging() > 0 {
            tokio::task::yield_now().await;
        }
    };
    within(gone).await;
}

async fn check_goes_on(talk: &mut Talk, expected: &[&str]) {
    let events = talk.turn("second").await;
    assert_eq!(events, ["message again", "end answered again"]);
    check_shown(talk, expected);
}

#[tokio::test]
async fn while_the_model_thinks() {
    let mut talk = Talk::new(script(vec![Line::Hangs, says("again")]));
    cancelled_at(&mut talk, "text hm").await;
    let expected = ["user first", "assistant hm\n[stopped by the user]", "user second"];
    check_goes_on(&mut talk, &expected).await;
}

#[tokio::test]
async fn while_the_model_thinks_about_results() {
    let mut talk =
        Talk::new(script(vec![calls(&[("a", "t__echo", "")]), Line::Hangs, says("again")]));
    cancelled_at(&mut talk, "text hm").await;
    let expected = [
        "user first",
        "assistant [a t__echo ] (opaque)",
        "tool a t__echo {}",
        "assistant hm\n[stopped by the user]",
        "user second",
    ];
    check_goes_on(&mut talk, &expected).await;
}

#[tokio::test]
async fn while_a_question_is_open() {
    let wanted = [("a", "t__echo", ""), ("b", "t__denied", ""), ("c", "t__asks", "")];
    let mut talk = Talk::new(script(vec![calls(&wanted), says("again")]));
    let rest = cancelled_at(&mut talk, "question 1 t.asks").await;
    assert_eq!(rest[..2], ["closed 1", "state Executing"]);
    assert_eq!(talk.probe.runs.load(std::sync::atomic::Ordering::SeqCst), 0);
    let expected = [
        "user first",
        "assistant [a t__echo ][b t__denied ][c t__asks ] (opaque)",
        r#"tool! a t__echo {"error":"cancelled by the user","outcome":"cancelled"}"#,
        r#"tool! b t__denied {"error":"denied: policy.toml:3","outcome":"denied"}"#,
        r#"tool! c t__asks {"error":"cancelled by the user","outcome":"cancelled"}"#,
        "assistant [stopped by the user]",
        "user second",
    ];
    talk.answer(1, ApprovalAnswer::Once).await;
    talk.until_line("notice question 1 is not open, the answer changes nothing").await;
    check_goes_on(&mut talk, &expected).await;
}

#[tokio::test]
async fn a_question_of_a_running_call_is_answered_with_no() {
    let mut talk = Talk::new(script(vec![calls(&[("a", "t__asks_late", "")]), says("again")]));
    let rest = cancelled_at(&mut talk, "question 1 t.asks_late").await;
    assert_eq!(rest[0], "closed 1");
}

#[tokio::test]
async fn while_the_gate_decides() {
    let wanted = [("a", "t__hangs_at_gate", ""), ("b", "t__echo", "")];
    let mut talk = Talk::new(script(vec![calls(&wanted), says("again")]));
    talk.submit("first").await;
    within(talk.probe.hangs.notified()).await;
    talk.send(FrontEndCommand::Cancel).await;
    let rest = lines(&talk.until_end().await).join("\n");
    assert_eq!(rest.matches(" cancelled {").count(), 2, "{rest}");
    nothing_hangs(&talk.probe).await;
    assert_eq!(talk.turn("second").await, ["message again", "end answered again"]);
}

#[tokio::test]
async fn while_calls_run_those_that_have_ended_keep_their_result() {
    let wanted = [("a", "t__echo", "1"), ("b", "t__hangs", ""), ("c", "t__echo", "3")];
    let mut talk = Talk::new(script(vec![calls(&wanted), says("again")]));
    talk.submit("first").await;
    talk.until_line("finished a t.echo completed 1").await;
    within(talk.probe.hangs.notified()).await;
    while talk.probe.runs.load(std::sync::atomic::Ordering::SeqCst) < 3 {
        tokio::task::yield_now().await;
    }
    talk.send(FrontEndCommand::Cancel).await;
    talk.until_line("end cancelled").await;
    assert_eq!(talk.probe.hanging(), 0);
    let expected = [
        "user first",
        "assistant [a t__echo 1][b t__hangs ][c t__echo 3] (opaque)",
        "tool a t__echo 1",
        r#"tool! b t__hangs {"error":"cancelled by the user","outcome":"cancelled"}"#,
        "tool c t__echo 3",
        "assistant [stopped by the user]",
        "user second",
    ];
    check_goes_on(&mut talk, &expected).await;
}

#[tokio::test]
async fn between_turns_it_changes_nothing() {
    let mut talk = Talk::new(script(vec![says("hi"), says("again")]));
    talk.send(FrontEndCommand::Cancel).await;
    talk.turn("first").await;
    talk.send(FrontEndCommand::Cancel).await;
    check_goes_on(&mut talk, &["user first", "assistant hi", "user second"]).await;
}

#[tokio::test]
async fn a_session_that_ends_leaves_nothing_running() {
    for (ending, lines) in [
        (0, vec![Line::Hangs]),
        (1, vec![Line::Hangs]),
        (0, vec![calls(&[("a", "t__hangs", "")])]),
        (1, vec![calls(&[("a", "t__hangs", "")])]),
        (2, vec![calls(&[("a", "t__hangs", "")])]),
    ] {
        let Talk { handle, mut events, probe, .. } = {
            let talk = Talk::new(script(lines));
            talk.submit("first").await;
            talk
        };
        within(probe.hangs.notified()).await;
        match ending {
            0 => handle.send(FrontEndCommand::Close).await.unwrap(),
            1 => drop(handle),
            _ => events.close(),
        }
        // The channel ends when the session does.
        within(async { while events.recv().await.is_some() {} }).await;
        nothing_hangs(&probe).await;
    }
}

#[tokio::test]
async fn closing_ends_the_turn_and_then_the_events() {
    let mut talk = Talk::new(script(vec![Line::Hangs]));
    talk.submit("first").await;
    talk.until_line("text hm").await;
    talk.submit("waits in vain").await;
    talk.send(FrontEndCommand::Close).await;
    assert_eq!(lines(&talk.until_end().await), ["end cancelled"]);
    assert_eq!(within(talk.events.recv()).await, None);
    let late = FrontEndCommand::SubmitInput { input: "late".into() };
    assert_eq!(talk.handle.send(late).await, Err(SessionEndedError));
    assert!(talk.requests.lock().unwrap().iter().flatten().all(|message| {
        !matches!(message, ChatMessage::User(said) if said.text == "waits in vain")
    }));
}
