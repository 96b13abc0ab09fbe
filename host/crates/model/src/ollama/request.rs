//! Writes the conversation as the JSON that `/api/chat` takes.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value, json, value::RawValue};

use super::reply;
use crate::{
    chat::{
        AssistantMessage, Attachment, CallRequest, Kind, Message, Request, ToolDefinition,
        UserMessage,
    },
    endpoint::{Effort, Endpoint},
    openai::definition,
    wire::conversation::{arguments_object, is_same_call, own_form},
};

/// Models that take a thinking level. All others can only be asked to think.
const WITH_LEVELS: &str = "gpt-oss";

/// The body of a request. It borrows its parts where possible.
#[derive(Serialize)]
struct Body<'a> {
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
pub(super) fn body(endpoint: &Endpoint, request: Request<'_>, tools: Option<&RawValue>) -> Vec<u8> {
    let origin = endpoint.origin();
    let body = Body {
        model: endpoint.model.trim(),
        messages: request.messages.iter().map(|told| message(told, &origin)).collect(),
        stream: endpoint.stream,
        think: endpoint.effort.map(|effort| think(effort, &endpoint.model)),
        options: options(endpoint),
        tools,
    };
    serde_json::to_vec(&body).expect("JSON values can be written")
}

/// Returns the tools in the form of this protocol, which is that of `chat/completions`.
pub(super) fn definitions(tools: &[ToolDefinition]) -> Vec<Value> {
    tools.iter().map(definition).collect()
}

fn think(effort: Effort, model: &str) -> Value {
    if model.contains(WITH_LEVELS) { json!(effort.word()) } else { json!(true) }
}

fn options(endpoint: &Endpoint) -> Map<String, Value> {
    let options = [
        ("num_ctx", endpoint.context_tokens.map(|tokens| json!(tokens))),
        ("num_predict", endpoint.output_tokens_max.map(|tokens| json!(tokens))),
        ("temperature", endpoint.temperature.map(|freedom| json!(freedom))),
    ];
    options.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn message<'a>(message: &'a Message, origin: &str) -> Cow<'a, Value> {
    Cow::Owned(match message {
        Message::System { text } => json!({ "role": "system", "content": text }),
        Message::User(said) => user(said),
        Message::Assistant(said) => match own_message(said, origin) {
            Some(own) => return with_calls(own, &said.calls),
            None => assistant(said),
        },
        Message::Tool(result) => json!({
            "role": "tool",
            "tool_name": result.name,
            "content": result.content,
        }),
    })
}

/// Images are sent in a field of their own, all other files as text in the content.
fn user(said: &UserMessage) -> Value {
    let is_image = |file: &&Attachment| file.kind() == Kind::Image;
    let (images, others): (Vec<_>, Vec<_>) = said.attachments.iter().partition(is_image);
    let files = others.into_iter().map(Attachment::in_words);
    let words = Some(said.told().into_owned()).filter(|text| !text.is_empty());
    let content: Vec<String> = files.chain(words).collect();
    let mut message = json!({ "role": "user", "content": content.join("\n\n") });
    if !images.is_empty() {
        message["images"] = images.into_iter().map(Attachment::base64).collect();
    }
    message
}

/// Returns the server's own message, if this model wrote it and it still contains the same calls.
/// Older servers give no ids, so names and arguments are compared.
fn own_message<'a>(said: &'a AssistantMessage, origin: &str) -> Option<&'a Value> {
    let own = own_form(said, origin)?;
    let calls = match own.get("tool_calls") {
        None | Some(Value::Null) => &[],
        Some(calls) => calls.as_array()?.as_slice(),
    };
    let mut told = calls.iter().map(|call| reply::call(call, String::new()));
    let is_same = |call: &CallRequest| {
        told.next().is_some_and(|own| is_same_call(&own.name, &own.arguments, call))
    };
    (said.calls.iter().all(is_same) && told.next().is_none()).then_some(own)
}

/// Writes our calls over the server's where they differ. The model's mistakes are repaired in ours.
fn with_calls<'a>(own: &'a Value, calls: &[CallRequest]) -> Cow<'a, Value> {
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

fn assistant(said: &AssistantMessage) -> Value {
    let mut message = json!({ "role": "assistant", "content": said.text });
    if !said.calls.is_empty() {
        message["tool_calls"] = said.calls.iter().map(call).collect();
    }
    message
}

fn call(call: &CallRequest) -> Value {
    let arguments = arguments_object(&call.arguments);
    json!({ "type": "function", "function": { "name": call.name, "arguments": arguments } })
}
