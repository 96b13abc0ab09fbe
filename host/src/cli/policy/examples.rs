//! `sallyport policy test`: the examples of all rules, with their results.

use sallyport_policy::RuleExampleResult;
use sallyport_runtime::{config::HostSettings, gate::PolicyStore};
use serde_json::{Value, json};

use crate::cli::{
    args::OutputFormat,
    exit::{CommandFailure, ExitStatus},
    output::CliOutput,
};

/// Runs the command. A policy with a failing example is rejected when it is read, so every example
/// shown here passes.
pub(super) fn run_test_command(
    settings: &HostSettings,
    format: OutputFormat,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let policy_store = PolicyStore::open(settings.policy.clone(), Box::new(|_| {}))?;
    let results: Vec<RuleExampleResult> = policy_store.current().policy.example_results().collect();
    match format {
        OutputFormat::Json => {
            out.print_json(&results.iter().map(result_to_json).collect::<Value>())
        }
        OutputFormat::Text => print_results(&results, out),
    }
    let failed = results.iter().any(|result| result.expected != result.actual);
    Ok(if failed { ExitStatus::Policy } else { ExitStatus::Done })
}

fn print_results(results: &[RuleExampleResult], out: &CliOutput) {
    for result in results {
        let (expected, got) = (result.expected.as_str(), result.actual.as_str());
        let arguments = &result.arguments;
        out.print_line(&format!("{}: expected {expected}, got {got}: {arguments}", result.place));
    }
    match results.len() {
        0 => out.print_line("No rule has an example. Add one with match = [{ …, decision = … }]."),
        1 => out.print_line("The one example comes out."),
        count => out.print_line(&format!("All {count} examples come out.")),
    }
}

fn result_to_json(result: &RuleExampleResult) -> Value {
    json!({
        "file": result.place.file,
        "line": result.place.line,
        "rule": result.rule.to_string(),
        "arguments": result.arguments,
        "expected": result.expected,
        "got": result.actual,
        "failure": result.failure,
    })
}
