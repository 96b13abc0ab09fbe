//! The updates of a session, as the protocol words them.

use std::path::PathBuf;

use data_encoding::BASE64;
use sallyport_contract::{
    CallReport, ContentPart, Outcome, ResourceContents, ResourceData, ToolDescriptor, ToolOutput,
    text,
};
use sallyport_runtime::file_write::FileWrite;
use serde_json::{Value, json};

/// Longest text or JSON of a call that the client receives, in bytes. The model and the session
/// have all of it.
const SHOWN_BYTES_MAX: usize = 64 << 10;

/// Largest picture or sound of a result that the client receives, in bytes.
const MEDIA_BYTES_MAX: usize = 8 << 20;

/// The speaker of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChunkKind {
    User,
    Agent,
    Thought,
}

/// A piece of a text.
pub(crate) fn text_chunk(kind: ChunkKind, words: &str) -> Value {
    let kind = match kind {
        ChunkKind::User => "user_message_chunk",
        ChunkKind::Agent => "agent_message_chunk",
        ChunkKind::Thought => "agent_thought_chunk",
    };
    json!({ "sessionUpdate": kind, "content": text_block(words) })
}

/// A sentence for the user, for a client that shows notices.
pub(crate) fn notice(severity: &str, words: &str) -> Value {
    json!({ "sessionUpdate": "notice", "severity": severity, "title": words })
}

/// How much of the context is used, and what the session has cost.
pub(crate) fn usage(used_tokens: u64, context_tokens: u64, cost_micro_usd: Option<u64>) -> Value {
    let mut update =
        json!({ "sessionUpdate": "usage_update", "used": used_tokens, "size": context_tokens });
    if let Some(cost) = cost_micro_usd {
        update["cost"] = json!({ "amount": cost as f64 / 1e6, "currency": "USD" });
    }
    update
}

/// A call that the model requests.
pub(crate) fn tool_call(
    call_id: &str,
    title: &str,
    kind: &str,
    arguments: &str,
    locations: &[PathBuf],
) -> Value {
    json!({
        "sessionUpdate": "tool_call",
        "toolCallId": call_id,
        "title": title,
        "kind": kind,
        "status": "pending",
        "locations": location_list(locations),
        "rawInput": raw_input(arguments),
    })
}

/// The arguments of a call, as far as they are shown.
pub(crate) fn raw_input(arguments: &str) -> Value {
    match serde_json::from_str(arguments) {
        Ok(value) if arguments.len() <= SHOWN_BYTES_MAX => value,
        _ => Value::String(shortened(arguments)),
    }
}

/// A change of a call. `fields` has what is different.
pub(crate) fn tool_call_update(call_id: &str, mut fields: Value) -> Value {
    fields["sessionUpdate"] = "tool_call_update".into();
    fields["toolCallId"] = call_id.into();
    fields
}

/// The places of files.
pub(crate) fn location_list(paths: &[PathBuf]) -> Value {
    paths.iter().map(|path| json!({ "path": path.to_string_lossy() })).collect()
}

/// The kind of a tool. It chooses a symbol and nothing else, because the author claims it.
pub(crate) fn tool_kind(tool: Option<&ToolDescriptor>) -> &'static str {
    let Some(ToolDescriptor { id, hints, .. }) = tool else { return "other" };
    match (id.plugin.as_str(), id.tool.as_str()) {
        ("files", "write") => return "edit",
        ("files", "remove") => return "delete",
        _ => {}
    }
    match (hints.read_only, hints.open_world) {
        (Some(true), Some(false)) => "read",
        (Some(true), _) => "fetch",
        _ => "other",
    }
}

/// Text as a part of a call.
pub(crate) fn text_content(words: &str) -> Value {
    json!({ "type": "content", "content": text_block(words) })
}

/// The change of a file as a part of a call.
pub(crate) fn diff_content(write: &FileWrite) -> Value {
    json!({
        "type": "diff",
        "path": write.path.to_string_lossy(),
        "oldText": write.old,
        "newText": write.new,
    })
}

/// Text that is shown as it is, because it is not Markdown: in a fence that it cannot close.
pub(crate) fn fenced(words: &str) -> String {
    let longest = words.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{words}\n{fence}")
}

/// The end of a call.
pub(crate) fn finished_call(
    call_id: &str,
    report: &CallReport,
    write: Option<&FileWrite>,
    locations: &[PathBuf],
) -> Value {
    let is_completed = matches!(report.outcome, Outcome::Completed(_));
    let mut content = match &report.outcome {
        Outcome::Completed(output) => output_content(output),
        outcome => vec![text_content(&fenced(&failure_text(outcome)))],
    };
    content.extend(write.filter(|_| is_completed).map(diff_content));
    let mut fields = json!({
        "status": if is_completed { "completed" } else { "failed" },
        "content": content,
        "rawOutput": raw_input(&report.outcome.to_model_value().to_string()),
    });
    if !locations.is_empty() {
        fields["locations"] = location_list(locations);
    }
    tool_call_update(call_id, fields)
}

/// The reason that a call did not do what it was to do, and what would change that.
fn failure_text(outcome: &Outcome) -> String {
    let words = match outcome {
        Outcome::Completed(_) => String::new(),
        Outcome::Failed(failure) | Outcome::InvalidArguments(failure) => failure.message.clone(),
        Outcome::TimedOut { limit } => format!("stopped after {limit:?}, its time limit"),
        Outcome::Cancelled => "cancelled".to_owned(),
        Outcome::Denied(denial) => match &denial.fix {
            Some(fix) => format!("{denial}\nTo allow it: {}", fix.command()),
            None => denial.to_string(),
        },
    };
    shortened(&text::escape_multiline(&words))
}

fn output_content(output: &ToolOutput) -> Vec<Value> {
    let data = match &output.data {
        Value::Null => None,
        Value::String(words) => Some(words.clone()),
        data => Some(format!("{data:#}")),
    };
    let data = data.map(|words| text_content(&fenced(&shortened(&words))));
    data.into_iter().chain(output.content.iter().filter_map(content_part)).collect()
}

fn content_part(part: &ContentPart) -> Option<Value> {
    let media = |kind: &str, media_type: &str, data: &[u8]| {
        (data.len() <= MEDIA_BYTES_MAX)
            .then(|| json!({ "type": kind, "mimeType": media_type, "data": BASE64.encode(data) }))
    };
    let block = match part {
        ContentPart::Text { text } => text_block(&fenced(&shortened(text))),
        ContentPart::Image { media_type, data } => media("image", media_type, data)?,
        ContentPart::Audio { media_type, data } => media("audio", media_type, data)?,
        ContentPart::Resource { uri, media_type, title } => json!({
            "type": "resource_link",
            "uri": uri,
            "name": title.as_deref().unwrap_or(uri),
            "mimeType": media_type,
        }),
        ContentPart::Embedded(resource) => embedded_block(resource)?,
    };
    Some(json!({ "type": "content", "content": block }))
}

fn embedded_block(resource: &ResourceContents) -> Option<Value> {
    let ResourceContents { uri, media_type, data } = resource;
    let mut resource = json!({ "uri": uri, "mimeType": media_type });
    match data {
        ResourceData::Text(text) => resource["text"] = shortened(text).into(),
        ResourceData::Binary(data) if data.len() <= MEDIA_BYTES_MAX => {
            resource["blob"] = BASE64.encode(data).into();
        }
        ResourceData::Binary(_) => return None,
    }
    Some(json!({ "type": "resource", "resource": resource }))
}

fn text_block(words: &str) -> Value {
    json!({ "type": "text", "text": words })
}

/// The beginning of a text that is too long to be shown.
pub(crate) fn shortened(words: &str) -> String {
    match words.len() <= SHOWN_BYTES_MAX {
        true => words.to_owned(),
        false => {
            let shown = &words[..words.floor_char_boundary(SHOWN_BYTES_MAX)];
            format!("{shown}\n… {} bytes in all", words.len())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_cannot_leave_its_fence() {
        for (words, fence) in
            [("plain", "```"), ("a `b` c", "```"), ("```\n# heading", "````"), ("`````", "``````")]
        {
            let shown = fenced(words);
            assert_eq!(shown, format!("{fence}text\n{words}\n{fence}"));
        }
    }

    #[test]
    fn long_texts_are_cut_at_a_character() {
        let long = "ä".repeat(SHOWN_BYTES_MAX);
        let shown = shortened(&long);
        assert!(shown.len() < SHOWN_BYTES_MAX + 100, "{}", shown.len());
        assert!(shown.ends_with(&format!("… {} bytes in all", long.len())));
        assert_eq!(shortened("short"), "short");
        assert!(raw_input(&format!("{{\"a\":\"{long}\"}}")).is_string());
        assert_eq!(raw_input("{\"a\":1}"), json!({ "a": 1 }));
        assert_eq!(raw_input("not JSON"), "not JSON");
    }
}
