//! Writes the conversation as the JSON that `generateContent` takes.
//!
//! A call is sent back on the part that brought it, with its signature. The results of one answer
//! form one message, in the order of the calls.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Map, Value, json, value::RawValue};

use super::{parts, reply::GeminiAnswer, resource_path};
use crate::{
    chat::{
        AssistantMessage, AttachmentKind, ChatMessage, FileAttachment, ModelCallRequest,
        ModelToolDefinition, ToolResultMessage, UserInputMessage,
    },
    chat_model::ModelRequest,
    endpoint::{ModelEndpoint, ReasoningEffort},
    fit::conversation::{
        EMPTY_INPUT_TEXT, LEVELS_MAX, are_same_calls, arguments_object, is_shallow, provider_form,
    },
    wire::{LazySequence, PartialAnswer, WireFormat, answer::text_field, join_turns},
};

/// Image types that the provider accepts.
const IMAGE_TYPES: [&str; 5] =
    ["image/heic", "image/heif", "image/jpeg", "image/png", "image/webp"];

/// The document type that the provider accepts unchanged.
const PDF: &str = "application/pdf";

/// Models that require no signatures and take a number of tokens for their thinking. All later
/// models refuse a call in the current turn without a signature, and take a thinking level.
const NO_SIGNATURE_MODELS: [&str; 2] = ["gemini-1", "gemini-2"];

/// The signature that the provider accepts for a call of another model.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// The body of a request.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiRequestBody<'a, C> {
    contents: C,
    #[serde(skip_serializing_if = "Map::is_empty")]
    generation_config: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
}

/// Consecutive parts of one role.
#[derive(Serialize)]
struct GeminiContent {
    role: &'static str,
    parts: Vec<Value>,
}

/// Gemini's `generateContent`.
#[derive(Debug)]
pub(crate) struct GeminiFormat;

impl WireFormat for GeminiFormat {
    fn method_path(&self, endpoint: &ModelEndpoint) -> String {
        let model = resource_path(&endpoint.model);
        match endpoint.stream {
            true => format!("{model}:streamGenerateContent?alt=sse"),
            false => format!("{model}:generateContent"),
        }
    }

    fn can_send_file(&self, file: &FileAttachment) -> bool {
        let media_type = file.essence();
        match file.kind() {
            AttachmentKind::Text(_) => false,
            AttachmentKind::Image => IMAGE_TYPES.contains(&media_type),
            AttachmentKind::Audio => true,
            AttachmentKind::Other => media_type == PDF || media_type.starts_with("video/"),
        }
    }

    fn tool_list(&self, tools: &[ModelToolDefinition]) -> Value {
        let definitions: Vec<Value> = tools.iter().map(tool_definition).collect();
        json!([{ "functionDeclarations": definitions }])
    }

    fn request_body(
        &self,
        endpoint: &ModelEndpoint,
        request: ModelRequest<'_>,
        tools: Option<&RawValue>,
    ) -> Vec<u8> {
        let body = GeminiRequestBody {
            contents: LazySequence(|| turn_contents(request.messages, endpoint)),
            generation_config: generation_config(endpoint),
            system_instruction: system_instruction(request.messages),
            tools,
        };
        serde_json::to_vec(&body).expect("JSON values can be written")
    }

    fn begin_answer(&self) -> Box<dyn PartialAnswer> {
        Box::<GeminiAnswer>::default()
    }
}

fn tool_definition(tool: &ModelToolDefinition) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "parametersJsonSchema": tool.parameters,
    })
}

fn generation_config(endpoint: &ModelEndpoint) -> Map<String, Value> {
    let fields = [
        ("temperature", endpoint.temperature.map(|number| json!(number))),
        ("maxOutputTokens", endpoint.output_tokens_max.map(|tokens| json!(tokens))),
        ("thinkingConfig", endpoint.effort.map(|effort| thinking_config(effort, &endpoint.model))),
    ];
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn thinking_config(effort: ReasoningEffort, model: &str) -> Value {
    if requires_signatures(model) {
        return json!({ "includeThoughts": true, "thinkingLevel": effort.as_str() });
    }
    let budget = match effort {
        ReasoningEffort::Low => 1024,
        ReasoningEffort::Medium => 8192,
        ReasoningEffort::High => 24_576,
    };
    json!({ "includeThoughts": true, "thinkingBudget": budget })
}

fn requires_signatures(model: &str) -> bool {
    !NO_SIGNATURE_MODELS.iter().any(|name| model.contains(name))
}

fn system_instruction(messages: &[ChatMessage]) -> Option<Value> {
    let parts: Vec<Value> = messages
        .iter()
        .filter_map(|message| match message {
            ChatMessage::System { text } => text_part(text),
            _ => None,
        })
        .collect();
    (!parts.is_empty()).then(|| json!({ "parts": parts }))
}

fn turn_contents(
    messages: &[ChatMessage],
    endpoint: &ModelEndpoint,
) -> impl Iterator<Item = GeminiContent> {
    let mut ids = HashMap::new();
    let parts = messages.iter().map(move |message| match message {
        ChatMessage::System { .. } => ("user", Vec::new()),
        ChatMessage::User(chat_message) => ("user", user_parts(chat_message)),
        ChatMessage::Assistant(chat_message) => {
            ("model", answer_parts(chat_message, endpoint, &mut ids))
        }
        ChatMessage::Tool(result) => ("user", vec![tool_result(result, &ids)]),
    });
    join_turns(parts).map(|(role, parts)| GeminiContent { role, parts })
}

/// Returns the parts of an answer, and records the provider's ids of its calls.
fn answer_parts<'a>(
    chat_message: &'a AssistantMessage,
    endpoint: &ModelEndpoint,
    ids: &mut HashMap<&'a str, &'a str>,
) -> Vec<Value> {
    let Some(parts) = provider_parts(chat_message, &endpoint.origin()) else {
        return rebuild_parts(chat_message, requires_signatures(&endpoint.model));
    };
    ids.extend(provider_call_ids(chat_message, parts));
    let mut calls = chat_message.calls.iter();
    parts.iter().cloned().map(|part| replace_call(part, &mut calls)).collect()
}

/// Returns the parts of an input: the files, then the text about them.
fn user_parts(chat_message: &UserInputMessage) -> Vec<Value> {
    let files = chat_message.attachments.iter().map(file_part);
    let mut parts: Vec<Value> = files.chain(text_part(&chat_message.text_for_model())).collect();
    if parts.is_empty() {
        parts.extend(text_part(EMPTY_INPUT_TEXT));
    }
    parts
}

fn file_part(file: &FileAttachment) -> Value {
    match GeminiFormat.can_send_file(file) {
        true => {
            json!({ "inlineData": { "mimeType": file.essence(), "data": file.base64() } })
        }
        false => json!({ "text": file.describe_as_text() }),
    }
}

fn text_part(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| json!({ "text": text }))
}

/// Returns the provider's own parts, if this model wrote them and they still contain the same
/// calls. Most calls have no id, so names and arguments are compared.
fn provider_parts<'a>(chat_message: &'a AssistantMessage, origin: &str) -> Option<&'a [Value]> {
    let parts = provider_form(chat_message, origin)?.get("parts")?.as_array()?;
    let calls = parts::function_calls(parts);
    let provider_calls = calls.map(|call| parts::convert_call(call, String::new()));
    are_same_calls(provider_calls, &chat_message.calls).then_some(parts.as_slice())
}

/// Writes our call, which has the model's mistakes repaired, into the part that brought it.
fn replace_call<'a>(
    mut part: Value,
    calls: &mut impl Iterator<Item = &'a ModelCallRequest>,
) -> Value {
    let function_call = part.get_mut("functionCall").and_then(Value::as_object_mut);
    if let Some(function_call) = function_call
        && let Some(call) = calls.next()
    {
        function_call.insert("name".to_owned(), json!(call.name));
        let arguments = arguments_object(&call.arguments);
        // A call without arguments may omit `args`.
        if function_call.contains_key("args") || arguments != json!({}) {
            function_call.insert("args".to_owned(), arguments);
        }
    }
    part
}

/// Returns pairs of a call's id and the provider's id for it, where the provider gave one.
fn provider_call_ids<'a>(
    chat_message: &'a AssistantMessage,
    parts: &'a [Value],
) -> impl Iterator<Item = (&'a str, &'a str)> {
    let given = parts::function_calls(parts).map(|call| text_field(call, "id"));
    let ids = chat_message.calls.iter().map(|call| call.id.as_str()).zip(given);
    ids.filter(|(_, given)| !given.is_empty())
}

/// Of several calls at once, only the first carries a signature.
fn rebuild_parts(chat_message: &AssistantMessage, wants_signatures: bool) -> Vec<Value> {
    let mut calls: Vec<Value> = chat_message.calls.iter().map(function_call_part).collect();
    if let Some(first) = calls.first_mut().filter(|_| wants_signatures) {
        first["thoughtSignature"] = json!(NO_SIGNATURE);
    }
    text_part(&chat_message.text).into_iter().chain(calls).collect()
}

fn function_call_part(call: &ModelCallRequest) -> Value {
    let arguments = arguments_object(&call.arguments);
    json!({ "functionCall": { "name": call.name, "args": arguments } })
}

fn tool_result(result: &ToolResultMessage, ids: &HashMap<&str, &str>) -> Value {
    let mut response = json!({ "name": result.name, "response": result_object(result) });
    if let Some(id) = ids.get(result.call_id.as_str()) {
        response["id"] = json!(id);
    }
    json!({ "functionResponse": response })
}

/// Returns the result as an object, the only type that can be sent back. A deeply nested value is
/// sent as text.
fn result_object(result: &ToolResultMessage) -> Value {
    let key = if result.failed { "error" } else { "result" };
    let value = serde_json::from_str(&result.content).ok();
    match value.filter(|value| is_shallow(value, LEVELS_MAX)) {
        Some(object @ Value::Object(_)) => object,
        Some(value) => json!({ key: value }),
        None => json!({ key: result.content }),
    }
}
