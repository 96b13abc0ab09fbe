//! Reads an answer and converts it into a [`ModelReply`].
//!
//! A stream consists of named events that begin blocks, extend them and give the stop reason. A
//! whole answer brings its blocks.

use serde_json::{Map, Value, json};

use super::blocks::{AnthropicBlock, ContentBlockList};
use crate::{
    chat::{
        AssistantMessage, ChatMessage, FinishReason, ModelCallRequest, ModelReply, OpaqueMessage,
        TokenUsage,
    },
    wire::{
        AnswerError, OnDelta, PartialAnswer,
        answer::{event_value, other_finish_reason, text_field, token_count},
        unique_ids,
    },
};

/// An answer of the provider, as far as it has arrived.
#[derive(Debug, Default)]
pub(super) struct AnthropicAnswer {
    blocks: ContentBlockList,
    stop_reason: Option<String>,
    /// The token counts under the provider's names; the latest value of each applies.
    usage: Map<String, Value>,
}

impl AnthropicAnswer {
    /// Reads the stop reason and the token counts of a message. The counts are running totals, so a
    /// later one replaces an earlier one.
    fn update_metadata(&mut self, message: &Value) {
        let reason = message.get("stop_reason").and_then(Value::as_str);
        self.stop_reason = reason.map(str::to_owned).or(self.stop_reason.take());
        if let Some(Value::Object(usage)) = message.get("usage") {
            let reported = usage.iter().filter(|(_, figure)| !figure.is_null());
            self.usage.extend(reported.map(|(name, figure)| (name.clone(), figure.clone())));
        }
    }
}

impl PartialAnswer for AnthropicAnswer {
    /// Unknown events are ignored.
    fn apply_event(
        &mut self,
        _name: &str,
        data: &str,
        on_delta: OnDelta<'_>,
    ) -> Result<bool, AnswerError> {
        let mut event = event_value(data)?;
        let index = event.get("index").and_then(Value::as_u64);
        match text_field(&event, "type") {
            "message_start" => self.update_metadata(&event["message"]),
            "content_block_start" => {
                let block = event["content_block"].take();
                self.blocks.begin_block(index, block)?.into_iter().for_each(on_delta);
            }
            "content_block_delta" => {
                let delta = self.blocks.append_fragment(index, &mut event["delta"])?;
                delta.into_iter().for_each(on_delta);
            }
            "message_delta" => {
                self.update_metadata(&event["delta"]);
                self.update_metadata(&event);
            }
            "message_stop" => return Ok(true),
            "error" => {
                return Err(AnswerError::Reported(event.get("error").unwrap_or(&event).clone()));
            }
            _ => {}
        }
        Ok(false)
    }

    fn apply_whole(&mut self, mut answer: Value, on_delta: OnDelta<'_>) -> Result<(), AnswerError> {
        let Some(Value::Array(content)) = answer.get_mut("content").map(Value::take) else {
            return Err("there is no content in the answer".into());
        };
        for block in content {
            self.blocks.begin_block(None, block)?.into_iter().for_each(&mut *on_delta);
        }
        self.update_metadata(&answer);
        Ok(())
    }

    fn is_complete(&self, _is_cut: bool) -> bool {
        self.stop_reason.is_some()
    }

    fn into_reply(
        self: Box<Self>,
        conversation: &[ChatMessage],
        origin: String,
    ) -> Result<ModelReply, AnswerError> {
        let mut blocks = self.blocks.into_vec();
        let text = blocks.iter().filter_map(AnthropicBlock::text).collect();
        let calls = read_calls(&mut blocks, conversation);
        let finish = finish_reason(self.stop_reason.as_deref(), !calls.is_empty());
        let content: Vec<Value> = blocks.into_iter().map(AnthropicBlock::into_value).collect();
        let body = json!({ "role": "assistant", "content": content });
        let opaque = Some(OpaqueMessage { origin, body });
        let message = AssistantMessage { text, calls, opaque };
        Ok(ModelReply { message, finish, usage: read_usage(self.usage) })
    }
}

fn read_calls(
    blocks: &mut [AnthropicBlock],
    conversation: &[ChatMessage],
) -> Vec<ModelCallRequest> {
    let given: Vec<Option<&str>> =
        blocks.iter().filter_map(AnthropicBlock::call_id).map(Some).collect();
    let ids = unique_ids(&given, conversation);
    let calls = blocks.iter_mut().filter(|block| block.call_id().is_some());
    calls.zip(ids).map(|(block, id)| block.read_call(id)).collect()
}

fn finish_reason(stop_reason: Option<&str>, has_calls: bool) -> FinishReason {
    match stop_reason {
        Some("tool_use") => FinishReason::ToolCalls,
        None | Some("end_turn" | "stop_sequence") if has_calls => FinishReason::ToolCalls,
        None | Some("end_turn" | "stop_sequence") => FinishReason::Stop,
        Some("max_tokens" | "model_context_window_exceeded") => FinishReason::Length,
        Some("refusal") => FinishReason::ContentFilter,
        Some(other) => other_finish_reason(other),
    }
}

/// The provider does not include tokens read from or written to its cache in `input_tokens`.
fn read_usage(figures: Map<String, Value>) -> Option<TokenUsage> {
    if figures.is_empty() {
        return None;
    }
    let figures = Value::Object(figures);
    let cached_input_tokens = token_count(&figures, "/cache_read_input_tokens");
    let cache_write_tokens = token_count(&figures, "/cache_creation_input_tokens");
    Some(TokenUsage {
        input_tokens: token_count(&figures, "/input_tokens")
            + cached_input_tokens
            + cache_write_tokens,
        output_tokens: token_count(&figures, "/output_tokens"),
        cached_input_tokens,
        cache_write_tokens,
        reasoning_tokens: token_count(&figures, "/output_tokens_details/thinking_tokens"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finish_reasons_are_told_apart() {
        let rows = [
            (None, false, FinishReason::Stop),
            (Some("end_turn"), false, FinishReason::Stop),
            (Some("stop_sequence"), false, FinishReason::Stop),
            (Some("end_turn"), true, FinishReason::ToolCalls),
            (Some("tool_use"), true, FinishReason::ToolCalls),
            (Some("max_tokens"), true, FinishReason::Length),
            (Some("model_context_window_exceeded"), false, FinishReason::Length),
            (Some("refusal"), false, FinishReason::ContentFilter),
            (Some("pause_turn"), false, FinishReason::Other("pause_turn".to_owned())),
        ];
        for (given, has_calls, want) in rows {
            assert_eq!(finish_reason(given, has_calls), want);
        }
    }

    #[test]
    fn usage_counts_the_cache_and_its_last_word() {
        let mut finished = AnthropicAnswer::default();
        assert_eq!(read_usage(finished.usage.clone()), None);
        finished.update_metadata(&json!({ "usage": {
            "input_tokens": 10, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20,
            "output_tokens": 1,
        } }));
        finished.update_metadata(&json!({ "usage": {
            "input_tokens": null, "output_tokens": 9,
            "output_tokens_details": { "thinking_tokens": 4 },
        } }));
        let want = TokenUsage {
            input_tokens: 130,
            output_tokens: 9,
            cached_input_tokens: 100,
            cache_write_tokens: 20,
            reasoning_tokens: 4,
        };
        assert_eq!(read_usage(finished.usage), Some(want));
        let huge = json!({ "input_tokens": u64::MAX, "cache_read_input_tokens": u64::MAX });
        assert!(read_usage(huge.as_object().unwrap().clone()).unwrap().input_tokens > 1 << 40);
    }
}
