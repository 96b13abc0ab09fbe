//! Provider: converts conversations to the types of the contract, and answers to ours.

use std::time::Duration;

use sallyport_contract::AdmittedCall;
use wasmtime::{Store, component::Instance};

use super::tools::{call_context, message_in};
use crate::{
    abi::Mismatch,
    bindings::v0_1::{exports::sallyport::plugin::provider as wit, sallyport::plugin::types},
    guest::Guest,
    roles::{
        AnswerMessage, Blob, Finish, Generated, Generation, GenerationSettings, Message,
        ProviderFailure, ToolDefinition, ToolRequest, ToolResult, Usage,
    },
};

pub(super) async fn generate(
    provider: &wit::GuestIndices,
    store: &mut Store<Guest>,
    instance: Instance,
    call: &AdmittedCall,
    generation: Generation,
) -> wasmtime::Result<Result<Generated, ProviderFailure>> {
    let guest = provider.load(&mut *store, &instance).map_err(Mismatch::wrap)?;
    let history: Vec<_> = generation.history.into_iter().map(message).collect();
    let tools: Vec<_> = generation.tools.into_iter().map(definition).collect();
    let settings = settings(generation.settings);
    let context = call_context(call, &store.data().case);
    let result = guest.call_generate(store, &context, &history, &tools, &settings).await?;
    Ok(result.map(generated).map_err(failure))
}

fn message(message: Message) -> wit::Message {
    match message {
        Message::System(text) => wit::Message::System(text),
        Message::User(user) => {
            let attachments = user.attachments.into_iter().map(blob).collect();
            wit::Message::User(wit::UserMessage { text: user.text, attachments, extra: None })
        }
        Message::Assistant(answer) => wit::Message::Assistant(wit::AnswerMessage {
            text: answer.text,
            calls: answer.calls.into_iter().map(tool_call).collect(),
            opaque: answer.opaque,
            extra: None,
        }),
        Message::Tool(result) => wit::Message::Tool(tool_result(result)),
    }
}

fn blob(blob: Blob) -> types::Blob {
    let Blob { media_type, data, name } = blob;
    types::Blob { media_type, data, name, extra: None }
}

fn tool_call(call: ToolRequest) -> wit::ToolCall {
    let ToolRequest { id, name, arguments } = call;
    wit::ToolCall { id, name, arguments, extra: None }
}

fn tool_result(result: ToolResult) -> wit::ToolResult {
    let ToolResult { call_id, name, content: data, failed } = result;
    wit::ToolResult { call_id, name, data, content: Vec::new(), failed, extra: None }
}

fn definition(tool: ToolDefinition) -> wit::ToolDefinition {
    let ToolDefinition { name, description, parameters } = tool;
    wit::ToolDefinition { name, description, parameters, extra: None }
}

fn settings(settings: GenerationSettings) -> wit::Generation {
    let GenerationSettings { model, temperature, tokens_max } = settings;
    wit::Generation { model, temperature, tokens_max, extra: None }
}

fn generated(answer: wit::Answer) -> Generated {
    let message = AnswerMessage {
        text: answer.message.text,
        calls: answer.message.calls.into_iter().map(request).collect(),
        opaque: answer.message.opaque,
    };
    let usage = answer.usage.map(|usage| Usage {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
    });
    Generated { message, is_final: answer.is_final, finish: finish(answer.finish), usage }
}

fn request(call: wit::ToolCall) -> ToolRequest {
    ToolRequest { id: call.id, name: call.name, arguments: call.arguments }
}

fn finish(finish: wit::Finish) -> Finish {
    match finish {
        wit::Finish::Stop => Finish::Stop,
        wit::Finish::ToolCalls => Finish::ToolCalls,
        wit::Finish::Length => Finish::Length,
        wit::Finish::Withheld => Finish::Withheld,
        wit::Finish::Other(text) => Finish::Other(text),
    }
}

fn failure(error: wit::Error) -> ProviderFailure {
    match error {
        wit::Error::Credentials(text) => ProviderFailure::Credentials(text),
        wit::Error::Unreachable(text) => ProviderFailure::Unreachable(text),
        wit::Error::Busy(service) => ProviderFailure::Busy {
            message: service.message,
            retry_after: service.retry_after_ms.map(|ms| Duration::from_millis(ms.into())),
        },
        wit::Error::Refused(text) => ProviderFailure::Refused(text),
        wit::Error::Other(text) => ProviderFailure::Refused(message_in(text)),
    }
}
