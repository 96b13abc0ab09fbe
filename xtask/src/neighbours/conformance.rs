//! The conformance suite, with the sets of both revisions: against `sallyport mcp --http`, and against
//! the program as a client, as a person would use it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::{NeighbourRow, RowResult, home::NeighbourHome, packages::Packages};

/// The revisions of the protocol with a set of scenarios.
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// The program as the client, driven by a script, relative to the folder of the packages.
const CLIENT_COMMAND: &str = "node_modules/node/bin/node conformance_client.mjs";

/// Longest time of a scenario of the client, in milliseconds. The script runs the program several
/// times.
const CLIENT_TIME_MS: &str = "90000";

/// Extensions are optional.
const NO_EXTENSION: &str = "this extension of the sign-in is not offered";

/// The contract with plugins has no questions of a plugin to the client's user or model.
const NO_QUESTIONS: &str = "a plugin cannot ask the client for input; only an approval is asked";

/// A tool does not mention tasks; a call becomes one when it takes long.
const NO_TASK_NEEDED: &str = "no tool needs a task; a client without them waits";

/// The scenarios that do not apply, with the reason. A name that ends in `*` is the beginning of
/// several.
const NOT_APPLYING: [(&str, &str); 19] = [
    ("completion-complete", "the contract with plugins has no completion; it is not advertised"),
    ("tools-call-sampling", NO_QUESTIONS),
    ("tools-call-elicitation", NO_QUESTIONS),
    ("elicitation-sep1034-defaults", NO_QUESTIONS),
    ("elicitation-sep1330-enums", NO_QUESTIONS),
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
    ("tasks-mrtr-*", NO_QUESTIONS),
    ("tasks-required-task-error", NO_TASK_NEEDED),
    ("tasks-status-notifications", "the suite skips its only check"),
    ("json-schema-2020-12", "pending in the suite; the reference plugin has no such tool"),
    ("auth/client-credentials-*", NO_EXTENSION),
    ("auth/dpop*", NO_EXTENSION),
    ("auth/enterprise-managed-authorization", NO_EXTENSION),
    ("auth/wif-jwt-bearer", NO_EXTENSION),
    ("http-custom-header-server-validation", "no tool asks for its arguments in headers"),
];

/// The same for single checks of a scenario whose other checks apply.
const CHECKS_NOT_APPLYING: [(&str, &str); 4] = [
    (
        "cimd-client-id-used",
        "a document about the client needs a public address of the client, which a program has not",
    ),
    ("tasks-result-type-complete-on-non-task-responses", NO_QUESTIONS),
    (
        "sep-2575-server-rejects-undeclared-capability",
        "no tool needs a capability of the client; without one, an approval is denied",
    ),
    (
        "sep-2575-missing-capability-http-400",
        "no tool needs a capability of the client; without one, an approval is denied",
    ),
];

/// The side of the protocol that a set judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JudgedSide {
    Server,
    Client,
}

/// One set of scenarios.
#[derive(Debug, Clone, Copy)]
struct ScenarioSet {
    side: JudgedSide,
    revision: &'static str,
}

impl ScenarioSet {
    /// How a row of this set begins.
    fn prefix(self) -> String {
        match self.side {
            JudgedSide::Server => self.revision.to_owned(),
            JudgedSide::Client => format!("{} client", self.revision),
        }
    }

    /// The statuses of a check with which a scenario does not pass. Of a client, the suite only
    /// warns about most of what it should do.
    fn bad_statuses(self) -> &'static [&'static str] {
        match self.side {
            JudgedSide::Server => &["FAILURE"],
            JudgedSide::Client => &["FAILURE", "WARNING"],
        }
    }
}

/// Runs the sets of both sides.
pub(super) fn run_suites(packages: &Packages, home: &NeighbourHome) -> Result<Vec<NeighbourRow>> {
    let mut rows = Vec::new();
    for revision in REVISIONS {
        let server = home.serve()?;
        let set = ScenarioSet { side: JudgedSide::Server, revision };
        let mut command = suite(packages, "server", revision);
        command.args(["--url", &server.url]);
        rows.extend(run_set(packages, set, command)?);
        let set = ScenarioSet { side: JudgedSide::Client, revision };
        let mut command = suite(packages, "client", revision);
        // The suite splits the command at its blanks, so its paths are relative.
        command.args(["--command", CLIENT_COMMAND, "--timeout", CLIENT_TIME_MS]);
        command.env("SALLYPORT_PROGRAM", home.program());
        rows.extend(run_set(packages, set, command)?);
    }
    Ok(rows)
}

/// The suite for one side, at the packages' folder.
fn suite(packages: &Packages, side: &str, revision: &str) -> Command {
    let mut command = Command::new(packages.node());
    command
        .current_dir(packages.folder())
        .arg(packages.module("@modelcontextprotocol/conformance/dist/index.js"))
        .args([side, "--requirements", revision]);
    command
}

fn run_set(
    packages: &Packages,
    set: ScenarioSet,
    mut command: Command,
) -> Result<Vec<NeighbourRow>> {
    eprintln!("conformance, {:?}, {} …", set.side, set.revision);
    let results = packages.folder().join("results").join(set.prefix());
    // What an earlier run left would count.
    let _ = fs::remove_dir_all(&results);
    let status = command
        .arg("--output-dir")
        .arg(&results)
        .stdout(Stdio::null())
        .status()
        .context("cannot run the suite")?;
    let checked = rows_of_set(set, &results)?;
    ensure!(!checked.is_empty(), "the suite left no results and ended with {status}");
    Ok(checked)
}

/// One row for each scenario, in order of name.
fn rows_of_set(set: ScenarioSet, results: &Path) -> Result<Vec<NeighbourRow>> {
    let mut folders = BTreeMap::new();
    find_scenarios(results, "", &mut folders)?;
    folders
        .into_iter()
        .map(|(scenario, folder)| {
            let text = fs::read_to_string(folder.join("checks.json"))?;
            let checks: Vec<Value> = serde_json::from_str(&text)?;
            Ok(scenario_row(set, &scenario, &checks))
        })
        .collect()
}

/// The length of the time at the end of a folder's name, such as `-2026-11-26T06-43-09-204Z`.
const TIME_BYTES: usize = 25;

/// Finds the folders of scenarios, which are called `SCENARIO-TIME` or `server-SCENARIO-TIME`. A
/// scenario with a slash in its name is in a folder of a folder.
fn find_scenarios(
    folder: &Path,
    prefix: &str,
    found: &mut BTreeMap<String, PathBuf>,
) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if !path.join("checks.json").is_file() {
            if path.is_dir() {
                find_scenarios(&path, &format!("{prefix}{name}/"), found)?;
            }
            continue;
        }
        let name = name.strip_prefix("server-").unwrap_or(&name);
        if let Some(end) = name.len().checked_sub(TIME_BYTES) {
            found.insert(format!("{prefix}{}", name.get(..end).unwrap_or(name)), path);
        }
    }
    Ok(())
}

fn scenario_row(set: ScenarioSet, scenario: &str, checks: &[Value]) -> NeighbourRow {
    let name = format!("{} {scenario}", set.prefix());
    if let Some(reason) = reason_of(&NOT_APPLYING, scenario) {
        return NeighbourRow { result: RowResult::NotApplying, name, detail: reason.to_owned() };
    }
    let is_bad =
        |check: &&Value| set.bad_statuses().iter().any(|status| check["status"] == *status);
    let reason = |check: &Value| reason_of(&CHECKS_NOT_APPLYING, check["id"].as_str()?);
    let bad: Vec<&Value> = checks.iter().filter(is_bad).collect();
    let failed: Vec<String> = bad
        .iter()
        .filter(|check| reason(check).is_none())
        .map(|check| format!("{}: {}", check["id"], check["errorMessage"]))
        .collect();
    let passed = checks.iter().filter(|check| check["status"] == "SUCCESS").count();
    let left_out: BTreeSet<&str> = bad.iter().filter_map(|check| reason(check)).collect();
    let reasons = left_out.into_iter().map(|reason| format!("; does not apply: {reason}"));
    match failed.is_empty() {
        true => {
            let detail = format!("{passed} checks{}", reasons.collect::<String>());
            NeighbourRow::new(passed > 0, name, detail)
        }
        false => NeighbourRow::new(false, name, failed.join("; ")),
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
        let server = ScenarioSet { side: JudgedSide::Server, revision: "r" };
        let client = ScenarioSet { side: JudgedSide::Client, revision: "r" };
        let check = |status: &str| json!({ "id": "a", "status": status, "errorMessage": "why" });
        let rows = [
            (vec![check("SUCCESS")], RowResult::Passed),
            (vec![check("SUCCESS"), check("SKIPPED")], RowResult::Passed),
            (vec![check("SUCCESS"), check("FAILURE")], RowResult::Failed),
            (vec![check("SKIPPED")], RowResult::Failed),
            (vec![], RowResult::Failed),
        ];
        for (checks, want) in rows {
            for set in [server, client] {
                assert_eq!(scenario_row(set, "tools-list", &checks).result, want, "{checks:?}");
            }
        }
        assert_eq!(scenario_row(server, "tasks-mrtr-x", &[]).result, RowResult::NotApplying);
        let warned = [check("SUCCESS"), check("WARNING")];
        assert_eq!(scenario_row(server, "tools-list", &warned).result, RowResult::Passed);
        assert_eq!(scenario_row(client, "tools-list", &warned).result, RowResult::Failed);
        let reasoned =
            [check("SUCCESS"), json!({ "id": "cimd-client-id-used", "status": "WARNING" })];
        assert_eq!(scenario_row(client, "auth/basic-cimd", &reasoned).result, RowResult::Passed);
    }
}
