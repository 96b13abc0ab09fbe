//! Tools: a call in the words of the contract, and what comes of it.

use std::time::Duration;

use sallyport_contract::{Admitted, Content, Failure, FailureKind, Hints, ToolOutput, json};
use wasmtime::{Store, component::Instance};

use crate::{
    abi::{Mismatch, RawTool, ToolReturn},
    bindings::v0_1::{exports::sallyport::plugin::tools, sallyport::plugin::types as wit},
    guest::Guest,
    runtime,
};

pub(super) async fn list(
    tools: &tools::GuestIndices,
    store: &mut Store<Guest>,
    instance: Instance,
) -> wasmtime::Result<Vec<RawTool>> {
    let guest = tools.load(&mut *store, &instance).map_err(Mismatch::wrap)?;
    let specs = guest.call_list_tools(store).await?;
    Ok(specs.into_iter().map(raw_tool).collect())
}

pub(super) async fn call(
    tools: &tools::GuestIndices,
    store: &mut Store<Guest>,
    instance: Instance,
    call: &Admitted,
) -> wasmtime::Result<ToolReturn> {
    let guest = tools.load(&mut *store, &instance).map_err(Mismatch::wrap)?;
    let context = call_context(call, store.data().case.clock.left());
    let output_bytes_max = store.data().output_bytes_max();
    let name = call.tool().tool.as_str();
    let arguments = call.text().to_owned();
    let result = guest.call_call_tool(store, &context, name, &arguments).await?;
    Ok(match result {
        Ok(output) => tool_output(output, output_bytes_max),
        Err(error) => tool_error(error, output_bytes_max),
    })
}

fn raw_tool(spec: wit::ToolSpec) -> RawTool {
    RawTool {
        name: spec.name,
        description: spec.description,
        parameters: spec.parameters,
        output: spec.output,
        hints: Hints {
            read_only: spec.hints.read_only,
            destructive: spec.hints.destructive,
            idempotent: spec.hints.idempotent,
            open_world: spec.hints.open_world,
        },
    }
}

pub(super) fn call_context(call: &Admitted, time_left: Duration) -> wit::CallContext {
    let context = call.context();
    wit::CallContext {
        call_id: context.call_id.clone(),
        session_id: context.session_id.clone(),
        user_id: context.user_id.clone(),
        conversation_id: context.conversation_id.clone(),
        deadline_ms: Some(u64::try_from(time_left.as_millis()).unwrap_or(u64::MAX)),
        extra: Some(format!(r#"{{"host_started_ms":{}}}"#, runtime::started_ms())),
    }
}

/// What comes of a function that gives nothing back.
pub(super) fn done(result: Result<(), wit::ToolError>, bytes_max: u64) -> ToolReturn {
    match result {
        Ok(()) => ToolReturn::Output(ToolOutput::default()),
        Err(error) => tool_error(error, bytes_max),
    }
}

/// Takes an output apart. What is not JSON, or too large, is the plugin's failure.
fn tool_output(output: wit::ToolOutput, bytes_max: u64) -> ToolReturn {
    let bytes = output_bytes(&output);
    if bytes > bytes_max {
        let message =
            format!("the tool returned {bytes} bytes, its limit is {bytes_max} (limits.output)");
        return ToolReturn::Error(Failure::new(FailureKind::LimitReached, message));
    }
    match parse_output(output) {
        Ok(output) => ToolReturn::Output(output),
        Err(error) => {
            let message = format!("the tool returned a broken result: {error}");
            ToolReturn::Error(Failure::new(FailureKind::BadOutput, message))
        }
    }
}

fn parse_output(output: wit::ToolOutput) -> Result<ToolOutput, json::JsonError> {
    let content = output.content.into_iter().map(content).collect::<Result<_, _>>()?;
    Ok(ToolOutput { data: json::parse(&output.data, usize::MAX)?, content, speech: output.speech })
}

fn output_bytes(output: &wit::ToolOutput) -> u64 {
    let content: usize = output.content.iter().map(content_bytes).sum();
    let speech = output.speech.as_ref().map_or(0, String::len);
    (output.data.len() + speech + content) as u64
}

/// Every part counts at least as much as its own record, so that empty ones are not free.
fn content_bytes(content: &wit::Content) -> usize {
    let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let text = match content {
        wit::Content::Text(text) | wit::Content::Other(text) => text.len(),
        wit::Content::Image(blob) | wit::Content::Audio(blob) => {
            blob.data.len() + blob.media_type.len()
        }
        wit::Content::Link(link) => {
            link.uri.len() + optional(&link.media_type) + optional(&link.title)
        }
    };
    text + size_of::<wit::Content>()
}

fn content(content: wit::Content) -> Result<Content, json::JsonError> {
    Ok(match content {
        wit::Content::Text(text) => Content::Text { text },
        wit::Content::Image(blob) => {
            Content::Image { media_type: blob.media_type, data: blob.data }
        }
        wit::Content::Audio(blob) => {
            Content::Audio { media_type: blob.media_type, data: blob.data }
        }
        wit::Content::Link(link) => {
            Content::Resource { uri: link.uri, media_type: link.media_type, title: link.title }
        }
        // A part that this version does not know is still data that the model can read.
        wit::Content::Other(text) => {
            Content::Text { text: json::parse(&text, usize::MAX)?.to_string() }
        }
    })
}

pub(super) fn tool_error(error: wit::ToolError, bytes_max: u64) -> ToolReturn {
    let (kind, text) = match error {
        wit::ToolError::InvalidArguments(text) => (FailureKind::InvalidArguments, text),
        wit::ToolError::NotFound(text) => (FailureKind::NotFound, text),
        wit::ToolError::AuthRequired(text) => (FailureKind::AuthRequired, text),
        wit::ToolError::Unavailable(text) => (FailureKind::Unavailable, text),
        wit::ToolError::Failed(text) => (FailureKind::Failed, text),
        wit::ToolError::Other(text) => (FailureKind::Failed, message_in(text)),
        wit::ToolError::Denied(text) => return ToolReturn::Denied(shorten(text, bytes_max)),
    };
    ToolReturn::Error(Failure::new(kind, shorten(text, bytes_max)))
}

/// The `message` of an `other` case; the whole text when it keeps to no form.
pub(super) fn message_in(text: String) -> String {
    let value = json::parse(&text, usize::MAX).ok();
    let message = value.and_then(|value| Some(value.get("message")?.as_str()?.to_owned()));
    message.unwrap_or(text)
}

/// An error's text obeys the output limit too; what is too long is cut, not refused.
pub(super) fn shorten(mut text: String, bytes_max: u64) -> String {
    let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
    text.truncate(text.floor_char_boundary(bytes_max));
    text
}
