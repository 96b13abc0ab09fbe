//! Converts a finished answer into a [`Reply`].
//!
//! Whole and streamed answers both end here: a whole answer is one piece, a streamed one many of
//! the same form.

use serde_json::{Value, json};

use super::parts::{self, PartError, Parts};
use crate::{
    chat::{AssistantMessage, CallRequest, Delta, Finish, Message, Opaque, Reply, Usage},
    wire::{
        answer::{other_reason, text, tokens},
        unique_ids,
    },
};

/// An answer of the provider, as far as it has arrived.
#[derive(Debug, Default)]
pub(super) struct Finished {
    parts: Parts,
    finish: Option<String>,
    /// Why the provider refused the prompt.
    blocked: Option<String>,
    usage: Option<Usage>,
}

impl Finished {
    /// Reads an answer that came in one piece.
    pub(super) fn of(
        mut answer: Value,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Self, PartError> {
        let mut finished = Self::default();
        let said = finished.take(&mut answer)?;
        if !finished.is_complete() && answer.pointer("/candidates/0").is_none() {
            return Err(PartError::NoCandidate);
        }
        said.into_iter().for_each(on_delta);
        Ok(finished)
    }

    /// Adds a piece of the answer and returns its deltas.
    pub(super) fn take(&mut self, piece: &mut Value) -> Result<Vec<Delta>, PartError> {
        self.usage = usage(piece).or(self.usage);
        let blocked = piece.pointer("/promptFeedback/blockReason").and_then(Value::as_str);
        self.blocked = blocked.map(str::to_owned).or(self.blocked.take());
        let Some(candidate) = first_candidate(piece) else { return Ok(Vec::new()) };
        let finish = candidate.get("finishReason").and_then(Value::as_str);
        self.finish = finish.map(str::to_owned).or(self.finish.take());
        let parts = candidate.pointer_mut("/content/parts").map(Value::take);
        let Some(Value::Array(parts)) = parts else { return Ok(Vec::new()) };
        parts.into_iter().filter_map(|part| self.parts.take(part).transpose()).collect()
    }

    /// Returns true once the provider has given the reason why the answer ended.
    pub(super) fn is_complete(&self) -> bool {
        self.finish.is_some() || self.blocked.is_some()
    }
}

/// Converts a finished answer. Ids that are missing or that the conversation already contains are
/// replaced by new ones; `origin` marks the provider's own form.
pub(super) fn reply(finished: Finished, conversation: &[Message], origin: String) -> Reply {
    let Finished { parts, finish, blocked, usage } = finished;
    let text = parts.text();
    let parts = parts.into_vec();
    let calls = calls(&parts, conversation);
    let finish = match blocked {
        Some(_) => Finish::ContentFilter,
        None => reason(finish.as_deref(), !calls.is_empty()),
    };
    let body = json!({ "role": "model", "parts": parts });
    let message = AssistantMessage { text, calls, opaque: Some(Opaque { origin, body }) };
    Reply { message, finish, usage }
}

fn calls(parts: &[Value], conversation: &[Message]) -> Vec<CallRequest> {
    let given: Vec<Option<&str>> = parts::calls(parts).map(|call| Some(text(call, "id"))).collect();
    let ids = unique_ids(&given, conversation);
    parts::calls(parts).zip(ids).map(|(call, id)| parts::call(call, id)).collect()
}

/// Requests ask for one candidate, so any others are ignored.
fn first_candidate(piece: &mut Value) -> Option<&mut Value> {
    let candidates = piece.get_mut("candidates")?.as_array_mut()?;
    candidates.iter_mut().find(|one| one.get("index").and_then(Value::as_u64).unwrap_or(0) == 0)
}

/// The provider sends `STOP` even if the model requests tool calls.
fn reason(finish: Option<&str>, has_calls: bool) -> Finish {
    match finish {
        None | Some("STOP") if has_calls => Finish::ToolCalls,
        None | Some("STOP") => Finish::Stop,
        Some("MAX_TOKENS") => Finish::Length,
        Some(
            "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "IMAGE_SAFETY"
            | "LANGUAGE",
        ) => Finish::ContentFilter,
        Some(other) => other_reason(other),
    }
}

/// The provider counts thoughts apart from the answer; the prompt's count includes cached tokens.
fn usage(piece: &Value) -> Option<Usage> {
    let figures = piece.get("usageMetadata").filter(|usage| usage.is_object())?;
    let tokens = |pointer: &str| tokens(figures, pointer);
    let reasoning_tokens = tokens("/thoughtsTokenCount");
    Some(Usage {
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
            (None, false, Finish::Stop),
            (Some("STOP"), false, Finish::Stop),
            (Some("STOP"), true, Finish::ToolCalls),
            (Some("MAX_TOKENS"), true, Finish::Length),
            (Some("SAFETY"), false, Finish::ContentFilter),
            (Some("RECITATION"), false, Finish::ContentFilter),
            (
                Some("MALFORMED_FUNCTION_CALL"),
                false,
                Finish::Other("MALFORMED_FUNCTION_CALL".to_owned()),
            ),
        ];
        for (given, has_calls, want) in rows {
            assert_eq!(reason(given, has_calls), want);
        }
    }

    #[test]
    fn usage_counts_thoughts_as_written_and_the_cache_as_read() {
        let piece = json!({ "usageMetadata": {
            "promptTokenCount": 100, "cachedContentTokenCount": 60, "toolUsePromptTokenCount": 1,
            "candidatesTokenCount": 7, "thoughtsTokenCount": 20, "totalTokenCount": 128,
        } });
        let want = Usage {
            input_tokens: 101,
            output_tokens: 27,
            cached_input_tokens: 60,
            cache_write_tokens: 0,
            reasoning_tokens: 20,
        };
        assert_eq!(usage(&piece), Some(want));
        assert_eq!(usage(&json!({})), None);
    }
}
