//! Reads answers, streamed or whole, and their fields with bounds. Every answer is untrusted.

use futures::StreamExt;
use sallyport_contract::text::escape_excerpt;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{OnDelta, ProviderIdentity, ServerEvents, json};
use crate::chat::{ChatMessage, FinishReason, ModelError, ModelReply};

/// Longest unknown finish reason that is passed on. The known ones have about ten characters.
const REASON_CHARS_MAX: usize = 40;

/// Largest token count that is accepted. It is far above every context, and sums of a few counts
/// cannot overflow.
const REPORTED_TOKENS_MAX: u64 = 1 << 40;

/// The data with which some gateways end every stream, regardless of its protocol.
pub(crate) const DONE: &str = "[DONE]";

/// Why an answer cannot be used.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AnswerError {
    /// The server reports an error of its own.
    Reported(Value),
    /// The answer violates the protocol.
    Malformed(String),
}

impl<T: Into<String>> From<T> for AnswerError {
    fn from(problem: T) -> Self {
        Self::Malformed(problem.into())
    }
}

impl AnswerError {
    fn into_model_error(self, provider: &ProviderIdentity) -> ModelError {
        match self {
            Self::Reported(error) => provider.answer_error(200, &error),
            Self::Malformed(problem) => provider.protocol_error(&problem),
        }
    }
}

/// An answer of one protocol, as far as it has arrived.
pub(crate) trait PartialAnswer: Send {
    /// Reads an event of a stream: its name, and its data, which is not blank. Returns true if it
    /// is the last one.
    fn apply_event(
        &mut self,
        name: &str,
        data: &str,
        on_delta: OnDelta<'_>,
    ) -> Result<bool, AnswerError>;

    /// Reads an answer that came in one piece.
    fn apply_whole(&mut self, answer: Value, on_delta: OnDelta<'_>) -> Result<(), AnswerError>;

    /// Returns true if a stream that ended without its last event gave the whole answer. `is_cut`
    /// is true if the connection failed.
    fn is_complete(&self, _is_cut: bool) -> bool {
        false
    }

    /// Converts the answer. `conversation` contains the call ids that are already used; `origin`
    /// marks the provider's own form.
    fn into_reply(
        self: Box<Self>,
        conversation: &[ChatMessage],
        origin: String,
    ) -> Result<ModelReply, AnswerError>;
}

/// The context in which an answer is read.
#[derive(Debug)]
pub(crate) struct AnswerContext<'a> {
    /// The server that answers.
    pub(crate) provider: &'a ProviderIdentity,
    /// The conversation so far. New calls must not use its ids.
    pub(crate) messages: &'a [ChatMessage],
    /// The mark of the provider's own form of the answer.
    pub(crate) origin: String,
}

impl AnswerContext<'_> {
    /// Reads a streamed answer to its end.
    pub(crate) async fn read_stream(
        self,
        mut answer: Box<dyn PartialAnswer>,
        mut events: ServerEvents<'_>,
        on_delta: OnDelta<'_>,
    ) -> Result<ModelReply, ModelError> {
        let convert = |error: AnswerError| error.into_model_error(self.provider);
        let mut is_complete = false;
        while !is_complete && let Some(event) = events.next().await {
            let event = match event {
                Ok(event) => event,
                // Only the closing event is missing.
                Err(_) if answer.is_complete(true) => break,
                Err(error) => return Err(error),
            };
            let (name, data) = (event.event.unwrap_or_default(), event.data.unwrap_or_default());
            if !data.trim().is_empty() {
                is_complete = answer.apply_event(&name, data.trim(), on_delta).map_err(convert)?;
            }
        }
        if !is_complete && !answer.is_complete(false) {
            return Err(self.provider.protocol_error("the stream ended before the answer did"));
        }
        answer.into_reply(self.messages, self.origin).map_err(convert)
    }

    /// Reads an answer that came in one piece. Its deltas are passed on only if it is usable.
    pub(crate) fn read_whole(
        self,
        mut partial: Box<dyn PartialAnswer>,
        answer: Value,
        on_delta: OnDelta<'_>,
    ) -> Result<ModelReply, ModelError> {
        let mut deltas = Vec::new();
        let reply = partial
            .apply_whole(answer, &mut |delta| deltas.push(delta))
            .and_then(|()| partial.into_reply(self.messages, self.origin))
            .map_err(|error| error.into_model_error(self.provider))?;
        deltas.into_iter().for_each(on_delta);
        Ok(reply)
    }
}

/// Parses the JSON object of an event. Serde would read a list too, as the values of the fields.
pub(crate) fn event_object<T: for<'de> Deserialize<'de>>(data: &str) -> Result<T, AnswerError> {
    let not_json = |error| format!("an event is not JSON: {error}");
    if !data.starts_with('{') {
        json::parse_text::<Value>(data).map_err(not_json)?;
        return Err("an event is not an object".into());
    }
    Ok(json::parse_text(data).map_err(not_json)?)
}

/// Parses the JSON object of an event in a protocol whose streams do not end with [`DONE`].
pub(crate) fn event_value(data: &str) -> Result<Value, AnswerError> {
    if data == DONE { Ok(Value::Object(Map::new())) } else { event_object(data) }
}

/// Returns the error that a piece of an answer reports, if any.
pub(crate) fn check_reported(piece: &mut Value) -> Result<(), AnswerError> {
    match piece.get_mut("error").map(Value::take).unwrap_or_default() {
        Value::Null => Ok(()),
        error => Err(AnswerError::Reported(error)),
    }
}

/// Returns the text under a key; empty if there is none.
pub(crate) fn text_field<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Returns a number of tokens; 0 if it is missing. `pointer` is a JSON pointer.
pub(crate) fn token_count(usage: &Value, pointer: &str) -> u64 {
    let count = usage.pointer(pointer).and_then(Value::as_u64);
    count.unwrap_or(0).min(REPORTED_TOKENS_MAX)
}

/// Returns a finish reason that the adapter does not know.
pub(crate) fn other_finish_reason(reason: &str) -> FinishReason {
    FinishReason::Other(escape_excerpt(reason, REASON_CHARS_MAX))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn figures_and_reasons_are_bounded() {
        let usage = json!({ "a": { "b": 7 }, "huge": u64::MAX, "text": "9", "less": -1 });
        let rows =
            [("/a/b", 7), ("/huge", REPORTED_TOKENS_MAX), ("/text", 0), ("/less", 0), ("/x", 0)];
        for (pointer, want) in rows {
            assert_eq!(token_count(&usage, pointer), want);
        }
        assert_eq!(other_finish_reason("odd\x1b"), FinishReason::Other("odd\\u{1b}".to_owned()));
        let FinishReason::Other(long) = other_finish_reason(&"x".repeat(10_000)) else {
            panic!("not other")
        };
        assert!(long.len() < 100, "{long}");
    }
}
