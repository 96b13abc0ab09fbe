//! Models behind Gemini's `generateContent`, streamed or whole.
//!
//! A message is a list of parts: text, thoughts, calls. A signature on a part stands for what the
//! model thought before it, and the parts go back exactly as they came. Calls mostly have no id:
//! results find them by name and order.
//!
//! Suggested reading order: `request`, `stream`, `parts`, `reply`.

mod parts;
mod reply;
mod request;
mod stream;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sallyport_contract::BoxFuture;

use self::reply::Finished;
use crate::{
    chat::{ChatModel, Delta, ModelError, Price, Reply, Request},
    endpoint::{Endpoint, SettingsError},
    prices,
    wire::{self, Line, WrittenTools, http},
};

/// Longest streamed answer. Events come with figures and signatures of some kilobytes, but hold
/// many tokens each.
const STREAM_BYTES_MAX: usize = 32 << 20;

/// What a model's name may hold without being mistaken for another part of the address.
const IN_PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/').remove(b'@');

/// A model behind Gemini's protocol.
#[derive(Debug)]
pub struct Gemini {
    endpoint: Endpoint,
    line: Line,
    tools: WrittenTools,
}

impl Gemini {
    /// Takes the settings. Nothing is opened or sent before the first request.
    ///
    /// # Errors
    ///
    /// Settings that cannot work, with a hint.
    pub fn new(endpoint: Endpoint) -> Result<Self, SettingsError> {
        let line = Line::new(&endpoint, &path(&endpoint), wire::headers(&endpoint)?)?;
        Ok(Self { endpoint, line, tools: WrittenTools::default() })
    }

    async fn exchange(
        &self,
        request: Request<'_>,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<Reply, ModelError> {
        let accept = if self.endpoint.stream { "text/event-stream" } else { "application/json" };
        let tools = self.tools.json(request.tools, request::definitions);
        let body = request::body(&self.endpoint, request, tools.as_deref());
        let response = self.line.post(body, accept).await.map_err(reply::sharpened)?;
        let provider = self.line.provider();
        let finished = if wire::is_event_stream(&response, self.endpoint.stream) {
            let events = wire::events(http::pieces(response, STREAM_BYTES_MAX), provider);
            stream::read(events, provider, on_delta).await?
        } else {
            let answer = self.line.whole(response).await?;
            Finished::of(answer, on_delta).map_err(|e| provider.broken(&e.to_string()))?
        };
        Ok(reply::reply(finished, request.messages, self.endpoint.origin()))
    }
}

impl ChatModel for Gemini {
    fn name(&self) -> &str {
        self.line.name()
    }

    fn price(&self) -> Option<Price> {
        self.endpoint.price.or_else(|| prices::of(&self.endpoint, &[]))
    }

    fn generate<'a>(
        &'a self,
        request: Request<'a>,
        on_delta: &'a mut (dyn FnMut(Delta) + Send),
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        let exchange = self.exchange(request, on_delta);
        Box::pin(self.line.provider().within(self.endpoint.time_max, exchange))
    }
}

/// Returns the path of the method for one model. A name may bring its folder: `tunedModels/mine`.
fn path(endpoint: &Endpoint) -> String {
    let model = endpoint.model.trim();
    let folder = if model.contains('/') { "" } else { "models/" };
    let model = utf8_percent_encode(model, IN_PATH);
    match endpoint.stream {
        true => format!("{folder}{model}:streamGenerateContent?alt=sse"),
        false => format!("{folder}{model}:generateContent"),
    }
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
