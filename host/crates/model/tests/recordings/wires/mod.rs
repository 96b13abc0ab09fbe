//! The protocols, read without the adapters.

mod anthropic;
mod chat;
mod gemini;
mod ollama;
mod responses;

use data_encoding::BASE64;
use sallyport_model::{
    AssistantMessage, ChatMessage, FileAttachment, FinishReason, ModelCallRequest,
    ModelToolDefinition, ProviderProtocol, ToolResultMessage, UserInputMessage,
};
use serde_json::Value;

/// A protocol.
pub(crate) trait Wire: Sync {
    fn protocol(&self) -> ProviderProtocol;

    /// The path after the base address, or its beginning.
    fn method(&self) -> &'static str;

    /// Reads the conversation of a request; the error names what our types cannot express.
    fn conversation(&self, request: &Value) -> Result<Vec<ChatMessage>, &'static str>;

    fn tools(&self, request: &Value) -> Vec<ModelToolDefinition>;

    /// The parts of a request that only the provider understands.
    fn kept(&self, request: &Value) -> Vec<Value>;

    /// Returns true if a request meets the protocol's further requirements.
    fn is_well_formed(&self, request: &Value) -> bool;

    /// Returns the form in which an answer is sent back, if one event contains it.
    fn own_form(&self, _body: &str) -> Option<Value> {
        None
    }

    /// Reads an answer.
    fn heard(&self, body: &str) -> Heard;
}

/// The content of an answer.
#[derive(Debug)]
pub(crate) struct Heard {
    pub(crate) text: String,
    /// Names and arguments, normalized by [`canonical`](crate::normal::canonical).
    pub(crate) calls: Vec<(String, String)>,
    pub(crate) finish: FinishReason,
    /// Tokens read and written.
    pub(crate) usage: Option<(u64, u64)>,
}

const ALL: [&dyn Wire; 5] =
    [&chat::Chat, &responses::Responses, &anthropic::Anthropic, &gemini::Gemini, &ollama::Ollama];

/// Returns the protocol of a path.
pub(crate) fn of(path: &str) -> Option<&'static dyn Wire> {
    let is_it = |wire: &&'static dyn Wire| match wire.protocol() {
        ProviderProtocol::Gemini => path.ends_with(":generateContent") || is_gemini_stream(path),
        _ => path.ends_with(wire.method()),
    };
    ALL.into_iter().find(is_it)
}

/// Returns the protocol of a path for a list of models.
pub(crate) fn of_list(path: &str) -> Option<&'static dyn Wire> {
    let is_gemini = path.starts_with("/v1beta/");
    path.ends_with("/models").then_some(if is_gemini { &gemini::Gemini } else { &chat::Chat })
}

/// Returns the protocol of a path for embeddings.
pub(crate) fn of_embeddings(path: &str) -> Option<&'static dyn Wire> {
    match path {
        _ if path.ends_with(":batchEmbedContents") => Some(&gemini::Gemini),
        _ if path.ends_with("/embeddings") => Some(&chat::Chat),
        _ => None,
    }
}

/// Returns the model of a request. Gemini's path contains it.
pub(crate) fn model(path: &str, request: &Value) -> Option<String> {
    let in_path = path.split("/models/").nth(1).and_then(|rest| rest.split(':').next());
    in_path.or(request["model"].as_str()).map(str::to_owned)
}

/// Returns true for an answer with readable content.
pub(crate) fn says_something(body: &str) -> bool {
    !values(body).is_empty()
}

/// Returns true if a request asks for a stream. Gemini's path states it.
pub(crate) fn is_streamed(path: &str, request: &Value) -> bool {
    is_gemini_stream(path) || request["stream"] == Value::Bool(true)
}

fn is_gemini_stream(path: &str) -> bool {
    path.ends_with(":streamGenerateContent")
}

/// Returns the JSON values of an answer: those of its events, those of its lines, or the answer
/// itself.
fn values(body: &str) -> Vec<Value> {
    let parse = |text: &str| serde_json::from_str(text).ok();
    let events: Vec<Value> =
        body.lines().filter_map(|line| line.strip_prefix("data: ").and_then(parse)).collect();
    match parse(body) {
        Some(whole) => vec![whole],
        None if events.is_empty() => body.lines().filter_map(parse).collect(),
        None => events,
    }
}

/// Returns the items of a list; none if the value is not a list.
fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or("").to_owned()
}

fn tokens<const N: usize>(usage: &Value, keys: [&str; N]) -> u64 {
    keys.iter().filter_map(|key| usage[*key].as_u64()).sum()
}

/// Converts a protocol's finish reason. A regular stop with calls becomes
/// [`FinishReason::ToolCalls`].
fn finish(word: &str, has_calls: bool, words: &[(&str, FinishReason)]) -> FinishReason {
    let known = words.iter().find(|(known, _)| *known == word).map(|(_, finish)| finish.clone());
    match known.unwrap_or_else(|| FinishReason::Other(word.to_owned())) {
        FinishReason::Stop if has_calls => FinishReason::ToolCalls,
        finish => finish,
    }
}

fn system(text: String) -> ChatMessage {
    ChatMessage::System { text }
}

fn user(text: String, attachments: Vec<FileAttachment>) -> ChatMessage {
    ChatMessage::User(UserInputMessage { text, attachments, ..UserInputMessage::default() })
}

fn assistant(text: String, calls: Vec<ModelCallRequest>) -> ChatMessage {
    ChatMessage::Assistant(AssistantMessage { text, calls, opaque: None })
}

fn result(call_id: String, name: String, content: String) -> ChatMessage {
    ChatMessage::Tool(ToolResultMessage { call_id, name, content, failed: false })
}

fn call(id: &Value, name: &Value, arguments: String) -> ModelCallRequest {
    ModelCallRequest { id: string(id), name: string(name), arguments }
}

fn tool(tool: &Value, schema: &str) -> ModelToolDefinition {
    ModelToolDefinition {
        name: string(&tool["name"]),
        description: string(&tool["description"]),
        parameters: tool[schema].clone(),
    }
}

/// Reads a file from a `data:` URL.
fn data_url(url: &str) -> Option<FileAttachment> {
    let (media_type, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    let data = BASE64.decode(data.as_bytes()).ok()?;
    Some(FileAttachment {
        name: String::new(),
        media_type: media_type.to_owned(),
        data: data.into(),
    })
}
