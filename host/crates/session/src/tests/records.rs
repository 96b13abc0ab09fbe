//! The records that are written, and when.

use super::{
    model::{Line, broken, calls, refused, says, script},
    *,
};

/// The records before the first input.
const OPENING: [&str; 2] = ["began", "model scripted"];

async fn check_written(lines: Vec<Line>, expected: &[&str]) {
    let mut talk = Talk::new(script(lines));
    talk.turn("hello").await;
    assert_eq!(talk.written(), [&OPENING, expected].concat());
}

#[tokio::test]
async fn a_turn_is_written_down_as_it_goes() {
    let echo = || calls(&[("a", "t__echo", "")]);
    let rows: [(Vec<Line>, &[&str]); 7] = [
        (vec![says("hi")], &["user hello", "assistant hi", "end answered"]),
        (vec![says(" ")], &["user hello", "assistant  ", "forgotten", "end answered"]),
        (vec![Line::Fails(broken("x"))], &["user hello", "forgotten", "end model-failed"]),
        (
            vec![echo(), says("hi")],
            &[
                "user hello",
                "assistant [a t__echo ] (opaque)",
                "result a t.echo completed",
                "assistant hi",
                "end answered",
            ],
        ),
        (
            vec![echo(), Line::Fails(broken("x"))],
            &[
                "user hello",
                "assistant [a t__echo ] (opaque)",
                "result a t.echo completed",
                "note [stopped: no answer came]",
                "end model-failed",
            ],
        ),
        (
            vec![echo(), Line::Fails(refused(400))],
            &[
                "user hello",
                "assistant [a t__echo ] (opaque)",
                "result a t.echo completed",
                "forgotten",
                "end model-failed",
            ],
        ),
        (
            vec![calls(&[("", "nope", ""), ("", "t.denied", "")]), says("hi")],
            &[
                "user hello",
                "assistant [call00001 nope ][call00002 t__denied ]",
                "result call00001 nope failed",
                "result call00002 t.denied denied",
                "assistant hi",
                "end answered",
            ],
        ),
    ];
    for (lines, expected) in rows {
        check_written(lines, expected).await;
    }
}

#[tokio::test]
async fn nothing_is_written_before_something_was_said() {
    let mut talk = Talk::new(script(Vec::new()));
    talk.until_line("state Ready").await;
    talk.handle.use_model(Arc::new(model::silent())).await.unwrap();
    talk.until_line("model silent").await;
    assert_eq!(talk.turn(" ").await, ["end refused the input is empty"]);
    assert!(talk.written().is_empty());
}

#[tokio::test]
async fn the_input_is_written_before_the_model_is_asked() {
    let mut talk = Talk::new(script(vec![Line::Hangs]));
    talk.submit("hello").await;
    talk.until_line("text hm").await;
    assert_eq!(talk.written(), [&OPENING[..], &["user hello"]].concat());
}

#[tokio::test]
async fn the_answer_is_written_before_its_calls_run_and_each_result_when_its_call_ends() {
    let wanted = [("a", "t__hangs", ""), ("b", "t__denied", ""), ("c", "t__echo", "3")];
    let mut talk = Talk::new(script(vec![calls(&wanted)]));
    talk.submit("hello").await;
    within(talk.probe.hangs.notified()).await;
    let ended = async {
        while talk.records.all().len() < 6 {
            tokio::task::yield_now().await;
        }
    };
    within(ended).await;
    let expected = [
        "user hello",
        "assistant [a t__hangs ][b t__denied ][c t__echo 3] (opaque)",
        "result b t.denied denied",
        "result c t.echo completed",
    ];
    assert_eq!(talk.written(), [&OPENING[..], &expected].concat());
    talk.send(FrontEndCommand::Cancel).await;
    let finished = lines(&talk.until_end().await);
    let order: Vec<&str> = finished.iter().filter_map(|line| line.get(..10)).collect();
    assert_eq!(
        order.into_iter().filter(|line| line.starts_with("finished")).collect::<Vec<_>>(),
        ["finished a", "finished b", "finished c"]
    );
    let rest = ["result a t.hangs cancelled", "note [stopped by the user]", "end cancelled"];
    assert_eq!(talk.written()[6..], rest);
}

#[tokio::test]
async fn a_journal_that_fails_is_told_once_and_given_later_what_it_missed() {
    let mut talk = Talk::new(script(vec![says("one"), says("two"), says("three")]));
    talk.records.is_failing.store(true, Ordering::SeqCst);
    let notice = "notice this session is not being saved: the disk is full";
    assert_eq!(talk.turn("1").await, [notice, "message one", "end answered one"]);
    assert_eq!(talk.turn("2").await, ["message two", "end answered two"]);
    assert!(talk.written().is_empty());
    talk.records.is_failing.store(false, Ordering::SeqCst);
    talk.turn("3").await;
    let expected = [
        "user 1",
        "assistant one",
        "end answered",
        "user 2",
        "assistant two",
        "end answered",
        "user 3",
        "assistant three",
        "end answered",
    ];
    assert_eq!(talk.written(), [&OPENING[..], &expected].concat());
}

#[tokio::test]
async fn a_last_turn_was_lost_although_the_journal_worked_again_when_the_session_ended() {
    let mut talk = Talk::new(script(vec![says("one")]));
    talk.records.is_failing.store(true, Ordering::SeqCst);
    talk.turn("1").await;
    talk.records.is_failing.store(false, Ordering::SeqCst);
    talk.send(FrontEndCommand::Close).await;
    while talk.events.recv().await.is_some() {}
    let expected = ["user 1", "assistant one", "end answered"];
    assert_eq!(talk.written(), [&OPENING[..], &expected].concat());
}
