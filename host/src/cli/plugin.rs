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
    args::{Format, PluginCommand},
    compose,
    exit::{Exit, Failure},
    output::Output,
    show,
};

pub(super) async fn plugin(
    flags: &ConfigFlags,
    command: &PluginCommand,
    out: &Output,
) -> Result<Exit, Failure> {
    let settings = compose::settings(flags)?;
    let registry = match command {
        PluginCommand::List(_) => compose::registry(&settings, out).await?,
        // A plugin is shown and accepted only as a whole, so wait for its compilation.
        PluginCommand::Accept { .. } | PluginCommand::Show { .. } => {
            compose::whole_registry(&settings, out).await?
        }
    };
    match command {
        PluginCommand::List(args) => {
            let entries: Vec<&RegisteredPlugin> = registry.entries().collect();
            match args.output {
                Format::Text => list(&entries, registry.problems(), out),
                Format::Json => out.json(&list_json(&entries, registry.problems())),
            }
        }
        PluginCommand::Accept { names } => {
            names.iter().try_for_each(|name| accept(&registry, &settings, name, out))?;
        }
        PluginCommand::Show { name, output } => {
            let entry = registry.find_plugin(name).map_err(Failure::from)?;
            match output.output {
                Format::Text => show(entry, out),
                Format::Json => out.json(&entry_json(entry)),
            }
        }
    }
    registry.shutdown().await;
    Ok(Exit::Done)
}

fn list(entries: &[&RegisteredPlugin], problems: &[PluginProblem], out: &Output) {
    let is_own = |entry: &&RegisteredPlugin| entry.kind() == PluginKind::Internal;
    if entries.iter().all(is_own) && problems.is_empty() {
        out.note("No plugins found. Choose a folder with --plugin-dir.");
    }
    let width = entries.iter().map(|entry| entry.name().as_str().len()).max().unwrap_or(0);
    for entry in entries {
        let state = state(entry);
        let version = text::escape_line(&entry.manifest().version);
        let description = text::escape_excerpt(&entry.manifest().description, 72);
        let kind = entry.kind().as_str();
        let line = format!("{version:8}  {kind:9}  {state:9}  {description}");
        out.pair(entry.name().as_str(), width, line.trim_end());
    }
    for problem in problems {
        let name = problem.place.display().to_string();
        out.pair("rejected", width, &text::escape_line(&format!("{name}: {}", problem.message)));
    }
}

/// Describes what a plugin offers, or why it cannot be used.
pub(super) fn state(entry: &RegisteredPlugin) -> String {
    match entry.availability() {
        PluginAvailability::Ready => offers(entry),
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
fn offers(entry: &RegisteredPlugin) -> String {
    let tools = match entry.tools().len() {
        0 => None,
        1 => Some("1 tool".to_owned()),
        n => Some(format!("{n} tools")),
    };
    let roles = entry.manifest().roles.iter().filter(|role| **role != PluginRole::Tools);
    let roles = roles.map(|role| role.as_str().to_owned());
    let offers: Vec<String> = tools.into_iter().chain(roles).collect();
    if offers.is_empty() { "no tools".to_owned() } else { offers.join(", ") }
}

fn show(entry: &RegisteredPlugin, out: &Output) {
    let manifest = entry.manifest();
    out.heading(&format!("{} {}", entry.name(), text::escape_line(&manifest.version)));
    if !manifest.description.is_empty() {
        out.line(&text::escape_multiline(&manifest.description));
    }
    out.line("");
    out.pair("kind", 9, entry.kind().as_str());
    out.pair("roles", 9, &roles(entry).join(", "));
    if let Some(file) = entry.file() {
        out.pair("file", 9, &file.display().to_string());
        out.pair("digest", 9, entry.digest());
    }
    let state = if entry.is_ready() { "ready".to_owned() } else { state(entry) };
    out.pair("state", 9, &state);
    section(
        "Tools",
        entry.tools().iter().map(|tool| {
            format!("{}  {}", tool.id.tool, text::escape_excerpt(&tool.description, 72))
        }),
        out,
    );
    section("Requests", request_lines(entry), out);
    let powers = entry.grant().permission_lines();
    section("Granted by the policy", powers.iter().map(|power| text::escape_line(power)), out);
    section("Requested and not granted", show::ungranted(entry).into_iter(), out);
    section("Notes", entry.notes().iter().map(|note| text::escape_line(note)), out);
    if entry.manifest().instance == InstanceLifetime::Session {
        section("Instances", entry.warm_instances().iter().map(instance), out);
    }
}

/// The names of its roles.
fn roles(entry: &RegisteredPlugin) -> Vec<&'static str> {
    entry.manifest().roles.iter().map(|role| role.as_str()).collect()
}

/// Describes a warm instance.
pub(super) fn instance(info: &InstanceInfo) -> String {
    let mebibytes = info.memory_bytes as f64 / f64::from(1 << 20);
    let session = text::escape_line(&info.session_id);
    format!("session {session}: {mebibytes:.1} MiB, idle for {:.0?}", info.idle)
}

/// Accepts a plugin in its current state. A changed one has so far only been asked for its tools.
fn accept(
    registry: &Registry,
    settings: &HostSettings,
    name: &str,
    out: &Output,
) -> Result<(), Failure> {
    let entry = registry.find_plugin(name).map_err(Failure::from)?;
    let lock = LockFile::read(&settings.paths.lock_file(), &settings.paths.state)?;
    match lock.compare_plugin(entry.name(), &entry.pin()) {
        PinComparison::Same => {
            out.line(&format!("{name} is already accepted."));
            return Ok(());
        }
        PinComparison::New => out.line(&format!("Accepted {name}.")),
        PinComparison::Changed(differences) => {
            out.line(&format!("Accepted {name} with these changes:"));
            differences.iter().for_each(|line| out.line(&format!("  {}", text::escape_line(line))));
        }
    }
    compose::record_policy(settings, entry.name().as_str(), "accepted as it is now", || {
        lock.accept_plugins([(entry.name().clone(), entry.pin())])
    })
}

fn section(title: &str, lines: impl Iterator<Item = String>, out: &Output) {
    out.line("");
    out.heading(title);
    let mut any = false;
    for line in lines {
        any = true;
        out.line(&format!("  {line}"));
    }
    if !any {
        out.line("  nothing");
    }
}

fn request_lines(entry: &RegisteredPlugin) -> impl Iterator<Item = String> {
    let requests = manifest_requests(entry.manifest()).into_iter();
    requests.map(|(what, why)| text::escape_line(&format!("{what}  ({why})")))
}

fn list_json(entries: &[&RegisteredPlugin], problems: &[PluginProblem]) -> Value {
    let rejected = problems.iter().map(|problem| {
        json!({ "place": problem.place, "message": problem.message, "hint": problem.hint })
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
        "roles": roles(entry),
        "instance": entry.manifest().instance.as_str(),
        "file": entry.file(),
        "digest": entry.digest(),
        "state": state,
        "reason": reason,
        "tools": entry.tools().iter().map(|tool| &tool.id.tool).collect::<Vec<_>>(),
        "requests": request_lines(entry).collect::<Vec<_>>(),
        "granted": entry.grant().permission_lines(),
        "ungranted": show::ungranted_json(entry),
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
