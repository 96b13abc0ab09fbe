//! Reminders beside timers: who is meant, what of, and when.

use serde_json::{Value, json};

use crate::everyday::{tool, tools};
use crate::say;

#[track_caller]
fn check(sentence: &str, name: &str, arguments: Value) {
    let mut all = tools();
    let text = json!({ "type": "string" });
    all.extend([
        tool("reminder__cancel", "Cancels a reminder, by its id or by words of its text.",
            json!({ "reminder": text }), &["reminder"]),
        tool("reminder__create", "Sets a reminder: reminds the user of something, once or again and again, in this conversation.",
            json!({ "text": text, "when": { "type": "string", "description": "When: \"in 20 minutes\", \"tomorrow at 9\"." } }), &["text", "when"]),
        tool("reminder__list", "Lists the user's reminders with their ids, the next one first.", json!({}), &[]),
        tool("timer__list_timers", "Lists the timers that run, with the time that is left of each.", json!({}), &[]),
    ]);
    all.sort_by(|one, other| one.name.cmp(&other.name));
    let said = say(sentence, &all);
    let calls: Vec<(&str, Value)> = said
        .calls
        .iter()
        .map(|call| (call.name.as_str(), serde_json::from_str(&call.arguments).unwrap()))
        .collect();
    assert_eq!(calls, [(name, arguments)], "{sentence}: {}", said.text);
}

#[test]
fn a_reminder_is_told_from_a_timer() {
    let create = |sentence: &str, text: &str, when: &str| {
        check(sentence, "reminder__create", json!({ "text": text, "when": when }));
    };
    create("remind me tomorrow at 9 to call mum", "call mum", "tomorrow at 9");
    create("remind me to call mum tomorrow at 9", "call mum", "tomorrow at 9");
    create("remind me in 20 minutes to drink some water", "drink some water", "in 20 minutes");
    create("please remind me about the bins every Monday at 7", "the bins", "every Monday at 7");
    create("set a reminder for tomorrow at 8:30: buy milk", "buy milk", "tomorrow at 8:30");
    check("list my reminders", "reminder__list", json!({}));
    check("cancel the reminder to call mum", "reminder__cancel", json!({ "reminder": "call mum" }));
    check("list my timers", "timer__list_timers", json!({}));
    let pasta = json!({ "duration": 480, "label": "pasta" });
    check("set a pasta timer for 8 minutes", "timer__set_timer", pasta);
    check("cancel the pasta timer", "timer__cancel_timer", json!({ "label": "pasta" }));
}
