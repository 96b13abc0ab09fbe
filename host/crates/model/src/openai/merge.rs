//! Merges the fragments of a message.
//!
//! Providers add fields of their own to a streamed message, and some expect them back with the next
//! request. All of them follow one pattern, so they can be merged without knowing them.

use serde_json::{Map, Value};

/// Strings that arrive whole and may be repeated. All others arrive in pieces.
const WHOLE_FIELDS: [&str; 6] = ["format", "id", "name", "role", "signature", "type"];

/// Adds a fragment: strings and lists are appended, objects are merged, other values are replaced.
/// `null` is ignored.
pub(super) fn merge_fragment(into: &mut Map<String, Value>, fragment: Map<String, Value>) {
    for (key, new) in fragment {
        match into.get_mut(&key) {
            _ if new.is_null() => {}
            Some(old) => merge_value(&key, old, new),
            None => {
                into.insert(key, new);
            }
        }
    }
}

fn merge_value(key: &str, old: &mut Value, new: Value) {
    match (old, new) {
        (Value::String(old), Value::String(new)) if !WHOLE_FIELDS.contains(&key) => {
            old.push_str(&new)
        }
        (Value::Array(old), Value::Array(new)) => {
            new.into_iter().for_each(|item| append_item(old, item))
        }
        (Value::Object(old), Value::Object(new)) => merge_fragment(old, new),
        (old, new) => *old = new,
    }
}

/// An item with the index and type of the last one continues it.
fn append_item(list: &mut Vec<Value>, item: Value) {
    match list.last_mut().filter(|last| is_continuation(last, &item)) {
        Some(last) => merge_value("", last, item),
        None => list.push(item),
    }
}

fn is_continuation(last: &Value, item: &Value) -> bool {
    item.get("index").is_some()
        && ["index", "type"].iter().all(|key| last.get(key) == item.get(key))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(fragments: &[Value], want: Value) {
        let mut whole = Map::new();
        for fragment in fragments {
            merge_fragment(&mut whole, fragment.as_object().unwrap().clone());
        }
        assert_eq!(Value::Object(whole), want);
    }

    #[test]
    fn fragments_become_one_message() {
        check(
            &[json!({ "a": "x" }), json!({ "a": null }), json!({ "a": "y" })],
            json!({ "a": "xy" }),
        );
        check(&[json!({ "role": "a" }), json!({ "role": "a" })], json!({ "role": "a" }));
        check(
            &[json!({ "o": { "t": "x" } }), json!({ "o": { "t": "y" } })],
            json!({ "o": { "t": "xy" } }),
        );
        check(&[json!({ "n": 1 }), json!({ "n": 2 })], json!({ "n": 2 }));
        check(&[json!({ "l": [1] }), json!({ "l": [2] })], json!({ "l": [1, 2] }));
        check(&[json!({ "l": "x" }), json!({ "l": [2] })], json!({ "l": [2] }));
    }

    #[test]
    fn list_items_continue_by_index_and_type() {
        check(
            &[
                json!({ "d": [{ "index": 0, "type": "text", "text": "a" }] }),
                json!({ "d": [{ "index": 0, "type": "text", "text": "b" }] }),
                json!({ "d": [{ "index": 0, "type": "text", "signature": "s" }] }),
                json!({ "d": [{ "index": 0, "type": "other", "data": "x" }] }),
                json!({ "d": [{ "index": 1, "type": "other", "data": "y" }] }),
            ],
            json!({ "d": [
                { "index": 0, "type": "text", "text": "ab", "signature": "s" },
                { "index": 0, "type": "other", "data": "x" },
                { "index": 1, "type": "other", "data": "y" },
            ] }),
        );
    }
}
