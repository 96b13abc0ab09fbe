//! Exports a session: as JSON for programs, as Markdown for people.
//!
//! Texts of users, models and tools are foreign. In Markdown each one is in a block of its own,
//! whose fence is longer than any in the text, and outside the blocks its Markdown characters are
//! escaped, so no text can pass for a part of the document.

use std::fmt::Write;

use sallyport_contract::{services::Origin, text};
use serde_json::{Value, json};

use super::{
    notices::{PastNotice, notices},
    turns::{PastCall, PastTurn, Step, title, turns},
};
use crate::journal::Record;

/// Version of the JSON form.
pub const JSON_VERSION: u32 = 1;

/// Longest name, in characters, of a tool or a file between blocks.
const NAME_CHARS_MAX: usize = 120;

/// The title of an untitled session.
const UNTITLED: &str = "Session";

/// Returns a session as one JSON object with all its texts and files.
pub fn json(records: &[Record]) -> Value {
    let turns: Vec<Value> = turns(records).iter().map(turn_json).collect();
    let mut object = json!({ "version": JSON_VERSION, "turns": turns });
    let notices: Vec<Value> = notices(records).iter().map(notice_json).collect();
    if !notices.is_empty() {
        object["notices"] = notices.into();
    }
    let about = [
        ("title", title(records)),
        ("model", last(records, model)),
        ("system_prompt", last(records, system_prompt)),
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

fn turn_json(turn: &PastTurn) -> Value {
    let mut object = json!({
        "number": turn.number,
        "input": turn.input,
        "steps": turn.steps.iter().map(step_json).collect::<Vec<Value>>(),
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

fn step_json(step: &Step) -> Value {
    match step {
        Step::Said { text } => json!({ "kind": "said", "text": text }),
        Step::Noted { text } => json!({ "kind": "noted", "text": text }),
        Step::Called(call) => json!({
            "kind": "called",
            "id": call.id,
            "tool": call.tool,
            "arguments": call.arguments,
            "edited": call.edited,
            "outcome": call.outcome,
            "result": call.result,
        }),
    }
}

/// Returns a session as a readable Markdown document.
pub fn markdown(records: &[Record]) -> String {
    let mut page = Page::default();
    let title = title(records);
    page.line(&format!("# {}", inline(title.as_deref().unwrap_or(UNTITLED))));
    if let Some(model) = last(records, model) {
        page.line(&format!("Model: {}", inline(&model)));
    }
    if let Some(prompt) = last(records, system_prompt) {
        page.line("System prompt:");
        page.block(&prompt);
    }
    let notices = notices(records);
    page.notices(&notices, 0);
    for turn in turns(records) {
        page.turn(&turn);
        page.notices(&notices, turn.number);
    }
    page.0
}

/// The document while it is being written.
#[derive(Default)]
struct Page(String);

impl Page {
    fn turn(&mut self, turn: &PastTurn) {
        let pinned = if turn.is_pinned { " (pinned)" } else { "" };
        self.line(&format!("## {}. User{pinned}", turn.number));
        if let Some(origin) = &turn.input.origin {
            self.origin(origin);
        }
        self.block(&turn.input.text);
        for file in &turn.input.attachments {
            let (name, media_type) = (inline(&file.name), inline(&file.media_type));
            self.line(&format!("Attached: {name} ({media_type}, {} bytes)", file.data.len()));
        }
        for recalled in &turn.recalled {
            self.line("Recalled from earlier:");
            self.block(&recalled.text);
        }
        turn.steps.iter().for_each(|step| self.step(step));
        match turn.end.as_deref() {
            Some("answered" | "spoken") => {}
            Some(end) => self.line(&format!("The turn ended: {}.", inline(end))),
            None => self.line("The turn was interrupted."),
        }
    }

    /// Writes the origin of an input that the user did not type.
    fn origin(&mut self, origin: &Origin) {
        let plugin = inline(&origin.plugin.to_string());
        self.line(&match &origin.label {
            Some(label) => format!("From {plugin}, {}:", inline(label)),
            None => format!("From {plugin}:"),
        });
    }

    /// Writes the plugin messages after a turn.
    fn notices(&mut self, notices: &[PastNotice], turn: usize) {
        for past in notices.iter().filter(|past| past.after_turn == turn) {
            let late = if past.notice.late { " (late)" } else { "" };
            self.line(&format!("Message of {}{late}:", inline(&past.notice.plugin.to_string())));
            self.block(&past.notice.text);
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Said { text } => {
                self.line("Assistant:");
                self.block(text);
            }
            Step::Noted { text } => {
                self.line("In the assistant's place:");
                self.block(text);
            }
            Step::Called(call) => self.call(call),
        }
    }

    fn call(&mut self, call: &PastCall) {
        let outcome = call.outcome.as_deref().unwrap_or("interrupted");
        self.line(&format!("Call of {}: {}", inline(&call.tool), inline(outcome)));
        self.block(&call.arguments);
        if let Some(edited) = &call.edited {
            self.line("Arguments as the user changed them:");
            self.block(edited);
        }
        if !call.result.is_empty() {
            self.line("Result:");
            self.block(&call.result);
        }
    }

    /// Writes a line of the document itself.
    fn line(&mut self, line: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "{line}\n");
    }

    /// Writes foreign text as a block.
    fn block(&mut self, text: &str) {
        let text = text::visible(&text.replace("\r\n", "\n"));
        let fence = "`".repeat(longest_run(&text).max(2) + 1);
        let text = text.trim_end_matches('\n');
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "{fence}text\n{text}\n{fence}\n");
    }
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// Returns foreign text for use within a line of the document: on one line, with its Markdown
/// characters escaped.
fn inline(words: &str) -> String {
    let mut safe = String::with_capacity(words.len());
    for c in text::excerpt(words, NAME_CHARS_MAX).chars() {
        if c.is_ascii_punctuation() && !matches!(c, '-' | '.' | ',' | '/' | ':' | '(' | ')') {
            safe.push('\\');
        }
        safe.push(c);
    }
    safe
}

fn last(records: &[Record], part: fn(&Record) -> Option<&String>) -> Option<String> {
    records.iter().rev().find_map(part).cloned()
}

fn model(record: &Record) -> Option<&String> {
    match record {
        Record::Model { name } => Some(name),
        _ => None,
    }
}

fn system_prompt(record: &Record) -> Option<&String> {
    match record {
        Record::Began { system_prompt, .. } => system_prompt.as_ref(),
        _ => None,
    }
}
