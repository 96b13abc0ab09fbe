//! The report of a call as a result of the protocol.
//!
//! The content is what the model reads. `_meta` has the reason of a failure as data, so that a
//! client can tell a refusal from a timeout without parsing sentences.

use data_encoding::BASE64;
use rmcp::model::{
    CallToolResult, ContentBlock, MetaObject, Resource, ResourceContents as WireContents,
};
use sallyport_contract::{
    CallReport, ContentPart, Denial, DenialReason, Outcome, ResourceContents, ResourceData,
    ToolDescriptor, ToolId, ToolOutput,
    fix::{FOLDER_PLACEHOLDER, FixGrant},
};
use serde_json::{Value, json};

use crate::tools::object_output;

/// The key of the reason in `_meta`.
pub(crate) const REASON_KEY: &str = "sallyport/reason";

/// The key of the sentence to speak in `_meta`.
const SPEECH_KEY: &str = "sallyport/speech";

/// Returns the result of a call. Arguments that do not fit are an error of the tool, because the
/// model can correct them.
pub(crate) fn result_from_report(report: &CallReport, tool: &ToolDescriptor) -> CallToolResult {
    match &report.outcome {
        Outcome::Completed(output) => result_from_output(output, tool),
        outcome => failed_result(&failure_text(outcome, &tool.id), reason(outcome, &tool.id)),
    }
}

/// Returns an error of the tool with its reason.
pub(crate) fn failed_result(text: &str, reason: Value) -> CallToolResult {
    let result = CallToolResult::error(vec![ContentBlock::text(text)]);
    with_meta(result, REASON_KEY, reason)
}

fn with_meta(mut result: CallToolResult, key: &str, value: Value) -> CallToolResult {
    result.meta.get_or_insert_with(MetaObject::new).0.insert(key.to_owned(), value);
    result
}

fn result_from_output(output: &ToolOutput, tool: &ToolDescriptor) -> CallToolResult {
    let data = data_text(output, tool).map(ContentBlock::text);
    let parts = output.content.iter().map(content_block);
    let mut result = CallToolResult::success(data.into_iter().chain(parts).collect());
    result.structured_content = object_output(tool).map(|_| output.data.clone());
    match &output.speech {
        Some(speech) => with_meta(result, SPEECH_KEY, speech.as_str().into()),
        None => result,
    }
}

/// The data as text, for clients that read only text. A sentence is not quoted, unless the tool
/// promises JSON.
fn data_text(output: &ToolOutput, tool: &ToolDescriptor) -> Option<String> {
    match &output.data {
        Value::Null if !output.content.is_empty() && tool.output.is_none() => None,
        Value::String(text) if tool.output.is_none() => Some(text.clone()),
        data => Some(data.to_string()),
    }
}

pub(crate) fn content_block(part: &ContentPart) -> ContentBlock {
    match part {
        ContentPart::Text { text } => ContentBlock::text(text),
        ContentPart::Image { media_type, data } => {
            ContentBlock::image(BASE64.encode(data), media_type)
        }
        ContentPart::Audio { media_type, data } => {
            ContentBlock::audio(BASE64.encode(data), media_type)
        }
        ContentPart::Resource { uri, media_type, title } => {
            let mut resource = Resource::new(uri, title.as_deref().unwrap_or(uri));
            resource.title.clone_from(title);
            resource.mime_type.clone_from(media_type);
            ContentBlock::resource_link(resource)
        }
        ContentPart::Embedded(resource) => ContentBlock::resource(resource_contents(resource)),
    }
}

/// A resource with what it contains, in the type of the protocol.
pub(crate) fn resource_contents(resource: &ResourceContents) -> WireContents {
    let ResourceContents { uri, media_type, data } = resource;
    let (uri, mime_type, meta) = (uri.clone(), media_type.clone(), None);
    match data {
        ResourceData::Text(text) => {
            WireContents::TextResourceContents { uri, mime_type, text: text.clone(), meta }
        }
        ResourceData::Binary(data) => {
            WireContents::BlobResourceContents { uri, mime_type, blob: BASE64.encode(data), meta }
        }
    }
}

/// The sentence for the model.
pub(crate) fn failure_text(outcome: &Outcome, tool: &ToolId) -> String {
    match outcome {
        Outcome::Completed(_) => String::new(),
        Outcome::Failed(failure) | Outcome::InvalidArguments(failure) => failure.message.clone(),
        Outcome::TimedOut { limit } => {
            format!("{tool} was stopped after {limit:?}, its time limit")
        }
        Outcome::Cancelled => format!("{tool} was cancelled"),
        Outcome::Denied(denial) => match command_for_model(denial, tool) {
            Some(command) => format!("{denial}. Only the user can allow it, with: {command}"),
            None => denial.to_string(),
        },
    }
}

/// The reason as data. `kind` is `needs-approval` for what the user could have allowed, else the
/// name of the outcome.
pub(crate) fn reason(outcome: &Outcome, tool: &ToolId) -> Value {
    let mut reason = json!({ "kind": outcome.as_str() });
    match outcome {
        Outcome::Completed(_) | Outcome::Cancelled => {}
        Outcome::Failed(failure) | Outcome::InvalidArguments(failure) => {
            reason["failure"] = json!(failure.kind);
        }
        Outcome::TimedOut { limit } => {
            reason["limit_ms"] = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX).into();
        }
        Outcome::Denied(denial) => {
            if needs_approval(denial) {
                reason["kind"] = "needs-approval".into();
            }
            reason["subject"] = json!(denial.subject);
            reason["reason"] = json!(denial.reason);
            reason["command"] = json!(command_for_model(denial, tool));
        }
    }
    reason
}

fn needs_approval(denial: &Denial) -> bool {
    denial.nobody_to_ask || matches!(denial.reason, DenialReason::NotApproved { .. })
}

/// The command that lifts a refusal, as the other front ends name it. There is none if no policy
/// could.
pub(crate) fn allowing_command(denial: &Denial) -> Option<String> {
    denial.fix.as_ref().map(|fix| fix.command())
}

/// The command for a result, which the model reads: it names no folder of the host.
fn command_for_model(denial: &Denial, tool: &ToolId) -> Option<String> {
    let fix = denial.fix.as_ref()?;
    let names_folder = |grant: &FixGrant| {
        grant.key == "fs" && !grant.flags.iter().any(|word| word == FOLDER_PLACEHOLDER)
    };
    Some(match fix.grants.iter().any(names_folder) && !fix.is_all_requested {
        true => format!("sallyport plugin show {}", tool.plugin),
        false => fix.command(),
    })
}
