//! `sallyport plugin`: installed plugins with their requests and grants, and what installs them.

mod args;
mod build;
mod cases;
mod dev;
mod difference;
mod install;
mod source;

use std::path::Path;

use sallyport_contract::text;
use sallyport_policy::InstanceLifetime;
use sallyport_runtime::{
    config::{ConfigFlags, HostSettings},
    lock::manifest_requests,
    permissions::{PluginPermissions, missing_requests},
    registry::{
        ComponentFacts, PluginAvailability, PluginKind, PluginLookupError, PluginProblem,
        PluginSelection, RegisteredPlugin, Registry,
    },
};
use sallyport_sandbox::{ComponentFile, InstanceInfo, component_languages};
use sallyport_terminal::listing::ListRow;
use serde_json::{Value, json};

use super::{
    args::OutputFormat,
    call_display,
    exit::{CommandFailure, ExitStatus},
    output::CliOutput,
    permissions::{SHORT_COLUMNS, short_table_row},
    setup, tool,
};

use args::LoadedPluginCommand;
pub(super) use args::PluginCommand;

/// Runs the command.
pub(super) async fn run_plugin_command(
    flags: &ConfigFlags,
    command: &PluginCommand,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let settings = &setup::read_settings(flags)?;
    match command {
        PluginCommand::Loaded(command) => run_loaded_command(settings, command, out).await,
        PluginCommand::New { name, lang, path } => {
            build::create_plugin_project(settings, name, lang.0, path, out)
        }
        PluginCommand::Build(args) => build::build_plugin(settings, args, out).await,
        PluginCommand::Test(args) => cases::test_plugin(settings, args, out).await,
        PluginCommand::Dev(args) => dev::develop_plugin(settings, args, out).await,
        PluginCommand::Add(args) => install::add_plugin(settings, args, out).await,
        PluginCommand::Update { name, from } => {
            install::update_plugin(settings, name, from, out).await
        }
        PluginCommand::Remove { name, yes } => {
            install::remove_plugin(settings, name, *yes, out).await
        }
        PluginCommand::Verify { names, output } => {
            difference::verify_plugins(settings, names, output.output, out).await
        }
        PluginCommand::Diff { old, new, output } => {
            difference::diff_plugins(settings, old, new, output.output, out).await
        }
    }
}

async fn run_loaded_command(
    settings: &HostSettings,
    command: &LoadedPluginCommand,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let registry = match command {
        LoadedPluginCommand::List(_) => setup::load_registry(settings, out).await?,
        LoadedPluginCommand::Show { name, .. } if is_path(name) => {
            let selection = PluginSelection::File(name.into());
            setup::load_selected_registry(settings, selection, out).await?
        }
        // A plugin is shown and accepted only as a whole, so wait for its compilation.
        LoadedPluginCommand::Accept { .. } | LoadedPluginCommand::Show { .. } => {
            setup::load_compiled_registry(settings, out).await?
        }
    };
    match command {
        LoadedPluginCommand::List(args) => match args.output {
            OutputFormat::Text => print_plugins(&registry, out),
            OutputFormat::Json => out.print_json(&list_json(&registry)),
        },
        LoadedPluginCommand::Accept { names, yes } => {
            let accept = |name| difference::accept_plugin(&registry, settings, name, *yes, out);
            names.iter().try_for_each(|name| accept(name))?;
        }
        LoadedPluginCommand::Show { name, output } => {
            let entry = find_shown_plugin(&registry, name)?;
            match output.output {
                OutputFormat::Text => print_plugin(entry, entry.file(), out),
                OutputFormat::Json => {
                    let mut shown = entry_json(entry);
                    shown["language"] = json!(entry.file().and_then(describe_languages));
                    out.print_json(&shown);
                }
            }
            // Whoever names a file looks at it before it is installed, so show all of it.
            if is_path(name) && output.output == OutputFormat::Text {
                print_tool_schemas(entry, out);
            }
        }
    }
    registry.shutdown().await;
    Ok(ExitStatus::Done)
}

/// Whether this is a path. The name of a plugin has neither a slash nor a dot.
fn is_path(name: &str) -> bool {
    name.contains(['/', '.'])
}

fn find_shown_plugin<'r>(
    registry: &'r Registry,
    name: &str,
) -> Result<&'r RegisteredPlugin, CommandFailure> {
    if !is_path(name) {
        return Ok(registry.find_plugin(name).map_err(CommandFailure::from)?);
    }
    find_only_plugin(registry, Path::new(name))
}

/// The plugin of a registry that was loaded from one file or folder.
fn find_only_plugin<'r>(
    registry: &'r Registry,
    path: &Path,
) -> Result<&'r RegisteredPlugin, CommandFailure> {
    registry.entries().next().ok_or_else(|| match registry.problems().first() {
        Some(PluginProblem { message, hint, .. }) => {
            let (message, hint) = (message.clone(), hint.clone());
            PluginLookupError::Unusable { message, hint, rejected: true }.into()
        }
        None => {
            let path = text::escape_line(&path.display().to_string());
            CommandFailure::new(ExitStatus::Usage, format!("there is no component in {path}"))
        }
    })
}

fn print_tool_schemas(entry: &RegisteredPlugin, out: &CliOutput) {
    for tool in entry.tools() {
        out.print_line("");
        tool::print_tool(tool, out);
    }
}

fn print_plugins(registry: &Registry, out: &CliOutput) {
    let is_own = |entry: &RegisteredPlugin| entry.kind() == PluginKind::Internal;
    if registry.entries().all(is_own) && registry.problems().is_empty() {
        out.print_note("No plugins found. Choose a folder with --plugin-dir.");
    }
    out.print_table(&SHORT_COLUMNS, &plugin_rows(registry));
}

/// One row for each plugin, and for each one that was rejected, with the columns
/// [`SHORT_COLUMNS`].
pub(super) fn plugin_rows(registry: &Registry) -> Vec<ListRow> {
    let policy = registry.gate().policy_store.current().policy;
    let row = |entry| short_table_row(&PluginPermissions::new(entry, &policy), entry);
    let rejected = |problem: &PluginProblem| {
        let place = problem.location.display();
        ListRow::new(["rejected"]).with_below([format!("{place}: {}", problem.message)])
    };
    let rejected = registry.problems().iter().map(rejected);
    registry.entries().map(row).chain(rejected).collect()
}

/// Describes whether a plugin can be called, or why not.
pub(super) fn describe_state(entry: &RegisteredPlugin) -> String {
    match entry.availability() {
        PluginAvailability::Ready => "ready".to_owned(),
        PluginAvailability::Compiling => "compiling".to_owned(),
        PluginAvailability::Disabled { reason } => {
            format!("disabled: {}", text::escape_line(reason))
        }
        PluginAvailability::Changed { differences } => {
            format!("changed: {}", text::escape_line(&differences.join("; ")))
        }
    }
}

/// Prints everything about a plugin. `file` is where it comes from.
fn print_plugin(entry: &RegisteredPlugin, file: Option<&Path>, out: &CliOutput) {
    let manifest = entry.manifest();
    out.print_heading(&format!("{} {}", entry.name(), text::escape_line(&manifest.version)));
    if !manifest.description.is_empty() {
        out.print_text(&manifest.description);
    }
    out.print_line("");
    let mut rows = vec![
        ListRow::new(["kind", entry.kind().as_str()]),
        ListRow::new(["roles", &role_names(entry).join(", ")]),
    ];
    if let Some(file) = file {
        rows.push(ListRow::new(["file", &text::escape_line(&file.display().to_string())]));
        rows.push(ListRow::new(["digest", entry.digest()]));
    }
    if let Some(languages) = entry.file().and_then(describe_languages) {
        rows.push(ListRow::new(["language", &languages]));
    }
    if let Some(facts) = entry.component_facts() {
        rows.push(ListRow::new(["size", &describe_size(facts)]));
    }
    rows.push(ListRow::new(["state", &describe_state(entry)]));
    out.print_list(&rows);
    print_section(
        "Tools",
        entry.tools().iter().map(|tool| {
            let description = tool.description.trim().replace('\n', " ");
            format!("{}  {}", tool.id.tool, text::escape_line(&description))
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
    if !entry.notes().is_empty() {
        print_section("Notes", entry.notes().iter().map(|note| text::escape_line(note)), out);
    }
    if entry.manifest().instance == InstanceLifetime::Session {
        print_section("Instances", entry.warm_instances().iter().map(describe_instance), out);
    }
    // Last, because only authors need them.
    if let Some(ComponentFacts { imports, .. }) = entry.component_facts() {
        print_section("Imports", [text::escape_line(&imports.join(", "))].into_iter(), out);
    }
}

/// The languages of a component, as its compilers noted them.
fn describe_languages(file: &Path) -> Option<String> {
    let bytes = ComponentFile::read(file).ok()?.bytes().ok()?;
    let languages = component_languages(&bytes);
    (!languages.is_empty()).then(|| languages.join(", "))
}

/// The size of a component, rounded and exact.
fn describe_size(facts: &ComponentFacts) -> String {
    let kibibytes = facts.size_bytes as f64 / 1024.0;
    let rounded = match kibibytes < 1024.0 {
        true => format!("{kibibytes:.1} KiB"),
        false => format!("{:.1} MiB", kibibytes / 1024.0),
    };
    format!("{rounded} ({} bytes)", facts.size_bytes)
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

fn print_section(title: &str, lines: impl Iterator<Item = String>, out: &CliOutput) {
    out.print_line("");
    out.print_heading(title);
    let mut any = false;
    for line in lines {
        any = true;
        out.print_text(&format!("  {line}"));
    }
    if !any {
        out.print_line("  nothing");
    }
}

fn request_lines(entry: &RegisteredPlugin) -> impl Iterator<Item = String> {
    let requests = manifest_requests(entry.manifest()).into_iter();
    requests.map(|(what, why)| text::escape_line(&format!("{what}  ({why})")))
}

fn list_json(registry: &Registry) -> Value {
    let rejected = registry.problems().iter().map(|problem| {
        json!({ "place": problem.location, "message": problem.message, "hint": problem.hint })
    });
    json!({
        "plugins": registry.entries().map(entry_json).collect::<Value>(),
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
        "size_bytes": entry.component_facts().map(|facts| facts.size_bytes),
        "imports": entry.component_facts().map(|facts| &facts.imports),
        "state": state,
        "reason": reason,
        "tools": entry.tools().iter().map(|tool| &tool.id.tool).collect::<Vec<_>>(),
        "requests": request_lines(entry).collect::<Vec<_>>(),
        "granted": entry.grant().permission_lines(),
        "ungranted": missing_requests(entry),
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
