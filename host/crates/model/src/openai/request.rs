//! Writes the conversation as the JSON that `chat/completions` takes.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{
    Map, Value, json,
    value::{RawValue, to_raw_value},
};

use super::{reply::CompletionAnswer, short_ids::IdShortener};
use crate::{
    chat::{
        AssistantMessage, AttachmentKind, ChatMessage, FileAttachment, ModelCallRequest,
        ModelToolDefinition, UserInputMessage,
    },
    chat_model::ModelRequest,
    endpoint::{ModelEndpoint, ReasoningEffort},
    fit::conversation,
    kept_messages::SingleMessageWriter,
    wire::{LazySequence, PartialAnswer, WireFormat},
};

/// `chat/completions`.
#[derive(Debug)]
pub(crate) struct ChatCompletionsFormat;

/// The arguments of a call without any.
pub(super) const NO_ARGUMENTS: &str = "{}";

/// Domains of the servers that use the new name of the output limit. All others know the old name,
/// and some of them refuse unknown fields.
const NEW_LIMIT_DOMAINS: [&str; 2] = ["openai.com", "azure.com"];

/// Domains of the servers that accept only short call ids.
const SHORT_ID_DOMAINS: [&str; 1] = ["mistral.ai"];

/// The body of a request. It borrows its parts where possible.
#[derive(Serialize)]
struct CompletionRequestBody<'a, M> {
    model: &'a str,
    messages: M,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

impl WireFormat for ChatCompletionsFormat {
    fn method_path(&self, _: &ModelEndpoint) -> String {
        "chat/completions".to_owned()
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
        let origin = &endpoint.origin();
        let needs_short_ids = endpoint.is_at_domain(&SHORT_ID_DOMAINS);
        let messages = LazySequence(|| {
            let mut shortener = needs_short_ids.then(IdShortener::default);
            request.messages.iter().map(move |message| {
                let mut converted = convert_message(message, origin);
                if let Some(shortener) = &mut shortener {
                    shortener.shorten_ids(&mut converted);
                }
                converted
            })
        });
        write_body(endpoint, messages, tools)
    }

    /// Short ids depend on the earlier messages, so a server that needs them gets every message
    /// written anew.
    fn message_writer<'a>(
        &self,
        endpoint: &'a ModelEndpoint,
        tools: Option<&'a RawValue>,
    ) -> Option<Box<dyn SingleMessageWriter + 'a>> {
        let writer = CompletionMessageWriter { endpoint, origin: endpoint.origin(), tools };
        (!endpoint.is_at_domain(&SHORT_ID_DOMAINS)).then(|| Box::new(writer) as _)
    }

    fn begin_answer(&self) -> Box<dyn PartialAnswer> {
        Box::<CompletionAnswer>::default()
    }
}

/// Writes the messages of a request one by one.
struct CompletionMessageWriter<'a> {
    endpoint: &'a ModelEndpoint,
    origin: String,
    tools: Option<&'a RawValue>,
}

impl SingleMessageWriter for CompletionMessageWriter<'_> {
    fn message_json(&self, message: &ChatMessage) -> Box<RawValue> {
        to_raw_value(&convert_message(message, &self.origin)).expect("a JSON value can be written")
    }

    fn body_with(&self, messages: &[Box<RawValue>]) -> Vec<u8> {
        write_body(self.endpoint, messages, self.tools)
    }
}

fn write_body(
    endpoint: &ModelEndpoint,
    messages: impl Serialize,
    tools: Option<&RawValue>,
) -> Vec<u8> {
    let (new_name, old_name) = match endpoint.is_at_domain(&NEW_LIMIT_DOMAINS) {
        true => (endpoint.output_tokens_max, None),
        false => (None, endpoint.output_tokens_max),
    };
    let body = CompletionRequestBody {
        model: endpoint.model.trim(),
        messages,
        stream: endpoint.stream,
        stream_options: endpoint.stream.then_some(StreamOptions { include_usage: true }),
        temperature: endpoint.temperature,
        max_tokens: old_name,
        max_completion_tokens: new_name,
        reasoning_effort: endpoint.effort.map(ReasoningEffort::as_str),
        tools,
    };
    serde_json::to_vec(&body).expect("JSON values can be written")
}

fn convert_message<'a>(message: &'a ChatMessage, origin: &str) -> Cow<'a, Value> {
    Cow::Owned(match message {
        ChatMessage::System { text } => json!({ "role": "system", "content": text }),
        ChatMessage::User(chat_message) => {
            json!({ "role": "user", "content": user_content(chat_message) })
        }
        ChatMessage::Assistant(chat_message) => match provider_form(chat_message, origin) {
            Some(provider_value) => return replace_calls(provider_value, &chat_message.calls),
            None => assistant_message(chat_message),
        },
        ChatMessage::Tool(result) => json!({
            "role": "tool",
            "tool_call_id": result.call_id,
            "content": result.content,
        }),
    })
}

/// Text without attachments stays a string. Not every server accepts parts.
fn user_content(chat_message: &UserInputMessage) -> Value {
    if chat_message.attachments.is_empty() {
        return json!(chat_message.text_for_model());
    }
    let model_text = chat_message.text_for_model();
    let words = (!model_text.is_empty()).then(|| text_part(&model_text));
    words.into_iter().chain(chat_message.attachments.iter().map(file_part)).collect()
}

fn file_part(file: &FileAttachment) -> Value {
    match (file.kind(), file.audio_format()) {
        (AttachmentKind::Image, _) => {
            json!({ "type": "image_url", "image_url": { "url": file.data_url() } })
        }
        (AttachmentKind::Audio, Some(format)) => json!({
            "type": "input_audio",
            "input_audio": { "data": file.base64(), "format": format },
        }),
        _ => text_part(&file.describe_as_text()),
    }
}

fn text_part(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

/// Returns the provider's own form of a message, if this model wrote it and it still contains the
/// same calls. A session that began with another model contains other forms.
fn provider_form<'a>(chat_message: &'a AssistantMessage, origin: &str) -> Option<&'a Value> {
    let provider_value = conversation::provider_form(chat_message, origin)?;
    let calls = match provider_value.get("tool_calls") {
        None | Some(Value::Null) => &[],
        Some(calls) => calls.as_array()?.as_slice(),
    };
    let same_ids = calls.len() == chat_message.calls.len()
        && calls
            .iter()
            .zip(&chat_message.calls)
            .all(|(provider_value, call)| provider_value.get("id") == Some(&json!(call.id)));
    (provider_value.get("role") == Some(&json!("assistant")) && same_ids).then_some(provider_value)
}

/// Writes our calls over the provider's where they differ. The model's mistakes are repaired in
/// ours.
fn replace_calls<'a>(provider_value: &'a Value, calls: &[ModelCallRequest]) -> Cow<'a, Value> {
    let mut provider_value = Cow::Borrowed(provider_value);
    for (at, call) in calls.iter().enumerate() {
        for (key, model_value) in [("name", &call.name), ("arguments", &call.arguments)] {
            let place = format!("/tool_calls/{at}/function/{key}");
            if provider_value.pointer(&place).and_then(Value::as_str) != Some(model_value)
                && let Some(function) = provider_value
                    .to_mut()
                    .pointer_mut(&format!("/tool_calls/{at}"))
                    .and_then(Value::as_object_mut)
            {
                let function = function.entry("function").or_insert_with(|| json!({}));
                if !function.is_object() {
                    *function = json!({});
                }
                function[key] = json!(model_value);
            }
        }
    }
    provider_value
}

pub(super) fn assistant_message(chat_message: &AssistantMessage) -> Value {
    let content = if chat_message.text.is_empty() && !chat_message.calls.is_empty() {
        Value::Null
    } else {
        json!(chat_message.text)
    };
    let mut message =
        Map::from_iter([("role".to_owned(), json!("assistant")), ("content".to_owned(), content)]);
    if !chat_message.calls.is_empty() {
        message.insert(
            "tool_calls".to_owned(),
            chat_message.calls.iter().map(tool_call_json).collect(),
        );
    }
    Value::Object(message)
}

fn tool_call_json(call: &ModelCallRequest) -> Value {
    json!({
        "id": call.id,
        "type": "function",
        "function": { "name": call.name, "arguments": call.arguments },
    })
}

/// Returns a tool as a function definition of this protocol.
pub fn tool_definition(tool: &ModelToolDefinition) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{chat::OpaqueMessage, protocol::ProviderProtocol};

    const ORIGIN: &str = "openai/m";

    fn said(origin: &str, body: Value) -> ChatMessage {
        ChatMessage::Assistant(AssistantMessage {
            text: "t".to_owned(),
            calls: vec![ModelCallRequest {
                id: "a".to_owned(),
                name: "n".to_owned(),
                arguments: "{}".to_owned(),
            }],
            opaque: Some(OpaqueMessage { origin: origin.to_owned(), body }),
        })
    }

    #[test]
    fn the_own_form_goes_back_untouched() {
        let provider_value = json!({
            "role": "assistant", "content": "t", "reasoning_content": "r",
            "tool_calls": [{ "id": "a", "x": 1, "function": { "name": "n", "arguments": "{}" } }],
        });
        assert_eq!(*convert_message(&said(ORIGIN, provider_value.clone()), ORIGIN), provider_value);
    }

    #[test]
    fn what_was_mended_in_our_calls_is_mended_in_the_own_form() {
        let functions = [
            json!({ "name": "n", "arguments": "{\"cut" }),
            json!({ "name": "n n", "arguments": "{}" }),
            json!({ "name": "n", "arguments": { "an": "object" } }),
            json!({ "name": "n" }),
        ];
        for function in functions {
            let provider_value = json!({
                "role": "assistant", "reasoning_content": "r",
                "tool_calls": [{ "id": "a", "x": 1, "function": function }],
            });
            let want = json!({
                "role": "assistant", "reasoning_content": "r",
                "tool_calls": [{ "id": "a", "x": 1, "function": { "name": "n", "arguments": "{}" } }],
            });
            assert_eq!(*convert_message(&said(ORIGIN, provider_value), ORIGIN), want);
        }
    }

    #[test]
    fn a_form_of_another_model_or_of_other_calls_is_built_anew() {
        let rebuilt = json!({
            "role": "assistant", "content": "t",
            "tool_calls": [{
                "id": "a", "type": "function", "function": { "name": "n", "arguments": "{}" },
            }],
        });
        let provider_value =
            json!({ "role": "assistant", "content": "t", "tool_calls": [{ "id": "a" }] });
        let foreign = [
            ("openai/other", provider_value.clone()),
            ("anthropic/m", provider_value),
            (
                ORIGIN,
                json!({ "role": "assistant", "content": [{ "type": "tool_use", "id": "a" }] }),
            ),
            (ORIGIN, json!({ "role": "assistant", "tool_calls": [{ "id": "b" }] })),
            (ORIGIN, json!({ "role": "assistant", "tool_calls": [{ "id": "a" }, { "id": "b" }] })),
            (ORIGIN, json!({ "role": "model", "tool_calls": [{ "id": "a" }] })),
            (ORIGIN, json!("text")),
        ];
        for (origin, provider_value) in foreign {
            assert_eq!(*convert_message(&said(origin, provider_value), ORIGIN), rebuilt);
        }
    }

    #[test]
    fn files_go_along_in_the_form_that_fits() {
        let file = |media_type: &str, data: &[u8]| FileAttachment {
            name: "f".to_owned(),
            media_type: media_type.to_owned(),
            data: data.into(),
        };
        let picture = json!({ "url": "data:image/png;base64,iVA=" });
        let wav = json!({ "data": "UklGRg==", "format": "wav" });
        let mp3 = json!({ "data": "SUQz", "format": "mp3" });
        let rows = [
            (file("image/png", b"\x89P"), json!({ "type": "image_url", "image_url": picture })),
            (file("audio/wav", b"RIFF"), json!({ "type": "input_audio", "input_audio": wav })),
            (file("audio/mpeg", b"ID3"), json!({ "type": "input_audio", "input_audio": mp3 })),
            (file("text/plain", b"words"), text_part("<file name=\"f\">\nwords\n</file>")),
        ];
        for (file, want) in rows {
            let model_text = UserInputMessage {
                text: "look".to_owned(),
                attachments: vec![file.clone()],
                ..UserInputMessage::default()
            };
            assert_eq!(user_content(&model_text), json!([text_part("look"), want]));
            let model_text = UserInputMessage {
                text: String::new(),
                attachments: vec![file],
                ..UserInputMessage::default()
            };
            assert_eq!(user_content(&model_text), json!([want]));
        }
        let model_text = user_content(&UserInputMessage {
            text: String::new(),
            attachments: vec![file("audio/ogg", b"OggS"), file("text/plain", b"\xff")],
            ..UserInputMessage::default()
        });
        for part in model_text.as_array().unwrap() {
            assert!(part["text"].as_str().unwrap().contains("left out"), "{part}");
        }
        assert_eq!(user_content(&"words".into()), json!("words"));
    }

    #[test]
    fn a_request_is_written_as_its_server_takes_it() {
        let call = ModelCallRequest {
            id: "call_1".to_owned(),
            name: "n".to_owned(),
            arguments: String::new(),
        };
        let chat_message = AssistantMessage { calls: vec![call], ..AssistantMessage::default() };
        let messages = [ChatMessage::Assistant(chat_message)];
        let rows = [
            ("https://api.openai.com/v1", "max_completion_tokens", "call_1"),
            ("https://api.mistral.ai/v1", "max_tokens", "000000001"),
            ("http://localhost:8080/v1", "max_tokens", "call_1"),
        ];
        for (base_url, name, id) in rows {
            let endpoint = ModelEndpoint {
                output_tokens_max: Some(9),
                ..ModelEndpoint::new(ProviderProtocol::OpenAiChat, base_url, "m")
            };
            let body = ChatCompletionsFormat.request_body(
                &endpoint,
                ModelRequest { messages: &messages, ..ModelRequest::default() },
                None,
            );
            let body: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(body[name], json!(9), "{base_url}");
            assert_eq!(body["messages"][0]["tool_calls"][0]["id"], json!(id), "{base_url}");
        }
    }
}
