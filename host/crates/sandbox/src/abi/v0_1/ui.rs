//! UI: converts events to the types of the contract.

use crate::{
    bindings::v0_1::exports::sallyport::plugin::ui as wit,
    role_data::{
        UiActivity, UiEvent, UiMessage, UiMessageAuthor, UiTextFormat, UiToolCallRequest,
        UiToolCallResult,
    },
};

pub(super) fn ui_event_to_wit(event: UiEvent) -> wit::Event {
    match event {
        UiEvent::NewMessage(message) => wit::Event::NewMessage(ui_message_to_wit(message)),
        UiEvent::Delta(text) => wit::Event::Delta(text),
        UiEvent::ToolCallRequested(request) => {
            wit::Event::ToolCallRequested(tool_call_request_to_wit(request))
        }
        UiEvent::ConfirmationClosed(id) => wit::Event::ConfirmationClosed(id.to_string()),
        UiEvent::ToolCallFinished(result) => {
            wit::Event::ToolCallFinished(tool_call_result_to_wit(result))
        }
        UiEvent::ReadyForInput => wit::Event::ReadyForInput,
        UiEvent::StateChanged(activity) => wit::Event::StateChanged(activity_to_wit(activity)),
        UiEvent::Line(text) => wit::Event::Line(text),
        UiEvent::Other(json) => wit::Event::Other(json),
    }
}

fn ui_message_to_wit(message: UiMessage) -> wit::Message {
    wit::Message {
        author: match message.author {
            UiMessageAuthor::User => wit::Author::User,
            UiMessageAuthor::Assistant => wit::Author::Assistant,
            UiMessageAuthor::Notice => wit::Author::Notice,
        },
        content: message.content,
        format: match message.format {
            UiTextFormat::Text => wit::Format::Text,
            UiTextFormat::Markdown => wit::Format::Markdown,
        },
        origin: message.origin,
        extra: None,
    }
}

fn tool_call_request_to_wit(request: UiToolCallRequest) -> wit::ToolCallRequest {
    let UiToolCallRequest { confirmation_id, call_id, tool, arguments, security_warning, extra } =
        request;
    let confirmation_id = confirmation_id.to_string();
    wit::ToolCallRequest { confirmation_id, call_id, tool, arguments, security_warning, extra }
}

fn tool_call_result_to_wit(result: UiToolCallResult) -> wit::ToolCallResult {
    let UiToolCallResult { call_id, tool, outcome, data } = result;
    wit::ToolCallResult { call_id, tool, outcome, data, extra: None }
}

fn activity_to_wit(activity: UiActivity) -> wit::Activity {
    match activity {
        UiActivity::Ready => wit::Activity::Ready,
        UiActivity::Thinking => wit::Activity::Thinking,
        UiActivity::Executing => wit::Activity::Executing,
        UiActivity::WaitingForApproval => wit::Activity::WaitingForApproval,
    }
}
