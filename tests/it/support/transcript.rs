//! The rules that every conversation on the wire has to keep, checked on the JSON alone: nothing of
//! the program's own code is used, so that a mistake there is not repeated here.

use std::collections::BTreeSet;

use serde_json::Value;

/// Checks all requests of a session.
#[track_caller]
pub(crate) fn check(bodies: &[Value]) {
    assert!(!bodies.is_empty(), "no request was made");
    for body in bodies {
        check_messages(body["messages"].as_array().unwrap());
        assert_eq!(body["tools"], bodies[0]["tools"], "the tools changed within a session");
    }
    for pair in bodies.windows(2) {
        let (earlier, later) = (&pair[0]["messages"], &pair[1]["messages"]);
        let (earlier, later) = (earlier.as_array().unwrap(), later.as_array().unwrap());
        assert!(later.starts_with(earlier), "what was said before changed: {earlier:?} {later:?}");
    }
}

/// Every call has exactly one result, which stands before anybody speaks again.
#[track_caller]
fn check_messages(messages: &[Value]) {
    let mut used = BTreeSet::new();
    let mut open = BTreeSet::new();
    for message in messages {
        let role = message["role"].as_str().unwrap();
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap();
            assert!(open.remove(id), "a result for {id}, which is not awaited: {messages:#?}");
            assert!(message["content"].is_string(), "{message}");
            continue;
        }
        assert!(open.is_empty(), "{role} speaks while {open:?} have no result: {messages:#?}");
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let id = call["id"].as_str().unwrap();
            assert!(used.insert(id), "the id {id} is used twice: {messages:#?}");
            assert!(open.insert(id));
            let name = call["function"]["name"].as_str().unwrap();
            assert!(is_safe(name), "{name:?} is not a name that providers take");
            assert!(call["function"]["arguments"].is_string(), "{call}");
        }
    }
    assert!(open.is_empty(), "{open:?} have no result: {messages:#?}");
}

fn is_safe(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let head = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    head && name.len() <= 64 && name.chars().all(plain)
}

/// The result of a call, as the model is told it: JSON where it is JSON.
#[track_caller]
pub(crate) fn result(bodies: &[Value], id: &str) -> Value {
    let messages = bodies.last().unwrap()["messages"].as_array().unwrap();
    let message = messages.iter().find(|message| message["tool_call_id"] == id);
    let text = message.unwrap_or_else(|| panic!("no result of {id}"))["content"].as_str().unwrap();
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}
