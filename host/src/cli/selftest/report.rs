//! Reports the test: the calls, the outcome and the answer for each sentence.

use std::time::Duration;

use sallyport_contract::{PolicyFix, text};
use sallyport_store::AuditVerification;
use serde_json::{Map, Value, json};

use super::list::TestSentence;
use crate::cli::{
    args::OutputFormat,
    exit::{CommandFailure, ExitStatus},
    output::CliOutput,
};

/// Most lines of an answer that are shown.
const ANSWER_LINES_MAX: usize = 6;

/// Most characters of a line that are shown.
const ANSWER_CHARS_MAX: usize = 200;

/// Most characters of the arguments that are shown.
const ARGUMENTS_CHARS_MAX: usize = 160;

/// The result of a sentence.
#[derive(Debug, Default)]
pub(super) struct SentenceResult {
    pub(super) calls: Vec<ObservedCall>,
    /// Messages other than the answer, such as the address of a page that was not opened.
    pub(super) asides: Vec<String>,
    pub(super) answer: String,
    pub(super) elapsed: Duration,
}

/// A call that was made.
#[derive(Debug)]
pub(super) struct ObservedCall {
    pub(super) tool: String,
    /// The arguments, as the matcher wrote them.
    pub(super) arguments: String,
    /// The outcome. It is empty while the call runs.
    pub(super) outcome: &'static str,
    /// The change to the policy that would have allowed the call.
    pub(super) fix: Option<Box<PolicyFix>>,
}

/// Whether a sentence had the expected result.
enum SentenceVerdict {
    Passed,
    Failed(String),
    Skipped(String),
}

/// The results so far, counted.
pub(super) struct SelftestReport<'a> {
    format: OutputFormat,
    out: &'a CliOutput,
    rows: Vec<Value>,
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl<'a> SelftestReport<'a> {
    pub(super) fn new(format: OutputFormat, out: &'a CliOutput) -> Self {
        Self { format, out, rows: Vec::new(), passed: 0, failed: 0, skipped: 0 }
    }

    /// Reports a sentence that was run.
    pub(super) fn report_result(
        &mut self,
        sentence: &TestSentence,
        sentence_result: &SentenceResult,
    ) {
        let verdict = match check_result(sentence, sentence_result) {
            Ok(()) => SentenceVerdict::Passed,
            Err(why) => SentenceVerdict::Failed(why),
        };
        self.add_result(sentence, sentence_result, &verdict);
    }

    /// Reports a sentence that was skipped: its plugin is not installed.
    pub(super) fn report_skipped(&mut self, sentence: &TestSentence, why: String) {
        self.add_result(sentence, &SentenceResult::default(), &SentenceVerdict::Skipped(why));
    }

    /// Reports a sentence that was not run: its plugin cannot be used.
    pub(super) fn report_unusable(&mut self, sentence: &TestSentence, why: String) {
        self.add_result(sentence, &SentenceResult::default(), &SentenceVerdict::Failed(why));
    }

    /// Reports the totals.
    pub(super) fn finish(self, audit: &AuditVerification) -> Result<ExitStatus, CommandFailure> {
        let Self { passed, failed, skipped, .. } = self;
        let is_good = failed == 0 && passed > 0 && audit.is_intact();
        let counts = format!("{passed} passed, {failed} failed, {skipped} skipped");
        let is = if audit.is_intact() { "is intact" } else { "is not intact" };
        match self.format {
            OutputFormat::Text => {
                self.out.print_line("");
                self.out
                    .print_line(&format!("{counts}; its audit {is} ({} records)", audit.records));
            }
            OutputFormat::Json => self.out.print_json(&json!({
                "passed": passed, "failed": failed, "skipped": skipped,
                "audit": { "records": audit.records, "whole": audit.is_intact() },
                "sentences": self.rows,
            })),
        }
        if passed + failed == 0 {
            let failure = CommandFailure::new(
                ExitStatus::Failed,
                "none of the plugins in this list is installed",
            );
            return Err(failure.with_hint("choose a folder of plugins with --plugin-dir"));
        }
        Ok(if is_good { ExitStatus::Done } else { ExitStatus::Failed })
    }

    fn add_result(
        &mut self,
        sentence: &TestSentence,
        sentence_result: &SentenceResult,
        verdict: &SentenceVerdict,
    ) {
        match verdict {
            SentenceVerdict::Passed => self.passed += 1,
            SentenceVerdict::Failed(_) => self.failed += 1,
            SentenceVerdict::Skipped(_) => self.skipped += 1,
        }
        match self.format {
            OutputFormat::Text => self.print_result(sentence, sentence_result, verdict),
            OutputFormat::Json => {
                self.rows.push(result_to_json(sentence, sentence_result, verdict))
            }
        }
    }

    fn print_result(
        &self,
        sentence: &TestSentence,
        sentence_result: &SentenceResult,
        verdict: &SentenceVerdict,
    ) {
        let word = verdict.as_str();
        let time = match verdict {
            SentenceVerdict::Skipped(_) => String::new(),
            _ => format!("  ({:.0?})", sentence_result.elapsed),
        };
        self.out.print_line(&format!("{word:7} {}{time}", text::escape_line(&sentence.say)));
        for call in &sentence_result.calls {
            let arguments = text::escape_excerpt(&call.arguments, ARGUMENTS_CHARS_MAX);
            self.out.print_line(&format!("        → {} {arguments} · {}", call.tool, call.outcome));
        }
        for line in &sentence_result.asides {
            self.out.print_line(&format!("        · {}", text::escape_line(line)));
        }
        for line in sentence_result.answer.lines().take(ANSWER_LINES_MAX) {
            self.out
                .print_line(&format!("        {}", text::escape_excerpt(line, ANSWER_CHARS_MAX)));
        }
        if let Some(why) = verdict.reason() {
            self.out.print_line(&format!("        {word}: {}", text::escape_line(why)));
        }
    }
}

impl SentenceVerdict {
    fn as_str(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed(_) => "failed",
            Self::Skipped(_) => "skipped",
        }
    }

    fn reason(&self) -> Option<&str> {
        match self {
            Self::Passed => None,
            Self::Failed(why) | Self::Skipped(why) => Some(why),
        }
    }
}

fn result_to_json(
    sentence: &TestSentence,
    sentence_result: &SentenceResult,
    verdict: &SentenceVerdict,
) -> Value {
    let calls = sentence_result.calls.iter().map(|call| {
        let arguments = serde_json::from_str(&call.arguments).unwrap_or(Value::Null);
        json!({ "tool": call.tool, "arguments": arguments, "outcome": call.outcome, "fix": call.fix })
    });
    json!({
        "say": sentence.say,
        "verdict": verdict.as_str(),
        "why": verdict.reason(),
        "calls": calls.collect::<Value>(),
        "asides": sentence_result.asides,
        "answer": sentence_result.answer,
        "elapsed_ms": u64::try_from(sentence_result.elapsed.as_millis()).unwrap_or(u64::MAX),
    })
}

/// Compares the result with the expected one.
fn check_result(sentence: &TestSentence, sentence_result: &SentenceResult) -> Result<(), String> {
    match (&sentence.tool, sentence_result.calls.as_slice()) {
        (None, []) => {}
        (None, [call, ..]) => return Err(format!("expected no call, got {}", call.tool)),
        (Some(tool), []) => return Err(format!("expected {tool}, got no call")),
        (Some(tool), [call]) if call.tool == tool.to_string() => check_call(sentence, call)?,
        (Some(tool), [call, ..]) => {
            return Err(format!("{tool} alone should be called, {} was", call.tool));
        }
    }
    match &sentence.answer {
        Some(words) if !sentence_result.answer.to_lowercase().contains(&words.to_lowercase()) => {
            Err(format!("the answer does not contain {words:?}"))
        }
        _ => Ok(()),
    }
}

fn check_call(sentence: &TestSentence, call: &ObservedCall) -> Result<(), String> {
    let given: Map<String, Value> = serde_json::from_str(&call.arguments).unwrap_or_default();
    for (name, value) in &sentence.arguments {
        if given.get(name) != Some(value) {
            return Err(format!("the argument {name} should be {value}"));
        }
    }
    match call.outcome == sentence.outcome {
        true => Ok(()),
        false => Err(format!("expected the outcome {}", sentence.outcome)),
    }
}
