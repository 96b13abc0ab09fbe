//! `sallyport plugin list|show|accept`: installed plugins with their requests and grants.

use sallyport_contract::text;
use sallyport_policy::{InstanceLifetime, PluginRole};
use sallyport_runtime::{
    config::{ConfigFlags, HostSettings},
    lock::{LockFile, PinComparison},
    registry::{
        PluginAvailability, PluginKind, PluginProblem, RegisteredPlugin, Registry,
        manifest_requests,
    },
};
use sallyport_sandbox::InstanceInfo;
use serde_json::{Value, json};

use super::{
    args::{OutputFormat, PluginCommand},
    call_display,
    exit::{CommandFailure, ExitStatus},
    output::CliOutput,
    setup,
};

pub(super) async fn run_plugin_command(
    flags: &ConfigFlags,
    command: &PluginCommand,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let settings = setup::read_settings(flags)?;
    let registry = match command {
        PluginCommand::List(_) => setup::load_registry(&settings, out).await?,
        // A plugin is shown and accepted only as a whole, so wait for its compilation.
        PluginCommand::Accept { .. } | PluginCommand::Show { .. } => {
            setup::load_compiled_registry(&settings, out).await?
        }
    };
    match command {
        PluginCommand::List(args) => {
            let entries: Vec<&RegisteredPlugin> = registry.entries().collect();
            match args.output {
                OutputFormat::Text => print_plugins(&entries, registry.problems(), out),
                OutputFormat::Json => out.print_json(&list_json(&entries, registry.problems())),
            }
        }
        PluginCommand::Accept { names } => {
            names.iter().try_for_each(|name| accept_plugin(&registry, &settings, name, out))?;
        }
        PluginCommand::Show { name, output } => {
            let entry = registry.find_plugin(name).map_err(CommandFailure::from)?;
            match output.output {
                OutputFormat::Text => print_plugin(entry, out),
                OutputFormat::Json => out.print_json(&entry_json(entry)),
            }
        }
    }
    registry.shutdown().await;
    Ok(ExitStatus::Done)
}

fn print_plugins(entries: &[&RegisteredPlugin], problems: &[PluginProblem], out: &CliOutput) {
    let is_own = |entry: &&RegisteredPlugin| entry.kind() == PluginKind::Internal;
    if entries.iter().all(is_own) && problems.is_empty() {
        out.print_note("No plugins found. Choose a folder with --plugin-dir.");
    }
    let width = entries.iter().map(|entry| entry.name().as_str().len()).max().unwrap_or(0);
    for entry in entries {
        let state = describe_state(entry);
        let version = text::escape_line(&entry.manifest().version);
        let description = text::escape_excerpt(&entry.manifest().description, 72);
        let kind = entry.kind().as_str();
        let line = format!("{version:8}  {kind:9}  {state:9}  {description}");
        out.print_pair(entry.name().as_str(), width, line.trim_end());
    }
    for problem in problems {
        let name = problem.location.display().to_string();
        out.print_pair(
            "rejected",
            width,
            &text::escape_line(&format!("{name}: {}", problem.message)),
        );
    }
}

/// Describes what a plugin offers, or why it cannot be used.
pub(super) fn describe_state(entry: &RegisteredPlugin) -> String {
    match entry.availability() {
        PluginAvailability::Ready => describe_offers(entry),
        PluginAvailability::Compiling => "compiling".to_owned(),
        PluginAvailability::Disabled { reason } => {
            format!("disabled: {}", text::escape_line(reason))
        }
        PluginAvailability::Changed { differences } => {
            format!("changed: {}", text::escape_line(&differences.join("; ")))
        }
    }
}

/// The number of its tools, and its other roles.
fn describe_offers(entry: &RegisteredPlugin) -> String {
    let tools = match entry.tools().len() {
        0 => None,
        1 => Some("1 tool".to_owned()),
        n => Some(format!("{n} tools")),
    };
    let roles = entry.manifest().roles.iter().filter(|role| **role != PluginRole::Tools);
    let roles = roles.map(|role| role.as_str().to_owned());
    let features: Vec<String> = tools.into_iter().chain(roles).collect();
    if features.is_empty() { "no tools".to_owned() } else { features.join(", ") }
}

fn print_plugin(entry: &RegisteredPlugin, out: &CliOutput) {
    let manifest = entry.manifest();
    out.print_heading(&format!("{} {}", entry.name(), text::escape_line(&manifest.version)));
    if !manifest.description.is_empty() {
        out.print_line(&text::escape_multiline(&manifest.description));
    }
    out.print_line("");
    out.print_pair("kind", 9, entry.kind().as_str());
    out.print_pair("roles", 9, &role_names(entry).join(", "));
    if let Some(file) = entry.file() {
        out.print_pair("file", 9, &file.display().to_string());
        out.print_pair("digest", 9, entry.digest());
    }
    let state = if entry.is_ready() { "ready".to_owned() } else { describe_state(entry) };
    out.print_pair("state", 9, &state);
    print_section(
        "Tools",
        entry.tools().iter().map(|tool| {
            format!("{}  {}", tool.id.tool, text::escape_excerpt(&tool.description, 72))
        }),
        out,
    );
    print_section("Requests", request_lines(entry), out);
    let permissions = entry.grant().permission_lines();
    print_section(
        "Granted by the policy",
        permissions.iter().map(|permission| text::escape_line(permission)),
        out,
    );
    print_section(
        "Requested and not granted",
        call_display::ungranted_lines(entry).into_iter(),
        out,
    );
    print_section("Notes", entry.notes().iter().map(|note| text::escape_line(note)), out);
    if entry.manifest().instance == InstanceLifetime::Session {
        print_section("Instances", entry.warm_instances().iter().map(describe_instance), out);
    }
}

/// The names of its roles.
fn role_names(entry: &RegisteredPlugin) -> Vec<&'static str> {
    entry.manifest().roles.iter().map(|role| role.as_str()).collect()
}

/// Describes a warm instance.
pub(super) fn describe_instance(info: &InstanceInfo) -> String {
    let mebibytes = info.memory_bytes as f64 / f64::from(1 << 20);
    let session = text::escape_line(&info.session_id);
    format!("session {session}: {mebibytes:.1} MiB, idle for {:.0?}", info.idle)
}

/// Accepts a plugin in its current state. A changed one has so far only been asked for its tools.
fn accept_plugin(
    registry: &Registry,
    settings: &HostSettings,
    name: &str,
    out: &CliOutput,
) -> Result<(), CommandFailure> {
    let entry = registry.find_plugin(name).map_err(CommandFailure::from)?;
    let lock = LockFile::read(&settings.paths.lock_file(), &settings.paths.state)?;
    match lock.compare_plugin(entry.name(), &entry.pin()) {
        PinComparison::Same => {
            out.print_line(&format!("{name} is already accepted."));
            return Ok(());
        }
        PinComparison::New => out.print_line(&format!("Accepted {name}.")),
        PinComparison::Changed(differences) => {
            out.print_line(&format!("Accepted {name} with these changes:"));
            differences
                .iter()
                .for_each(|line| out.print_line(&format!("  {}", text::escape_line(line))));
        }
    }
    setup::record_policy_change(settings, entry.name().as_str(), "accepted as it is now", || {
        lock.accept_plugins([(entry.name().clone(), entry.pin())])
    })
}

fn print_section(title: &str, lines: impl Iterator<Item = String>, out: &CliOutput) {
    out.print_line("");
    out.print_heading(title);
    let mut any = false;
    for line in lines {
        any = true;
        out.print_line(&format!("  {line}"));
    }
    if !any {
        out.print_line("  nothing");
    }
}

fn request_lines(entry: &RegisteredPlugin) -> impl Iterator<Item = String> {
    let requests = manifest_requests(entry.manifest()).into_iter();
    requests.map(|(what, why)| text::escape_line(&format!("{what}  ({why})")))
}

fn list_json(entries: &[&RegisteredPlugin], problems: &[PluginProblem]) -> Value {
    let rejected = problems.iter().map(|problem| {
        json!({ "place": problem.location, "message": problem.message, "hint": problem.hint })
    });
    json!({
        "plugins": entries.iter().map(|entry| entry_json(entry)).collect::<Value>(),
        "rejected": rejected.collect::<Value>(),
    })
}

fn entry_json(entry: &RegisteredPlugin) -> Value {
    let (state, reason) = match entry.availability() {
        PluginAvailability::Ready => ("ready", None),
        PluginAvailability::Compiling => ("compiling", None),
        PluginAvailability::Disabled { reason } => ("disabled", Some(reason.clone())),
        PluginAvailability::Changed { differences } => ("changed", Some(differences.join("; "))),
    };
    json!({
        "name": entry.name(),
        "version": entry.manifest().version,
        "description": entry.manifest().description,
        "kind": entry.kind().as_str(),
        "roles": role_names(entry),
        "instance": entry.manifest().instance.as_str(),
        "file": entry.file(),
        "digest": entry.digest(),
        "state": state,
        "reason": reason,
        "tools": entry.tools().iter().map(|tool| &tool.id.tool).collect::<Vec<_>>(),
        "requests": request_lines(entry).collect::<Vec<_>>(),
        "granted": entry.grant().permission_lines(),
        "ungranted": call_display::ungranted_json(entry),
        "notes": entry.notes(),
        "instances": entry.warm_instances().iter().map(instance_json).collect::<Value>(),
    })
}

fn instance_json(info: &InstanceInfo) -> Value {
    json!({
        "session": info.session_id,
        "memory_bytes": info.memory_bytes,
        "idle_ms": info.idle.as_millis(),
    })
}
