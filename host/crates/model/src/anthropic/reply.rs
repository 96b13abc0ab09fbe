//! Converts a finished answer into a [`Reply`].
//!
//! Whole and streamed answers both end here: a whole answer brings its blocks, a streamed one has
//! assembled them.

use serde_json::{Map, Value, json};

use super::blocks::{Block, BlockError, Blocks};
use crate::{
    chat::{AssistantMessage, CallRequest, Delta, Finish, Message, Opaque, Reply, Usage},
    wire::{
        answer::{other_reason, tokens},
        unique_ids,
    },
};

/// A complete answer of the provider.
#[derive(Debug, Default)]
pub(super) struct Finished {
    pub(super) blocks: Blocks,
    pub(super) stop_reason: Option<String>,
    /// The token counts under the provider's names; the latest value of each applies.
    pub(super) usage: Map<String, Value>,
}

impl Finished {
    /// Reads an answer that came in one piece.
    pub(super) fn of(
        mut answer: Value,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Self, BlockError> {
        let Some(Value::Array(content)) = answer.get_mut("content").map(Value::take) else {
            return Err(BlockError::NoContent);
        };
        let mut finished = Self::default();
        let mut said = Vec::new();
        for block in content {
            said.extend(finished.blocks.begin(None, block)?);
        }
        finished.hear(&answer);
        said.into_iter().for_each(on_delta);
        Ok(finished)
    }

    /// Reads the stop reason and the token counts of a message. The counts are running totals, so a
    /// later one replaces an earlier one.
    pub(super) fn hear(&mut self, message: &Value) {
        let reason = message.get("stop_reason").and_then(Value::as_str);
        self.stop_reason = reason.map(str::to_owned).or(self.stop_reason.take());
        if let Some(Value::Object(usage)) = message.get("usage") {
            let told = usage.iter().filter(|(_, figure)| !figure.is_null());
            self.usage.extend(told.map(|(name, figure)| (name.clone(), figure.clone())));
        }
    }
}

/// Converts a finished answer. Ids that the conversation already contains are replaced; `origin`
/// marks the provider's own form.
pub(super) fn reply(finished: Finished, conversation: &[Message], origin: String) -> Reply {
    let mut blocks = finished.blocks.into_vec();
    let text = blocks.iter().filter_map(Block::text).collect();
    let calls = calls(&mut blocks, conversation);
    let finish = reason(finished.stop_reason.as_deref(), !calls.is_empty());
    let content: Vec<Value> = blocks.into_iter().map(Block::into_value).collect();
    let body = json!({ "role": "assistant", "content": content });
    let message = AssistantMessage { text, calls, opaque: Some(Opaque { origin, body }) };
    Reply { message, finish, usage: usage(finished.usage) }
}

fn calls(blocks: &mut [Block], conversation: &[Message]) -> Vec<CallRequest> {
    let given: Vec<Option<&str>> = blocks.iter().filter_map(Block::call_id).map(Some).collect();
    let ids = unique_ids(&given, conversation);
    let calls = blocks.iter_mut().filter(|block| block.call_id().is_some());
    calls.zip(ids).map(|(block, id)| block.call(id)).collect()
}

fn reason(stop_reason: Option<&str>, has_calls: bool) -> Finish {
    match stop_reason {
        Some("tool_use") => Finish::ToolCalls,
        None | Some("end_turn" | "stop_sequence") if has_calls => Finish::ToolCalls,
        None | Some("end_turn" | "stop_sequence") => Finish::Stop,
        Some("max_tokens" | "model_context_window_exceeded") => Finish::Length,
        Some("refusal") => Finish::ContentFilter,
        Some(other) => other_reason(other),
    }
}

/// The provider does not include tokens read from or written to its cache in `input_tokens`.
fn usage(figures: Map<String, Value>) -> Option<Usage> {
    if figures.is_empty() {
        return None;
    }
    let figures = Value::Object(figures);
    let cached_input_tokens = tokens(&figures, "/cache_read_input_tokens");
    let cache_write_tokens = tokens(&figures, "/cache_creation_input_tokens");
    Some(Usage {
        input_tokens: tokens(&figures, "/input_tokens") + cached_input_tokens + cache_write_tokens,
        output_tokens: tokens(&figures, "/output_tokens"),
        cached_input_tokens,
        cache_write_tokens,
        reasoning_tokens: tokens(&figures, "/output_tokens_details/thinking_tokens"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finish_reasons_are_told_apart() {
        let rows = [
            (None, false, Finish::Stop),
            (Some("end_turn"), false, Finish::Stop),
            (Some("stop_sequence"), false, Finish::Stop),
            (Some("end_turn"), true, Finish::ToolCalls),
            (Some("tool_use"), true, Finish::ToolCalls),
            (Some("max_tokens"), true, Finish::Length),
            (Some("model_context_window_exceeded"), false, Finish::Length),
            (Some("refusal"), false, Finish::ContentFilter),
            (Some("pause_turn"), false, Finish::Other("pause_turn".to_owned())),
        ];
        for (given, has_calls, want) in rows {
            assert_eq!(reason(given, has_calls), want);
        }
    }

    #[test]
    fn usage_counts_the_cache_and_its_last_word() {
        let mut finished = Finished::default();
        assert_eq!(usage(finished.usage.clone()), None);
        finished.hear(&json!({ "usage": {
            "input_tokens": 10, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20,
            "output_tokens": 1,
        } }));
        finished.hear(&json!({ "usage": {
            "input_tokens": null, "output_tokens": 9,
            "output_tokens_details": { "thinking_tokens": 4 },
        } }));
        let want = Usage {
            input_tokens: 130,
            output_tokens: 9,
            cached_input_tokens: 100,
            cache_write_tokens: 20,
            reasoning_tokens: 4,
        };
        assert_eq!(usage(finished.usage), Some(want));
        let huge = json!({ "input_tokens": u64::MAX, "cache_read_input_tokens": u64::MAX });
        assert!(usage(huge.as_object().unwrap().clone()).unwrap().input_tokens > 1 << 40);
    }
}
