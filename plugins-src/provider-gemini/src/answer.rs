//! Assembles an answer that arrives in pieces. Each piece has the form of a complete answer.

use sallyport_sdk::{
    prelude::Value,
    provider::{Answer, AnswerMessage, Finish, ProviderError, Usage},
};

use crate::{failure, halves, parts::Parts};

/// The answer so far.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    parts: Parts,
    reason: Option<String>,
    /// Whether the service refused the prompt.
    is_blocked: bool,
    usage: Option<Usage>,
}

impl Progress {
    /// Adds a piece of the answer, and shows its text.
    ///
    /// # Errors
    ///
    /// The piece is invalid, or reports an error of the service.
    pub(crate) fn take(&mut self, data: &str) -> Result<(), ProviderError> {
        let mut piece: Value = halves::read(data)
            .map_err(|e| ProviderError::Refused(format!("the service sent no JSON: {e}")))?;
        if let Some(error) = piece.get("error").filter(|error| error.is_object()) {
            return Err(failure::told(error));
        }
        self.usage = usage(&piece).or(self.usage);
        self.is_blocked |= piece.pointer("/promptFeedback/blockReason").is_some();
        let Some(candidate) = first_candidate(&mut piece) else { return Ok(()) };
        if let Some(Value::String(reason)) = candidate.get("finishReason") {
            self.reason = Some(reason.clone());
        }
        match candidate.pointer_mut("/content/parts").map(Value::take) {
            Some(Value::Array(parts)) => parts.into_iter().try_for_each(|p| self.parts.take(p)),
            _ => Ok(()),
        }
    }

    /// Returns whether the service has reported why the answer ended.
    pub(crate) fn is_complete(&self) -> bool {
        self.reason.is_some() || self.is_blocked
    }

    /// Returns the complete answer.
    ///
    /// # Errors
    ///
    /// The answer was cut off.
    pub(crate) fn finish(self) -> Result<Answer, ProviderError> {
        if !self.is_complete() {
            let message = "the service stopped in the middle of its answer".to_owned();
            return Err(ProviderError::Unreachable(message));
        }
        let (text, calls) = (self.parts.text(), self.parts.calls());
        let finish = match self.is_blocked {
            true => Finish::Withheld,
            false => finish(self.reason.as_deref(), !calls.is_empty()),
        };
        let opaque = Some(self.parts.into_json());
        Ok(Answer { message: AnswerMessage { text, calls, opaque }, finish, usage: self.usage })
    }
}

/// Returns the candidate with index 0. The request asks for only one.
fn first_candidate(piece: &mut Value) -> Option<&mut Value> {
    let candidates = piece.get_mut("candidates")?.as_array_mut()?;
    candidates.iter_mut().find(|one| one.get("index").and_then(Value::as_u64).unwrap_or(0) == 0)
}

/// Maps the reason for the end. The service reports `STOP` even if it wants tools to be called.
fn finish(reason: Option<&str>, has_calls: bool) -> Finish {
    match reason {
        None | Some("STOP") if has_calls => Finish::ToolCalls,
        None | Some("STOP") => Finish::Stop,
        Some("MAX_TOKENS") => Finish::Length,
        Some(
            "SAFETY" | "RECITATION" | "BLOCKLIST" | "PROHIBITED_CONTENT" | "SPII" | "IMAGE_SAFETY"
            | "LANGUAGE",
        ) => Finish::Withheld,
        Some(other) => Finish::Other(other.to_owned()),
    }
}

/// Returns the token usage. The service counts thoughts separately from the answer.
fn usage(piece: &Value) -> Option<Usage> {
    let figures = piece.get("usageMetadata").filter(|usage| usage.is_object())?;
    let tokens = |key: &str| figures.get(key).and_then(Value::as_u64).unwrap_or(0);
    Some(Usage {
        input_tokens: tokens("promptTokenCount").saturating_add(tokens("toolUsePromptTokenCount")),
        output_tokens: tokens("candidatesTokenCount").saturating_add(tokens("thoughtsTokenCount")),
    })
}
