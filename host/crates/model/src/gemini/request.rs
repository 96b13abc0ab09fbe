//! Writes the conversation as the JSON that `generateContent` takes.
//!
//! A call is sent back on the part that brought it, with its signature. The results of one answer
//! form one message, in the order of the calls.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Map, Value, json, value::RawValue};

use super::parts;
use crate::{
    chat::{
        AssistantMessage, Attachment, CallRequest, Kind, Message, Request, ToolDefinition,
        ToolResult, UserMessage,
    },
    endpoint::{Effort, Endpoint},
    wire::{
        answer::text,
        conversation::{
            LEVELS_MAX, NO_WORDS, arguments_object, is_same_call, is_shallow, own_form,
        },
    },
};

/// Image types that the provider accepts.
const IMAGE_TYPES: [&str; 5] =
    ["image/heic", "image/heif", "image/jpeg", "image/png", "image/webp"];

/// The document type that the provider accepts unchanged.
const PDF: &str = "application/pdf";

/// Models that require no signatures and take a number of tokens for their thinking. All later
/// models refuse a call in the current turn without a signature, and take a thinking level.
const WITHOUT_SIGNATURES: [&str; 2] = ["gemini-1", "gemini-2"];

/// The signature that the provider accepts for a call of another model.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// The body of a request.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    contents: Vec<Turn>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    generation_config: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
}

/// Consecutive parts of one role.
#[derive(Serialize)]
struct Turn {
    role: &'static str,
    parts: Vec<Value>,
}

/// Returns the body of a request. `tools` is the serialized list of the request's tools.
pub(super) fn body(endpoint: &Endpoint, request: Request<'_>, tools: Option<&RawValue>) -> Vec<u8> {
    let body = Body {
        contents: turns(request.messages, endpoint),
        generation_config: generation_config(endpoint),
        system_instruction: system(request.messages),
        tools,
    };
    serde_json::to_vec(&body).expect("JSON values can be written")
}

/// Returns the tools in the form of this protocol.
pub(super) fn definitions(tools: &[ToolDefinition]) -> Value {
    let definitions: Vec<Value> = tools.iter().map(definition).collect();
    json!([{ "functionDeclarations": definitions }])
}

fn definition(tool: &ToolDefinition) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "parametersJsonSchema": tool.parameters,
    })
}

fn generation_config(endpoint: &Endpoint) -> Map<String, Value> {
    let fields = [
        ("temperature", endpoint.temperature.map(|freedom| json!(freedom))),
        ("maxOutputTokens", endpoint.output_tokens_max.map(|tokens| json!(tokens))),
        ("thinkingConfig", endpoint.effort.map(|effort| thinking(effort, &endpoint.model))),
    ];
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn thinking(effort: Effort, model: &str) -> Value {
    if wants_signatures(model) {
        return json!({ "includeThoughts": true, "thinkingLevel": effort.word() });
    }
    let budget = match effort {
        Effort::Low => 1024,
        Effort::Medium => 8192,
        Effort::High => 24_576,
    };
    json!({ "includeThoughts": true, "thinkingBudget": budget })
}

fn wants_signatures(model: &str) -> bool {
    !WITHOUT_SIGNATURES.iter().any(|name| model.contains(name))
}

fn system(messages: &[Message]) -> Option<Value> {
    let parts: Vec<Value> = messages
        .iter()
        .filter_map(|message| match message {
            Message::System { text } => words(text),
            _ => None,
        })
        .collect();
    (!parts.is_empty()).then(|| json!({ "parts": parts }))
}

fn turns(messages: &[Message], endpoint: &Endpoint) -> Vec<Turn> {
    let mut ids = HashMap::new();
    let mut turns: Vec<Turn> = Vec::new();
    for message in messages {
        let (role, mut parts) = match message {
            Message::System { .. } => continue,
            Message::User(said) => ("user", input(said)),
            Message::Assistant(said) => ("model", answer(said, endpoint, &mut ids)),
            Message::Tool(result) => ("user", vec![tool_result(result, &ids)]),
        };
        match turns.last_mut() {
            _ if parts.is_empty() => {}
            Some(turn) if turn.role == role => turn.parts.append(&mut parts),
            _ => turns.push(Turn { role, parts }),
        }
    }
    turns
}

/// Returns the parts of an answer, and records the provider's ids of its calls.
fn answer<'a>(
    said: &'a AssistantMessage,
    endpoint: &Endpoint,
    ids: &mut HashMap<&'a str, &'a str>,
) -> Vec<Value> {
    let Some(own) = own_parts(said, &endpoint.origin()) else {
        return anew(said, wants_signatures(&endpoint.model));
    };
    ids.extend(given_ids(said, own));
    let mut calls = said.calls.iter();
    own.iter().cloned().map(|part| with_call(part, &mut calls)).collect()
}

/// Returns the parts of an input: the files, then the text about them.
fn input(said: &UserMessage) -> Vec<Value> {
    let files = said.attachments.iter().map(file);
    let mut parts: Vec<Value> = files.chain(words(&said.told())).collect();
    if parts.is_empty() {
        parts.extend(words(NO_WORDS));
    }
    parts
}

fn file(file: &Attachment) -> Value {
    match takes(file) {
        true => {
            json!({ "inlineData": { "mimeType": file.essence(), "data": file.base64() } })
        }
        false => json!({ "text": file.in_words() }),
    }
}

/// Returns true for a file that can be sent unchanged.
pub(super) fn takes(file: &Attachment) -> bool {
    let media_type = file.essence();
    match file.kind() {
        Kind::Text(_) => false,
        Kind::Image => IMAGE_TYPES.contains(&media_type),
        Kind::Audio => true,
        Kind::Other => media_type == PDF || media_type.starts_with("video/"),
    }
}

fn words(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| json!({ "text": text }))
}

/// Returns the provider's own parts, if this model wrote them and they still contain the same
/// calls. Most calls have no id, so names and arguments are compared.
fn own_parts<'a>(said: &'a AssistantMessage, origin: &str) -> Option<&'a [Value]> {
    let parts = own_form(said, origin)?.get("parts")?.as_array()?;
    let mut own = parts::calls(parts).map(|call| parts::call(call, String::new()));
    let is_same = |call: &CallRequest| {
        own.next().is_some_and(|own| is_same_call(&own.name, &own.arguments, call))
    };
    let are_same = said.calls.iter().all(is_same) && own.next().is_none();
    are_same.then_some(parts.as_slice())
}

/// Writes our call, which has the model's mistakes repaired, into the part that brought it.
fn with_call<'a>(mut part: Value, calls: &mut impl Iterator<Item = &'a CallRequest>) -> Value {
    let own = part.get_mut("functionCall").and_then(Value::as_object_mut);
    if let Some(own) = own
        && let Some(call) = calls.next()
    {
        own.insert("name".to_owned(), json!(call.name));
        let arguments = arguments_object(&call.arguments);
        // A call without arguments may omit `args`.
        if own.contains_key("args") || arguments != json!({}) {
            own.insert("args".to_owned(), arguments);
        }
    }
    part
}

/// Returns pairs of a call's id and the provider's id for it, where the provider gave one.
fn given_ids<'a>(
    said: &'a AssistantMessage,
    own: &'a [Value],
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let given = parts::calls(own).map(|call| text(call, "id"));
    let ids = said.calls.iter().map(|call| call.id.as_str()).zip(given);
    ids.filter(|(_, given)| !given.is_empty())
}

/// Of several calls at once, only the first carries a signature.
fn anew(said: &AssistantMessage, wants_signatures: bool) -> Vec<Value> {
    let mut calls: Vec<Value> = said.calls.iter().map(call).collect();
    if let Some(first) = calls.first_mut().filter(|_| wants_signatures) {
        first["thoughtSignature"] = json!(NO_SIGNATURE);
    }
    words(&said.text).into_iter().chain(calls).collect()
}

fn call(call: &CallRequest) -> Value {
    let arguments = arguments_object(&call.arguments);
    json!({ "functionCall": { "name": call.name, "args": arguments } })
}

fn tool_result(result: &ToolResult, ids: &HashMap<&str, &str>) -> Value {
    let mut response = json!({ "name": result.name, "response": payload(result) });
    if let Some(id) = ids.get(result.call_id.as_str()) {
        response["id"] = json!(id);
    }
    json!({ "functionResponse": response })
}

/// Returns the result as an object, the only type that can be sent back. A deeply nested value is
/// sent as text.
fn payload(result: &ToolResult) -> Value {
    let key = if result.failed { "error" } else { "result" };
    let value = serde_json::from_str(&result.content).ok();
    match value.filter(|value| is_shallow(value, LEVELS_MAX)) {
        Some(object @ Value::Object(_)) => object,
        Some(value) => json!({ key: value }),
        None => json!({ key: result.content }),
    }
}
