//! One line for each finished call: what it was about, what it returned, and how long it took.

use std::{collections::HashMap, time::Duration};

use sallyport_contract::{CallReport, ContentPart, Outcome, ToolOutput, text};
use sallyport_session::{SessionEvent, ToolRef};
use serde_json::Value;

use super::{call_display, output::format_count};

/// Most characters of a result that is shown as it is.
const RESULT_CHARS_MAX: usize = 40;

/// Most characters of the reason why a call did not complete.
const REASON_CHARS_MAX: usize = 300;

/// Names of fields that usually are the result itself, the most telling first.
const MAIN_RESULT_NAMES: [&str; 6] = ["result", "value", "answer", "time", "title", "summary"];

/// The kinds of parts, in the order in which they are counted.
const PART_KINDS: [&str; 4] = ["text", "picture", "sound", "resource"];

/// The mark of a call that completed.
pub(super) const COMPLETED_MARK: &str = "✓";

/// The mark of a call that did not complete.
pub(super) const INCOMPLETE_MARK: &str = "✗";

/// A call that has not finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShownCall {
    /// The arguments that apply.
    pub(super) arguments: String,
    /// The tool and its main argument.
    pub(super) text: String,
}

/// The unfinished calls of a session, by id.
///
/// The event of a finished call has no arguments, so they are remembered from its request.
#[derive(Debug, Default)]
pub(super) struct ShownCalls(HashMap<String, (ToolRef, ShownCall)>);

impl ShownCalls {
    /// Remembers a call that an event announces or changes, and forgets all calls at the end of a
    /// turn.
    pub(super) fn apply_event(&mut self, event: &SessionEvent) {
        match event {
            SessionEvent::CallRequested { call_id, tool, arguments } => {
                self.0.insert(call_id.clone(), (tool.clone(), ShownCall::new(tool, arguments)));
            }
            SessionEvent::ArgumentsEdited { call_id, arguments } => {
                if let Some((tool, call)) = self.0.get_mut(call_id) {
                    *call = ShownCall::new(tool, arguments);
                }
            }
            SessionEvent::TurnEnded { .. } => self.0.clear(),
            _ => {}
        }
    }

    /// Removes a call.
    pub(super) fn take(&mut self, call_id: &str, tool: &ToolRef) -> ShownCall {
        self.0.remove(call_id).map_or_else(|| ShownCall::new(tool, ""), |(_, call)| call)
    }

    /// Removes a call. Returns the line about its end.
    pub(super) fn take_line(
        &mut self,
        call_id: &str,
        tool: &ToolRef,
        report: &CallReport,
    ) -> String {
        call_line(&self.take(call_id, tool).text, report)
    }
}

impl ShownCall {
    fn new(tool: &ToolRef, arguments: &str) -> Self {
        Self { arguments: arguments.to_owned(), text: call_display::call_text(tool, arguments) }
    }
}

/// Describes a finished call: `✓ files.write /notes/a.md · 120 B · 4 ms`.
pub(super) fn call_line(call: &str, report: &CallReport) -> String {
    format!("{} {}", outcome_mark(&report.outcome), call_end_words(call, report))
}

/// Returns the mark in front of a finished call.
pub(super) fn outcome_mark(outcome: &Outcome) -> &'static str {
    if matches!(outcome, Outcome::Completed(_)) { COMPLETED_MARK } else { INCOMPLETE_MARK }
}

/// Describes a finished call without its mark.
pub(super) fn call_end_words(call: &str, report: &CallReport) -> String {
    // A call that the gate refused took no time.
    let time = (!report.elapsed.is_zero()).then(|| format_time(report.elapsed));
    let parts = [Some(call.to_owned()), outcome_text(&report.outcome), time];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

fn outcome_text(outcome: &Outcome) -> Option<String> {
    let ending = outcome.as_str().replace('-', " ");
    match outcome {
        Outcome::Completed(output) => output_text(output),
        Outcome::Cancelled => Some(ending),
        _ => Some(match call_display::failure_reason(outcome) {
            Some(reason) => {
                format!("{ending}: {}", text::escape_excerpt(&reason, REASON_CHARS_MAX))
            }
            None => ending,
        }),
    }
}

/// Describes the output of a call by its size, its count, or itself if it is short.
fn output_text(output: &ToolOutput) -> Option<String> {
    let parts: Vec<String> =
        data_text(&output.data).into_iter().chain(content_text(&output.content)).collect();
    (!parts.is_empty()).then(|| parts.join(" · "))
}

fn data_text(data: &Value) -> Option<String> {
    match data {
        Value::Null => None,
        Value::Bool(_) | Value::Number(_) => Some(data.to_string()),
        Value::String(text) => Some(string_text(text)),
        Value::Array(items) => Some(format_count(items.len(), "item")),
        Value::Object(fields) => {
            let bytes = fields.get("bytes").and_then(Value::as_u64);
            let mut lists = fields.values().filter_map(Value::as_array);
            match (bytes, lists.next(), lists.next()) {
                (Some(bytes), ..) => Some(format_size(bytes)),
                (None, Some(only_list), None) => Some(format_count(only_list.len(), "item")),
                _ => fields_text(data, fields),
            }
        }
    }
}

/// Describes an object: its only field, its most telling one if that is short, or its size.
fn fields_text(data: &Value, fields: &serde_json::Map<String, Value>) -> Option<String> {
    match fields.values().collect::<Vec<_>>().as_slice() {
        [] => None,
        [only_value] if !only_value.is_object() => data_text(only_value),
        _ => main_field_text(fields).or_else(|| Some(format_size(data.to_string().len() as u64))),
    }
}

fn main_field_text(fields: &serde_json::Map<String, Value>) -> Option<String> {
    let value = MAIN_RESULT_NAMES.iter().find_map(|name| fields.get(*name))?;
    match value {
        Value::String(text) => is_short(text).then(|| text::escape_line(text)),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn is_short(text: &str) -> bool {
    text.chars().count() <= RESULT_CHARS_MAX && !text.contains('\n')
}

/// Returns a short text of one line, and the size of any other.
fn string_text(text: &str) -> String {
    if is_short(text) { text::escape_line(text) } else { format_size(text.len() as u64) }
}

/// Counts the parts of an output that are not data, such as pictures.
fn content_text(content: &[ContentPart]) -> Option<String> {
    let count_kind = |kind: &&str| content.iter().filter(|part| part_kind(part) == *kind).count();
    let counts = PART_KINDS.iter().map(|kind| (count_kind(kind), kind));
    let texts: Vec<_> = counts
        .filter(|(count, _)| *count > 0)
        .map(|(count, kind)| format_count(count, kind))
        .collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

fn part_kind(part: &ContentPart) -> &'static str {
    match part {
        ContentPart::Text { .. } => "text",
        ContentPart::Image { .. } => "picture",
        ContentPart::Audio { .. } => "sound",
        ContentPart::Resource { .. } | ContentPart::Embedded(_) => "resource",
    }
}

/// Formats a size with at most one decimal, such as `1.5 KiB`.
pub(super) fn format_size(bytes: u64) -> String {
    let scaled = |unit: u64| bytes as f64 / unit as f64;
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..0x10_0000 => format!("{:.1} KiB", scaled(1 << 10)),
        _ => format!("{:.1} MiB", scaled(1 << 20)),
    }
}

/// Formats a duration, such as `4 ms`, `1.5 s` or `2 min 05 s`.
fn format_time(time: Duration) -> String {
    match (time.as_secs(), time.as_millis()) {
        (0, 0) => "<1 ms".to_owned(),
        (0, milliseconds) => format!("{milliseconds} ms"),
        (0..60, milliseconds) => format!("{}.{} s", milliseconds / 1000, milliseconds % 1000 / 100),
        (seconds, _) => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use sallyport_contract::{CallFailure, FailureKind};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_is_described_by_what_it_returned() {
        let long = "x".repeat(2000);
        let rows = [
            (json!({ "path": "/notes/a.md", "bytes": 120 }), "120 B · "),
            (json!({ "text": long, "bytes": 2_000_000 }), "1.9 MiB · "),
            (json!({ "entries": [1, 2, 3], "truncated": false }), "3 items · "),
            (json!({ "entries": [1] }), "1 item · "),
            (json!({ "sum": 42 }), "42 · "),
            (json!({ "a": { "b": 1 } }), "13 B · "),
            (json!({ "a": 1, "b": 2 }), "13 B · "),
            (json!({ "time": "10:38", "zone": "UTC" }), "10:38 · "),
            (json!({ "title": "t\nu", "b": 2 }), "22 B · "),
            (json!("hi"), "hi · "),
            (json!("a\u{1b}[2Jb"), "a\\u{1b}[2Jb · "),
            (json!("two\nlines"), "9 B · "),
            (json!(long), "2.0 KiB · "),
            (json!([]), "0 items · "),
            (json!(null), ""),
            (json!({}), ""),
        ];
        for (data, want) in rows {
            let outcome = Outcome::Completed(ToolOutput { data, ..ToolOutput::default() });
            let report = CallReport { elapsed: Duration::from_millis(4), ..outcome.into() };
            assert_eq!(call_line("a.b c", &report), format!("✓ a.b c · {want}4 ms"));
        }
    }

    #[test]
    fn a_call_that_did_not_complete_says_why() {
        let failure = |message: &str| CallFailure::new(FailureKind::Failed, message);
        let rows = [
            (Outcome::Failed(failure("no\u{1b}[2J disk")), "✗ a.b · failed: no\\u{1b}[2J disk"),
            (
                Outcome::InvalidArguments(failure("city is missing")),
                "✗ a.b · invalid arguments: city is missing",
            ),
            (
                Outcome::TimedOut { limit: Duration::from_secs(5) },
                "✗ a.b · timed out: stopped after 5s, its time limit",
            ),
            (Outcome::Cancelled, "✗ a.b · cancelled"),
        ];
        for (outcome, want) in rows {
            assert_eq!(call_line("a.b", &outcome.into()), want);
        }
    }

    #[test]
    fn a_call_is_named_with_the_arguments_that_apply() {
        let tool = ToolRef::Unknown("a.b".to_owned());
        let requested = |arguments: &str| SessionEvent::CallRequested {
            call_id: "1".to_owned(),
            tool: tool.clone(),
            arguments: arguments.to_owned(),
        };
        let edited = SessionEvent::ArgumentsEdited {
            call_id: "1".to_owned(),
            arguments: r#"{"path":"/new"}"#.to_owned(),
        };
        let rows = [
            (vec![requested(r#"{"path":"/old"}"#)], "a.b /old"),
            (vec![requested(r#"{"path":"/old"}"#), edited.clone()], "a.b /new"),
            (vec![edited], "a.b"),
        ];
        for (events, want) in rows {
            let mut calls = ShownCalls::default();
            events.iter().for_each(|event| calls.apply_event(event));
            assert_eq!(calls.take("1", &tool).text, want);
            assert_eq!(calls.take("1", &tool).text, "a.b");
        }
    }

    #[test]
    fn parts_are_counted_and_times_are_short() {
        let image = || ContentPart::Image { media_type: "image/png".to_owned(), data: vec![1] };
        let text = ContentPart::Text { text: "hi".to_owned() };
        let content = vec![image(), text, image()];
        let output = ToolOutput { content, ..ToolOutput::default() };
        assert_eq!(output_text(&output).as_deref(), Some("1 text, 2 pictures"));
        let rows =
            [(400, "<1 ms"), (4_200, "4 ms"), (1_560_000, "1.5 s"), (125_000_000, "2 min 05 s")];
        for (microseconds, want) in rows {
            assert_eq!(format_time(Duration::from_micros(microseconds)), want);
        }
    }
}
