//! Tools: converts calls to the types of the contract, and results to ours.

use sallyport_contract::{
    AdmittedCall, CallFailure, ContentPart, FailureKind, ResourceContents, ResourceData, ToolHints,
    ToolOutput, json,
};

use crate::{
    abi::{ToolReturnValue, UncheckedTool, truncate_text},
    bindings::v0_1::sallyport::plugin::types as wit,
    host_start,
    run_context::RunContext,
};

pub(super) fn tool_from_wit(spec: wit::ToolSpec) -> UncheckedTool {
    UncheckedTool {
        name: spec.name,
        title: spec.title,
        description: spec.description,
        parameters: spec.parameters,
        output: spec.output,
        hints: ToolHints {
            read_only: spec.hints.read_only,
            destructive: spec.hints.destructive,
            idempotent: spec.hints.idempotent,
            open_world: spec.hints.open_world,
        },
    }
}

/// The context of a call. `user_id` is the user whose data the guest keeps.
pub(super) fn call_context(call: &AdmittedCall, run_context: &RunContext) -> wit::CallContext {
    let (context, time_left) = (call.context(), run_context.clock.remaining_time());
    wit::CallContext {
        call_id: context.call_id.clone(),
        session_id: context.session_id.clone(),
        user_id: run_context.data_owner().user,
        conversation_id: context.conversation_id.clone(),
        deadline_ms: Some(u32::try_from(time_left.as_millis()).unwrap_or(u32::MAX)),
        extra: Some(format!(r#"{{"host_started_ms":{}}}"#, host_start::started_ms())),
    }
}

/// Converts the result of a function that returns no value.
pub(super) fn convert_unit_result(
    result: Result<(), wit::ToolError>,
    bytes_max: u64,
) -> ToolReturnValue {
    match result {
        Ok(()) => ToolReturnValue::Output(ToolOutput::default()),
        Err(error) => convert_tool_error(error, bytes_max),
    }
}

/// Converts an output. An output that is not JSON or is too large is a failure of the plugin.
pub(super) fn convert_tool_output(output: wit::ToolOutput, bytes_max: u64) -> ToolReturnValue {
    let bytes = output_bytes(&output);
    if bytes > bytes_max {
        return too_long_output(bytes, bytes_max);
    }
    parsed_output(parse_output(output))
}

/// The failure of a plugin that returned too much.
pub(super) fn too_long_output(bytes: u64, bytes_max: u64) -> ToolReturnValue {
    let message =
        format!("the tool returned {bytes} bytes, its limit is {bytes_max} (limits.output)");
    ToolReturnValue::Error(CallFailure::new(FailureKind::LimitReached, message))
}

/// An output, or the failure of a plugin whose JSON is broken.
pub(super) fn parsed_output(output: Result<ToolOutput, json::JsonError>) -> ToolReturnValue {
    match output {
        Ok(output) => ToolReturnValue::Output(output),
        Err(error) => {
            let message = format!("the tool returned a broken result: {error}");
            ToolReturnValue::Error(CallFailure::new(FailureKind::BadOutput, message))
        }
    }
}

fn parse_output(output: wit::ToolOutput) -> Result<ToolOutput, json::JsonError> {
    let content = output.content.into_iter().map(content_from_wit).collect::<Result<_, _>>()?;
    Ok(ToolOutput {
        data: json::parse_json(&output.data, usize::MAX)?,
        content,
        speech: output.speech,
    })
}

fn output_bytes(output: &wit::ToolOutput) -> u64 {
    let content: usize = output.content.iter().map(content_bytes).sum();
    let speech = output.speech.as_ref().map_or(0, String::len);
    (output.data.len() + speech + content) as u64
}

/// The size of a content part in bytes. Each part counts at least as much as its own record, so
/// that empty parts are not free.
pub(super) fn content_bytes(content: &wit::Content) -> usize {
    let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let bytes = match content {
        wit::Content::Text(text) | wit::Content::Other(text) => text.len(),
        wit::Content::Image(blob) | wit::Content::Audio(blob) => {
            blob.data.len() + blob.media_type.len() + optional(&blob.name) + optional(&blob.extra)
        }
        wit::Content::Link(link) => {
            let texts = [&link.media_type, &link.title, &link.description, &link.extra];
            link.uri.len() + texts.into_iter().map(optional).sum::<usize>()
        }
        wit::Content::Embedded(contents) => contents_bytes(contents),
    };
    bytes + size_of::<wit::Content>()
}

/// The size of a resource with its contents in bytes.
pub(super) fn contents_bytes(contents: &wit::ResourceContents) -> usize {
    let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let data = match &contents.data {
        wit::ResourceData::Text(text) | wit::ResourceData::Other(text) => text.len(),
        wit::ResourceData::Binary(data) => data.len(),
    };
    data + contents.uri.len() + optional(&contents.media_type) + optional(&contents.extra)
}

pub(super) fn content_from_wit(content: wit::Content) -> Result<ContentPart, json::JsonError> {
    Ok(match content {
        wit::Content::Text(text) => ContentPart::Text { text },
        wit::Content::Image(blob) => {
            ContentPart::Image { media_type: blob.media_type, data: blob.data }
        }
        wit::Content::Audio(blob) => {
            ContentPart::Audio { media_type: blob.media_type, data: blob.data }
        }
        wit::Content::Link(link) => {
            ContentPart::Resource { uri: link.uri, media_type: link.media_type, title: link.title }
        }
        wit::Content::Embedded(contents) => ContentPart::Embedded(contents_from_wit(contents)?),
        wit::Content::Other(text) => content_from_unknown(&text)?,
    })
}

/// Converts a resource with its contents. Data of an unknown kind become text.
pub(super) fn contents_from_wit(
    contents: wit::ResourceContents,
) -> Result<ResourceContents, json::JsonError> {
    let wit::ResourceContents { uri, media_type, data, extra: _ } = contents;
    let data = match data {
        wit::ResourceData::Text(text) => ResourceData::Text(text),
        wit::ResourceData::Binary(data) => ResourceData::Binary(data),
        wit::ResourceData::Other(text) => {
            ResourceData::Text(json::parse_json(&text, usize::MAX)?.to_string())
        }
    };
    Ok(ResourceContents { uri, media_type, data })
}

/// Converts a part of an unknown kind to text, which the model can still read.
fn content_from_unknown(text: &str) -> Result<ContentPart, json::JsonError> {
    Ok(ContentPart::Text { text: json::parse_json(text, usize::MAX)?.to_string() })
}

pub(super) fn convert_tool_error(error: wit::ToolError, bytes_max: u64) -> ToolReturnValue {
    let (kind, text) = match error {
        wit::ToolError::InvalidArguments(text) => (FailureKind::InvalidArguments, text),
        wit::ToolError::NotFound(text) => (FailureKind::NotFound, text),
        wit::ToolError::AuthRequired(sign_in) => return convert_auth_required(sign_in, bytes_max),
        wit::ToolError::Unavailable(text) => (FailureKind::Unavailable, text),
        wit::ToolError::Failed(text) => (FailureKind::Failed, text),
        wit::ToolError::Other(text) => (FailureKind::Failed, extract_error_message(text)),
        wit::ToolError::Denied(text) => {
            return ToolReturnValue::Denied(truncate_text(text, bytes_max));
        }
    };
    ToolReturnValue::Error(CallFailure::new(kind, truncate_text(text, bytes_max)))
}

/// Converts a missing sign-in. The connection and the scopes go into the detail, which is for the
/// user: only the user can connect an account.
fn convert_auth_required(sign_in: wit::SignIn, bytes_max: u64) -> ToolReturnValue {
    let wit::SignIn { message, connection, scopes, extra: _ } = sign_in;
    let failure = CallFailure::new(FailureKind::AuthRequired, truncate_text(message, bytes_max));
    let connection = connection.map(|name| format!("connection {name}"));
    let scopes = (!scopes.is_empty()).then(|| format!("scopes {}", scopes.join(", ")));
    let details: Vec<String> = connection.into_iter().chain(scopes).collect();
    ToolReturnValue::Error(match details[..] {
        [] => failure,
        _ => failure.with_detail(truncate_text(details.join("; "), bytes_max)),
    })
}

/// The `message` of an `other` case, or the whole text if it is not an object with a message.
pub(super) fn extract_error_message(text: String) -> String {
    let value = json::parse_json(&text, usize::MAX).ok();
    let message = value.and_then(|value| Some(value.get("message")?.as_str()?.to_owned()));
    message.unwrap_or(text)
}
