//! Exports a session: as JSON for programs, as Markdown for people.
//!
//! Texts of users, models and tools are foreign. In Markdown each one is in a block of its own,
//! whose fence is longer than any in the text, and outside the blocks its Markdown characters are
//! escaped, so no text can pass for a part of the document.

use std::{collections::BTreeMap, fmt::Write};

use sallyport_contract::{services::InputOrigin, text};
use serde_json::{Value, json};

use super::{
    notices::{PastNotice, past_notices},
    turns::{PastCall, PastTurn, TurnStep, past_turns, session_title},
};
use crate::journal::JournalRecord;

/// Version of the JSON form.
pub const JSON_VERSION: u32 = 1;

/// Longest name, in characters, of a tool or a file between blocks.
const NAME_CHARS_MAX: usize = 120;

/// The title of an untitled session.
const UNTITLED: &str = "Session";

/// The texts of kept results by their numbers.
pub type KeptTexts = BTreeMap<u64, String>;

/// Returns a session as one JSON object with all its texts and files.
pub fn export_json(records: &[JournalRecord], kept_texts: &KeptTexts) -> Value {
    let turns: Vec<Value> =
        past_turns(records).iter().map(|turn| turn_json(turn, kept_texts)).collect();
    let mut object = json!({ "version": JSON_VERSION, "turns": turns });
    let notices: Vec<Value> = past_notices(records).iter().map(notice_json).collect();
    if !notices.is_empty() {
        object["notices"] = notices.into();
    }
    let about = [
        ("title", session_title(records)),
        ("model", find_last(records, model_name)),
        ("system_prompt", find_last(records, system_prompt)),
    ];
    for (key, value) in about {
        if let Some(value) = value {
            object[key] = value.into();
        }
    }
    object
}

fn notice_json(past: &PastNotice) -> Value {
    let notice = &past.notice;
    json!({
        "after_turn": past.after_turn,
        "plugin": notice.plugin,
        "text": notice.text,
        "speech": notice.speech,
        "late": notice.late,
    })
}

fn turn_json(turn: &PastTurn, kept_texts: &KeptTexts) -> Value {
    let mut object = json!({
        "number": turn.number,
        "input": turn.input,
        "steps": turn.steps.iter().map(|step| step_json(step, kept_texts)).collect::<Vec<Value>>(),
        "end": turn.end,
        "usage": turn.usage,
        "forgotten": turn.is_forgotten,
        "pinned": turn.is_pinned,
    });
    if !turn.recalled.is_empty() {
        object["recalled"] = json!(turn.recalled);
    }
    object
}

fn step_json(step: &TurnStep, kept_texts: &KeptTexts) -> Value {
    match step {
        TurnStep::AssistantText { text } => json!({ "kind": "said", "text": text }),
        TurnStep::Note { text } => json!({ "kind": "noted", "text": text }),
        TurnStep::ToolCall(call) => call_json(call, kept_texts),
    }
}

fn call_json(call: &PastCall, kept_texts: &KeptTexts) -> Value {
    let mut object = json!({
        "kind": "called",
        "id": call.id,
        "tool": call.tool,
        "arguments": call.arguments,
        "edited": call.edited,
        "outcome": call.outcome,
        "result": call.result,
    });
    if let Some(kept) = &call.kept {
        object["kept"] = json!(kept);
        object["kept"]["text"] = kept_texts.get(&kept.number).cloned().into();
    }
    object
}

/// Returns a session as a readable Markdown document.
pub fn export_markdown(records: &[JournalRecord], kept_texts: &KeptTexts) -> String {
    let mut page = MarkdownPage { text: String::new(), kept_texts };
    let title = session_title(records);
    page.write_line(&format!("# {}", escape_inline(title.as_deref().unwrap_or(UNTITLED))));
    if let Some(model) = find_last(records, model_name) {
        page.write_line(&format!("Model: {}", escape_inline(&model)));
    }
    if let Some(prompt) = find_last(records, system_prompt) {
        page.write_line("System prompt:");
        page.write_block(&prompt);
    }
    let notices = past_notices(records);
    page.write_notices(&notices, 0);
    for turn in past_turns(records) {
        page.write_turn(&turn);
        page.write_notices(&notices, turn.number);
    }
    page.text
}

/// The document while it is being written.
struct MarkdownPage<'k> {
    text: String,
    kept_texts: &'k KeptTexts,
}

impl MarkdownPage<'_> {
    fn write_turn(&mut self, turn: &PastTurn) {
        let pinned = if turn.is_pinned { " (pinned)" } else { "" };
        self.write_line(&format!("## {}. User{pinned}", turn.number));
        if let Some(origin) = &turn.input.origin {
            self.write_origin(origin);
        }
        self.write_block(&turn.input.text);
        for file in &turn.input.attachments {
            let (name, media_type) = (escape_inline(&file.name), escape_inline(&file.media_type));
            self.write_line(&format!("Attached: {name} ({media_type}, {} bytes)", file.data.len()));
        }
        for recalled in &turn.recalled {
            self.write_line("Recalled from earlier:");
            self.write_block(&recalled.text);
        }
        turn.steps.iter().for_each(|step| self.write_step(step));
        match turn.end.as_deref() {
            Some("answered" | "spoken") => {}
            Some(end) => self.write_line(&format!("The turn ended: {}.", escape_inline(end))),
            None => self.write_line("The turn was interrupted."),
        }
    }

    /// Writes the origin of an input that the user did not type.
    fn write_origin(&mut self, origin: &InputOrigin) {
        let plugin = escape_inline(&origin.plugin.to_string());
        self.write_line(&match &origin.label {
            Some(label) => format!("From {plugin}, {}:", escape_inline(label)),
            None => format!("From {plugin}:"),
        });
    }

    /// Writes the plugin messages after a turn.
    fn write_notices(&mut self, notices: &[PastNotice], turn: usize) {
        for past in notices.iter().filter(|past| past.after_turn == turn) {
            let late = if past.notice.late { " (late)" } else { "" };
            self.write_line(&format!(
                "Message of {}{late}:",
                escape_inline(&past.notice.plugin.to_string())
            ));
            self.write_block(&past.notice.text);
        }
    }

    fn write_step(&mut self, step: &TurnStep) {
        match step {
            TurnStep::AssistantText { text } => {
                self.write_line("Assistant:");
                self.write_block(text);
            }
            TurnStep::Note { text } => {
                self.write_line("In the assistant's place:");
                self.write_block(text);
            }
            TurnStep::ToolCall(call) => self.write_call(call),
        }
    }

    fn write_call(&mut self, call: &PastCall) {
        let outcome = call.outcome.as_deref().unwrap_or("interrupted");
        self.write_line(&format!(
            "Call of {}: {}",
            escape_inline(&call.tool),
            escape_inline(outcome)
        ));
        self.write_block(&call.arguments);
        if let Some(edited) = &call.edited {
            self.write_line("Arguments as the user changed them:");
            self.write_block(edited);
        }
        if !call.result.is_empty() {
            self.write_line("Result:");
            self.write_block(&call.result);
        }
        if let Some(kept) = call.kept.and_then(|kept| self.kept_texts.get(&kept.number)) {
            self.write_line("The whole result:");
            self.write_block(kept);
        }
    }

    /// Writes a line of the document itself.
    fn write_line(&mut self, line: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "{line}\n");
    }

    /// Writes foreign text as a block.
    fn write_block(&mut self, text: &str) {
        let text = text::escape_multiline(&text.replace("\r\n", "\n"));
        let fence = "`".repeat(longest_backtick_run(&text).max(2) + 1);
        let text = text.trim_end_matches('\n');
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "{fence}text\n{text}\n{fence}\n");
    }
}

fn longest_backtick_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// Returns foreign text for use within a line of the document: on one line, with its Markdown
/// characters escaped.
fn escape_inline(words: &str) -> String {
    let mut safe = String::with_capacity(words.len());
    for c in text::escape_excerpt(words, NAME_CHARS_MAX).chars() {
        if c.is_ascii_punctuation() && !matches!(c, '-' | '.' | ',' | '/' | ':' | '(' | ')') {
            safe.push('\\');
        }
        safe.push(c);
    }
    safe
}

fn find_last(
    records: &[JournalRecord],
    part: fn(&JournalRecord) -> Option<&String>,
) -> Option<String> {
    records.iter().rev().find_map(part).cloned()
}

fn model_name(record: &JournalRecord) -> Option<&String> {
    match record {
        JournalRecord::Model { name } => Some(name),
        _ => None,
    }
}

fn system_prompt(record: &JournalRecord) -> Option<&String> {
    match record {
        JournalRecord::Began { system_prompt, .. } => system_prompt.as_ref(),
        _ => None,
    }
}
