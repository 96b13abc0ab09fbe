//! UI: converts events to the types of the contract.

use wasmtime::{Store, component::Instance};

use crate::{
    abi::Mismatch,
    bindings::v0_1::exports::sallyport::plugin::ui as wit,
    guest::Guest,
    roles::{Activity, Author, Format, ToolCallRequest, ToolCallResult, UiEvent, UiMessage},
};

pub(super) async fn on_event(
    ui: &wit::GuestIndices,
    store: &mut Store<Guest>,
    instance: Instance,
    event: UiEvent,
) -> wasmtime::Result<()> {
    let guest = ui.load(&mut *store, &instance).map_err(Mismatch::wrap)?;
    guest.call_on_event(store, &wit_event(event)).await
}

fn wit_event(event: UiEvent) -> wit::Event {
    match event {
        UiEvent::NewMessage(message) => wit::Event::NewMessage(wit_message(message)),
        UiEvent::Delta(text) => wit::Event::Delta(text),
        UiEvent::ToolCallRequested(request) => wit::Event::ToolCallRequested(asked(request)),
        UiEvent::ConfirmationClosed(id) => wit::Event::ConfirmationClosed(id.to_string()),
        UiEvent::ToolCallFinished(result) => wit::Event::ToolCallFinished(finished(result)),
        UiEvent::ReadyForInput => wit::Event::ReadyForInput,
        UiEvent::StateChanged(activity) => wit::Event::StateChanged(wit_activity(activity)),
        UiEvent::Line(text) => wit::Event::Line(text),
    }
}

fn wit_message(message: UiMessage) -> wit::Message {
    wit::Message {
        author: match message.author {
            Author::User => wit::Author::User,
            Author::Assistant => wit::Author::Assistant,
            Author::Notice => wit::Author::Notice,
        },
        content: message.content,
        format: match message.format {
            Format::Text => wit::Format::Text,
            Format::Markdown => wit::Format::Markdown,
        },
        origin: message.origin,
        extra: None,
    }
}

fn asked(request: ToolCallRequest) -> wit::ToolCallRequest {
    let ToolCallRequest { confirmation_id, call_id, tool, arguments, security_warning, extra } =
        request;
    let confirmation_id = confirmation_id.to_string();
    wit::ToolCallRequest { confirmation_id, call_id, tool, arguments, security_warning, extra }
}

fn finished(result: ToolCallResult) -> wit::ToolCallResult {
    let ToolCallResult { call_id, tool, outcome, data } = result;
    wit::ToolCallResult { call_id, tool, outcome, data, extra: None }
}

fn wit_activity(activity: Activity) -> wit::Activity {
    match activity {
        Activity::Ready => wit::Activity::Ready,
        Activity::Thinking => wit::Activity::Thinking,
        Activity::Executing => wit::Activity::Executing,
        Activity::WaitingForApproval => wit::Activity::WaitingForApproval,
    }
}
