//! Builds the JSON body for `generateContent`.
//!
//! A message from this provider is sent back part by part, unchanged, with its signatures. The
//! results of one answer form one message, in the order of its calls.

use std::{collections::HashMap, fmt::Write as _};

use data_encoding::BASE64;
use sallyport_sdk::{
    prelude::{Value, json},
    provider::{
        AnswerMessage, Attachment, Generation, Message, ProviderError, Request, ToolCall,
        ToolDefinition, ToolResult, UserMessage,
    },
};
use serde_json::Map;

use crate::parts;

/// The signature that the service accepts for a call from another model.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// Models that do not require signatures. All later ones refuse a call without one.
const WITHOUT_SIGNATURES: [&str; 2] = ["gemini-1", "gemini-2"];

/// Replaces an empty message, which the service refuses.
const NO_WORDS: &str = "(no words)";

/// Number of bytes that are encoded at a time; a multiple of three, so that no padding occurs
/// inside the text.
const BASE64_PIECE_BYTES: usize = 3 << 16;

/// Media types that the service reads directly: complete types, or families that end with a slash.
const FILES: [&str; 8] = [
    "application/pdf",
    "audio/",
    "image/heic",
    "image/heif",
    "image/jpeg",
    "image/png",
    "image/webp",
    "video/",
];

/// Returns the path of the method for a model. The name may include a folder: `tunedModels/mine`.
///
/// # Errors
///
/// The name would change the path.
pub(crate) fn path(model: &str) -> Result<String, ProviderError> {
    if model.split('/').any(|segment| matches!(segment, "" | "." | "..")) {
        return Err(ProviderError::Refused(format!("{model:?} is not the name of a model")));
    }
    let folder = if model.contains('/') { "" } else { "models/" };
    Ok(format!("{folder}{}:streamGenerateContent?alt=sse", in_path(model)))
}

/// Returns the body of a request.
pub(crate) fn body(request: &Request, model: &str, shows_thoughts: bool) -> Value {
    let wants_signatures = !WITHOUT_SIGNATURES.iter().any(|name| model.contains(name));
    let mut body = Map::new();
    body.insert("contents".to_owned(), json!(turns(&request.history, wants_signatures)));
    let config = config(&request.settings, shows_thoughts);
    let optional = [
        ("systemInstruction", system(&request.history)),
        ("generationConfig", Some(config).filter(|config| config != &json!({}))),
        ("tools", tools(&request.tools)),
    ];
    body.extend(optional.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    Value::Object(body)
}

fn in_path(model: &str) -> String {
    let mut path = String::new();
    for byte in model.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/@".contains(&byte) {
            path.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(path, "%{byte:02X}");
        }
    }
    path
}

fn config(settings: &Generation, shows_thoughts: bool) -> Value {
    let fields = [
        ("temperature", settings.temperature.map(|freedom| json!(freedom))),
        ("maxOutputTokens", settings.tokens_max.map(|tokens| json!(tokens))),
        ("thinkingConfig", shows_thoughts.then(|| json!({ "includeThoughts": true }))),
    ];
    fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

fn tools(tools: &[ToolDefinition]) -> Option<Value> {
    let definitions: Vec<Value> = tools.iter().map(definition).collect();
    (!definitions.is_empty()).then(|| json!([{ "functionDeclarations": definitions }]))
}

fn definition(tool: &ToolDefinition) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "parametersJsonSchema": tool.parameters,
    })
}

fn system(history: &[Message]) -> Option<Value> {
    let texts = history.iter().filter_map(|message| match message {
        Message::System(text) => words(text),
        _ => None,
    });
    let parts: Vec<Value> = texts.collect();
    (!parts.is_empty()).then(|| json!({ "parts": parts }))
}

/// Merges consecutive messages of the same side into one turn.
fn turns(history: &[Message], wants_signatures: bool) -> Vec<Value> {
    let mut ids = HashMap::new();
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in history {
        let (role, mut parts) = match message {
            Message::User(said) => ("user", input(said)),
            Message::Assistant(said) => ("model", answer(said, wants_signatures, &mut ids)),
            Message::Tool(result) => ("user", vec![tool_result(result, &ids)]),
            Message::System(_) | Message::Other(_) => continue,
        };
        match turns.last_mut() {
            _ if parts.is_empty() => {}
            Some((last, said)) if *last == role => said.append(&mut parts),
            _ => turns.push((role, parts)),
        }
    }
    turns.into_iter().map(|(role, parts)| json!({ "role": role, "parts": parts })).collect()
}

/// Files come before the text about them.
fn input(said: &UserMessage) -> Vec<Value> {
    let files = said.attachments.iter().map(file);
    let parts: Vec<Value> = files.chain(words(&said.text)).collect();
    if parts.is_empty() { words(NO_WORDS).into_iter().collect() } else { parts }
}

fn file(file: &Attachment) -> Value {
    let essence = file.media_type.split(';').next().unwrap_or_default().trim();
    let media_type = essence.to_ascii_lowercase();
    let is_taken = |kind: &&str| match kind.ends_with('/') {
        true => media_type.starts_with(*kind),
        false => media_type == **kind,
    };
    match std::str::from_utf8(&file.data) {
        _ if FILES.iter().any(is_taken) => {
            json!({ "inlineData": { "mimeType": media_type, "data": base64(&file.data) } })
        }
        Ok(text) => json!({ "text": text }),
        Err(_) => json!({ "text": format!("(a file of the type {media_type:?})") }),
    }
}

/// Encodes in pieces. The library computes lengths in bits, so in a 32-bit component it refuses
/// more than 8 MiB at a time.
fn base64(data: &[u8]) -> String {
    let mut text = String::with_capacity(data.len().div_ceil(3) * 4);
    for piece in data.chunks(BASE64_PIECE_BYTES) {
        BASE64.encode_append(piece, &mut text);
    }
    text
}

/// Converts an answer, and records the service's ids of its calls.
fn answer<'a>(
    said: &'a AnswerMessage,
    wants_signatures: bool,
    ids: &mut HashMap<&'a str, &'a str>,
) -> Vec<Value> {
    let Some(own) = own_parts(said) else { return anew(said, wants_signatures) };
    let given = parts::calls(own).map(|call| parts::text(call, "id"));
    let pairs = said.calls.iter().map(|call| call.id.as_str()).zip(given);
    ids.extend(pairs.filter(|(_, given)| !given.is_empty()));
    own.to_vec()
}

/// Returns the original parts, if their calls are still the same.
fn own_parts(said: &AnswerMessage) -> Option<&[Value]> {
    let own = said.opaque.as_ref()?.get("parts")?.as_array()?;
    let told: Vec<ToolCall> =
        parts::calls(own).map(|call| parts::call(call, String::new())).collect();
    let same = |(own, call): (&ToolCall, &ToolCall)| {
        own.name == call.name && object(&own.arguments) == object(&call.arguments)
    };
    let is_same = told.len() == said.calls.len() && told.iter().zip(&said.calls).all(same);
    (is_same && !own.is_empty()).then_some(own)
}

/// Builds the parts of another model's answer. Only the first of several parallel calls has a
/// signature.
fn anew(said: &AnswerMessage, wants_signatures: bool) -> Vec<Value> {
    let mut calls: Vec<Value> = said.calls.iter().map(call).collect();
    if let Some(first) = calls.first_mut().filter(|_| wants_signatures) {
        first["thoughtSignature"] = json!(NO_SIGNATURE);
    }
    words(&said.text).into_iter().chain(calls).collect()
}

fn call(call: &ToolCall) -> Value {
    json!({ "functionCall": { "name": call.name, "args": object(&call.arguments) } })
}

fn tool_result(result: &ToolResult, ids: &HashMap<&str, &str>) -> Value {
    let mut response = json!({ "name": result.name, "response": payload(result) });
    if let Some(id) = ids.get(result.call_id.as_str()) {
        response["id"] = json!(id);
    }
    json!({ "functionResponse": response })
}

/// Wraps a result in an object. The service accepts nothing else.
fn payload(result: &ToolResult) -> Value {
    let key = if result.failed { "error" } else { "result" };
    match &result.content {
        object @ Value::Object(_) => object.clone(),
        value => json!({ key: value }),
    }
}

fn words(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| json!({ "text": text }))
}

/// Parses arguments. Invalid ones become an empty object: they were never called, and the service
/// accepts only objects.
fn object(arguments: &str) -> Value {
    let value = serde_json::from_str(arguments).ok();
    value.filter(Value::is_object).unwrap_or_else(|| json!({}))
}
