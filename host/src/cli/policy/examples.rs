//! `sallyport policy test`: the examples of all rules, with their results.

use sallyport_policy::RuleExampleResult;
use sallyport_runtime::{config::HostSettings, gate::PolicyStore};
use serde_json::{Value, json};

use crate::cli::{
    args::Format,
    exit::{Exit, Failure},
    output::Output,
};

/// Runs the command. A policy with a failing example is rejected when it is read, so every example
/// shown here passes.
pub(super) fn test(settings: &HostSettings, format: Format, out: &Output) -> Result<Exit, Failure> {
    let standing = PolicyStore::open(settings.policy.clone(), Box::new(|_| {}))?;
    let results: Vec<RuleExampleResult> = standing.current().policy.example_results().collect();
    match format {
        Format::Json => out.json(&results.iter().map(to_json).collect::<Value>()),
        Format::Text => print(&results, out),
    }
    let failed = results.iter().any(|result| result.expected != result.got);
    Ok(if failed { Exit::Policy } else { Exit::Done })
}

fn print(results: &[RuleExampleResult], out: &Output) {
    for result in results {
        let (expected, got) = (result.expected.as_str(), result.got.as_str());
        let arguments = &result.arguments;
        out.line(&format!("{}: expected {expected}, got {got}: {arguments}", result.place));
    }
    match results.len() {
        0 => out.line("No rule has an example. Add one with match = [{ …, decision = … }]."),
        1 => out.line("The one example comes out."),
        count => out.line(&format!("All {count} examples come out.")),
    }
}

fn to_json(result: &RuleExampleResult) -> Value {
    json!({
        "file": result.place.file,
        "line": result.place.line,
        "rule": result.rule.to_string(),
        "arguments": result.arguments,
        "expected": result.expected,
        "got": result.got,
        "failure": result.failure,
    })
}
