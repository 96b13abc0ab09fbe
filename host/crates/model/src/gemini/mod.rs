//! Models behind Gemini's `generateContent`, streamed or whole.
//!
//! A message is a list of parts: text, thoughts, calls. The signature of a part represents the
//! model's thinking before it, and the parts are sent back exactly as they came. Most calls have no
//! id: results are matched to them by name and order.
//!
//! Suggested reading order: `request`, `stream`, `parts`, `reply`.

mod parts;
mod reply;
mod request;
mod stream;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sallyport_contract::BoxFuture;
use serde_json::{Value, value::RawValue};

use self::reply::GeminiAnswer;
use crate::{
    chat::{FileAttachment, ModelError, ModelReply, ModelRequest, ModelToolDefinition},
    endpoint::ModelEndpoint,
    wire::{self, AnswerContext, OnDelta, Pieces, WireFormat},
};

/// Percent-encodes everything that could pass for another part of the address than a model's name.
const IN_PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/').remove(b'@');

/// Gemini's `generateContent`.
#[derive(Debug)]
pub(crate) struct GeminiFormat;

impl WireFormat for GeminiFormat {
    fn method_path(&self, endpoint: &ModelEndpoint) -> String {
        method_path(endpoint)
    }

    fn can_send_file(&self, file: &FileAttachment) -> bool {
        request::can_send_file(file)
    }

    fn tool_list(&self, tools: &[ModelToolDefinition]) -> Value {
        request::tool_definitions(tools)
    }

    fn request_body(
        &self,
        endpoint: &ModelEndpoint,
        request: ModelRequest<'_>,
        tools: Option<&RawValue>,
    ) -> Vec<u8> {
        request::build_body(endpoint, request, tools)
    }

    fn read_stream<'a>(
        &'a self,
        pieces: Pieces<'a>,
        exchange: &'a AnswerContext<'a>,
        on_delta: OnDelta<'a>,
    ) -> BoxFuture<'a, Result<ModelReply, ModelError>> {
        Box::pin(async move {
            let AnswerContext { provider, messages, origin } = exchange;
            let events = wire::read_events(pieces, provider);
            let finished = stream::read_stream(events, provider, on_delta).await?;
            Ok(reply::build_reply(finished, messages, origin.clone()))
        })
    }

    fn read_answer(
        &self,
        answer: Value,
        exchange: &AnswerContext<'_>,
        on_delta: OnDelta<'_>,
    ) -> Result<ModelReply, ModelError> {
        let AnswerContext { provider, messages, origin } = exchange;
        let finished = GeminiAnswer::from_answer(answer, on_delta)
            .map_err(|e| provider.protocol_error(&e.to_string()))?;
        Ok(reply::build_reply(finished, messages, origin.clone()))
    }
}

/// Returns the path of the model's method.
fn method_path(endpoint: &ModelEndpoint) -> String {
    let model = resource_path(&endpoint.model);
    match endpoint.stream {
        true => format!("{model}:streamGenerateContent?alt=sse"),
        false => format!("{model}:generateContent"),
    }
}

/// Returns a model's full name. A name may include its folder: `tunedModels/mine`.
pub(crate) fn resource_name(model: &str) -> String {
    let model = model.trim();
    let folder = if model.contains('/') { "" } else { "models/" };
    format!("{folder}{model}")
}

/// Returns a model's full name, percent-encoded for a URL.
pub(crate) fn resource_path(model: &str) -> String {
    utf8_percent_encode(&resource_name(model), IN_PATH).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::ProviderProtocol;

    #[test]
    fn a_name_leads_to_its_method_and_nowhere_else() {
        let rows = [
            ("gemini-2.5-flash", "models/gemini-2.5-flash:generateContent"),
            (" models/gemini-2.5-flash ", "models/gemini-2.5-flash:generateContent"),
            ("tunedModels/mine", "tunedModels/mine:generateContent"),
            ("a?key=b#c", "models/a%3Fkey%3Db%23c:generateContent"),
            ("a:delete", "models/a%3Adelete:generateContent"),
        ];
        for (model, want) in rows {
            let endpoint = ModelEndpoint {
                stream: false,
                ..ModelEndpoint::new(ProviderProtocol::Gemini, "https://x/v1beta", model)
            };
            assert_eq!(method_path(&endpoint), want);
        }
        let endpoint = ModelEndpoint::new(ProviderProtocol::Gemini, "https://x/v1beta", "m");
        assert_eq!(method_path(&endpoint), "models/m:streamGenerateContent?alt=sse");
    }
}
