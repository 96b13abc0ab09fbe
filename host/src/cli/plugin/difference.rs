//! `sallyport plugin diff|verify`: what differs between two versions, and from what was accepted.

use std::path::Path;

use sallyport_contract::text;
use sallyport_runtime::{
    config::HostSettings,
    lock::{LockFile, PinComparison, PluginSnapshot},
    plugin_diff::{DiffChange, DiffSection, PluginDiff},
    registry::{PluginKind, PluginSelection, RegisteredPlugin, Registry},
};
use sallyport_terminal::listing::ListRow;
use serde_json::{Value, json};

use super::{find_only_plugin, is_path};
use crate::cli::{
    args::OutputFormat,
    exit::{CommandFailure, ExitStatus},
    output::CliOutput,
    setup,
};

/// Shows how one plugin differs from another. Each is installed, or a component or a folder.
pub(super) async fn diff_plugins(
    settings: &HostSettings,
    old: &str,
    new: &str,
    format: OutputFormat,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let old = load_snapshot(settings, old, out).await?;
    let new = load_snapshot(settings, new, out).await?;
    let diff = PluginDiff::between(&old, &new);
    match format {
        OutputFormat::Text => print_diff(&diff, out),
        OutputFormat::Json => out.print_json(&json!(diff)),
    }
    Ok(ExitStatus::Done)
}

/// Loads a plugin, of which nothing runs but its list of tools.
async fn load_snapshot(
    settings: &HostSettings,
    name: &str,
    out: &CliOutput,
) -> Result<PluginSnapshot, CommandFailure> {
    let registry = match is_path(name) {
        true => {
            let selection = PluginSelection::File(name.into());
            setup::load_selected_registry(settings, selection, out).await?
        }
        false => setup::load_compiled_registry(settings, out).await?,
    };
    let snapshot = match is_path(name) {
        true => find_only_plugin(&registry, Path::new(name))?.snapshot(),
        false => registry.find_plugin(name).map_err(CommandFailure::from)?.snapshot(),
    };
    registry.shutdown().await;
    Ok(snapshot)
}

/// Prints a difference, and whether the new version is wider.
pub(super) fn print_diff(diff: &PluginDiff, out: &CliOutput) {
    for section in &diff.sections {
        print_diff_section(section, out);
    }
    out.print_line(match (diff.is_empty(), diff.is_wider) {
        (true, _) => "The two are the same.",
        (false, true) => "The new version asks for more, or tells a model something else.",
        (false, false) => "The new version asks for nothing more.",
    });
}

fn print_diff_section(section: &DiffSection, out: &CliOutput) {
    out.print_heading(section.title);
    for change in &section.changes {
        match change {
            DiffChange::Added { what } => {
                out.print_line(&format!("  + {}", text::escape_line(what)))
            }
            DiffChange::Removed { what } => {
                out.print_line(&format!("  - {}", text::escape_line(what)));
            }
            DiffChange::Changed { what, lines } => {
                out.print_line(&format!("  {}", text::escape_line(what)));
                let lines = lines.iter().map(|line| text::escape_line(line));
                lines.for_each(|line| out.print_line(&format!("    {line}")));
            }
        }
    }
    out.print_line("");
}

/// Accepts a plugin in its current state. Asks if that is wider than the accepted one, or if it is
/// not known how the two differ.
pub(super) fn accept_plugin(
    registry: &Registry,
    settings: &HostSettings,
    name: &str,
    yes: bool,
    out: &CliOutput,
) -> Result<(), CommandFailure> {
    let entry = registry.find_plugin(name).map_err(CommandFailure::from)?;
    let lock = LockFile::read(&settings.paths.lock_file(), &settings.paths.state)?;
    let is_accepted = match lock.compare_plugin(entry.name(), &entry.pin()) {
        PinComparison::Same => {
            out.print_line(&format!("{name} is already accepted."));
            return Ok(());
        }
        PinComparison::New => true,
        PinComparison::Changed(differences) => {
            let accepted = lock.accepted_version(entry.name());
            let diff = accepted.map(|old| PluginDiff::since_acceptance(old, &entry.snapshot()));
            print_changes(name, &differences, diff.as_ref(), out);
            let asks = !yes && diff.is_none_or(|diff| diff.is_wider);
            !asks || setup::ask_confirmation(&format!("Accept {name}?"), out)?
        }
    };
    if !is_accepted {
        out.print_note("Nothing was changed.");
        return Ok(());
    }
    setup::record_policy_change(settings, entry.name().as_str(), "accepted as it is now", || {
        lock.accept_plugins([entry.as_accepted()])
    })?;
    out.print_line(&format!("Accepted {name}."));
    Ok(())
}

/// Prints how a plugin differs from its accepted version: in full if that is known.
fn print_changes(name: &str, differences: &[String], diff: Option<&PluginDiff>, out: &CliOutput) {
    out.print_line(&format!("{name} has changed since you accepted it:"));
    match diff.filter(|diff| !diff.is_empty()) {
        Some(diff) => print_diff(diff, out),
        None => differences
            .iter()
            .for_each(|line| out.print_line(&format!("  {}", text::escape_line(line)))),
    }
}

/// Compares the installed plugins with what was accepted. Fails if one differs.
pub(super) async fn verify_plugins(
    settings: &HostSettings,
    names: &[String],
    format: OutputFormat,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let registry = setup::load_compiled_registry(settings, out).await?;
    let lock = LockFile::read(&settings.paths.lock_file(), &settings.paths.state)?;
    for name in names {
        registry.find_plugin(name).map_err(CommandFailure::from)?;
    }
    let is_wanted = |entry: &&RegisteredPlugin| {
        let is_named = names.is_empty() || names.iter().any(|name| name == entry.name().as_str());
        is_named && entry.kind() != PluginKind::Internal
    };
    let results: Vec<(&RegisteredPlugin, PinComparison)> = registry
        .entries()
        .filter(is_wanted)
        .map(|entry| (entry, lock.compare_plugin(entry.name(), &entry.pin())))
        .collect();
    let problems = if names.is_empty() { registry.problems() } else { &[] };
    match format {
        OutputFormat::Json => out.print_json(&verification_json(&results)),
        OutputFormat::Text => {
            let rows: Vec<ListRow> = results.iter().map(verification_row).collect();
            out.print_table(&["plugin", "state", "digest"], &rows);
        }
    }
    setup::print_load_problems(&registry, out);
    let has_changed = results.iter().any(|(_, found)| matches!(found, PinComparison::Changed(_)));
    let exit = match has_changed || !problems.is_empty() {
        true => ExitStatus::PluginRejected,
        false => ExitStatus::Done,
    };
    registry.shutdown().await;
    Ok(exit)
}

fn verification_row((entry, comparison): &(&RegisteredPlugin, PinComparison)) -> ListRow {
    let state = state_word(comparison);
    let row = ListRow::new([entry.name().as_str(), state, entry.digest()]);
    match comparison {
        PinComparison::Changed(differences) => {
            row.with_below(differences.iter().map(|line| text::escape_line(line)))
        }
        _ => row,
    }
}

fn state_word(comparison: &PinComparison) -> &'static str {
    match comparison {
        PinComparison::Same => "as accepted",
        PinComparison::New => "not used yet",
        PinComparison::Changed(_) => "changed",
    }
}

fn verification_json(results: &[(&RegisteredPlugin, PinComparison)]) -> Value {
    let rows = results.iter().map(|(entry, comparison)| {
        let differences = match comparison {
            PinComparison::Changed(differences) => differences.as_slice(),
            _ => &[],
        };
        json!({
            "plugin": entry.name(),
            "state": state_word(comparison),
            "digest": entry.digest(),
            "differences": differences,
        })
    });
    rows.collect()
}
