//! Shortens call ids for servers that accept only short ones.
//!
//! Mistral refuses a conversation with any id that does not consist of nine letters and digits. Its
//! own ids do; the ids of other models are replaced by numbers in each request.

use std::{borrow::Cow, collections::HashMap};

use serde_json::{Value, json};

/// The length of a short id.
const ID_CHARS: usize = 9;

/// Replaces the long ids of one conversation. A call and its result get the same short id.
#[derive(Default)]
pub(super) struct IdShortener {
    /// The short id of each long one.
    short_ids: HashMap<String, String>,
}

impl IdShortener {
    /// Replaces the long ids of the next message.
    pub(super) fn shorten_ids(&mut self, message: &mut Cow<'_, Value>) {
        if !has_long_id(message) {
            return;
        }
        for id in call_ids_mut(message.to_mut()) {
            let Some(long) = id.as_str().filter(|id| !is_short_id(id)) else { continue };
            let number = self.short_ids.len() + 1;
            let short = self.short_ids.entry(long.to_owned());
            *id = json!(short.or_insert_with(|| format!("{number:0ID_CHARS$}")));
        }
    }
}

fn is_short_id(id: &str) -> bool {
    id.len() == ID_CHARS && id.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// Returns true if a message contains a long id. Other messages stay borrowed.
fn has_long_id(message: &Value) -> bool {
    let calls = message.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
    let ids = calls.filter_map(|call| call.get("id")).chain(message.get("tool_call_id"));
    ids.filter_map(Value::as_str).any(|id| !is_short_id(id))
}

fn call_ids_mut(message: &mut Value) -> Vec<&mut Value> {
    let fields = message.as_object_mut().into_iter().flat_map(|message| message.iter_mut());
    fields
        .flat_map(|(key, value)| match (key.as_str(), value) {
            ("tool_call_id", id) => vec![id],
            ("tool_calls", Value::Array(calls)) => {
                calls.iter_mut().filter_map(|call| call.get_mut("id")).collect()
            }
            _ => Vec::new(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_results_keep_together_and_short_ids_stay() {
        let said = |ids: [&str; 2]| json!({ "tool_calls": [{ "id": ids[0] }, { "id": ids[1] }] });
        let result = |id: &str| json!({ "role": "tool", "tool_call_id": id });
        let given = [
            json!({ "role": "user", "content": "call_1" }),
            said(["call_1", "AbCdE1234"]),
            result("call_1"),
            result("AbCdE1234"),
            said(["call_1-longer", "functions.x:0"]),
            result("functions.x:0"),
            json!({ "role": "assistant", "tool_calls": null }),
        ];
        let mut messages: Vec<Cow<'_, Value>> = given.iter().map(Cow::Borrowed).collect();
        let mut shortener = IdShortener::default();
        messages.iter_mut().for_each(|message| shortener.shorten_ids(message));
        let want = [
            given[0].clone(),
            said(["000000001", "AbCdE1234"]),
            result("000000001"),
            given[3].clone(),
            said(["000000002", "000000003"]),
            result("000000003"),
            given[6].clone(),
        ];
        assert_eq!(messages.iter().map(|m| (**m).clone()).collect::<Vec<_>>(), want);
        let borrowed = |at: usize| matches!(messages[at], Cow::Borrowed(_));
        assert!(borrowed(0) && borrowed(3) && borrowed(6) && !borrowed(1));
    }
}
