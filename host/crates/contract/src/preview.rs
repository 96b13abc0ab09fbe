//! Preview of an outgoing request for the user, who is asked about it.
//!
//! Records keep only its method and address. Known secrets are removed from every part; the rest is
//! complete because the user cannot agree to what is not shown.

use data_encoding::HEXLOWER;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A request that waits for an answer, or a page that would be opened in the browser.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct RequestPreview {
    /// The method of a request; absent for a page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Scheme, host, port and path.
    pub address: String,
    /// What follows the path: query and fragment, with their marks. Empty when there is neither.
    pub query: String,
    /// Names and values of the headers that the plugin has set, and of those that the host adds, a
    /// secret by its name.
    pub headers: Vec<(String, String)>,
    /// The body, when there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<BodyPreview>,
    /// BLAKE3 of all parts, in hexadecimal: two views of one request have the same.
    pub digest: String,
}

/// The body of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
pub struct BodyPreview {
    /// What the plugin claims to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// How many bytes it has.
    pub length_bytes: usize,
    /// BLAKE3 of the bytes, in hexadecimal.
    pub digest: String,
    /// How the content is written.
    pub encoding: BodyEncoding,
    /// All of it.
    pub content: String,
}

/// How the content of a body is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BodyEncoding {
    /// As the text that it is.
    Text,
    /// It is not UTF-8, so its bytes stand there in hexadecimal.
    Hex,
}

impl RequestPreview {
    /// Returns method and address in one line: `POST https://api.example.org/v1/send`.
    pub fn summary_line(&self) -> String {
        format!("{} {}", self.method.as_deref().unwrap_or("open"), self.address)
    }
}

impl BodyPreview {
    /// Creates the preview of a body: UTF-8 as text, anything else in hexadecimal.
    pub fn new(media_type: Option<String>, bytes: &[u8], digest: String) -> Self {
        let (encoding, content) = match std::str::from_utf8(bytes) {
            Ok(text) => (BodyEncoding::Text, text.to_owned()),
            Err(_) => (BodyEncoding::Hex, HEXLOWER.encode(bytes)),
        };
        Self { media_type, length_bytes: bytes.len(), digest, encoding, content }
    }
}
