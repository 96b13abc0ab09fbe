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

use self::reply::Finished;
use crate::{
    chat::{Attachment, ModelError, Reply, Request, ToolDefinition},
    endpoint::Endpoint,
    wire::{self, Exchange, Format, OnDelta, Pieces},
};

/// Percent-encodes everything that could pass for another part of the address than a model's name.
const IN_PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/').remove(b'@');

/// Gemini's `generateContent`.
#[derive(Debug)]
pub(crate) struct GenerateContent;

impl Format for GenerateContent {
    fn path(&self, endpoint: &Endpoint) -> String {
        path(endpoint)
    }

    fn takes(&self, file: &Attachment) -> bool {
        request::takes(file)
    }

    fn tools(&self, tools: &[ToolDefinition]) -> Value {
        request::definitions(tools)
    }

    fn body(&self, endpoint: &Endpoint, request: Request<'_>, tools: Option<&RawValue>) -> Vec<u8> {
        request::body(endpoint, request, tools)
    }

    fn stream<'a>(
        &'a self,
        pieces: Pieces<'a>,
        exchange: &'a Exchange<'a>,
        on_delta: OnDelta<'a>,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            let Exchange { provider, messages, origin } = exchange;
            let events = wire::events(pieces, provider);
            let finished = stream::read(events, provider, on_delta).await?;
            Ok(reply::reply(finished, messages, origin.clone()))
        })
    }

    fn whole(
        &self,
        answer: Value,
        exchange: &Exchange<'_>,
        on_delta: OnDelta<'_>,
    ) -> Result<Reply, ModelError> {
        let Exchange { provider, messages, origin } = exchange;
        let finished =
            Finished::of(answer, on_delta).map_err(|e| provider.broken(&e.to_string()))?;
        Ok(reply::reply(finished, messages, origin.clone()))
    }
}

/// Returns the path of the model's method.
fn path(endpoint: &Endpoint) -> String {
    let model = resource_path(&endpoint.model);
    match endpoint.stream {
        true => format!("{model}:streamGenerateContent?alt=sse"),
        false => format!("{model}:generateContent"),
    }
}

/// Returns a model's full name. A name may include its folder: `tunedModels/mine`.
pub(crate) fn resource(model: &str) -> String {
    let model = model.trim();
    let folder = if model.contains('/') { "" } else { "models/" };
    format!("{folder}{model}")
}

/// Returns a model's full name, percent-encoded for a URL.
pub(crate) fn resource_path(model: &str) -> String {
    utf8_percent_encode(&resource(model), IN_PATH).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoint::Protocol;

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
            let endpoint = Endpoint {
                stream: false,
                ..Endpoint::new(Protocol::Gemini, "https://x/v1beta", model)
            };
            assert_eq!(path(&endpoint), want);
        }
        let endpoint = Endpoint::new(Protocol::Gemini, "https://x/v1beta", "m");
        assert_eq!(path(&endpoint), "models/m:streamGenerateContent?alt=sse");
    }
}
