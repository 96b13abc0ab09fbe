//! Progress of calls.

use sallyport_contract::services::CallProgress;

use super::{
    model::{calls, says, script},
    *,
};

fn progress(part: f64, message: &str) -> CallProgress {
    CallProgress { fraction: Some(part), message: Some(message.into()) }
}

async fn tell(talk: &Talk, call_id: &str, progress: CallProgress) {
    talk.send(FrontEndCommand::Progress { call_id: call_id.into(), progress }).await;
}

/// A session in which the call `a` runs until it is cancelled.
async fn running() -> Talk {
    let talk = Talk::new(script(vec![calls(&[("a", "t__hangs", "")]), says("done")]));
    talk.submit("hello").await;
    within(talk.probe.hangs.notified()).await;
    talk
}

/// Returns the reported progress up to the end of the turn, which is cancelled.
async fn told_until_end(talk: &mut Talk) -> Vec<String> {
    talk.send(FrontEndCommand::Cancel).await;
    let events = lines(&talk.until_end().await);
    let is_wanted = |line: &String| line.starts_with("progress") || line.starts_with("finished");
    events
        .into_iter()
        .filter(is_wanted)
        .map(|line| line.split(" t.").next().unwrap().into())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn the_first_word_is_told_at_once_and_the_last_of_a_burst_is_not_lost() {
    let mut talk = running().await;
    for step in 0..=50 {
        tell(&talk, "a", progress(f64::from(step) / 100.0, "so far")).await;
    }
    talk.until_line("progress a Some(0.0) so far").await;
    // The clock is paused while any task can run, so the wait ends when none is left.
    talk.until_line("progress a Some(0.5) so far").await;
    assert_eq!(told_until_end(&mut talk).await, ["finished a"]);
}

#[tokio::test(start_paused = true)]
async fn the_last_word_comes_before_the_end_of_its_call() {
    let mut talk = running().await;
    for part in [0.1, 0.2, 0.9] {
        tell(&talk, "a", progress(part, "")).await;
    }
    let told = told_until_end(&mut talk).await;
    assert_eq!(told, ["progress a Some(0.1) ", "progress a Some(0.9) ", "finished a"]);
    assert!(!talk.written().join("\n").contains("progress"));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_does_not_run_comes_no_further() {
    let mut talk = running().await;
    for call in ["", "b", "A"] {
        tell(&talk, call, progress(0.5, "")).await;
    }
    assert_eq!(told_until_end(&mut talk).await, ["finished a"]);
    tell(&talk, "a", progress(1.0, "")).await;
    talk.turn("again").await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_drawn_is_not_told() {
    let long = "é".repeat(1000);
    let rows = [
        (CallProgress { fraction: None, message: None }, "None ".to_owned()),
        (progress(f64::NAN, "x"), "None x".to_owned()),
        (progress(f64::INFINITY, "x"), "None x".to_owned()),
        (progress(-3.0, "x"), "Some(0.0) x".to_owned()),
        (progress(7.0, "x"), "Some(1.0) x".to_owned()),
        (progress(0.5, &long), format!("Some(0.5) {}", "é".repeat(200))),
    ];
    for (progress, told) in rows {
        let mut talk = running().await;
        tell(&talk, "a", progress).await;
        talk.until_line(&format!("progress a {told}")).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_flood_holds_nobody_up() {
    let mut talk = running().await;
    for step in 0..10_000 {
        tell(&talk, "a", progress(0.0, &step.to_string())).await;
    }
    let told = told_until_end(&mut talk).await;
    assert!(told.len() <= 3 && told[told.len() - 2] == "progress a Some(0.0) 9999", "{told:?}");
}
