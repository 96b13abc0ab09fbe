//! Provider: converts conversations to the types of the contract, and answers to ours.

use std::time::Duration;

use super::extract_error_message;
use crate::{
    bindings::v0_1::{exports::sallyport::plugin::provider as wit, sallyport::plugin::types},
    role_data::{
        GenerationSettings, MediaBlob, ProviderAnswer, ProviderAnswerMessage, ProviderFailure,
        ProviderFinishReason, ProviderMessage, ProviderToolCall, ProviderToolDefinition,
        ProviderToolResult, ProviderUsage,
    },
};

pub(super) fn message_to_wit(message: ProviderMessage) -> wit::Message {
    match message {
        ProviderMessage::System(text) => wit::Message::System(text),
        ProviderMessage::User(user) => {
            let attachments = user.attachments.into_iter().map(blob_to_wit).collect();
            wit::Message::User(wit::UserMessage { text: user.text, attachments, extra: None })
        }
        ProviderMessage::Assistant(answer) => wit::Message::Assistant(wit::AnswerMessage {
            text: answer.text,
            calls: answer.calls.into_iter().map(tool_call_to_wit).collect(),
            opaque: answer.opaque,
            extra: None,
        }),
        ProviderMessage::Tool(result) => wit::Message::Tool(tool_result_to_wit(result)),
    }
}

fn blob_to_wit(blob: MediaBlob) -> types::Blob {
    let MediaBlob { media_type, data, name } = blob;
    types::Blob { media_type, data, name, extra: None }
}

fn tool_call_to_wit(call: ProviderToolCall) -> wit::ToolCall {
    let ProviderToolCall { id, name, arguments } = call;
    wit::ToolCall { id, name, arguments, extra: None }
}

fn tool_result_to_wit(result: ProviderToolResult) -> wit::ToolResult {
    let ProviderToolResult { call_id, name, content: data, failed } = result;
    wit::ToolResult { call_id, name, data, content: Vec::new(), failed, extra: None }
}

pub(super) fn tool_to_wit(tool: ProviderToolDefinition) -> wit::ToolDefinition {
    let ProviderToolDefinition { name, description, parameters } = tool;
    wit::ToolDefinition { name, description, parameters, extra: None }
}

pub(super) fn settings_to_wit(settings: GenerationSettings) -> wit::Generation {
    let GenerationSettings { model, temperature, tokens_max } = settings;
    wit::Generation { model, temperature, tokens_max, extra: None }
}

pub(super) fn answer_from_wit(answer: wit::Answer) -> ProviderAnswer {
    let message = ProviderAnswerMessage {
        text: answer.message.text,
        calls: answer.message.calls.into_iter().map(tool_call_from_wit).collect(),
        opaque: answer.message.opaque,
    };
    let usage = answer.usage.map(|usage| ProviderUsage {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
    });
    ProviderAnswer {
        message,
        is_final: answer.is_final,
        finish: finish_reason_from_wit(answer.finish),
        usage,
    }
}

fn tool_call_from_wit(call: wit::ToolCall) -> ProviderToolCall {
    ProviderToolCall { id: call.id, name: call.name, arguments: call.arguments }
}

fn finish_reason_from_wit(finish: wit::Finish) -> ProviderFinishReason {
    match finish {
        wit::Finish::Stop => ProviderFinishReason::Stop,
        wit::Finish::ToolCalls => ProviderFinishReason::ToolCalls,
        wit::Finish::Length => ProviderFinishReason::Length,
        wit::Finish::Withheld => ProviderFinishReason::Withheld,
        wit::Finish::Other(text) => ProviderFinishReason::Other(text),
    }
}

pub(super) fn failure_from_wit(error: wit::Error) -> ProviderFailure {
    match error {
        wit::Error::Credentials(text) => ProviderFailure::Credentials(text),
        wit::Error::Unreachable(text) => ProviderFailure::Unreachable(text),
        wit::Error::Busy(service) => ProviderFailure::Busy {
            message: service.message,
            retry_after: service.retry_after_ms.map(|ms| Duration::from_millis(ms.into())),
        },
        wit::Error::Refused(text) => ProviderFailure::Refused(text),
        wit::Error::Other(text) => ProviderFailure::Refused(extract_error_message(text)),
    }
}
