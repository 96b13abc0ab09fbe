//! Writes the conversation as the JSON that `/api/chat` takes.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value, json, value::RawValue};

use super::reply::{self, OllamaAnswer};
use crate::{
    chat::{
        AssistantMessage, AttachmentKind, ChatMessage, FileAttachment, ModelCallRequest,
        ModelToolDefinition, UserInputMessage,
    },
    chat_model::ModelRequest,
    endpoint::{ModelEndpoint, ReasoningEffort},
    fit::conversation::{are_same_calls, arguments_object, provider_form},
    openai::tool_definition,
    wire::{LazySequence, NDJSON, PartialAnswer, WireFormat},
};

/// Models that take a thinking level. All others can only be asked to think.
const THINKING_LEVEL_MODELS: &str = "gpt-oss";

/// The body of a request. It borrows its parts where possible.
#[derive(Serialize)]
struct OllamaRequestBody<'a, M> {
    model: &'a str,
    messages: M,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    options: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
}

/// Ollama's `/api/chat`.
#[derive(Debug)]
pub(crate) struct OllamaFormat;

impl WireFormat for OllamaFormat {
    fn method_path(&self, _: &ModelEndpoint) -> String {
        "api/chat".to_owned()
    }

    fn stream_type(&self) -> &'static str {
        NDJSON
    }

    fn can_send_file(&self, file: &FileAttachment) -> bool {
        file.kind() == AttachmentKind::Image
    }

    /// The form is that of `chat/completions`.
    fn tool_list(&self, tools: &[ModelToolDefinition]) -> Value {
        tools.iter().map(tool_definition).collect()
    }

    fn request_body(
        &self,
        endpoint: &ModelEndpoint,
        request: ModelRequest<'_>,
        tools: Option<&RawValue>,
    ) -> Vec<u8> {
        let origin = endpoint.origin();
        let body = OllamaRequestBody {
            model: endpoint.model.trim(),
            messages: LazySequence(|| {
                request.messages.iter().map(|message| convert_message(message, &origin))
            }),
            stream: endpoint.stream,
            think: endpoint.effort.map(|effort| think_option(effort, &endpoint.model)),
            options: model_options(endpoint),
            tools,
        };
        serde_json::to_vec(&body).expect("JSON values can be written")
    }

    fn begin_answer(&self) -> Box<dyn PartialAnswer> {
        Box::<OllamaAnswer>::default()
    }
}

fn think_option(effort: ReasoningEffort, model: &str) -> Value {
    if model.contains(THINKING_LEVEL_MODELS) { json!(effort.as_str()) } else { json!(true) }
}

fn model_options(endpoint: &ModelEndpoint) -> Map<String, Value> {
    let options = [
        ("num_ctx", endpoint.context_tokens.map(|tokens| json!(tokens))),
        ("num_predict", endpoint.output_tokens_max.map(|tokens| json!(tokens))),
        ("temperature", endpoint.temperature.map(|number| json!(number))),
    ];
    options.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn convert_message<'a>(message: &'a ChatMessage, origin: &str) -> Cow<'a, Value> {
    Cow::Owned(match message {
        ChatMessage::System { text } => json!({ "role": "system", "content": text }),
        ChatMessage::User(chat_message) => user_message(chat_message),
        ChatMessage::Assistant(chat_message) => match provider_message(chat_message, origin) {
            Some(provider_value) => return replace_calls(provider_value, &chat_message.calls),
            None => assistant_message(chat_message),
        },
        ChatMessage::Tool(result) => json!({
            "role": "tool",
            "tool_name": result.name,
            "content": result.content,
        }),
    })
}

/// Images are sent in a field of their own, all other files as text in the content.
fn user_message(chat_message: &UserInputMessage) -> Value {
    let is_image = |file: &&FileAttachment| file.kind() == AttachmentKind::Image;
    let (images, others): (Vec<_>, Vec<_>) = chat_message.attachments.iter().partition(is_image);
    let files = others.into_iter().map(FileAttachment::describe_as_text);
    let words = Some(chat_message.text_for_model().into_owned()).filter(|text| !text.is_empty());
    let content: Vec<String> = files.chain(words).collect();
    let mut message = json!({ "role": "user", "content": content.join("\n\n") });
    if !images.is_empty() {
        message["images"] = images.into_iter().map(FileAttachment::base64).collect();
    }
    message
}

/// Returns the server's own message, if this model wrote it and it still contains the same calls.
/// Older servers give no ids, so names and arguments are compared.
fn provider_message<'a>(chat_message: &'a AssistantMessage, origin: &str) -> Option<&'a Value> {
    let provider_value = provider_form(chat_message, origin)?;
    let calls = match provider_value.get("tool_calls") {
        None | Some(Value::Null) => &[],
        Some(calls) => calls.as_array()?.as_slice(),
    };
    let provider_calls = calls.iter().map(|call| reply::convert_call(call, String::new()));
    are_same_calls(provider_calls, &chat_message.calls).then_some(provider_value)
}

/// Writes our calls over the server's where they differ. The model's mistakes are repaired in ours.
fn replace_calls<'a>(provider_value: &'a Value, calls: &[ModelCallRequest]) -> Cow<'a, Value> {
    let mut provider_value = Cow::Borrowed(provider_value);
    for (at, call) in calls.iter().enumerate() {
        let model_value =
            [("name", json!(call.name)), ("arguments", arguments_object(&call.arguments))];
        for (key, model_value) in model_value {
            let place = format!("/tool_calls/{at}/function");
            if provider_value.pointer(&format!("{place}/{key}")) != Some(&model_value)
                && let Some(Value::Object(function)) = provider_value.to_mut().pointer_mut(&place)
            {
                function.insert(key.to_owned(), model_value);
            }
        }
    }
    provider_value
}

fn assistant_message(chat_message: &AssistantMessage) -> Value {
    let mut message = json!({ "role": "assistant", "content": chat_message.text });
    if !chat_message.calls.is_empty() {
        message["tool_calls"] = chat_message.calls.iter().map(tool_call_json).collect();
    }
    message
}

fn tool_call_json(call: &ModelCallRequest) -> Value {
    let arguments = arguments_object(&call.arguments);
    json!({ "type": "function", "function": { "name": call.name, "arguments": arguments } })
}
