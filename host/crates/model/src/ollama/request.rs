//! Writes the conversation as the JSON that `/api/chat` takes.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value, json, value::RawValue};

use super::reply;
use crate::{
    chat::{
        AssistantMessage, AttachmentKind, ChatMessage, FileAttachment, ModelCallRequest,
        ModelRequest, ModelToolDefinition, UserInputMessage,
    },
    endpoint::{ModelEndpoint, ReasoningEffort},
    openai::tool_definition,
    wire::conversation::{arguments_object, is_same_call, provider_form},
};

/// Models that take a thinking level. All others can only be asked to think.
const THINKING_LEVEL_MODELS: &str = "gpt-oss";

/// The body of a request. It borrows its parts where possible.
#[derive(Serialize)]
struct OllamaRequestBody<'a> {
    model: &'a str,
    messages: Vec<Cow<'a, Value>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    options: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
}

/// Returns the body of a request. `tools` is the serialized list of the request's tools.
pub(super) fn build_body(
    endpoint: &ModelEndpoint,
    request: ModelRequest<'_>,
    tools: Option<&RawValue>,
) -> Vec<u8> {
    let origin = endpoint.origin();
    let body = OllamaRequestBody {
        model: endpoint.model.trim(),
        messages: request.messages.iter().map(|told| convert_message(told, &origin)).collect(),
        stream: endpoint.stream,
        think: endpoint.effort.map(|effort| think_option(effort, &endpoint.model)),
        options: model_options(endpoint),
        tools,
    };
    serde_json::to_vec(&body).expect("JSON values can be written")
}

/// Returns the tools in the form of this protocol, which is that of `chat/completions`.
pub(super) fn tool_definitions(tools: &[ModelToolDefinition]) -> Vec<Value> {
    tools.iter().map(tool_definition).collect()
}

fn think_option(effort: ReasoningEffort, model: &str) -> Value {
    if model.contains(THINKING_LEVEL_MODELS) { json!(effort.as_str()) } else { json!(true) }
}

fn model_options(endpoint: &ModelEndpoint) -> Map<String, Value> {
    let options = [
        ("num_ctx", endpoint.context_tokens.map(|tokens| json!(tokens))),
        ("num_predict", endpoint.output_tokens_max.map(|tokens| json!(tokens))),
        ("temperature", endpoint.temperature.map(|freedom| json!(freedom))),
    ];
    options.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn convert_message<'a>(message: &'a ChatMessage, origin: &str) -> Cow<'a, Value> {
    Cow::Owned(match message {
        ChatMessage::System { text } => json!({ "role": "system", "content": text }),
        ChatMessage::User(said) => user_message(said),
        ChatMessage::Assistant(said) => match provider_message(said, origin) {
            Some(own) => return replace_calls(own, &said.calls),
            None => assistant_message(said),
        },
        ChatMessage::Tool(result) => json!({
            "role": "tool",
            "tool_name": result.name,
            "content": result.content,
        }),
    })
}

/// Images are sent in a field of their own, all other files as text in the content.
fn user_message(said: &UserInputMessage) -> Value {
    let is_image = |file: &&FileAttachment| file.kind() == AttachmentKind::Image;
    let (images, others): (Vec<_>, Vec<_>) = said.attachments.iter().partition(is_image);
    let files = others.into_iter().map(FileAttachment::describe_as_text);
    let words = Some(said.text_for_model().into_owned()).filter(|text| !text.is_empty());
    let content: Vec<String> = files.chain(words).collect();
    let mut message = json!({ "role": "user", "content": content.join("\n\n") });
    if !images.is_empty() {
        message["images"] = images.into_iter().map(FileAttachment::base64).collect();
    }
    message
}

/// Returns the server's own message, if this model wrote it and it still contains the same calls.
/// Older servers give no ids, so names and arguments are compared.
fn provider_message<'a>(said: &'a AssistantMessage, origin: &str) -> Option<&'a Value> {
    let own = provider_form(said, origin)?;
    let calls = match own.get("tool_calls") {
        None | Some(Value::Null) => &[],
        Some(calls) => calls.as_array()?.as_slice(),
    };
    let mut told = calls.iter().map(|call| reply::convert_call(call, String::new()));
    let is_same = |call: &ModelCallRequest| {
        told.next().is_some_and(|own| is_same_call(&own.name, &own.arguments, call))
    };
    (said.calls.iter().all(is_same) && told.next().is_none()).then_some(own)
}

/// Writes our calls over the server's where they differ. The model's mistakes are repaired in ours.
fn replace_calls<'a>(own: &'a Value, calls: &[ModelCallRequest]) -> Cow<'a, Value> {
    let mut own = Cow::Borrowed(own);
    for (at, call) in calls.iter().enumerate() {
        let ours = [("name", json!(call.name)), ("arguments", arguments_object(&call.arguments))];
        for (key, ours) in ours {
            let place = format!("/tool_calls/{at}/function");
            if own.pointer(&format!("{place}/{key}")) != Some(&ours)
                && let Some(Value::Object(function)) = own.to_mut().pointer_mut(&place)
            {
                function.insert(key.to_owned(), ours);
            }
        }
    }
    own
}

fn assistant_message(said: &AssistantMessage) -> Value {
    let mut message = json!({ "role": "assistant", "content": said.text });
    if !said.calls.is_empty() {
        message["tool_calls"] = said.calls.iter().map(tool_call_json).collect();
    }
    message
}

fn tool_call_json(call: &ModelCallRequest) -> Value {
    let arguments = arguments_object(&call.arguments);
    json!({ "type": "function", "function": { "name": call.name, "arguments": arguments } })
}
