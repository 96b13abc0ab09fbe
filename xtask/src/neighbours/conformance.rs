//! The conformance suite against `sallyport mcp --http`, with the sets of both revisions.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{NeighbourRow, RowResult, home::NeighbourHome, packages::Packages};

/// The revisions of the protocol with a set of scenarios.
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// The contract with plugins has no questions of a plugin to the client's user or model.
const NO_QUESTIONS: &str = "a plugin cannot ask the client for input; only an approval is asked";

/// Extensions are optional.
const NO_TASKS: &str = "the extension for tasks is not offered";

/// The scenarios that do not apply, with the reason. A name that ends in `*` is the beginning of
/// several.
const NOT_APPLYING: [(&str, &str); 15] = [
    ("completion-complete", "the contract with plugins has no completion; it is not advertised"),
    ("tools-call-sampling", NO_QUESTIONS),
    ("tools-call-elicitation", NO_QUESTIONS),
    ("elicitation-sep1034-defaults", NO_QUESTIONS),
    ("elicitation-sep1330-enums", NO_QUESTIONS),
    ("resources-subscribe", "a plugin cannot report a changed resource; it is not advertised"),
    ("resources-unsubscribe", "a plugin cannot report a changed resource; it is not advertised"),
    ("input-required-result-basic-*", NO_QUESTIONS),
    ("input-required-result-multi*", NO_QUESTIONS),
    ("input-required-result-capability-check", NO_QUESTIONS),
    (
        "input-required-result-ignore-extra-params",
        "an answer without the state of its question approves nothing",
    ),
    (
        "input-required-result-non-tool-request",
        "the scenario's answer is not an approval, so the prompt is denied",
    ),
    ("tasks-*", NO_TASKS),
    ("json-schema-2020-12", "pending in the suite; the reference plugin has no such tool"),
    ("http-custom-header-server-validation", "no tool asks for its arguments in headers"),
];

/// The same for single checks of a scenario whose other checks apply.
const CHECKS_NOT_APPLYING: [(&str, &str); 2] = [
    (
        "sep-2575-server-rejects-undeclared-capability",
        "no tool needs a capability of the client; without one, an approval is denied",
    ),
    (
        "sep-2575-missing-capability-http-400",
        "no tool needs a capability of the client; without one, an approval is denied",
    ),
];

/// Runs both sets.
pub(super) fn run_suites(packages: &Packages, home: &NeighbourHome) -> Result<Vec<NeighbourRow>> {
    let mut rows = Vec::new();
    for revision in REVISIONS {
        eprintln!("conformance of the server, {revision} …");
        let server = home.serve()?;
        let results = packages.folder().join("results").join(revision);
        // What an earlier run left would count.
        let _ = fs::remove_dir_all(&results);
        let status = Command::new(packages.node())
            .arg(packages.module("@modelcontextprotocol/conformance/dist/index.js"))
            .args(["server", "--url", &server.url, "--requirements", revision, "--output-dir"])
            .arg(&results)
            .stdout(Stdio::null())
            .status()
            .context("cannot run the suite")?;
        let checked = rows_of_revision(revision, &results)?;
        ensure!(!checked.is_empty(), "the suite left no results and ended with {status}");
        rows.extend(checked);
    }
    Ok(rows)
}

/// One row for each scenario, in order of name.
fn rows_of_revision(revision: &str, results: &Path) -> Result<Vec<NeighbourRow>> {
    let scenarios = scenario_folders(results)?;
    scenarios
        .into_iter()
        .map(|(scenario, folder)| {
            let text = fs::read_to_string(folder.join("checks.json"))?;
            let checks: Vec<Value> = serde_json::from_str(&text)?;
            Ok(scenario_row(revision, &scenario, &checks))
        })
        .collect()
}

/// The length of the time at the end of a folder's name, such as `-2026-11-26T06-43-09-204Z`.
const TIME_BYTES: usize = 25;

/// The folders are called `server-SCENARIO-TIME`.
fn scenario_folders(results: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let mut folders = BTreeMap::new();
    for entry in fs::read_dir(results)? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let scenario = name.as_deref().and_then(|name| name.strip_prefix("server-"));
        let scenario = scenario.and_then(|name| name.get(..name.len().checked_sub(TIME_BYTES)?));
        if let Some(scenario) = scenario {
            folders.insert(scenario.to_owned(), path);
        }
    }
    Ok(folders)
}

fn scenario_row(revision: &str, scenario: &str, checks: &[Value]) -> NeighbourRow {
    let name = format!("{revision} {scenario}");
    if let Some(reason) = reason_of(&NOT_APPLYING, scenario) {
        return NeighbourRow { result: RowResult::NotApplying, name, detail: reason.to_owned() };
    }
    let with = |status: &'static str| checks.iter().filter(move |check| check["status"] == status);
    let applies = |check: &&Value| {
        let id = check["id"].as_str().unwrap_or_default();
        reason_of(&CHECKS_NOT_APPLYING, id).is_none()
    };
    let failed: Vec<&Value> = with("FAILURE").filter(applies).collect();
    let passed = with("SUCCESS").count();
    let left_out = with("FAILURE").count() - failed.len();
    let words: Vec<String> =
        failed.iter().map(|check| format!("{}: {}", check["id"], check["errorMessage"])).collect();
    let mut detail = format!("{passed} checks");
    if left_out > 0 {
        let reason = CHECKS_NOT_APPLYING[0].1;
        detail = format!("{passed} checks; {left_out} do not apply: {reason}");
    }
    match words.is_empty() {
        true => NeighbourRow::new(passed > 0, name, detail),
        false => NeighbourRow::new(false, name, words.join("; ")),
    }
}

fn reason_of<'a>(reasons: &[(&str, &'a str)], name: &str) -> Option<&'a str> {
    let fits = |pattern: &str| match pattern.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == pattern,
    };
    reasons.iter().find(|(pattern, _)| fits(pattern)).map(|(_, reason)| *reason)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_scenario_without_a_passed_check_does_not_pass() {
        let check = |status: &str| json!({ "id": "a", "status": status, "errorMessage": "why" });
        let rows = [
            (vec![check("SUCCESS")], RowResult::Passed),
            (vec![check("SUCCESS"), check("SKIPPED")], RowResult::Passed),
            (vec![check("SUCCESS"), check("FAILURE")], RowResult::Failed),
            (vec![check("SKIPPED")], RowResult::Failed),
            (vec![], RowResult::Failed),
        ];
        for (checks, want) in rows {
            assert_eq!(scenario_row("r", "tools-list", &checks).result, want, "{checks:?}");
        }
        assert_eq!(scenario_row("r", "tasks-x", &[]).result, RowResult::NotApplying);
    }
}
