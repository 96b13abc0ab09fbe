//! Models behind Gemini's `generateContent`, streamed or whole.
//!
//! A message is a list of parts: text, thoughts, calls. The signature of a part represents the
//! model's thinking before it, and the parts are sent back exactly as they came. Most calls have no
//! id: results are matched to them by name and order.
//!
//! Suggested reading order: `request`, `parts`, `reply`.

mod parts;
mod reply;
mod request;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

pub(crate) use self::request::GeminiFormat;

/// Percent-encodes everything that could pass for another part of the address than a model's name.
const IN_PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/').remove(b'@');

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
    use crate::{endpoint::ModelEndpoint, protocol::ProviderProtocol, wire::WireFormat};

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
            assert_eq!(GeminiFormat.method_path(&endpoint), want);
        }
        let endpoint = ModelEndpoint::new(ProviderProtocol::Gemini, "https://x/v1beta", "m");
        assert_eq!(GeminiFormat.method_path(&endpoint), "models/m:streamGenerateContent?alt=sse");
    }
}
