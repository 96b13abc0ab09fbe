//! Writes the conversation as the JSON that `messages` takes.
//!
//! Roles alternate there: the results of tools and the user's next input form one message, the
//! results first. Models write blank text but the provider refuses it, so it is left out.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value, json, value::RawValue};

use super::{reply::AnthropicAnswer, tuning::tuning_fields};
use crate::{
    chat::{
        AssistantMessage, AttachmentKind, ChatMessage, FileAttachment, ModelCallRequest,
        ModelToolDefinition, ToolResultMessage, UserInputMessage,
    },
    chat_model::ModelRequest,
    endpoint::ModelEndpoint,
    fit::conversation::{EMPTY_INPUT_TEXT, arguments_object, provider_form, safe_id, safe_name},
    wire::{LazySequence, PartialAnswer, WireFormat, answer::text_field, join_turns},
};

/// Image types that the provider accepts.
const IMAGE_TYPES: [&str; 4] = ["image/gif", "image/jpeg", "image/png", "image/webp"];

/// The document type that the provider accepts unchanged.
const PDF: &str = "application/pdf";

/// How many of the latest user turns are marked for the cache. The second-to-last was marked when
/// it was the last, so the provider reads everything before it from the cache. With the marks after
/// the tools and the instructions, this makes the four marks that the provider allows.
const MARKED_MESSAGES: usize = 2;

/// The body of a request.
#[derive(Serialize)]
struct AnthropicRequestBody<'a, M> {
    model: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Value>,
    messages: M,
    stream: bool,
    #[serde(flatten)]
    tuning: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
}

/// Consecutive content of one role.
#[derive(Serialize)]
struct AnthropicMessage {
    role: &'static str,
    content: Vec<Value>,
}

/// Anthropic's `messages`.
#[derive(Debug)]
pub(crate) struct AnthropicFormat;

impl WireFormat for AnthropicFormat {
    fn method_path(&self, _: &ModelEndpoint) -> String {
        "messages".to_owned()
    }

    fn can_send_file(&self, file: &FileAttachment) -> bool {
        file_block_type(file).is_some()
    }

    /// The last tool is marked because the list stays the same between requests.
    fn tool_list(&self, tools: &[ModelToolDefinition]) -> Value {
        let mut definitions: Vec<Value> = tools.iter().map(tool_definition).collect();
        definitions.last_mut().into_iter().for_each(mark_cacheable);
        definitions.into()
    }

    fn request_body(
        &self,
        endpoint: &ModelEndpoint,
        request: ModelRequest<'_>,
        tools: Option<&RawValue>,
    ) -> Vec<u8> {
        let origin = &endpoint.origin();
        let marked = marked_messages(request.messages, origin);
        let blocks = |(at, message)| {
            let (role, mut content) = message_blocks(message, origin);
            if marked.contains(&at) {
                content.last_mut().into_iter().for_each(mark_cacheable);
            }
            (role, content)
        };
        let body = AnthropicRequestBody {
            model: endpoint.model.trim(),
            system: system_blocks(request.messages),
            messages: LazySequence(|| {
                join_turns(request.messages.iter().enumerate().map(blocks))
                    .map(|(role, content)| AnthropicMessage { role, content })
            }),
            stream: endpoint.stream,
            tuning: tuning_fields(endpoint, request.messages),
            tools,
        };
        serde_json::to_vec(&body).expect("JSON values can be written")
    }

    fn begin_answer(&self) -> Box<dyn PartialAnswer> {
        Box::<AnthropicAnswer>::default()
    }
}

fn tool_definition(tool: &ModelToolDefinition) -> Value {
    let mut schema = tool.parameters.clone();
    if let Value::Object(schema) = &mut schema {
        schema.entry("type").or_insert_with(|| json!("object"));
    }
    json!({ "name": tool.name, "description": tool.description, "input_schema": schema })
}

fn system_blocks(messages: &[ChatMessage]) -> Vec<Value> {
    let mut blocks: Vec<Value> = messages
        .iter()
        .filter_map(|message| match message {
            ChatMessage::System { text } => text_block(text),
            _ => None,
        })
        .collect();
    blocks.last_mut().into_iter().for_each(mark_cacheable);
    blocks
}

/// Returns the positions of the last message of each user turn that is marked for the cache.
fn marked_messages(messages: &[ChatMessage], origin: &str) -> Vec<usize> {
    let latest = messages.iter().enumerate().rev();
    let roles = latest.filter_map(|(at, message)| {
        let (role, content) = message_blocks(message, origin);
        (!content.is_empty()).then_some((at, role))
    });
    let mut next_role = "";
    let ends = roles.filter(|(_, role)| std::mem::replace(&mut next_role, role) != *role);
    let ends = ends.filter(|(_, role)| *role == "user").map(|(at, _)| at);
    ends.take(MARKED_MESSAGES).collect()
}

fn message_blocks(message: &ChatMessage, origin: &str) -> (&'static str, Vec<Value>) {
    match message {
        ChatMessage::System { .. } => ("user", Vec::new()),
        ChatMessage::User(chat_message) => ("user", user_content(chat_message)),
        ChatMessage::Assistant(chat_message) => (
            "assistant",
            provider_blocks(chat_message, origin).unwrap_or_else(|| rebuild_blocks(chat_message)),
        ),
        ChatMessage::Tool(result) => ("user", vec![tool_result(result)]),
    }
}

/// Marks a block as the end of a prefix that the provider may cache.
fn mark_cacheable(block: &mut Value) {
    block["cache_control"] = json!({ "type": "ephemeral" });
}

/// Returns the content of an input: the files, then the text about them.
fn user_content(chat_message: &UserInputMessage) -> Vec<Value> {
    let files = chat_message.attachments.iter().map(file_block);
    let mut content: Vec<Value> = files.chain(text_block(&chat_message.text_for_model())).collect();
    if content.is_empty() {
        content.extend(text_block(EMPTY_INPUT_TEXT));
    }
    content
}

fn file_block(file: &FileAttachment) -> Value {
    let Some(kind) = file_block_type(file) else {
        return json!({ "type": "text", "text": file.describe_as_text() });
    };
    json!({
        "type": kind,
        "source": { "type": "base64", "media_type": file.essence(), "data": file.base64() },
    })
}

/// Returns the type of the block that carries a file unchanged, or `None` if it cannot be sent.
fn file_block_type(file: &FileAttachment) -> Option<&'static str> {
    match (file.kind(), file.essence()) {
        (AttachmentKind::Image, media_type) if IMAGE_TYPES.contains(&media_type) => Some("image"),
        (_, PDF) => Some("document"),
        _ => None,
    }
}

fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }))
}

/// Returns the provider's own blocks, if this model wrote them and they still contain the same
/// calls.
fn provider_blocks(chat_message: &AssistantMessage, origin: &str) -> Option<Vec<Value>> {
    let blocks = provider_form(chat_message, origin)?.get("content")?.as_array()?;
    let own_calls = blocks.iter().filter(|block| is_call(block));
    let own_calls =
        own_calls.map(|call| (text_field(call, "id"), safe_name(text_field(call, "name"))));
    if !own_calls.eq(chat_message.calls.iter().map(|call| (&*call.id, Cow::Borrowed(&*call.name))))
    {
        return None;
    }
    let mut blocks: Vec<Value> = blocks.iter().filter(|block| !is_blank(block)).cloned().collect();
    // A message cannot end with thinking.
    let end = blocks.iter().rposition(|block| !is_thinking(block)).map_or(0, |last| last + 1);
    blocks.truncate(end);
    let own_calls = blocks.iter_mut().filter(|block| is_call(block));
    own_calls
        .zip(&chat_message.calls)
        .for_each(|(provider_block, model_call)| repair_call(provider_block, model_call));
    Some(blocks)
}

/// Writes our call, which has the model's mistakes repaired, over the provider's.
fn repair_call(provider_block: &mut Value, model_call: &ModelCallRequest) {
    provider_block["id"] = json!(safe_id(&model_call.id));
    provider_block["name"] = json!(model_call.name);
    provider_block["input"] = arguments_object(&model_call.arguments);
}

fn is_call(block: &Value) -> bool {
    text_field(block, "type") == "tool_use"
}

fn is_blank(block: &Value) -> bool {
    text_field(block, "type") == "text" && text_field(block, "text").trim().is_empty()
}

/// Returns true for a block of thinking, readable or redacted.
pub(super) fn is_thinking(block: &Value) -> bool {
    matches!(text_field(block, "type"), "thinking" | "redacted_thinking")
}

fn rebuild_blocks(chat_message: &AssistantMessage) -> Vec<Value> {
    text_block(&chat_message.text)
        .into_iter()
        .chain(chat_message.calls.iter().map(tool_use_block))
        .collect()
}

fn tool_use_block(call: &ModelCallRequest) -> Value {
    json!({
        "type": "tool_use",
        "id": safe_id(&call.id),
        "name": call.name,
        "input": arguments_object(&call.arguments),
    })
}

fn tool_result(result: &ToolResultMessage) -> Value {
    let content: Vec<Value> = text_block(&result.content).into_iter().collect();
    let mut block = json!({
        "type": "tool_result",
        "tool_use_id": safe_id(&result.call_id),
        "content": content,
    });
    if result.failed {
        block["is_error"] = json!(true);
    }
    block
}
