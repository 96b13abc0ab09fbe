//! Spoken sentences of tools that replace an answer.

use super::{
    model::{calls, says, script},
    *,
};

/// Id, name and arguments of a call.
type Wanted<'a> = (&'a str, &'a str, &'a str);

async fn end_of_turn(spoken: bool, wanted: &[Wanted<'_>]) -> (String, Talk) {
    let lines = vec![calls(wanted), says("summed up"), says("again")];
    let mut talk = Talk::with(SessionOptions { spoken, ..limited(16, 64, 10) }, script(lines));
    let mut events = talk.turn("hello").await;
    (events.pop().unwrap(), talk)
}

#[tokio::test]
async fn a_spoken_turn_ends_with_the_tools_own_sentences_when_all_calls_completed() {
    let timer = ("a", "t__speaks", r#"{"say":"Timer set."}"#);
    let lamp = ("b", "t__speaks", r#"{"say":"Light on."}"#);
    let blank = ("c", "t__speaks", r#"{"say":" "}"#);
    let [echo, fails, denied] = ["t__echo", "t__fails", "t__denied"].map(|name| ("d", name, ""));
    let long = format!(r#"{{"say":"{}"}}"#, "x".repeat(700));
    let long_ones = ["1", "2", "3", "4", "5", "6"].map(|id| (id, "t__speaks", long.as_str()));
    let rows: [(bool, &[Wanted<'_>], &str); 8] = [
        (true, &[timer], "end spoken Timer set."),
        (false, &[timer], "end answered summed up"),
        (true, &[timer, lamp], "end spoken Timer set. Light on."),
        (true, &[timer, echo, blank], "end spoken Timer set."),
        (true, &[timer, fails], "end answered summed up"),
        (true, &[timer, denied], "end answered summed up"),
        (true, &[echo, blank], "end answered summed up"),
        (true, &long_ones, "end answered summed up"),
    ];
    for (spoken, wanted, expected) in rows {
        assert_eq!(end_of_turn(spoken, wanted).await.0, expected);
    }
}

#[tokio::test]
async fn what_was_said_stands_in_the_transcript() {
    let wanted = [("a", "t__speaks", r#"{"say":"Timer set."}"#)];
    let (_, mut talk) = end_of_turn(true, &wanted).await;
    talk.turn("thanks").await;
    assert_eq!(
        talk.shown().split_off(2),
        ["tool a t__speaks null", "assistant Timer set.", "user thanks"]
    );
}
