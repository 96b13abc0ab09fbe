//! Assembles the calls of a streamed answer from their fragments.
//!
//! The first fragment of a call has an index, an id and a name, later ones the index and a piece of
//! the arguments. Servers deviate: some omit the index, some give every call the same one, some
//! repeat the name. This module decides which call a fragment belongs to.

use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use super::merge::merge_fragment;
use crate::wire::AnswerError;

/// Most calls in one answer. Each fragment searches the list, and no session runs more calls.
const CALLS_MAX: usize = 4096;

/// The error for a call that is not a JSON object.
pub(super) const NOT_AN_OBJECT: &str = "a call is not an object";

/// The calls received so far, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct StreamedCallList(Vec<StreamedCall>);

#[derive(Debug, Default)]
struct StreamedCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    /// Fields that a provider adds to a call and expects back.
    extra: Map<String, Value>,
}

/// What tells to which call a fragment belongs.
struct FragmentKey<'a> {
    index: Option<u64>,
    id: &'a str,
    name: &'a str,
    has_arguments: bool,
}

impl StreamedCallList {
    /// Adds one item of a delta's `tool_calls`. Returns the name of the call when it becomes known.
    pub(super) fn add_fragment(&mut self, fragment: Value) -> Result<Option<String>, AnswerError> {
        let Value::Object(mut fragment) = fragment else {
            return Err(NOT_AN_OBJECT.into());
        };
        let function = fragment.remove("function").unwrap_or_default();
        let index = fragment.remove("index").and_then(|index| index.as_u64());
        let id = value_text(fragment.remove("id"));
        let name = value_text(function.get("name").cloned());
        let arguments = value_text(function.get("arguments").cloned());
        let key = FragmentKey { index, id: &id, name: &name, has_arguments: !arguments.is_empty() };
        let call = self.find_or_add_call(key)?;
        let begun = (call.name.is_empty() && !name.is_empty()).then(|| name.clone());
        set_if_empty(&mut call.id, id);
        set_if_empty(&mut call.name, name);
        call.arguments.push_str(&arguments);
        merge_fragment(&mut call.extra, fragment);
        Ok(begun)
    }

    /// Returns the finished `tool_calls`, in the provider's form.
    pub(super) fn into_values(self) -> Vec<Value> {
        self.0.into_iter().map(StreamedCall::into_value).collect()
    }

    fn find_or_add_call(&mut self, key: FragmentKey<'_>) -> Result<&mut StreamedCall, AnswerError> {
        let position = match self.find_position(&key) {
            Some(position) => position,
            None if self.0.len() == CALLS_MAX => {
                return Err(format!("more than {CALLS_MAX} calls").into());
            }
            None => {
                self.0.push(StreamedCall { index: key.index, ..StreamedCall::default() });
                self.0.len() - 1
            }
        };
        Ok(&mut self.0[position])
    }

    fn find_position(&self, key: &FragmentKey<'_>) -> Option<usize> {
        let FragmentKey { index, id, name, .. } = *key;
        let find = |is_it: &dyn Fn(&StreamedCall) -> bool| self.0.iter().rposition(is_it);
        if index.is_some() {
            find(&|call| call.index == index).filter(|&found| !self.0[found].is_other_call(key))
        } else if !id.is_empty() {
            find(&|call| call.id == id)
        } else {
            self.0.len().checked_sub(1).filter(|&last| self.0[last].is_continued_by(name))
        }
    }
}

impl StreamedCall {
    /// Returns true if a fragment begins another call despite having this call's index.
    fn is_other_call(&self, key: &FragmentKey<'_>) -> bool {
        if key.name.is_empty() || self.name.is_empty() {
            return false;
        }
        if !key.id.is_empty() {
            return !self.id.is_empty() && key.id != self.id;
        }
        // Some servers repeat the name in each fragment of a call.
        key.name != self.name || (key.has_arguments && self.has_all_arguments())
    }

    fn has_all_arguments(&self) -> bool {
        serde_json::from_str::<IgnoredAny>(&self.arguments).is_ok()
    }

    /// Returns true if a fragment without index and id continues this call.
    fn is_continued_by(&self, name: &str) -> bool {
        name.is_empty() || (name == self.name && !self.arguments.trim_end().ends_with('}'))
    }

    fn into_value(self) -> Value {
        let mut value = self.extra;
        value.insert("id".to_owned(), json!(self.id));
        value.insert("type".to_owned(), json!("function"));
        let function = json!({ "name": self.name, "arguments": self.arguments });
        value.insert("function".to_owned(), function);
        Value::Object(value)
    }
}

fn set_if_empty(target: &mut String, received: String) {
    if target.is_empty() {
        *target = received;
    }
}

/// Arguments should be text, but some servers send the object itself.
fn value_text(value: Option<Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(fragments: Value, want: &[(&str, &str, &str)]) {
        let mut calls = StreamedCallList::default();
        for fragment in fragments.as_array().unwrap() {
            calls.add_fragment(fragment.clone()).unwrap();
        }
        let got: Vec<_> = calls
            .0
            .iter()
            .map(|c| (c.id.as_str(), c.name.as_str(), c.arguments.as_str()))
            .collect();
        assert_eq!(got, want);
    }

    #[test]
    fn fragments_find_their_call() {
        let f = |name: &str, arguments: &str| json!({ "name": name, "arguments": arguments });
        check(
            json!([
                { "index": 0, "id": "a", "function": f("x", "") },
                { "index": 1, "id": "b", "function": f("y", "") },
                { "index": 0, "function": { "arguments": "{\"k\":" } },
                { "index": 1, "function": { "arguments": "{}" } },
                { "index": 0, "function": { "arguments": "1}" } },
            ]),
            &[("a", "x", "{\"k\":1}"), ("b", "y", "{}")],
        );
        // The name, or name and id, repeated.
        check(
            json!([
                { "index": 0, "id": "a", "function": f("x", "{") },
                { "index": 0, "function": f("x", "\"k\":") },
                { "index": 0, "id": "a", "function": f("x", "1}") },
            ]),
            &[("a", "x", "{\"k\":1}")],
        );
        // One index for all.
        check(
            json!([
                { "index": 0, "id": "a", "function": f("x", "{}") },
                { "index": 0, "id": "b", "function": f("x", "{") },
                { "index": 0, "function": { "arguments": "}" } },
            ]),
            &[("a", "x", "{}"), ("b", "x", "{}")],
        );
        // One index for all, and no ids.
        check(
            json!([
                { "index": 0, "id": "", "function": f("x", "{\"a\":1}") },
                { "index": 0, "id": "", "function": f("x", "{\"a\":2}") },
                { "index": 0, "function": f("y", "{\"b\":") },
                { "index": 0, "function": f("y", "{}") },
                { "index": 0, "function": f("y", "}") },
                { "index": 0, "function": f("y", "") },
            ]),
            &[("", "x", "{\"a\":1}"), ("", "x", "{\"a\":2}"), ("", "y", "{\"b\":{}}")],
        );
        // No index.
        check(
            json!([
                { "id": "a", "function": f("x", "{") },
                { "function": { "arguments": "}" } },
                { "id": "b", "function": f("x", "{") },
                { "id": "a", "function": { "arguments": " " } },
                { "id": "b", "function": { "arguments": "}" } },
            ]),
            &[("a", "x", "{} "), ("b", "x", "{}")],
        );
        // Neither index nor id.
        check(
            json!([
                { "function": f("x", "{\"k\":") },
                { "function": f("x", "1}") },
                { "function": f("x", "{}") },
                { "function": { "name": "y", "arguments": { "k": 1 } } },
            ]),
            &[("", "x", "{\"k\":1}"), ("", "x", "{}"), ("", "y", "{\"k\":1}")],
        );
    }

    #[test]
    fn what_a_provider_adds_to_a_call_stays_with_it() {
        let mut calls = StreamedCallList::default();
        let extra = json!({ "google": { "thought_signature": "s" } });
        calls
            .add_fragment(json!({ "id": "a", "extra_content": extra, "function": { "name": "x" } }))
            .unwrap();
        let want = json!([{
            "id": "a", "type": "function", "extra_content": extra,
            "function": { "name": "x", "arguments": "" },
        }]);
        assert_eq!(Value::from(calls.into_values()), want);
    }

    #[test]
    fn nonsense_and_floods_are_refused() {
        assert_eq!(StreamedCallList::default().add_fragment(json!([])), Err(NOT_AN_OBJECT.into()));
        let mut calls = StreamedCallList::default();
        let flood =
            (0..=CALLS_MAX).find_map(|index| calls.add_fragment(json!({ "index": index })).err());
        assert_eq!(flood, Some("more than 4096 calls".into()));
    }
}
