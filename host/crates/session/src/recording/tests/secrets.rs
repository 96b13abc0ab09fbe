//! No secret is written to a tape, and the tape can still be replayed.

use sallyport_contract::Secret;
use sallyport_model::ReplyDelta;

use super::{
    cast::Line::{Calls, Says},
    *,
};
use crate::recording::clean;

const SECRET: &str = "hunter2-\"quoted\"";

fn redactor() -> Redactor {
    Redactor::new([("door", &Secret::new(SECRET))])
}

#[tokio::test(start_paused = true)]
async fn a_secret_in_inputs_answers_and_results_stays_off_the_tape() {
    let script = [
        Calls(&[("t__echo", r#"{"key":"hunter2-\"quoted\"","n":1}"#), ("t__slow", "{}")]),
        Says("The key is hunter2-\"quoted\" as you said."),
        Says("Bye."),
    ];
    let inputs = ["my key is hunter2-\"quoted\"", "forget hunter2-\"quoted\""];
    let (tape, recorded) = record(Actor::new(script), &inputs, redactor()).await;
    assert!(recorded.iter().any(|event| event.contains("hunter2")), "the session has it");
    assert!(!tape.contains("hunter2"), "{tape}");
    assert!(tape.matches("[secret door]").count() > 6, "{tape}");
    for redactor in [Redactor::empty(), redactor()] {
        let taped = read(&tape);
        let inputs = taped.inputs().to_vec();
        let replay = SessionReplay::new(taped, redactor);
        let mut talk = Talk::new(replay.to_chat_model(), replay.to_toolbox(), options());
        for input in inputs {
            talk.turn(input, replay.wait_for_cancellation()).await;
        }
        assert_eq!(replay.first_problem(), None);
        let count = |events: &[String]| events.iter().filter(|e| !e.starts_with("Delta")).count();
        assert_eq!(count(&talk.heard), count(&recorded));
    }
}

#[tokio::test(start_paused = true)]
async fn a_prompt_with_a_secret_is_compared_without_it() {
    let text = |prompt: &str| SessionOptions { system_prompt: Some(prompt.into()), ..options() };
    let (tape, _) = record(Actor::new([Says("Hi.")]), &["hello"], Redactor::empty()).await;
    let clean = tape.replace("Be brief.", "Use [secret door].");
    assert_eq!(read(&clean).options(), text("Use [secret door]."));
    let taped = read(&clean);
    let replay = SessionReplay::new(taped, redactor());
    let prompt = format!("Use {SECRET}.");
    let mut talk = Talk::new(replay.to_chat_model(), replay.to_toolbox(), text(&prompt));
    talk.turn("hello".into(), replay.wait_for_cancellation()).await;
    assert_eq!(replay.first_problem(), None);
}

#[test]
fn a_secret_that_arrives_in_pieces_is_found() {
    let text = |text: &str| ReplyDelta::Text { text: text.into() };
    let reasoning = |text: &str| ReplyDelta::Reasoning { text: text.into() };
    let begun = |name: &str| ReplyDelta::CallBegun { name: name.into() };
    let rows = [
        (vec![text("all "), text("well")], vec![text("all "), text("well")]),
        (
            vec![text("it is hun"), begun("x"), text("ter2-\"quo"), text("ted\" ok")],
            vec![text("it is [secret door] ok"), begun("x")],
        ),
        (
            vec![reasoning("hunter2-"), text("plain "), reasoning("\"quoted\""), text("words")],
            vec![reasoning("[secret door]"), text("plain "), text("words")],
        ),
        (vec![begun(SECRET)], vec![begun("[secret door]")]),
    ];
    for (mut deltas, expected) in rows {
        clean::clean_deltas(&redactor(), &mut deltas);
        assert_eq!(deltas, expected);
    }
}

#[test]
fn a_secret_in_the_title_of_a_tool_stays_off_the_tape() {
    let mut tool = Stage::new().tools()[0].clone();
    tool.title = Some(format!("Opens {SECRET}"));
    clean::clean_tool(&redactor(), &mut tool);
    assert_eq!(tool.title.as_deref(), Some("Opens [secret door]"));
}

/// A policy that changes during the recording may name a new secret.
#[test]
fn a_secret_that_becomes_known_while_recording_stays_off_the_tape() {
    let (shelf, known) = (Shelf::default(), Arc::new(Mutex::new(Redactor::empty())));
    let present = Arc::clone(&known);
    let (model, stage) = (Actor::new([]), Stage::new());
    let recording =
        SessionRecorder::start(shelf.clone(), Redactor::empty(), &options(), &model, &stage)
            .with_live_redactor(move || present.lock().unwrap().clone());
    recording.record_input(&UserInputMessage::from("hello"));
    *known.lock().unwrap() = redactor();
    recording.record_input(&UserInputMessage::from(SECRET));
    recording.finish().unwrap();
    let tape = shelf.text();
    assert!(tape.contains("hello") && tape.contains("[secret door]"), "{tape}");
    assert!(!tape.contains("hunter2"), "{tape}");
}
