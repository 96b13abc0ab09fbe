//! The export of a provider.

use serde_json::Value;

use super::{
    bindings::{
        provider::exports::sallyport::plugin::provider as wit,
        tools::sallyport::plugin::types::{CallContext, Content},
    },
    milliseconds, value,
};
use crate::{
    plugin::Provider,
    provider::{
        Answer, AnswerMessage, Attachment, Finish, Generation, Message, ProviderError, Request,
        ToolCall, ToolDefinition, ToolResult, Usage, UserMessage,
    },
};

impl<P: Provider> wit::Guest for P {
    fn generate(
        context: CallContext,
        history: Vec<wit::Message>,
        tools: Vec<wit::ToolDefinition>,
        settings: wit::Generation,
    ) -> Result<wit::Answer, wit::Error> {
        let request = Request {
            context: context.into(),
            history: history.into_iter().map(Into::into).collect(),
            tools: tools.into_iter().map(Into::into).collect(),
            settings: settings.into(),
        };
        Ok(P::generate(request)?.into())
    }
}

impl From<wit::Message> for Message {
    fn from(message: wit::Message) -> Self {
        match message {
            wit::Message::System(text) => Self::System(text),
            wit::Message::User(said) => Self::User(said.into()),
            wit::Message::Assistant(said) => Self::Assistant(said.into()),
            wit::Message::Tool(result) => Self::Tool(result.into()),
            wit::Message::Other(other) => Self::Other(value(other)),
        }
    }
}

impl From<wit::UserMessage> for UserMessage {
    fn from(said: wit::UserMessage) -> Self {
        let files = said.attachments.into_iter();
        let attachments = files.map(|file| Attachment {
            media_type: file.media_type,
            data: file.data,
            name: file.name,
        });
        Self { text: said.text, attachments: attachments.collect() }
    }
}

impl From<wit::AnswerMessage> for AnswerMessage {
    fn from(said: wit::AnswerMessage) -> Self {
        let calls = said.calls.into_iter();
        Self {
            text: said.text,
            calls: calls
                .map(|call| ToolCall { id: call.id, name: call.name, arguments: call.arguments })
                .collect(),
            opaque: said.opaque.map(value),
        }
    }
}

impl From<wit::ToolResult> for ToolResult {
    fn from(result: wit::ToolResult) -> Self {
        let wit::ToolResult { call_id, name, data, content, failed, extra: _ } = result;
        let attachments = content.into_iter().filter_map(attachment).collect();
        Self { call_id, name, content: value(data), attachments, failed }
    }
}

/// Converts a picture or a sound of a result. Other parts are in the data, or are for the user
/// only.
fn attachment(content: Content) -> Option<Attachment> {
    match content {
        Content::Image(file) | Content::Audio(file) => {
            Some(Attachment { media_type: file.media_type, data: file.data, name: file.name })
        }
        Content::Text(_) | Content::Link(_) | Content::Embedded(_) | Content::Other(_) => None,
    }
}

impl From<wit::ToolDefinition> for ToolDefinition {
    fn from(tool: wit::ToolDefinition) -> Self {
        let wit::ToolDefinition { name, description, parameters, extra: _ } = tool;
        Self { name, description, parameters: value(parameters) }
    }
}

impl From<wit::Generation> for Generation {
    fn from(settings: wit::Generation) -> Self {
        let wit::Generation { model, temperature, tokens_max, extra: _ } = settings;
        Self { model, temperature, tokens_max }
    }
}

impl From<Answer> for wit::Answer {
    fn from(answer: Answer) -> Self {
        Self {
            is_final: answer.is_final(),
            message: answer.message.into(),
            finish: answer.finish.into(),
            usage: answer.usage.map(Into::into),
            extra: None,
        }
    }
}

impl From<AnswerMessage> for wit::AnswerMessage {
    fn from(said: AnswerMessage) -> Self {
        let calls = said.calls.into_iter();
        Self {
            text: said.text,
            calls: calls
                .map(|ToolCall { id, name, arguments }| wit::ToolCall {
                    id,
                    name,
                    arguments,
                    extra: None,
                })
                .collect(),
            opaque: said.opaque.as_ref().map(Value::to_string),
            extra: None,
        }
    }
}

impl From<Finish> for wit::Finish {
    fn from(finish: Finish) -> Self {
        match finish {
            Finish::Stop => Self::Stop,
            Finish::ToolCalls => Self::ToolCalls,
            Finish::Length => Self::Length,
            Finish::Withheld => Self::Withheld,
            Finish::Other(reason) => Self::Other(reason),
        }
    }
}

impl From<Usage> for wit::Usage {
    fn from(usage: Usage) -> Self {
        let Usage { input_tokens, output_tokens } = usage;
        Self { input_tokens, output_tokens, extra: None }
    }
}

impl From<ProviderError> for wit::Error {
    fn from(error: ProviderError) -> Self {
        match error {
            ProviderError::Credentials(text) => Self::Credentials(text),
            ProviderError::Unreachable(text) => Self::Unreachable(text),
            ProviderError::Busy { message, retry_after } => Self::Busy(wit::BusyService {
                message,
                retry_after_ms: retry_after
                    .map(|time| u32::try_from(milliseconds(time)).unwrap_or(u32::MAX)),
                extra: None,
            }),
            ProviderError::Refused(text) => Self::Refused(text),
        }
    }
}
