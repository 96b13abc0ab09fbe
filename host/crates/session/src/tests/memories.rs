//! The view of a long conversation, and the summaries that the model writes.

use super::{
    model::{Line, broken, calls, says, script, using},
    *,
};
use crate::MemoryMode;

/// A text so long that three turns of it do not fit.
fn words() -> String {
    "word ".repeat(400)
}

fn with_memory(memory: MemoryMode) -> SessionOptions {
    SessionOptions { memory, ..options() }
}

fn summarizing(fails: bool) -> impl Fn(usize) -> Line + Send + Sync {
    move |index| match index {
        4 if fails => Line::Fails(broken("no summary")),
        4 => using(says("they said words"), 70, 7),
        index => says(&format!("{} {index}", words())),
    }
}

#[tokio::test]
async fn a_window_shows_the_newest_turns() {
    let options = with_memory(MemoryMode::SlidingWindow { tokens_max: 3_500 });
    let mut talk = Talk::with(options, |index| says(&format!("{} {index}", words())));
    for turn in 0..8 {
        talk.turn(&format!("{turn} {}", words())).await;
    }
    let shown = talk.shown();
    assert!(shown.len() < 15 && shown[shown.len() - 1].starts_with("user 7 "), "{}", shown.len());
    assert!(shown[0].starts_with("user 0 "));
}

#[tokio::test]
async fn a_summary_stands_for_what_falls_out_and_the_window_does_without_one() {
    for fails in [false, true] {
        let options = with_memory(MemoryMode::Summary { tokens_max: 4_500 });
        let mut talk = Talk::with(options, summarizing(fails));
        let mut all = Vec::new();
        for turn in 0..5 {
            all.extend(talk.turn(&format!("{turn} {}", words())).await);
        }
        let event = all.iter().find(|line| line.starts_with("summary of "));
        let notice = "notice no summary was made: the answer of scripted is broken: no summary";
        assert_eq!(event.is_some(), !fails);
        assert_eq!(all.iter().any(|line| line == notice), fails);
        let shown = talk.shown().join("\n");
        assert_eq!(shown.contains("they said words"), !fails, "{shown:.3000}");
        let summaries = talk.written().iter().filter(|line| line.starts_with("summary")).count();
        assert_eq!(summaries, usize::from(!fails));
        let requests = talk.requests.lock().unwrap().len();
        assert_eq!(requests, 6);
    }
}

#[tokio::test]
async fn a_summary_that_did_not_come_is_not_asked_for_again_in_the_same_turn() {
    let options = with_memory(MemoryMode::Summary { tokens_max: 4_500 });
    let mut talk = Talk::with(options, |index| match index {
        5 => calls(&[("a", "t__echo", "1")]),
        index => summarizing(true)(index),
    });
    for turn in 0..5 {
        talk.turn(&format!("{turn} {}", words())).await;
    }
    assert_eq!(talk.requests.lock().unwrap().len(), 7);
}

#[tokio::test]
async fn a_person_can_have_the_conversation_summed_up_in_every_memory() {
    let memories = [
        MemoryMode::None,
        MemoryMode::SlidingWindow { tokens_max: 100_000 },
        MemoryMode::Summary { tokens_max: 100_000 },
    ];
    for memory in memories {
        let lines = vec![says("one"), says("two"), says("three"), says("all of it"), says("four")];
        let mut talk = Talk::with(with_memory(memory), script(lines));
        talk.send(FrontEndCommand::Summarize).await;
        talk.until_line("notice there is nothing to sum up").await;
        for input in ["1", "2", "3"] {
            talk.turn(input).await;
        }
        talk.send(FrontEndCommand::Summarize).await;
        talk.until_line("summary of 6 all of it").await;
        talk.send(FrontEndCommand::Summarize).await;
        talk.until_line("notice there is nothing to sum up").await;
        talk.turn("4").await;
        let shown = talk.shown().join("\n");
        assert!(shown.contains("assistant all of it\nuser 4"), "{shown}");
        assert!(!shown.contains("assistant two"), "{shown}");
        // Undoing a summarized turn voids the summary: the other turns are shown in full again.
        talk.send(FrontEndCommand::Undo).await;
        talk.send(FrontEndCommand::Undo).await;
        talk.until_line("undone 3").await;
        talk.turn("5").await;
        check_shown(&talk, &["user 1", "assistant one", "user 2", "assistant two", "user 5"]);
    }
}

#[tokio::test]
async fn a_summary_that_is_called_off_changes_nothing() {
    let lines = vec![says("one"), Line::Hangs, says("two")];
    let mut talk = Talk::new(script(lines));
    talk.turn("1").await;
    talk.send(FrontEndCommand::Summarize).await;
    within(talk.probe.hangs.notified()).await;
    talk.send(FrontEndCommand::Cancel).await;
    talk.until_line("notice no summary was made: cancelled").await;
    talk.turn("2").await;
    check_shown(&talk, &["user 1", "assistant one", "user 2"]);
}

#[tokio::test]
async fn a_blank_summary_is_none() {
    let mut talk = Talk::new(script(vec![says("one"), says(" \n"), says("two")]));
    talk.turn("1").await;
    talk.send(FrontEndCommand::Summarize).await;
    talk.until_line("notice no summary was made: the model gave no answer").await;
    talk.turn("2").await;
    check_shown(&talk, &["user 1", "assistant one", "user 2"]);
}
