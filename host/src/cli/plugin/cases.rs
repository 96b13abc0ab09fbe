//! `sallyport plugin test`: runs the cases of a plugin and shows what differs.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use sallyport_contract::text;
use sallyport_plugin_test::{
    CaseDifference, CaseError, CaseFile, CaseResult, PluginCase, TestedPlugin, run_case,
};
use sallyport_runtime::{
    atomic_file::replace_user_file, config::HostSettings, registry::PluginSelection,
};
use serde_json::{Value, json};

use super::{args::TestArgs, dev::OUTPUT_FOLDERS, find_only_plugin};
use crate::cli::{
    args::OutputFormat,
    exit::{CommandFailure, ExitStatus},
    interrupt::InterruptListener,
    output::CliOutput,
    setup,
};

/// Name of the file with the cases, in the plugin's folder.
const CASES: &str = "cases.json";

/// Name of the manifest, in the plugin's folder.
const MANIFEST: &str = "plugin.toml";

/// Deepest folder in which newer sources are looked for.
const SOURCE_DEPTH_MAX: usize = 8;

/// What came of one case: it ran, or could not be run.
type CaseOutcome = Result<CaseResult, CaseError>;

/// Runs all cases. Fails if one does not pass.
pub(super) async fn test_plugin(
    settings: &HostSettings,
    args: &TestArgs,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let tested = find_tested_plugin(settings, &args.path, out).await?;
    warn_of_newer_sources(&tested, out);
    let cases_path = args.cases.clone().unwrap_or_else(|| tested.component.with_file_name(CASES));
    let file = read_cases(&cases_path)?;
    let is_text = args.output.output == OutputFormat::Text;
    let mut outcomes = Vec::new();
    let mut interrupts = InterruptListener::new();
    for case in &file.cases {
        let outcome = tokio::select! {
            biased;
            () = interrupts.wait() => return Ok(ExitStatus::Interrupted),
            outcome = run_case(&tested, case, &settings.paths.cache) => outcome,
        };
        if is_text {
            print_case(case, &outcome, out);
        }
        outcomes.push((case, outcome));
    }
    let updated = if args.update { update_cases(&cases_path, &file, &outcomes, out)? } else { 0 };
    let passed = |outcome: &CaseOutcome| outcome.as_ref().is_ok_and(CaseResult::passed);
    let failed = outcomes.iter().filter(|(_, outcome)| !passed(outcome)).count();
    match is_text {
        true => print_summary(outcomes.len(), failed, updated, out),
        false => out.print_json(&results_json(&tested, &outcomes)),
    }
    // A case that is as it was rewritten passes the next time.
    let only_ends = |outcome: &CaseOutcome| outcome.as_ref().is_ok_and(differs_only_in_end);
    let mended = outcomes.iter().filter(|(_, outcome)| !passed(outcome) && only_ends(outcome));
    let left = if args.update { failed - mended.count() } else { failed };
    Ok(if left == 0 { ExitStatus::Done } else { ExitStatus::Failed })
}

fn differs_only_in_end(result: &CaseResult) -> bool {
    result.differences.iter().all(|difference| matches!(difference, CaseDifference::End(_)))
}

/// Finds the plugin of a folder or of a component.
async fn find_tested_plugin(
    settings: &HostSettings,
    path: &Path,
    out: &CliOutput,
) -> Result<TestedPlugin, CommandFailure> {
    let selection = PluginSelection::File(path.to_owned());
    let registry = setup::load_selected_registry(settings, selection, out).await?;
    let entry = find_only_plugin(&registry, path)?;
    let component = entry.file().map(Path::to_owned);
    let name = entry.name().clone();
    registry.shutdown().await;
    let component = component.ok_or_else(|| {
        CommandFailure::new(ExitStatus::Usage, format!("{name} has no component to test"))
    })?;
    let manifest = Some(component.with_file_name(MANIFEST)).filter(|path| path.is_file());
    Ok(TestedPlugin { name, component, manifest })
}

fn read_cases(path: &Path) -> Result<CaseFile, CommandFailure> {
    let shown = text::escape_line(&path.display().to_string());
    let read = CaseFile::read(path).map_err(|error| {
        let failure =
            CommandFailure::new(ExitStatus::Usage, format!("cannot read {shown}: {error}"));
        failure.with_hint(
            "write the plugin's cases into cases.json; docs/writing-plugins.md shows how",
        )
    })?;
    read.map_err(|mistake| CommandFailure {
        hint: mistake.hint.clone(),
        location: Some(mistake.place()),
        ..CommandFailure::new(ExitStatus::Usage, text::escape_line(&mistake.to_string()))
    })
}

/// Warns if a source is newer than the component, because the test would be of an older plugin.
fn warn_of_newer_sources(tested: &TestedPlugin, out: &CliOutput) {
    let modified = |path: &Path| fs::metadata(path).and_then(|info| info.modified()).ok();
    let Some(built) = modified(&tested.component) else { return };
    let folder = tested.component.parent().unwrap_or(Path::new("."));
    // Without a manifest, the folder is not one of a plugin's sources.
    if tested.manifest.is_none() {
        return;
    }
    if let Some(newer) = find_newer_source(folder, built, SOURCE_DEPTH_MAX) {
        let newer = newer.strip_prefix(folder).unwrap_or(&newer).display().to_string();
        out.print_warning(&format!("{} is newer than the component", text::escape_line(&newer)));
        out.print_hint("build it first: sallyport plugin build");
    }
}

fn find_newer_source(folder: &Path, built: SystemTime, depth: usize) -> Option<PathBuf> {
    fs::read_dir(folder).ok()?.flatten().find_map(|entry| {
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        let info = entry.metadata().ok()?;
        if name.starts_with('.')
            || name.ends_with(".wasm")
            || name.ends_with(".md")
            || name == CASES
        {
            return None;
        }
        if info.is_dir() {
            let is_source = depth > 0 && !OUTPUT_FOLDERS.contains(&&*name);
            return is_source.then(|| find_newer_source(&path, built, depth - 1))?;
        }
        (info.modified().ok()? > built && !name.ends_with(".lock")).then_some(path)
    })
}

fn print_case(case: &PluginCase, outcome: &CaseOutcome, out: &CliOutput) {
    let name = text::escape_line(&case.name);
    match outcome {
        Ok(result) if result.passed() => {
            out.print_line(&format!("ok    {name}  ({})", describe_time(result.elapsed)));
        }
        Ok(result) => {
            out.print_line(&format!("FAIL  {name}"));
            difference_lines(result)
                .iter()
                .for_each(|line| out.print_line(&format!("      {line}")));
        }
        Err(error) => {
            out.print_line(&format!("FAIL  {name}"));
            out.print_line(&format!(
                "      it could not be run: {}",
                text::escape_line(&error.to_string())
            ));
        }
    }
}

fn describe_time(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}

/// Everything that differs, as lines.
fn difference_lines(result: &CaseResult) -> Vec<String> {
    let mut lines = Vec::new();
    for difference in &result.differences {
        match difference {
            CaseDifference::End(diff) => lines.extend(diff.iter().cloned()),
            CaseDifference::Effect(what) => lines.push(format!("effect {what}")),
            CaseDifference::Request(what) => lines.push(format!("request {what}")),
            CaseDifference::File(name, diff) => {
                lines.push(format!("file {name}:"));
                lines.extend(diff.iter().cloned());
            }
        }
    }
    if let Some(panic) = &result.panic {
        lines.extend(panic.lines().map(str::to_owned));
    }
    lines.iter().map(|line| text::escape_line(line)).collect()
}

fn print_summary(total: usize, failed: usize, updated: usize, out: &CliOutput) {
    let cases = if total == 1 { "case" } else { "cases" };
    out.print_line(&format!("{total} {cases}: {} passed, {failed} failed", total - failed));
    if failed > 0 && updated == 0 {
        out.print_hint("if the new results are right, write them into the file: --update");
    }
}

/// Writes the actual ends into the file, and returns how many there were.
fn update_cases(
    path: &Path,
    file: &CaseFile,
    outcomes: &[(&PluginCase, CaseOutcome)],
    out: &CliOutput,
) -> Result<usize, CommandFailure> {
    let changed: Vec<(&PluginCase, Value)> = outcomes
        .iter()
        .filter_map(|(case, outcome)| Some((*case, outcome.as_ref().ok()?)))
        .filter(|(_, result)| result.has_other_end())
        .map(|(case, result)| (case, result.actual.clone()))
        .collect();
    let count = changed.len();
    if count > 0 {
        replace_user_file(path, &file.with_actual_results(changed))?;
        let shown = text::escape_line(&path.display().to_string());
        out.print_note(&format!("Wrote the results of {count} into {shown}."));
    }
    Ok(count)
}

fn results_json(tested: &TestedPlugin, outcomes: &[(&PluginCase, CaseOutcome)]) -> Value {
    let cases = outcomes.iter().map(|(case, outcome)| match outcome {
        Ok(result) => json!({
            "name": case.name,
            "tool": case.tool,
            "passed": result.passed(),
            "differences": difference_lines(result),
            "actual": result.actual,
            "elapsed_ms": result.elapsed.as_secs_f64() * 1000.0,
        }),
        Err(error) => json!({
            "name": case.name,
            "tool": case.tool,
            "passed": false,
            "differences": [error.to_string()],
        }),
    });
    json!({ "plugin": tested.name, "component": tested.component, "cases": cases.collect::<Value>() })
}
