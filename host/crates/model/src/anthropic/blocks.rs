//! Assembles the content blocks of an answer from their fragments.
//!
//! A block begins with its type, its index and, for a call, its id and name. Fragments of its text,
//! thinking or arguments follow under the same index. A block of an unknown type is kept like any
//! other: it belongs to the message and is sent back with it.

use serde_json::{Map, Value, json};

use crate::{
    chat::{CallRequest, Delta},
    wire::{
        answer::text,
        conversation::{arguments_object, arguments_text},
    },
};

/// Most blocks in one answer. No session runs more calls, and each fragment searches the list.
const BLOCKS_MAX: usize = 4096;

/// Why a block or a fragment cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum BlockError {
    /// The answer has no content.
    #[error("there is no content in the answer")]
    NoContent,
    /// A block is not a JSON object.
    #[error("a content block is not an object")]
    NotAnObject,
    /// A fragment continues a block that never began.
    #[error("a fragment belongs to no content block")]
    NotBegun,
    /// There are more than [`BLOCKS_MAX`] blocks.
    #[error("more than {BLOCKS_MAX} content blocks")]
    TooMany,
}

/// The blocks received so far, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Blocks(Vec<Block>);

#[derive(Debug)]
pub(super) struct Block {
    index: Option<u64>,
    value: Map<String, Value>,
    /// The arguments of a call, as received.
    arguments: String,
}

impl Blocks {
    /// Adds a block and returns the delta that it begins with, if any.
    pub(super) fn begin(
        &mut self,
        index: Option<u64>,
        block: Value,
    ) -> Result<Option<Delta>, BlockError> {
        let Value::Object(value) = block else { return Err(BlockError::NotAnObject) };
        if self.0.len() == BLOCKS_MAX {
            return Err(BlockError::TooMany);
        }
        let block = Block { index, value, arguments: String::new() };
        let said = block.said();
        self.0.push(block);
        Ok(said)
    }

    /// Adds a fragment to its block and returns the delta that it carries, if any.
    pub(super) fn grow(
        &mut self,
        index: Option<u64>,
        fragment: &mut Value,
    ) -> Result<Option<Delta>, BlockError> {
        let block = self.0.iter_mut().rfind(|block| block.index == index);
        let block = block.ok_or(BlockError::NotBegun)?;
        Ok(match text(fragment, "type") {
            "text_delta" => said(Delta::Text, block.append("text", text(fragment, "text"))),
            "thinking_delta" => {
                said(Delta::Reasoning, block.append("thinking", text(fragment, "thinking")))
            }
            "signature_delta" => {
                block.append("signature", text(fragment, "signature"));
                None
            }
            "input_json_delta" => {
                block.arguments.push_str(text(fragment, "partial_json"));
                None
            }
            "citations_delta" => {
                block.cite(fragment["citation"].take());
                None
            }
            _ => None,
        })
    }

    /// Returns the finished blocks.
    pub(super) fn into_vec(self) -> Vec<Block> {
        self.0
    }
}

impl Block {
    /// Returns the text of a text block.
    pub(super) fn text(&self) -> Option<&str> {
        self.is("text").then(|| self.string("text"))
    }

    /// Returns the provider's id of a call, or `None` if the block is not a call.
    pub(super) fn call_id(&self) -> Option<&str> {
        self.is("tool_use").then(|| self.string("id"))
    }

    /// Returns the call under `id`, which may differ from the provider's id.
    pub(super) fn call(&mut self, id: String) -> CallRequest {
        self.value.insert("id".to_owned(), json!(id));
        let arguments = match self.arguments.trim() {
            "" => arguments_text(self.value.get("input")),
            _ => self.arguments.clone(),
        };
        CallRequest { id, name: self.string("name").to_owned(), arguments }
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

    fn is(&self, kind: &str) -> bool {
        self.string("type") == kind
    }

    fn string(&self, key: &str) -> &str {
        self.value.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the content that the block begins with. A whole answer has all of it here, a stream
    /// mostly none.
    fn said(&self) -> Option<Delta> {
        match self.string("type") {
            "text" => said(Delta::Text, self.string("text")),
            "thinking" => said(Delta::Reasoning, self.string("thinking")),
            "tool_use" => Some(Delta::CallBegun { name: self.string("name").to_owned() }),
            _ => None,
        }
    }

    fn append<'a>(&mut self, key: &str, piece: &'a str) -> &'a str {
        match self.value.get_mut(key) {
            Some(Value::String(text)) => text.push_str(piece),
            _ => drop(self.value.insert(key.to_owned(), json!(piece))),
        }
        piece
    }

    fn cite(&mut self, citation: Value) {
        match self.value.get_mut("citations") {
            Some(Value::Array(citations)) => citations.push(citation),
            _ => drop(self.value.insert("citations".to_owned(), json!([citation]))),
        }
    }
}

fn said(kind: fn(String) -> Delta, words: &str) -> Option<Delta> {
    (!words.is_empty()).then(|| kind(words.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grown(start: Value, fragments: &[Value]) -> (Block, Vec<Delta>) {
        let mut blocks = Blocks::default();
        let mut said: Vec<Delta> = blocks.begin(Some(3), start).unwrap().into_iter().collect();
        for fragment in fragments {
            said.extend(blocks.grow(Some(3), &mut fragment.clone()).unwrap());
        }
        (blocks.into_vec().remove(0), said)
    }

    #[track_caller]
    fn check(start: Value, fragments: &[Value], want: Value, want_said: &[Delta]) {
        let (block, said) = grown(start, fragments);
        assert_eq!(block.into_value(), want);
        assert_eq!(said, want_said);
    }

    #[test]
    fn fragments_become_blocks() {
        let word = |text: &str| json!({ "type": "text_delta", "text": text });
        check(
            json!({ "type": "text", "text": "" }),
            &[word("a"), word(""), word("b")],
            json!({ "type": "text", "text": "ab" }),
            &[Delta::Text("a".to_owned()), Delta::Text("b".to_owned())],
        );
        check(
            json!({ "type": "text", "text": "" }),
            &[word("a"), json!({ "type": "citations_delta", "citation": { "c": 1 } })],
            json!({ "type": "text", "text": "a", "citations": [{ "c": 1 }] }),
            &[Delta::Text("a".to_owned())],
        );
        check(
            json!({ "type": "thinking", "thinking": "", "signature": "" }),
            &[
                json!({ "type": "thinking_delta", "thinking": "hm" }),
                json!({ "type": "signature_delta", "signature": "s" }),
                json!({ "type": "new_delta", "new": 1 }),
            ],
            json!({ "type": "thinking", "thinking": "hm", "signature": "s" }),
            &[Delta::Reasoning("hm".to_owned())],
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
            let (mut block, said) = grown(start, &pieces);
            assert_eq!(said, [Delta::CallBegun { name: "x".to_owned() }]);
            assert_eq!(block.call_id(), Some("a"));
            assert_eq!(block.call("b".to_owned()).arguments, want);
            let want = json!({ "type": "tool_use", "id": "b", "name": "x", "input": want_input });
            assert_eq!(block.into_value(), want);
        }
    }

    #[test]
    fn nonsense_and_floods_are_refused() {
        let mut blocks = Blocks::default();
        assert_eq!(blocks.begin(None, json!("x")), Err(BlockError::NotAnObject));
        assert_eq!(blocks.grow(Some(0), &mut json!({})), Err(BlockError::NotBegun));
        let flood = (0..=BLOCKS_MAX as u64).find_map(|i| blocks.begin(Some(i), json!({})).err());
        assert_eq!(flood, Some(BlockError::TooMany));
    }
}
