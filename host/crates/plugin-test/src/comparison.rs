//! What a case showed: that everything was as expected, or what differs.

use std::time::Duration;

use sallyport_contract::CallReport;
use serde_json::Value;
use similar::TextDiff;

use crate::{case_file::PluginCase, effect_match::ActualEffect, world::CaseHome};

/// Longest text of a value that is shown, in characters. Longer ones are cut, with their length.
const SHOWN_CHARS_MAX: usize = 400;

/// The end of one case.
#[derive(Debug)]
pub struct CaseResult {
    /// What differs. Nothing if the case passed.
    pub differences: Vec<CaseDifference>,
    /// The actual end of the call, in the form of `expect`.
    pub actual: Value,
    /// How long the call took.
    pub elapsed: Duration,
    /// Where and why the plugin's code panicked.
    pub panic: Option<String>,
}

/// Something that is not as expected.
#[derive(Debug, PartialEq, Eq)]
pub enum CaseDifference {
    /// The call ended in another way. Lines of both ends, each after `-`, `+` or a space.
    End(Vec<String>),
    /// An effect is missing, or must not happen.
    Effect(String),
    /// A request that the script does not have, or an answer that nothing requested.
    Request(String),
    /// A file has other contents. Lines as of [`End`](Self::End).
    File(String, Vec<String>),
}

impl CaseResult {
    /// Whether everything was as expected.
    pub fn passed(&self) -> bool {
        self.differences.is_empty()
    }

    /// Whether the call ended in another way, which new expectations would change.
    pub fn has_other_end(&self) -> bool {
        self.differences.iter().any(|difference| matches!(difference, CaseDifference::End(_)))
    }
}

/// Compares a call with its case.
pub(crate) fn compare(
    case: &PluginCase,
    report: &CallReport,
    requests: Vec<String>,
    home: &CaseHome,
) -> CaseResult {
    let actual = case.expect.actual_json(&report.outcome);
    let mut differences = Vec::new();
    if !case.expect.is_met(&report.outcome) {
        differences.push(CaseDifference::End(diff_json(&case.expect.to_json(), &actual)));
    }
    let effects: Vec<ActualEffect> = report.effects.iter().map(ActualEffect::from).collect();
    let objections = case.effects.iter().filter_map(|effect| effect.objection(&effects));
    differences.extend(objections.map(CaseDifference::Effect));
    differences.extend(requests.into_iter().map(CaseDifference::Request));
    for (name, wanted) in &case.files_after {
        let found = home.read_file(name);
        if found != *wanted {
            let (wanted, found) = (file_text(wanted), file_text(&found));
            differences.push(CaseDifference::File(name.clone(), diff_text(&wanted, &found)));
        }
    }
    let panic = match &report.outcome {
        sallyport_contract::Outcome::Failed(failure) => failure.panic.clone(),
        _ => None,
    };
    CaseResult { differences, actual, elapsed: report.elapsed, panic }
}

fn file_text(text: &Option<String>) -> String {
    text.as_ref().map_or("(no file)".to_owned(), |text| shorten(text))
}

fn diff_json(wanted: &Value, actual: &Value) -> Vec<String> {
    let text = |value| serde_json::to_string_pretty(&shortened(value)).unwrap_or_default();
    diff_text(&text(wanted), &text(actual))
}

/// The lines of two texts. Each begins with `-`, `+` or a space.
fn diff_text(wanted: &str, actual: &str) -> Vec<String> {
    let diff = TextDiff::from_lines(wanted, actual);
    let lines = diff.iter_all_changes();
    lines.map(|change| format!("{} {}", change.tag(), change.value().trim_end())).collect()
}

/// A value whose texts are not too long to be read.
fn shortened(value: &Value) -> Value {
    match value {
        Value::String(text) => shorten(text).into(),
        Value::Array(items) => items.iter().map(shortened).collect(),
        Value::Object(members) => {
            let members = members.iter().map(|(key, value)| (key.clone(), shortened(value)));
            Value::Object(members.collect())
        }
        other => other.clone(),
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}… ({} characters)", &text[..end], text.chars().count()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_difference_can_be_read() {
        let lines = diff_json(
            &json!({ "data": { "a": 1, "b": 2 } }),
            &json!({ "data": { "a": 1, "b": 3 } }),
        );
        let want = [
            "  {",
            "    \"data\": {",
            "      \"a\": 1,",
            "-     \"b\": 2",
            "+     \"b\": 3",
            "    }",
            "  }",
        ];
        assert_eq!(lines, want);
        let long = json!({ "text": "é".repeat(1_000_000) });
        let lines = diff_json(&long, &json!({ "text": "é" })).join("\n");
        assert!(lines.len() < 2_000 && lines.contains("(1000000 characters)"), "{}", lines.len());
    }
}
