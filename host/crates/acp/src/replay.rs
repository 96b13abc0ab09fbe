//! The turns of an earlier session as updates.

use sallyport_contract::text;
use sallyport_session::{
    JournalRecord,
    history::{PastCall, PastTurn, TurnStep, past_turns},
};
use serde_json::{Value, json};

use crate::updates::{
    ChunkKind, fenced, shortened, text_chunk, text_content, tool_call, tool_call_update,
};

/// Returns the updates that show a conversation again.
pub(crate) fn history_updates(records: &[JournalRecord]) -> Vec<Value> {
    past_turns(records).iter().flat_map(turn_updates).collect()
}

fn turn_updates(turn: &PastTurn) -> Vec<Value> {
    let mut updates = vec![text_chunk(ChunkKind::User, &input_text(turn))];
    for step in &turn.steps {
        match step {
            TurnStep::AssistantText { text } | TurnStep::Note { text } if !text.is_empty() => {
                updates.push(text_chunk(ChunkKind::Agent, text));
            }
            TurnStep::AssistantText { .. } | TurnStep::Note { .. } => {}
            TurnStep::ToolCall(call) => updates.extend(call_updates(call)),
        }
    }
    updates
}

fn input_text(turn: &PastTurn) -> String {
    let files = turn.input.attachments.iter();
    let files = files.map(|file| format!("\n@{}", text::escape_line(&file.name)));
    let origin = turn.input.origin.as_ref().map(|origin| format!("[from {}] ", origin.plugin));
    let head = origin.unwrap_or_default();
    format!("{head}{}{}", turn.input.text, files.collect::<String>())
}

fn call_updates(call: &PastCall) -> [Value; 2] {
    let arguments = call.edited.as_deref().unwrap_or(&call.arguments);
    let begun = tool_call(&call.id, &text::escape_line(&call.tool), "other", arguments, &[]);
    let (status, words) = match call.outcome.as_deref() {
        Some("completed") => ("completed", call.result.as_str()),
        Some(_) => ("failed", call.result.as_str()),
        None => ("failed", "interrupted"),
    };
    let content = [text_content(&fenced(&shortened(words)))];
    [begun, tool_call_update(&call.id, json!({ "status": status, "content": content }))]
}
