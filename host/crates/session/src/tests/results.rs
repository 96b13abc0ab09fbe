//! Long results: kept whole, read in parts, and never in the transcript.

use serde_json::Value;

use super::{
    model::{calls, says, script},
    *,
};
use crate::restore_session;

/// Lines of a result of five megabytes.
const LINES: usize = 131_072;

const MEGABYTES: &str = r#"{"lines":131072}"#;

/// Most bytes that such a result may take of a transcript, however often it is read here.
const TRANSCRIPT_BYTES_MAX: usize = 24 * 1024;

/// The results in the model's last request, as JSON.
fn results_shown(talk: &Talk) -> Vec<Value> {
    let requests = talk.requests.lock().unwrap();
    let messages = requests.last().unwrap().iter();
    let contents = messages.filter_map(|message| match message {
        ChatMessage::Tool(result) => Some(serde_json::from_str(&result.content).unwrap()),
        _ => None,
    });
    contents.collect()
}

#[tokio::test]
async fn a_result_of_megabytes_is_read_at_its_end_and_takes_little_of_the_transcript() {
    let end = r#"{"result":1,"line":-1}"#;
    let found = r#"{"result":1,"search":"131070","lines":5}"#;
    let lines = vec![
        calls(&[("a", "t__long", MEGABYTES)]),
        calls(&[("b", "result", end), ("c", "result", found)]),
        says("done"),
        says("again"),
    ];
    let mut talk = Talk::new(script(lines));
    let events = talk.turn("hello").await;
    let kept = format!("kept a 1 {} {LINES}", LINES * 40);
    let finished = events.iter().position(|line| line.starts_with("finished a t.long completed"));
    assert_eq!(events[finished.unwrap() + 1], kept);
    let [excerpt, last_line, place] = &results_shown(&talk)[..] else { panic!() };
    assert_eq!((&excerpt["result"], &excerpt["bytes"]), (&1.into(), &(LINES * 40).into()));
    assert!(excerpt["head"].as_str().unwrap().starts_with("line          1 of"), "{excerpt}");
    assert!(excerpt["tail"].as_str().unwrap().ends_with("result here\n"), "{excerpt}");
    assert_eq!(last_line["text"], "line     131072 of one long result here\n");
    assert_eq!((&last_line["line"], &last_line["next_byte"]), (&LINES.into(), &Value::Null));
    assert_eq!(place["matches"][0]["line"], 131_070);
    let requested: usize = talk.shown().iter().map(String::len).sum();
    let recorded = serde_json::to_string(&talk.records.all()).unwrap().len();
    assert!(
        requested < TRANSCRIPT_BYTES_MAX && recorded < TRANSCRIPT_BYTES_MAX,
        "{requested} {recorded}"
    );
    talk.turn("and?").await;
    let offered: Vec<bool> = talk
        .probe
        .listed_tools
        .lock()
        .unwrap()
        .iter()
        .map(|tools: &Vec<String>| tools.last().is_some_and(|name| name == "result"))
        .collect();
    assert_eq!(offered, [false, true, true, true]);
}

#[tokio::test]
async fn a_restored_session_offers_its_results_and_no_others() {
    let lines = vec![calls(&[("a", "t__long", r#"{"lines":2000}"#)]), says("done")];
    let mut first = Talk::new(script(lines));
    first.turn("hello").await;
    let past = restore_session(first.records.all());
    // This journal is of another session, so it has no result 1.
    let reads = || vec![calls(&[("b", "result", r#"{"result":1}"#)]), says("none")];
    let mut other = Talk::resumed(past, options(), script(reads()));
    other.turn("and?").await;
    assert_eq!(results_shown(&other)[1]["error"], "there is no result 1");
    let mut fresh = Talk::new(script(reads()));
    fresh.turn("hello").await;
    let error = results_shown(&fresh)[0]["error"].as_str().unwrap().to_owned();
    assert!(error.starts_with("there is no tool \"result\""), "{error}");
}

/// A query that waits for a thread of its own does not keep the session from ending the turn.
#[test]
fn a_query_is_cancelled_like_any_other_call() {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.max_blocking_threads(1).enable_time().build().unwrap();
    runtime.block_on(async {
        let replies = vec![
            calls(&[("a", "t__long", r#"{"lines":2000}"#)]),
            says("kept"),
            calls(&[("b", "result", r#"{"result":1,"line":-1}"#), ("c", "t__echo", "")]),
            calls(&[("b", "result", r#"{"result":1,"line":-1}"#)]),
            says("read"),
        ];
        let mut talk = Talk::new(script(replies));
        talk.turn("hello").await;
        let (release, held) = std::sync::mpsc::channel::<()>();
        let holder = tokio::task::spawn_blocking(move || held.recv());
        talk.submit("read it").await;
        talk.until(|event| line(event).starts_with("call ")).await;
        talk.send(FrontEndCommand::Cancel).await;
        let rest = talk.until_end().await;
        let cancelled = r#"cancelled {"error":"cancelled by the user","outcome":"cancelled"}"#;
        let ends = lines(&rest).into_iter().filter(|line| line.ends_with(cancelled)).count();
        assert_eq!((ends, line(&rest[rest.len() - 1])), (2, "end cancelled".to_owned()));
        drop(release);
        assert!(within(holder).await.unwrap().is_err());
        let events = talk.turn("again").await.join("\n");
        assert!(events.contains(" result completed {"), "{events}");
    });
}

/// The least is what a query needs to get to the end of a result.
#[tokio::test]
async fn a_limit_too_small_for_an_answer_counts_as_the_least() {
    let lines = vec![
        calls(&[("a", "t__long", r#"{"lines":2000}"#)]),
        calls(&[("b", "result", r#"{"result":1}"#)]),
        says("done"),
    ];
    let options = SessionOptions { result_bytes_max: Some(1), ..options() };
    let mut talk = Talk::with(options, script(lines));
    talk.turn("hello").await;
    let [_, part] = &results_shown(&talk)[..] else { panic!() };
    assert!(part["next_byte"].as_u64().unwrap() > 2000, "{part}");
}

#[tokio::test]
async fn a_snapshot_is_exported_with_the_texts_of_its_results() {
    let lines = vec![calls(&[("a", "t__long", r#"{"lines":2000}"#)]), says("done")];
    let mut talk = Talk::new(script(lines));
    talk.turn("hello").await;
    let records = talk.handle.snapshot().await.unwrap().records;
    let texts = talk.handle.kept_texts(&records).await.unwrap();
    assert_eq!(texts.keys().collect::<Vec<_>>(), [&1]);
    assert_eq!(texts[&1].len(), 2000 * 40);
    talk.records.results.lock().unwrap().keep_text("x".repeat(40 << 20));
    assert!(talk.handle.kept_texts(&records).await.unwrap().is_empty(), "it is displaced");
}

#[tokio::test]
async fn a_result_that_cannot_be_kept_is_cut_and_said_to_be() {
    let lines = vec![calls(&[("a", "t__long", MEGABYTES)]), says("done")];
    let mut talk = Talk::new(script(lines));
    talk.records.is_failing.store(true, Ordering::SeqCst);
    let events = talk.turn("hello").await;
    let notice = "notice a long result is not kept, the model sees only a part of it: the disk is \
                  full";
    assert!(events.iter().any(|line| line == notice), "{events:?}");
    assert!(events.last().unwrap().starts_with("end answered done"), "{events:?}");
    let [excerpt] = &results_shown(&talk)[..] else { panic!() };
    assert_eq!(excerpt["result"], Value::Null);
    assert!(excerpt["cut"].as_str().unwrap().contains("could not be kept"), "{excerpt}");
    assert_eq!(talk.probe.listed_tools.lock().unwrap()[1].last().unwrap(), "t__speaks");
}
