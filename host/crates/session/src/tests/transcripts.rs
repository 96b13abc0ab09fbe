//! The rules of a conversation, from outside.

use sallyport_model::{AssistantMessage, ChatMessage, ModelCallRequest, ToolResultMessage};

use super::transcript::{TranscriptViolation, check_messages};

/// One message for each letter: `s`ystem, `u`ser, `a`ssistant; `a12` calls 1 and 2, `r1` answers 1.
fn messages(text: &str) -> Vec<ChatMessage> {
    text.split_whitespace().map(message).collect()
}

fn message(word: &str) -> ChatMessage {
    let ids = || word[1..].chars().map(|id| id.to_string());
    let call = |id| ModelCallRequest { id, name: "t__echo".into(), arguments: "{}".into() };
    match &word[..1] {
        "s" => ChatMessage::System { text: "be brief".into() },
        "u" => ChatMessage::user("hello"),
        "a" => {
            let calls = ids().map(call).collect();
            ChatMessage::Assistant(AssistantMessage { calls, ..AssistantMessage::default() })
        }
        _ => ChatMessage::Tool(ToolResultMessage {
            call_id: ids().collect(),
            name: "t__echo".into(),
            content: "{}".into(),
            failed: false,
        }),
    }
}

#[test]
fn conversations_that_may_leave() {
    for text in ["u", "s u", "u a u", "u a1 r1", "s u a12 r1 r2 a3 r3 a u", "u a1 r1 a u a2 r2"] {
        assert_eq!(check_messages(&messages(text)), Ok(()), "{text}");
    }
}

#[test]
fn conversations_that_may_not() {
    let misplaced = |index| TranscriptViolation::Misplaced { index };
    let missing = |id: &str| TranscriptViolation::ResultMissing { call_id: id.into() };
    let unexpected = |id: &str| TranscriptViolation::ResultUnexpected { call_id: id.into() };
    let rows = [
        ("", TranscriptViolation::NothingToAnswer),
        ("s", TranscriptViolation::NothingToAnswer),
        ("u a", TranscriptViolation::NothingToAnswer),
        ("a", misplaced(0)),
        ("s a", misplaced(1)),
        ("u s", misplaced(1)),
        ("s s u", misplaced(1)),
        ("u u", misplaced(1)),
        ("u a a", misplaced(2)),
        ("u a1 r1 u", misplaced(3)),
        ("u a1", missing("1")),
        ("u a1 u", missing("1")),
        ("u a1 a", missing("1")),
        ("u a12 r1", missing("2")),
        ("u a12 r1 a", missing("2")),
        ("u a12 r2 r1", unexpected("2")),
        ("u a1 r1 r1", unexpected("1")),
        ("u a1 r2", unexpected("2")),
        ("r1", unexpected("1")),
        ("u r1", unexpected("1")),
        ("u a11 r1 r1", TranscriptViolation::IdTwice { call_id: "1".into() }),
        ("u a1 r1 a1 r1", TranscriptViolation::IdTwice { call_id: "1".into() }),
    ];
    for (text, violation) in rows {
        assert_eq!(check_messages(&messages(text)), Err(violation), "{text}");
    }
}
