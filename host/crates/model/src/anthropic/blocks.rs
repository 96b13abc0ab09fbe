//! Assembles the content blocks of an answer from their fragments.
//!
//! A block begins with its type, its index and, for a call, its id and name. Fragments of its text,
//! thinking or arguments follow under the same index. A block of an unknown type is kept like any
//! other: it belongs to the message and is sent back with it.

use serde_json::{Map, Value, json};

use crate::{
    chat::{ModelCallRequest, ReplyDelta},
    fit::conversation::{arguments_object, arguments_text},
    wire::{AnswerError, answer::text_field},
};

/// Most blocks in one answer. No session runs more calls, and each fragment searches the list.
const BLOCKS_MAX: usize = 4096;

/// The errors of broken blocks.
const NOT_AN_OBJECT: &str = "a content block is not an object";
const NOT_BEGUN: &str = "a fragment belongs to no content block";

/// The blocks received so far, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct ContentBlockList(Vec<AnthropicBlock>);

#[derive(Debug)]
pub(super) struct AnthropicBlock {
    index: Option<u64>,
    value: Map<String, Value>,
    /// The arguments of a call, as received.
    arguments: String,
}

impl ContentBlockList {
    /// Adds a block and returns the delta that it begins with, if any.
    pub(super) fn begin_block(
        &mut self,
        index: Option<u64>,
        block: Value,
    ) -> Result<Option<ReplyDelta>, AnswerError> {
        let Value::Object(value) = block else { return Err(NOT_AN_OBJECT.into()) };
        if self.0.len() == BLOCKS_MAX {
            return Err(format!("more than {BLOCKS_MAX} content blocks").into());
        }
        let block = AnthropicBlock { index, value, arguments: String::new() };
        let delta = block.initial_delta();
        self.0.push(block);
        Ok(delta)
    }

    /// Adds a fragment to its block and returns the delta that it carries, if any.
    pub(super) fn append_fragment(
        &mut self,
        index: Option<u64>,
        fragment: &mut Value,
    ) -> Result<Option<ReplyDelta>, AnswerError> {
        let block = self.0.iter_mut().rfind(|block| block.index == index);
        let block = block.ok_or(NOT_BEGUN)?;
        Ok(match text_field(fragment, "type") {
            "text_delta" => non_empty_delta(
                ReplyDelta::text,
                block.append_text("text", text_field(fragment, "text")),
            ),
            "thinking_delta" => non_empty_delta(
                ReplyDelta::reasoning,
                block.append_text("thinking", text_field(fragment, "thinking")),
            ),
            "signature_delta" => {
                block.append_text("signature", text_field(fragment, "signature"));
                None
            }
            "input_json_delta" => {
                block.arguments.push_str(text_field(fragment, "partial_json"));
                None
            }
            "citations_delta" => {
                block.add_citation(fragment["citation"].take());
                None
            }
            _ => None,
        })
    }

    /// Returns the finished blocks.
    pub(super) fn into_vec(self) -> Vec<AnthropicBlock> {
        self.0
    }
}

impl AnthropicBlock {
    /// Returns the text of a text block.
    pub(super) fn text(&self) -> Option<&str> {
        self.has_type("text").then(|| self.string_field("text"))
    }

    /// Returns the provider's id of a call, or `None` if the block is not a call.
    pub(super) fn call_id(&self) -> Option<&str> {
        self.has_type("tool_use").then(|| self.string_field("id"))
    }

    /// Returns the call under `id`, which may differ from the provider's id.
    pub(super) fn read_call(&mut self, id: String) -> ModelCallRequest {
        self.value.insert("id".to_owned(), json!(id));
        let arguments = match self.arguments.trim() {
            "" => arguments_text(self.value.get("input")),
            _ => self.arguments.clone(),
        };
        ModelCallRequest { id, name: self.string_field("name").to_owned(), arguments }
    }

    /// Returns the block in the form in which it is sent back.
    pub(super) fn into_value(self) -> Value {
        let mut value = self.value;
        if !self.arguments.is_empty() {
            value.insert("input".to_owned(), arguments_object(&self.arguments));
        }
        // `caller` only names who made the call and is not part of a request.
        value.remove("caller");
        Value::Object(value)
    }

    fn has_type(&self, kind: &str) -> bool {
        self.string_field("type") == kind
    }

    fn string_field(&self, key: &str) -> &str {
        self.value.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the content that the block begins with. A whole answer has all of it here, a stream
    /// mostly none.
    fn initial_delta(&self) -> Option<ReplyDelta> {
        match self.string_field("type") {
            "text" => non_empty_delta(ReplyDelta::text, self.string_field("text")),
            "thinking" => non_empty_delta(ReplyDelta::reasoning, self.string_field("thinking")),
            "tool_use" => {
                Some(ReplyDelta::CallBegun { name: self.string_field("name").to_owned() })
            }
            _ => None,
        }
    }

    fn append_text<'a>(&mut self, key: &str, piece: &'a str) -> &'a str {
        match self.value.get_mut(key) {
            Some(Value::String(text)) => text.push_str(piece),
            _ => drop(self.value.insert(key.to_owned(), json!(piece))),
        }
        piece
    }

    fn add_citation(&mut self, citation: Value) {
        match self.value.get_mut("citations") {
            Some(Value::Array(citations)) => citations.push(citation),
            _ => drop(self.value.insert("citations".to_owned(), json!([citation]))),
        }
    }
}

fn non_empty_delta(kind: fn(String) -> ReplyDelta, words: &str) -> Option<ReplyDelta> {
    (!words.is_empty()).then(|| kind(words.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grown(start: Value, fragments: &[Value]) -> (AnthropicBlock, Vec<ReplyDelta>) {
        let mut blocks = ContentBlockList::default();
        let mut delta: Vec<ReplyDelta> =
            blocks.begin_block(Some(3), start).unwrap().into_iter().collect();
        for fragment in fragments {
            delta.extend(blocks.append_fragment(Some(3), &mut fragment.clone()).unwrap());
        }
        (blocks.into_vec().remove(0), delta)
    }

    #[track_caller]
    fn check(start: Value, fragments: &[Value], want: Value, want_said: &[ReplyDelta]) {
        let (block, delta) = grown(start, fragments);
        assert_eq!(block.into_value(), want);
        assert_eq!(delta, want_said);
    }

    #[test]
    fn fragments_become_blocks() {
        let word = |text: &str| json!({ "type": "text_delta", "text": text });
        check(
            json!({ "type": "text", "text": "" }),
            &[word("a"), word(""), word("b")],
            json!({ "type": "text", "text": "ab" }),
            &[ReplyDelta::Text { text: "a".to_owned() }, ReplyDelta::Text { text: "b".to_owned() }],
        );
        check(
            json!({ "type": "text", "text": "" }),
            &[word("a"), json!({ "type": "citations_delta", "citation": { "c": 1 } })],
            json!({ "type": "text", "text": "a", "citations": [{ "c": 1 }] }),
            &[ReplyDelta::Text { text: "a".to_owned() }],
        );
        check(
            json!({ "type": "thinking", "thinking": "", "signature": "" }),
            &[
                json!({ "type": "thinking_delta", "thinking": "hm" }),
                json!({ "type": "signature_delta", "signature": "s" }),
                json!({ "type": "new_delta", "new": 1 }),
            ],
            json!({ "type": "thinking", "thinking": "hm", "signature": "s" }),
            &[ReplyDelta::Reasoning { text: "hm".to_owned() }],
        );
        let redacted = json!({ "type": "redacted_thinking", "data": "x" });
        check(redacted.clone(), &[], redacted, &[]);
    }

    #[test]
    fn arguments_stay_as_they_were_written() {
        let rows: [(&[&str], &str, Value); 4] = [
            (&["", "{\"k\"", ": 1.0}"], "{\"k\": 1.0}", json!({ "k": 1.0 })),
            (&[""], "{}", json!({})),
            (&[], "{}", json!({})),
            (&["{\"k\":"], "{\"k\":", json!({ "INVALID_JSON": "{\"k\":" })),
        ];
        for (pieces, want, want_input) in rows {
            let start = json!({
                "type": "tool_use", "id": "a", "name": "x", "input": {},
                "caller": { "type": "direct" },
            });
            let pieces: Vec<Value> = pieces
                .iter()
                .map(|piece| json!({ "type": "input_json_delta", "partial_json": piece }))
                .collect();
            let (mut block, delta) = grown(start, &pieces);
            assert_eq!(delta, [ReplyDelta::CallBegun { name: "x".to_owned() }]);
            assert_eq!(block.call_id(), Some("a"));
            assert_eq!(block.read_call("b".to_owned()).arguments, want);
            let want = json!({ "type": "tool_use", "id": "b", "name": "x", "input": want_input });
            assert_eq!(block.into_value(), want);
        }
    }

    #[test]
    fn nonsense_and_floods_are_refused() {
        let mut blocks = ContentBlockList::default();
        assert_eq!(blocks.begin_block(None, json!("x")), Err(NOT_AN_OBJECT.into()));
        assert_eq!(blocks.append_fragment(Some(0), &mut json!({})), Err(NOT_BEGUN.into()));
        let flood =
            (0..=BLOCKS_MAX as u64).find_map(|i| blocks.begin_block(Some(i), json!({})).err());
        assert_eq!(flood, Some("more than 4096 content blocks".into()));
    }
}
