//! Our conversation, written as the JSON that `generateContent` takes.
//!
//! A call goes back on the very part that brought it, with its signature. The results of one answer
//! are one message, in the order of the calls.

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

/// The pictures that the provider takes.
const IMAGE_TYPES: [&str; 5] =
    ["image/heic", "image/heif", "image/jpeg", "image/png", "image/webp"];

/// The document that the provider reads as it is.
const PDF: &str = "application/pdf";

/// Models that ask for no signature, and take a number of tokens for their thinking. All that come
/// later refuse a call in the running turn without a signature, and take a word.
const WITHOUT_SIGNATURES: [&str; 2] = ["gemini-1", "gemini-2"];

/// What the provider takes for the signature of a call that another model made.
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

/// What one side says before the other one does.
#[derive(Serialize)]
struct Turn {
    role: &'static str,
    parts: Vec<Value>,
}

/// Returns the body of a request. `tools` are those of the request, written.
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

/// Writes an answer, and notes under which ids the provider knows its calls.
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

/// Files come before the words about them.
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

/// True for a file that can be sent as it is.
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

/// Returns the parts that the provider gave, if it was this model and they still tell of the same
/// calls. Their ids are no proof of that: mostly there are none.
fn own_parts<'a>(said: &'a AssistantMessage, origin: &str) -> Option<&'a [Value]> {
    let parts = own_form(said, origin)?.get("parts")?.as_array()?;
    let mut own = parts::calls(parts).map(|call| parts::call(call, String::new()));
    let is_same = |call: &CallRequest| {
        own.next().is_some_and(|own| is_same_call(&own.name, &own.arguments, call))
    };
    let are_same = said.calls.iter().all(is_same) && own.next().is_none();
    are_same.then_some(parts.as_slice())
}

/// Writes our call into the part that brought it: what its model broke was mended in ours.
fn with_call<'a>(mut part: Value, calls: &mut impl Iterator<Item = &'a CallRequest>) -> Value {
    let own = part.get_mut("functionCall").and_then(Value::as_object_mut);
    if let Some(own) = own
        && let Some(call) = calls.next()
    {
        own.insert("name".to_owned(), json!(call.name));
        let arguments = arguments_object(&call.arguments);
        // No arguments can be told by leaving them out.
        if own.contains_key("args") || arguments != json!({}) {
            own.insert("args".to_owned(), arguments);
        }
    }
    part
}

/// Pairs the ids of a message's calls with those that the provider gave, where it gave any.
fn given_ids<'a>(
    said: &'a AssistantMessage,
    own: &'a [Value],
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let given = parts::calls(own).map(|call| text(call, "id"));
    let ids = said.calls.iter().map(|call| call.id.as_str()).zip(given);
    ids.filter(|(_, given)| !given.is_empty())
}

/// Of several calls at once only the first has a signature.
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

/// Only an object can be sent back, and not one of many levels.
fn payload(result: &ToolResult) -> Value {
    let key = if result.failed { "error" } else { "result" };
    let value = serde_json::from_str(&result.content).ok();
    match value.filter(|value| is_shallow(value, LEVELS_MAX)) {
        Some(object @ Value::Object(_)) => object,
        Some(value) => json!({ key: value }),
        None => json!({ key: result.content }),
    }
}
