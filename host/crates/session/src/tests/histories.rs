//! Functions over the records of a session.

use sallyport_model::{AssistantMessage, ModelCallRequest, TokenUsage, ToolResultMessage};

use super::{
    model::{calls, says, script},
    *,
};
use crate::{
    RecalledMemory,
    history::{fork_at, past_turns, restore_session, session_title},
    journal::VERSION,
    memory::{MemoryMode, TokenMeter},
    transcript::check_messages,
};

/// One record per word: `s`ystem, `i`nput, `a12` an answer with the calls 1 and 2, `a` a text
/// answer, `r1` the result of call 1, `n`ote, `e`nd, `u`ndone, `f`orgotten, `p1` turn 1 pinned,
/// `m3` the first three messages summarized, `o` a notice, `c1` turn 1 recalled, `x` unknown.
pub(super) fn records(text: &str) -> Vec<JournalRecord> {
    text.split_whitespace().enumerate().map(|(index, word)| record(index, word)).collect()
}

fn record(index: usize, word: &str) -> JournalRecord {
    let number = || word[1..].parse().unwrap();
    let usage = TokenUsage::default();
    match &word[..1] {
        "s" => {
            let system_prompt = Some("be brief".to_owned());
            JournalRecord::Began {
                version: VERSION,
                system_prompt,
                memories: Vec::new(),
                accounts: None,
                by_meaning: false,
            }
        }
        "i" => JournalRecord::Input { message: format!("input {index}").into() },
        "a" => JournalRecord::Answer { message: answer(&word[1..]), usage, cost: None },
        "r" => result(&word[1..]),
        "n" => JournalRecord::Note { text: "note".into() },
        "e" => {
            JournalRecord::TurnEnded { end: "answered".into(), usage: crate::TurnUsage::default() }
        }
        "u" => JournalRecord::Undone,
        "f" => JournalRecord::Forgotten,
        "p" => JournalRecord::Pinned { turn: number() },
        "o" => JournalRecord::Noticed { notice: said_by("timer", "ding") },
        "c" => JournalRecord::Recalled { memories: vec![recalled(number())] },
        "m" => JournalRecord::Summary {
            text: "summed up".into(),
            through: number(),
            usage,
            cost: None,
        },
        _ => JournalRecord::Unknown,
    }
}

fn recalled(turn: usize) -> RecalledMemory {
    RecalledMemory { id: "x".into(), text: "words".into(), similarity: 0.5, turn: Some(turn) }
}

fn answer(ids: &str) -> AssistantMessage {
    let call = |id: char| ModelCallRequest {
        id: id.to_string(),
        name: "t__echo".into(),
        arguments: "{}".into(),
    };
    let text = if ids.is_empty() { "words".to_owned() } else { String::new() };
    AssistantMessage { text, calls: ids.chars().map(call).collect(), opaque: None }
}

fn result(id: &str) -> JournalRecord {
    let result = ToolResultMessage {
        call_id: id.into(),
        name: "t__echo".into(),
        content: id.into(),
        failed: false,
    };
    JournalRecord::Result {
        result,
        tool: "t.echo".into(),
        outcome: "completed".into(),
        edited: None,
        kept: None,
    }
}

fn messages(text: &str) -> Vec<String> {
    restore_session(records(text)).transcript.messages().iter().map(message_line).collect()
}

#[test]
fn records_become_a_conversation_that_can_go_on() {
    let interrupted = |id: &str| {
        let error = "interrupted: the host stopped before this call ended; it may or may not have \
            had its effect";
        format!(r#"tool! {id} t__echo {{"error":"{error}","outcome":"cancelled"}}"#)
    };
    let (one, two) = (interrupted("1"), interrupted("2"));
    let call = "assistant [1 t__echo {}]";
    let both = "assistant [1 t__echo {}][2 t__echo {}]";
    let (first, second) = ("tool 1 t__echo 1", "tool 2 t__echo 2");
    let (ended, words) = ("assistant [stopped: the host ended]", "assistant words");
    let rows: [(&str, Vec<&str>); 20] = [
        ("", vec![]),
        ("s", vec!["system be brief"]),
        ("i", vec!["user input 0", ended]),
        ("i a", vec!["user input 0", words]),
        ("i a12", vec!["user input 0", both, &one, &two, ended]),
        ("i a12 r2", vec!["user input 0", both, &one, second, ended]),
        ("i a12 r2 r1", vec!["user input 0", both, first, second, ended]),
        ("i a12 r2 i a", vec!["user input 0", both, &one, second, ended, "user input 3", words]),
        ("i a1 r1 n e", vec!["user input 0", call, first, "assistant note"]),
        // Undone turns.
        ("i a e u", vec![]),
        ("i a e i a1 u", vec!["user input 0", words]),
        ("i a1 r1 f e", vec![]),
        ("i f e i a", vec!["user input 3", words]),
        ("i a e i f e u i a", vec!["user input 0", words, "user input 7", words]),
        // Damaged records.
        ("a r1 n u f e p7 m9 x", vec![]),
        ("i a a", vec!["user input 0", words]),
        ("i a1 r3 r1 r1", vec!["user input 0", call, first, ended]),
        (
            "i a11",
            vec![
                "user input 0",
                "assistant [1 t__echo {}][call00001 t__echo {}]",
                &one,
                "tool! call00001 t__echo …",
                ended,
            ],
        ),
        ("i a1 a", vec!["user input 0", call, &one, words]),
        ("i a s", vec!["system be brief", "user input 0", words]),
    ];
    for (text, expected) in rows {
        let got = messages(text);
        assert_eq!(got.len(), expected.len(), "{text}: {got:#?}");
        for (got, expected) in got.iter().zip(expected) {
            let (got, expected) = match expected.strip_suffix('…') {
                Some(start) => (&got[..start.len()], start),
                None => (got.as_str(), expected),
            };
            assert_eq!(got, expected, "{text}");
        }
    }
}

#[test]
fn it_is_told_what_was_interrupted() {
    let rows: [(&str, Option<(&str, usize)>); 6] = [
        ("", None),
        ("i a e", None),
        ("i", Some(("input 0", 0))),
        ("i a12 r1", Some(("input 0", 1))),
        ("i a e i a1 r1", Some(("input 3", 0))),
        ("i f", None),
    ];
    for (text, expected) in rows {
        let interrupted = restore_session(records(text)).interrupted;
        let got = interrupted.as_ref().map(|it| (it.input.as_str(), it.calls.len()));
        assert_eq!(got, expected, "{text}");
    }
    assert_eq!(restore_session(records("x i x a x")).skipped, 3);
}

#[test]
fn records_are_read_back_as_they_were_written() {
    let all = records("s i a12 r1 n e u f p1 m3");
    for record in &all {
        let text = serde_json::to_string(record).unwrap();
        assert_eq!(&JournalRecord::from_json(&text), record, "{text}");
    }
    let kinds = all.iter().map(|record| serde_json::to_value(record).unwrap()["kind"].to_string());
    assert_eq!(
        kinds.collect::<Vec<_>>().join(" "),
        r#""began" "input" "answer" "result" "note" "turn-ended" "undone" "forgotten" "pinned" "summary""#
    );
    for damaged in ["", "{", "null", r#"{"kind":"dance"}"#, r#"{"kind":"input","message":7}"#] {
        assert_eq!(JournalRecord::from_json(damaged), JournalRecord::Unknown, "{damaged}");
    }
}

#[test]
fn a_summary_and_pins_fall_with_the_turns_that_they_stand_for() {
    let view = |text: &str| {
        let restored = restore_session(records(&format!("{text} i")));
        let view = restored.transcript.conversation_view(MemoryMode::None, &TokenMeter::new());
        let got: Vec<String> = view.messages.iter().map(message_line).collect();
        got.join("\n")
    };
    let four = "i a e i a e i a e";
    assert!(view(&format!("{four} m6")).contains("summed up"));
    assert!(!view(&format!("{four} m6 u")).contains("summed up"));
    assert!(view(&format!("{four} m4 m6 u")).contains("summed up"));
    assert!(view(&format!("s {four} m6")).starts_with("system be brief"));
    assert!(view(&format!("{four} m4 s")).contains("summed up"));
    assert!(!view(&format!("{four} m6")).contains("input 3"));
    assert!(view(&format!("{four} p2 m6")).contains("input 3"));
    assert!(!view(&format!("{four} p2 u u i a e i a e m6")).contains("input 15"));
}

#[test]
fn a_fork_shares_the_turns_that_are_wanted() {
    let rows: [(&str, usize, Option<&str>); 9] = [
        ("s i a e i a e", 0, Some("s")),
        ("s i a e i a e", 1, Some("s i a e")),
        ("s i a e i a e", 2, Some("s i a e i a e")),
        ("s i a e i a e", 3, None),
        ("s i a e p1 i a e", 1, Some("s i a e p1")),
        ("s i a e u i a e i a e", 1, Some("s i a e u i a e")),
        ("s i a e i a e u", 1, Some("s i a e")),
        ("s i a1", 1, Some("s i a1")),
        ("", 0, Some("")),
    ];
    for (text, turn, expected) in rows {
        let records = records(text);
        let fork = fork_at(&records, turn);
        let expected = expected.map(|expected| expected.split_whitespace().count());
        assert_eq!(fork.map(<[JournalRecord]>::len), expected, "{text} at {turn}");
        if let Some(fork) = fork {
            assert_eq!(past_turns(fork).len(), turn);
        }
    }
}

#[test]
fn a_session_is_called_by_its_first_words() {
    let titled = |text: &str| {
        let message = text.into();
        session_title(&[JournalRecord::Unknown, JournalRecord::Input { message }])
    };
    let long = "x".repeat(100);
    let rows = [
        ("hello", "hello".to_owned()),
        ("\n  what is this?\nlook:\n", "what is this?".to_owned()),
        ("red \u{1b}[31m", "red \\u{1b}[31m".to_owned()),
        (&long, format!("{}…", "x".repeat(80))),
    ];
    for (text, expected) in rows {
        assert_eq!(titled(text), Some(expected));
    }
    assert_eq!(session_title(&[]), None);
    assert_eq!(session_title(&records("i u")), None);
}

#[tokio::test]
async fn a_session_goes_on_where_it_was_left() {
    let wanted = [("a", "t__echo", "1"), ("b", "t__hangs", "")];
    let memories = vec!["has a cat".into()];
    let first = SessionOptions { system_prompt: Some("be brief".into()), memories, ..options() };
    let talk = Talk::with(first, script(vec![calls(&wanted)]));
    talk.submit("first").await;
    within(talk.probe.hangs.notified()).await;
    let written = || talk.records.all();
    within(async {
        while written().len() < 5 {
            tokio::task::yield_now().await;
        }
    })
    .await;

    let past = restore_session(written());
    assert_eq!(past.interrupted.as_ref().unwrap().calls, ["t__hangs"]);
    let again = vec![calls(&[("a", "t__echo", "2")]), says("done")];
    let mut resumed = Talk::resumed(past, options(), script(again));
    assert_eq!(resumed.turn("second").await.pop().unwrap(), "end answered done");
    assert_eq!(check_messages(&resumed.requests.lock().unwrap()[1]), Ok(()));
    let shown = resumed.shown();
    let system = "system be brief\n\nWhat you know from earlier conversations:\n- has a cat";
    assert_eq!(shown[..2], [system, "user first"]);
    assert_eq!(shown[3], "tool a t__echo 1");
    assert!(shown[4].contains("interrupted: the host stopped"), "{}", shown[4]);
    assert_eq!(shown[5..7], ["assistant [stopped: the host ended]", "user second"]);
    // The id was used before the session was left.
    assert_eq!(shown[7], "assistant [call00001 t__echo 2]");
    // Instructions and model are unchanged, so they are not recorded again.
    assert_eq!(resumed.written()[0], "user second");
}

#[tokio::test]
async fn other_instructions_hold_from_then_on() {
    let past = || restore_session(records("s i a e"));
    let prompt = SessionOptions { system_prompt: Some("be long".into()), ..options() };
    let mut talk = Talk::resumed(past(), prompt, script(vec![says("hi")]));
    talk.turn("more").await;
    check_shown(&talk, &["system be long", "user input 1", "assistant words", "user more"]);
    assert_eq!(talk.written()[..2], ["began be long", "model scripted"]);
}
