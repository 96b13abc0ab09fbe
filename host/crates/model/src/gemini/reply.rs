//! Reads an answer and converts it into a [`ModelReply`].
//!
//! A whole answer is one piece, a streamed one many of the same form.

use serde_json::{Value, json};

use super::parts::{self, GeminiPartList};
use crate::{
    chat::{
        AssistantMessage, ChatMessage, FinishReason, ModelCallRequest, ModelReply, OpaqueMessage,
        ReplyDelta, TokenUsage,
    },
    wire::{
        AnswerError, OnDelta, PartialAnswer,
        answer::{check_reported, event_value, other_finish_reason, text_field, token_count},
        unique_ids,
    },
};

/// An answer of the provider, as far as it has arrived.
#[derive(Debug, Default)]
pub(super) struct GeminiAnswer {
    parts: GeminiPartList,
    finish: Option<String>,
    /// Why the provider refused the prompt.
    blocked: Option<String>,
    usage: Option<TokenUsage>,
}

impl GeminiAnswer {
    /// Adds a piece of the answer and returns its deltas.
    fn apply_piece(&mut self, piece: &mut Value) -> Result<Vec<ReplyDelta>, AnswerError> {
        self.usage = read_usage(piece).or(self.usage);
        let blocked = piece.pointer("/promptFeedback/blockReason").and_then(Value::as_str);
        self.blocked = blocked.map(str::to_owned).or(self.blocked.take());
        let Some(candidate) = first_candidate(piece) else { return Ok(Vec::new()) };
        let finish = candidate.get("finishReason").and_then(Value::as_str);
        self.finish = finish.map(str::to_owned).or(self.finish.take());
        let parts = candidate.pointer_mut("/content/parts").map(Value::take);
        let Some(Value::Array(parts)) = parts else { return Ok(Vec::new()) };
        parts.into_iter().filter_map(|part| self.parts.add_part(part).transpose()).collect()
    }
}

impl PartialAnswer for GeminiAnswer {
    fn apply_event(
        &mut self,
        _name: &str,
        data: &str,
        on_delta: OnDelta<'_>,
    ) -> Result<bool, AnswerError> {
        let mut piece = event_value(data)?;
        check_reported(&mut piece)?;
        self.apply_piece(&mut piece)?.into_iter().for_each(on_delta);
        Ok(false)
    }

    fn apply_whole(&mut self, mut answer: Value, on_delta: OnDelta<'_>) -> Result<(), AnswerError> {
        let deltas = self.apply_piece(&mut answer)?;
        if !self.is_complete(false) && answer.pointer("/candidates/0").is_none() {
            return Err("there is no candidate in the answer".into());
        }
        deltas.into_iter().for_each(on_delta);
        Ok(())
    }

    /// No event marks the end, and the stream may give a finish reason more than once, with text
    /// between. An answer is therefore complete if it has a reason why it ended and the stream
    /// ended normally.
    fn is_complete(&self, is_cut: bool) -> bool {
        !is_cut && (self.finish.is_some() || self.blocked.is_some())
    }

    fn into_reply(
        self: Box<Self>,
        conversation: &[ChatMessage],
        origin: String,
    ) -> Result<ModelReply, AnswerError> {
        let Self { parts, finish, blocked, usage } = *self;
        let text = parts.text();
        let parts = parts.into_vec();
        let calls = read_calls(&parts, conversation);
        let finish = match blocked {
            Some(_) => FinishReason::ContentFilter,
            None => finish_reason(finish.as_deref(), !calls.is_empty()),
        };
        let body = json!({ "role": "model", "parts": parts });
        let opaque = Some(OpaqueMessage { origin, body });
        Ok(ModelReply { message: AssistantMessage { text, calls, opaque }, finish, usage })
    }
}

fn read_calls(parts: &[Value], conversation: &[ChatMessage]) -> Vec<ModelCallRequest> {
    let given: Vec<Option<&str>> =
        parts::function_calls(parts).map(|call| Some(text_field(call, "id"))).collect();
    let ids = unique_ids(&given, conversation);
    parts::function_calls(parts).zip(ids).map(|(call, id)| parts::convert_call(call, id)).collect()
}

/// Requests ask for one candidate, so any others are ignored.
fn first_candidate(piece: &mut Value) -> Option<&mut Value> {
    let candidates = piece.get_mut("candidates")?.as_array_mut()?;
    candidates.iter_mut().find(|one| one.get("index").and_then(Value::as_u64).unwrap_or(0) == 0)
}

/// The provider sends `STOP` even if the model requests tool calls.
fn finish_reason(finish: Option<&str>, has_calls: bool) -> FinishReason {
    match finish {
        None | Some("STOP") if has_calls => FinishReason::ToolCalls,
        None | Some("STOP") => FinishReason::Stop,
        Some("MAX_TOKENS") => FinishReason::Length,
        Some(
            "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "IMAGE_SAFETY"
            | "LANGUAGE",
        ) => FinishReason::ContentFilter,
        Some(other) => other_finish_reason(other),
    }
}

/// The provider counts thoughts apart from the answer; the prompt's count includes cached tokens.
fn read_usage(piece: &Value) -> Option<TokenUsage> {
    let figures = piece.get("usageMetadata").filter(|usage| usage.is_object())?;
    let tokens = |pointer: &str| token_count(figures, pointer);
    let reasoning_tokens = tokens("/thoughtsTokenCount");
    Some(TokenUsage {
        input_tokens: tokens("/promptTokenCount") + tokens("/toolUsePromptTokenCount"),
        output_tokens: tokens("/candidatesTokenCount") + reasoning_tokens,
        cached_input_tokens: tokens("/cachedContentTokenCount"),
        cache_write_tokens: 0,
        reasoning_tokens,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finish_reasons_are_told_apart() {
        let rows = [
            (None, false, FinishReason::Stop),
            (Some("STOP"), false, FinishReason::Stop),
            (Some("STOP"), true, FinishReason::ToolCalls),
            (Some("MAX_TOKENS"), true, FinishReason::Length),
            (Some("SAFETY"), false, FinishReason::ContentFilter),
            (Some("RECITATION"), false, FinishReason::ContentFilter),
            (
                Some("MALFORMED_FUNCTION_CALL"),
                false,
                FinishReason::Other("MALFORMED_FUNCTION_CALL".to_owned()),
            ),
        ];
        for (given, has_calls, want) in rows {
            assert_eq!(finish_reason(given, has_calls), want);
        }
    }

    #[test]
    fn usage_counts_thoughts_as_written_and_the_cache_as_read() {
        let piece = json!({ "usageMetadata": {
            "promptTokenCount": 100, "cachedContentTokenCount": 60, "toolUsePromptTokenCount": 1,
            "candidatesTokenCount": 7, "thoughtsTokenCount": 20, "totalTokenCount": 128,
        } });
        let want = TokenUsage {
            input_tokens: 101,
            output_tokens: 27,
            cached_input_tokens: 60,
            cache_write_tokens: 0,
            reasoning_tokens: 20,
        };
        assert_eq!(read_usage(&piece), Some(want));
        assert_eq!(read_usage(&json!({})), None);
    }
}
