//! Writes the conversation as the JSON that `responses` takes.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

use super::reply::ResponsesAnswer;
use crate::{
    chat::{
        AssistantMessage, AttachmentKind, ChatMessage, FileAttachment, ModelCallRequest,
        ModelToolDefinition, UserInputMessage,
    },
    chat_model::ModelRequest,
    endpoint::{ModelEndpoint, ReasoningEffort},
    fit::conversation,
    wire::{LazySequence, PartialAnswer, WireFormat, answer::text_field},
};

/// The additional output without which the model's thoughts cannot be sent back.
const ENCRYPTED_REASONING: &[&str] = &["reasoning.encrypted_content"];

/// Families of models that do not think and refuse a request for their thoughts.
const NO_REASONING_MODELS: [&str; 3] = ["gpt-3", "gpt-4", "chatgpt-"];

/// The body of a request. It borrows its parts where possible.
#[derive(Serialize)]
struct ResponsesRequestBody<'a, I> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    input: I,
    stream: bool,
    /// Always false, so that the provider does not store the conversation.
    store: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    include: &'static [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<ReasoningOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct ReasoningOptions {
    effort: &'static str,
}

/// OpenAI's `responses`.
#[derive(Debug)]
pub(crate) struct ResponsesFormat;

impl WireFormat for ResponsesFormat {
    fn method_path(&self, _: &ModelEndpoint) -> String {
        "responses".to_owned()
    }

    fn can_send_file(&self, file: &FileAttachment) -> bool {
        file.kind() == AttachmentKind::Image || file.audio_format().is_some()
    }

    fn tool_list(&self, tools: &[ModelToolDefinition]) -> Value {
        tools.iter().map(tool_definition).collect()
    }

    fn request_body(
        &self,
        endpoint: &ModelEndpoint,
        request: ModelRequest<'_>,
        tools: Option<&RawValue>,
    ) -> Vec<u8> {
        let (model, origin) = (endpoint.model.trim(), endpoint.origin());
        let (instructions, messages) = split_instructions(request.messages);
        let body = ResponsesRequestBody {
            model,
            instructions,
            input: LazySequence(|| {
                messages.iter().flat_map(|message| message_items(message, &origin))
            }),
            stream: endpoint.stream,
            store: false,
            include: if is_reasoning_model(model) { ENCRYPTED_REASONING } else { &[] },
            temperature: endpoint.temperature,
            max_output_tokens: endpoint.output_tokens_max,
            reasoning: endpoint
                .effort
                .map(ReasoningEffort::as_str)
                .map(|effort| ReasoningOptions { effort }),
            tools,
        };
        serde_json::to_vec(&body).expect("JSON values can be written")
    }

    fn begin_answer(&self) -> Box<dyn PartialAnswer> {
        Box::<ResponsesAnswer>::default()
    }
}

/// Returns a tool as a definition of this protocol. `strict` is false because the provider would
/// otherwise rewrite the schema and make every parameter required.
fn tool_definition(tool: &ModelToolDefinition) -> Value {
    json!({
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": false,
    })
}

/// The model's name may include its vendor, as in `openai/gpt-4o`.
fn is_reasoning_model(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let is_old = NO_REASONING_MODELS.iter().any(|family| name.starts_with(family));
    !is_old && !name.contains("-chat")
}

/// Returns the leading system messages as instructions, and the rest of the conversation.
fn split_instructions(messages: &[ChatMessage]) -> (Option<String>, &[ChatMessage]) {
    let leading = messages.iter().map_while(|message| match message {
        ChatMessage::System { text } => Some(text.as_str()),
        _ => None,
    });
    let leading: Vec<&str> = leading.collect();
    let rest = &messages[leading.len()..];
    ((!leading.is_empty()).then(|| leading.join("\n\n")), rest)
}

fn message_items<'a>(message: &'a ChatMessage, origin: &str) -> Vec<Cow<'a, Value>> {
    let item = match message {
        ChatMessage::System { text } => role_message("system", json!([input_text(text)])),
        ChatMessage::User(chat_message) => role_message("user", user_content(chat_message)),
        ChatMessage::Assistant(chat_message) => {
            return match provider_items(chat_message, origin) {
                Some(items) => replace_calls(items, &chat_message.calls),
                None => assistant_items(chat_message).into_iter().map(Cow::Owned).collect(),
            };
        }
        ChatMessage::Tool(result) => json!({
            "type": "function_call_output",
            "call_id": result.call_id,
            "output": result.content,
        }),
    };
    vec![Cow::Owned(item)]
}

fn role_message(role: &str, content: Value) -> Value {
    json!({ "type": "message", "role": role, "content": content })
}

fn user_content(chat_message: &UserInputMessage) -> Value {
    let model_text = chat_message.text_for_model();
    let is_silent = model_text.is_empty() && !chat_message.attachments.is_empty();
    let words = (!is_silent).then(|| input_text(&model_text));
    words.into_iter().chain(chat_message.attachments.iter().map(file_part)).collect()
}

fn file_part(file: &FileAttachment) -> Value {
    match (file.kind(), file.audio_format()) {
        (AttachmentKind::Image, _) => {
            json!({ "type": "input_image", "image_url": file.data_url() })
        }
        (AttachmentKind::Audio, Some(format)) => json!({
            "type": "input_audio",
            "input_audio": { "data": file.base64(), "format": format },
        }),
        _ => input_text(&file.describe_as_text()),
    }
}

fn input_text(text: &str) -> Value {
    json!({ "type": "input_text", "text": text })
}

/// Returns the provider's own items of a message, if this model wrote them and they still contain
/// the same calls.
fn provider_items<'a>(chat_message: &'a AssistantMessage, origin: &str) -> Option<&'a Vec<Value>> {
    let items = conversation::provider_form(chat_message, origin)?.as_array()?;
    let calls = items.iter().filter(|item| is_call(item));
    let ids = calls.map(|call| text_field(call, "call_id"));
    ids.eq(chat_message.calls.iter().map(|call| call.id.as_str())).then_some(items)
}

/// Returns the items that can be sent back. Our calls replace the provider's where they differ; the
/// model's mistakes are repaired in ours. Thoughts at the end are left out: the provider refuses
/// thoughts without what follows them, which an answer that was cut off does not have.
fn replace_calls<'a>(items: &'a [Value], calls: &[ModelCallRequest]) -> Vec<Cow<'a, Value>> {
    let mut calls = calls.iter();
    let end = items.iter().rposition(|item| !is_thought(item)).map_or(0, |last| last + 1);
    let items = items[..end].iter().filter(|item| can_send_back(item)).map(|item| {
        let mut item = Cow::Borrowed(item);
        if let Some(call) = is_call(&item).then(|| calls.next()).flatten() {
            for (key, ours) in [("name", &call.name), ("arguments", &call.arguments)] {
                if item.get(key).and_then(Value::as_str) != Some(ours) {
                    item.to_mut()[key] = json!(ours);
                }
            }
        }
        item
    });
    items.collect()
}

fn is_thought(item: &Value) -> bool {
    text_field(item, "type") == "reasoning"
}

fn is_call(item: &Value) -> bool {
    text_field(item, "type") == "function_call"
}

/// Returns false for thoughts without content. They would be sent as an id alone, which the
/// provider does not know: it stores nothing.
fn can_send_back(item: &Value) -> bool {
    let is_told = |key: &str| match item.get(key) {
        Some(Value::String(sealed)) => !sealed.is_empty(),
        Some(Value::Array(parts)) => !parts.is_empty(),
        _ => false,
    };
    !is_thought(item) || is_told("encrypted_content") || is_told("content")
}

fn assistant_items(chat_message: &AssistantMessage) -> Vec<Value> {
    let is_silent = chat_message.text.is_empty() && !chat_message.calls.is_empty();
    let text = json!([{ "type": "output_text", "text": chat_message.text }]);
    let words = (!is_silent).then(|| role_message("assistant", text));
    words.into_iter().chain(chat_message.calls.iter().map(function_call_item)).collect()
}

fn function_call_item(call: &ModelCallRequest) -> Value {
    json!({
        "type": "function_call",
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments,
    })
}
