//! `sallyport policy check`: reports grants, decisions, entries without effect, wide entries, and
//! plugins that lack what they request.

use sallyport_contract::text;
use sallyport_policy::{GlobalLimits, Installed, Policy, PolicyRemark, UserGroup};
use sallyport_runtime::{
    config::HostSettings,
    permissions::{likely_decision, missing_paths, missing_requests},
    registry::{RegisteredPlugin, Registry},
};
use serde_json::{Value, json};

use crate::cli::{
    args::OutputFormat,
    call_display,
    exit::{CommandFailure, ExitStatus},
    output::CliOutput,
    setup,
};

pub(super) async fn run_check_command(
    settings: &HostSettings,
    format: OutputFormat,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let registry = setup::load_registry(settings, out).await?;
    setup::print_load_problems(&registry, out);
    let policy = registry.gate().policy_store.current().policy;
    let remarks = policy.find_remarks(&installed_plugins(&registry));
    match format {
        OutputFormat::Json => {
            out.print_json(&report_to_json(settings, &registry, &policy, &remarks))
        }
        OutputFormat::Text => print_report(settings, &registry, &policy, &remarks, out),
    }
    registry.shutdown().await;
    Ok(ExitStatus::Done)
}

/// The installed plugins with their tools.
pub(super) fn installed_plugins(registry: &Registry) -> Installed {
    let tools =
        |entry: &RegisteredPlugin| entry.tools().iter().map(|tool| tool.id.tool.clone()).collect();
    registry.entries().map(|entry| (entry.name().clone(), tools(entry))).collect()
}

fn print_report(
    settings: &HostSettings,
    registry: &Registry,
    policy: &Policy,
    remarks: &[PolicyRemark],
    out: &CliOutput,
) {
    print_files(settings, out);
    print_shared_limits(policy, out);
    print_groups(policy, out);
    registry.entries().for_each(|entry| print_plugin(entry, policy, out));
    for remark in remarks {
        out.print_warning(&format!("{}: {}", remark.place, remark.message));
    }
}

fn print_files(settings: &HostSettings, out: &CliOutput) {
    for file in &settings.policy.files {
        let path = file.path.display();
        if file.path.exists() {
            out.print_text(&format!("{path} is sound."));
        } else if file.path == settings.policy.user_file() {
            out.print_text(&format!("{path} does not exist, so it grants nothing."));
        }
    }
}

fn print_shared_limits(policy: &Policy, out: &CliOutput) {
    let GlobalLimits { calls_per_minute, concurrent_calls } = policy.shared_limits();
    if let Some(calls) = calls_per_minute {
        out.print_text(&format!("All plugins together may be called {calls} times a minute."));
    }
    if let Some(calls) = concurrent_calls {
        out.print_text(&format!("All plugins together may run {calls} calls at a time."));
    }
}

fn print_groups(policy: &Policy, out: &CliOutput) {
    for group in policy.groups() {
        let name = text::escape_line(&group.name);
        let rules = group.rule_count();
        out.print_text(&format!("The group {name} ({}) has {rules} rules.", group.place));
        for budget in group.budgets() {
            out.print_text(&format!("  each of its users has {budget}"));
        }
        if let Some(sessions) = group.budget.sessions {
            out.print_text(&format!("  each of its users may have {sessions} open sessions"));
        }
    }
}

fn group_json(group: &UserGroup) -> Value {
    json!({
        "name": group.name,
        "file": group.place.file,
        "line": group.place.line,
        "rules": group.rule_count(),
        "budgets": group.budgets().collect::<Vec<_>>(),
        "sessions": group.budget.sessions,
    })
}

fn print_plugin(entry: &RegisteredPlugin, policy: &Policy, out: &CliOutput) {
    out.print_line("");
    out.print_heading(entry.name().as_str());
    let grant = entry.grant();
    let permissions = grant.permission_lines();
    if permissions.is_empty() {
        let can =
            if entry.unconditional_denial().is_some() { "cannot run" } else { "nothing granted" };
        out.print_text(&format!("  {can}"));
    }
    for permission in permissions {
        out.print_text(&format!("  can {}", text::escape_line(&permission)));
    }
    for line in call_display::ungranted_lines(entry) {
        out.print_text(&format!("  {line}"));
    }
    for mount in missing_paths(&grant) {
        let path = mount.host.display();
        out.print_warning(&format!(
            "{} is granted {path}, which does not exist: its calls fail until you create it",
            entry.name()
        ));
    }
    for tool in entry.tools() {
        let (decision, reason) = likely_decision(entry, policy, &tool.id);
        let reason = text::escape_line(&reason);
        out.print_text(&format!("  {}: {} ({reason})", tool.id.tool, decision.as_str()));
    }
    for note in grant.notes() {
        out.print_text(&format!("  note: {}", text::escape_line(&note)));
    }
}

fn report_to_json(
    settings: &HostSettings,
    registry: &Registry,
    policy: &Policy,
    remarks: &[PolicyRemark],
) -> Value {
    let files = settings.policy.files.iter().map(
        |file| json!({ "tier": file.tier.as_str(), "path": file.path, "exists": file.path.exists() }),
    );
    let remarks = remarks.iter().map(|remark| {
        let place = &remark.place;
        let kind = remark.kind.as_str();
        json!({ "kind": kind, "file": place.file, "line": place.line, "message": remark.message })
    });
    let shared = policy.shared_limits();
    json!({
        "limits": {
            "calls-per-minute": shared.calls_per_minute,
            "concurrent-calls": shared.concurrent_calls,
        },
        "files": files.collect::<Value>(),
        "groups": policy.groups().iter().map(group_json).collect::<Value>(),
        "plugins": registry.entries().map(|entry| plugin_json(entry, policy)).collect::<Value>(),
        "remarks": remarks.collect::<Value>(),
    })
}

fn plugin_json(entry: &RegisteredPlugin, policy: &Policy) -> Value {
    let grant = entry.grant();
    let tools = entry.tools().iter().map(|tool| {
        let (decision, reason) = likely_decision(entry, policy, &tool.id);
        json!({ "tool": tool.id.tool, "decision": decision, "reason": reason })
    });
    json!({
        "name": entry.name(),
        "powers": grant.permission_lines(),
        "ungranted": missing_requests(entry),
        "missing-paths": missing_paths(&grant).map(|mount| &mount.host).collect::<Vec<_>>(),
        "tools": tools.collect::<Value>(),
        "notes": grant.notes(),
    })
}
