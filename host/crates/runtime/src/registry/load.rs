//! Loading: builds a registry from the contents of the plugin folders.
//!
//! 1. Find candidates and read their manifests. Two plugins with the same name are both rejected,
//!    and so is one with the name of a built-in plugin.
//! 2. Ask each component for its tools, or take them from the cache; a script's definition lists
//!    them. Uncompiled components are compiled concurrently, for as long as the start waits.
//! 3. Compare each plugin with its accepted version. A changed one is blocked until the user
//!    accepts it.
//! 4. Compute each plugin's settings, and create its warden, which knows its effective grant.
//! 5. Run the setup of the plugins that have one. A plugin whose setup fails is disabled.
//! 6. Reject tools that a model could not tell apart.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use futures::future::join_all;
use sallyport_contract::{
    NameTable, PluginName, ToolDescriptor, ToolId, mangle::ToolNameCollision,
};
use sallyport_policy::{Manifest, PluginRole};
use sallyport_sandbox::{
    CompileProgress, ComponentFile, ComponentMetadata, LoadError, Sandbox, schema::CompiledSchema,
};
use serde_json::{Map, Value};

use super::{
    Registry,
    discover::{CandidateSource, PluginCandidate, PluginProblem, discover_plugins},
    entry::{PluginAvailability, RegisteredPlugin, ToolSchemas},
    implementation::{LazyComponent, PluginImplementation},
    prepare::{ComponentReadiness, PreparedCandidate, PreparedComponent, prepare_candidates},
};
use crate::{
    config::{HostSettings, SettingOrigin},
    gate::{
        Gate,
        authorizer::{PluginAuthorizer, PluginInfo},
    },
    internal::{self, InternalTool},
    lock::{LockError, LockFile, PinComparison, PluginPin},
    script::{NativeScript, ScriptPlugin},
};

/// The plugins that a command needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PluginSelection {
    /// All plugins.
    All,
    /// One plugin. The others' manifests are read too, so that a second plugin of that name is
    /// noticed.
    Only(PluginName),
}

impl PluginSelection {
    fn includes(&self, name: &PluginName) -> bool {
        match self {
            Self::All => true,
            Self::Only(only) => only == name,
        }
    }
}

/// Everything that a registry is loaded from.
pub struct LoadParts<'a> {
    /// The sandbox that runs the components.
    pub sandbox: Arc<Sandbox>,
    /// The plugin folders and the plugins' settings.
    pub settings: &'a HostSettings,
    /// The gate that the calls will pass.
    pub gate: Arc<Gate>,
    /// The plugins that are needed.
    pub selection: PluginSelection,
    /// The accepted plugins.
    pub lock: &'a LockFile,
    /// Whether plugins are going to be used. If so, new ones are pinned.
    pub pins_new_plugins: bool,
    /// How long to wait for components that are not compiled yet.
    pub compile_wait: Duration,
    /// Receives the progress of the compilation.
    pub progress: &'a (dyn Fn(CompileProgress<'_>) + Sync),
    /// Shows the user the changes of a plugin; returns true if they accept them.
    pub accepts_change: &'a (dyn Fn(&PluginName, &[String]) -> bool + Sync),
}

impl Registry {
    /// Loads the valid plugins and notes the problems of the others.
    ///
    /// # Errors
    ///
    /// The lock cannot be written. A later change would then look like a new plugin.
    pub async fn load(parts: LoadParts<'_>) -> Result<Self, LockError> {
        let settings = parts.settings;
        let named = settings.plugin_dirs_origin != SettingOrigin::Default;
        let (mut candidates, mut problems) = discover_plugins(&settings.plugin_dirs, named);
        candidates.extend(
            internal::enabled_tools(settings.internal)
                .into_iter()
                .map(PluginCandidate::from_internal_tool),
        );
        let candidates = remove_duplicate_names(candidates, &mut problems);
        let names = candidates.iter().map(|one| one.manifest.name.clone()).collect();
        let (mut loaded, mut accepted_pins) = (Vec::new(), Vec::new());
        let selected =
            candidates.into_iter().filter(|one| parts.selection.includes(&one.manifest.name));
        for prepared in prepare_candidates(&parts, selected.collect()).await {
            match load_candidate(&parts, prepared) {
                Ok(loaded_plugin) => {
                    loaded.push(build_entry(&parts, loaded_plugin, &mut accepted_pins))
                }
                Err(problem) => problems.push(problem),
            }
        }
        let set_up =
            loaded.into_iter().map(|(entry, file)| set_up_plugin(&parts.sandbox, entry, file));
        let entries = join_all(set_up).await;
        let mut entries: BTreeMap<PluginName, RegisteredPlugin> =
            entries.into_iter().map(|entry| (entry.name().clone(), entry)).collect();
        if !accepted_pins.is_empty() {
            parts.lock.accept_plugins(accepted_pins)?;
        }
        while let Err(collision) = NameTable::new(ready_tools(&entries).map(|tool| &tool.id)) {
            reject_colliding_plugins(&mut entries, &mut problems, &collision);
        }
        let tools = ready_tools(&entries).cloned().collect();
        let LoadParts { gate, sandbox, .. } = parts;
        Ok(Self { entries, names, problems, tools, gate, sandbox })
    }
}

fn ready_tools(
    entries: &BTreeMap<PluginName, RegisteredPlugin>,
) -> impl Iterator<Item = &ToolDescriptor> {
    entries.values().filter(|entry| entry.is_ready()).flat_map(RegisteredPlugin::tools)
}

/// Drops plugins that share a name: it is unclear which one is meant. Only a built-in plugin may
/// have a built-in name.
fn remove_duplicate_names(
    candidates: Vec<PluginCandidate>,
    problems: &mut Vec<PluginProblem>,
) -> Vec<PluginCandidate> {
    let mut by_name: BTreeMap<PluginName, Vec<PluginCandidate>> = BTreeMap::new();
    for candidate in candidates {
        by_name.entry(candidate.manifest.name.clone()).or_default().push(candidate);
    }
    let mut unique = Vec::new();
    for (name, namesakes) in by_name {
        let (mut own, mut others): (Vec<_>, Vec<_>) =
            namesakes.into_iter().partition(|one| one.file().is_none());
        let is_internal = internal::is_internal_plugin(&name);
        if !is_internal && others.len() == 1 {
            unique.append(&mut others);
        } else {
            problems.extend(duplicate_name_problem(&name, &others, is_internal));
            unique.append(&mut own);
        }
    }
    unique
}

/// The problem of plugins that share a name, if there are any.
fn duplicate_name_problem(
    name: &PluginName,
    all: &[PluginCandidate],
    is_internal: bool,
) -> Option<PluginProblem> {
    let first = all.first()?.file()?;
    let locations =
        all.iter().filter_map(PluginCandidate::file).map(|file| file.display().to_string());
    let locations = locations.collect::<Vec<_>>().join(" and ");
    let (message, hint) = match is_internal {
        true => (
            format!("{name} is the name of a built-in plugin: {locations}"),
            "give it another name in its manifest or definition".to_owned(),
        ),
        false => (
            format!("several plugins are called {name}: {locations}"),
            "remove or rename all but one; until then none of them is loaded".to_owned(),
        ),
    };
    Some(PluginProblem::new(first, message, hint).with_plugin(name))
}

fn reject_colliding_plugins(
    entries: &mut BTreeMap<PluginName, RegisteredPlugin>,
    problems: &mut Vec<PluginProblem>,
    collision: &ToolNameCollision,
) {
    for ToolId { plugin, .. } in [&collision.first, &collision.second] {
        if let Some(entry) = entries.remove(plugin) {
            let hint = "until then the plugins that hold them are not loaded";
            let location = entry.file().unwrap_or(Path::new("the program itself"));
            let problem = PluginProblem::new(location, collision.to_string(), hint);
            problems.push(problem.with_plugin(plugin));
        }
    }
}

type AcceptedPins = Vec<(PluginName, PluginPin)>;

/// The facts about a plugin before it has an entry.
struct LoadedPlugin {
    manifest: Manifest,
    implementation: PluginImplementation,
    digest: String,
    tools: Vec<ToolDescriptor>,
    remarks: Vec<String>,
    /// Why it cannot be used, as it reports itself.
    disabled_reason: Option<String>,
    /// It is still being compiled, so its tools are unknown.
    is_compiling: bool,
    /// Its component, for a setup at the start.
    setup_file: Option<ComponentFile>,
}

fn load_candidate(
    parts: &LoadParts<'_>,
    prepared: PreparedCandidate,
) -> Result<LoadedPlugin, PluginProblem> {
    let (PluginCandidate { manifest, source }, component) = prepared;
    let component = component.transpose().map_err(|error| {
        load_problem(source.file().unwrap_or(Path::new("")), &manifest.name, &error)
    })?;
    match (source, component) {
        (CandidateSource::Component(_), Some(component)) => {
            Ok(load_component_plugin(parts, manifest, component))
        }
        (CandidateSource::Script(script_plugin), component) => {
            Ok(load_script_plugin(parts, *script_plugin, component))
        }
        (CandidateSource::Internal(tool), _) => Ok(load_internal_plugin(manifest, tool)),
        (CandidateSource::Component(path), None) => Err(PluginProblem::new(
            &path,
            "its component was not read",
            "this is a bug of the host",
        )
        .with_plugin(&manifest.name)),
    }
}

fn build_entry(
    parts: &LoadParts<'_>,
    loaded_plugin: LoadedPlugin,
    accepted_pins: &mut AcceptedPins,
) -> (RegisteredPlugin, Option<ComponentFile>) {
    let none = Map::new();
    let given =
        parts.settings.plugin_settings.get(&loaded_plugin.manifest.name).unwrap_or(&none).clone();
    let settings = loaded_plugin.manifest.settings.with_defaults(&given);
    let disabled_reason = loaded_plugin
        .disabled_reason
        .clone()
        .or_else(|| settings_problem(&loaded_plugin.manifest, &given, &settings));
    let availability = match disabled_reason {
        None if loaded_plugin.is_compiling => PluginAvailability::Compiling,
        None => compare_with_lock(parts, &loaded_plugin, accepted_pins),
        Some(reason) => PluginAvailability::Disabled { reason },
    };
    let LoadedPlugin { manifest, implementation, digest, tools, remarks, setup_file, .. } =
        loaded_plugin;
    let schemas = tools.iter().map(|_| ToolSchemas::default()).collect();
    let plugin_info = PluginInfo { manifest, settings: given, digest };
    let authorizer = Arc::new(PluginAuthorizer::new(Arc::clone(&parts.gate), plugin_info));
    (
        RegisteredPlugin {
            authorizer,
            implementation,
            tools,
            settings,
            availability,
            schemas,
            remarks,
        },
        setup_file,
    )
}

fn load_component_plugin(
    parts: &LoadParts<'_>,
    manifest: Manifest,
    component: PreparedComponent,
) -> LoadedPlugin {
    let PreparedComponent { file, readiness } = component;
    let implementation = PluginImplementation::Component(LazyComponent::new(&file));
    let digest = file.digest().to_owned();
    let ComponentReadiness::Tools(metadata) = readiness else {
        return LoadedPlugin {
            manifest,
            implementation,
            digest,
            tools: Vec::new(),
            remarks: Vec::new(),
            disabled_reason: None,
            is_compiling: true,
            setup_file: None,
        };
    };
    let remarks = unnamed_role_remarks(&metadata, &manifest);
    // With `Only`, the plugin will be called; otherwise it may never be.
    let is_needed = metadata.managed || matches!(parts.selection, PluginSelection::Only(_));
    LoadedPlugin {
        implementation,
        digest,
        tools: metadata.tools,
        remarks,
        disabled_reason: None,
        is_compiling: false,
        setup_file: is_needed.then_some(file),
        manifest,
    }
}

/// Remarks on the roles that a component exports but its manifest does not name.
fn unnamed_role_remarks(metadata: &ComponentMetadata, manifest: &Manifest) -> Vec<String> {
    let remark = |role: PluginRole| {
        format!("it exports the role \"{}\", which its manifest does not name", role.as_str())
    };
    metadata.undeclared_roles(manifest).into_iter().map(remark).collect()
}

fn load_script_plugin(
    parts: &LoadParts<'_>,
    script_plugin: ScriptPlugin,
    component: Option<PreparedComponent>,
) -> LoadedPlugin {
    let ScriptPlugin { script, manifest, tool, remarks } = script_plugin;
    let disabled_text = "its definition.json says that it is not enabled";
    let disabled_reason = (!script.definition.enabled).then(|| disabled_text.to_owned());
    let (digest, path) = (script.digest.to_string(), script.program.path.clone());
    let time_max = script.definition.timeout;
    let is_compiling = matches!(
        &component,
        Some(PreparedComponent { readiness: ComponentReadiness::Compiling, .. })
    );
    let (implementation, setup_file) = match component {
        None => (
            PluginImplementation::Script { native_script: NativeScript::new(script), file: path },
            None,
        ),
        Some(PreparedComponent { file, .. }) => {
            let implementation = PluginImplementation::Component(LazyComponent::new_command(
                &file,
                tool.clone(),
                time_max,
            ));
            let is_needed = !is_compiling && matches!(parts.selection, PluginSelection::Only(_));
            (implementation, is_needed.then_some(file))
        }
    };
    LoadedPlugin {
        manifest,
        implementation,
        digest,
        tools: vec![tool],
        remarks,
        disabled_reason,
        is_compiling,
        setup_file,
    }
}

fn load_internal_plugin(manifest: Manifest, tool: Arc<dyn InternalTool>) -> LoadedPlugin {
    LoadedPlugin {
        digest: internal_plugin_digest(&manifest).to_hex().to_string(),
        tools: tool.tools(),
        implementation: PluginImplementation::Internal(tool),
        remarks: Vec::new(),
        disabled_reason: None,
        is_compiling: false,
        setup_file: None,
        manifest,
    }
}

/// Replaces a component's digest: rules and approvals apply to one version of a built-in plugin.
fn internal_plugin_digest(manifest: &Manifest) -> blake3::Hash {
    blake3::hash(format!("{} {}", manifest.name, manifest.version).as_bytes())
}

fn load_problem(path: &Path, plugin: &PluginName, error: &LoadError) -> PluginProblem {
    PluginProblem::new(path, error.to_string(), error.hint()).with_plugin(plugin)
}

/// Compares a plugin with its accepted version, and notes a newly accepted one. A built-in plugin
/// needs no acceptance: the user installed it with the program.
fn compare_with_lock(
    parts: &LoadParts<'_>,
    loaded_plugin: &LoadedPlugin,
    accepted_pins: &mut AcceptedPins,
) -> PluginAvailability {
    let LoadedPlugin { manifest, digest, tools, .. } = loaded_plugin;
    if let PluginImplementation::Internal(_) = loaded_plugin.implementation {
        return PluginAvailability::Ready;
    }
    let pin = PluginPin::from_plugin(manifest, digest, tools);
    match parts.lock.compare_plugin(&manifest.name, &pin) {
        PinComparison::Same => return PluginAvailability::Ready,
        PinComparison::New if !parts.pins_new_plugins => return PluginAvailability::Ready,
        PinComparison::New => {}
        PinComparison::Changed(differences) => {
            if !(parts.accepts_change)(&manifest.name, &differences) {
                return PluginAvailability::Changed { differences };
            }
        }
    }
    accepted_pins.push((manifest.name.clone(), pin));
    PluginAvailability::Ready
}

/// Runs the setup of a plugin that has one, and disables the plugin if the setup fails.
async fn set_up_plugin(
    sandbox: &Arc<Sandbox>,
    mut entry: RegisteredPlugin,
    file: Option<ComponentFile>,
) -> RegisteredPlugin {
    let Some(file) = file.filter(|_| entry.is_ready()) else { return entry };
    let reason = match entry.prepare_from_file(sandbox, &file) {
        Ok(plugin) => plugin.run_setup().await.err().map(|unavailable| unavailable.to_string()),
        Err(failure) => Some(failure.detail.unwrap_or(failure.message)),
    };
    if let Some(reason) = reason {
        entry.availability = PluginAvailability::Disabled { reason };
    }
    entry
}

/// Describes the problem of a plugin's settings, and where to fix it.
fn settings_problem(
    manifest: &Manifest,
    given: &Map<String, Value>,
    own: &Map<String, Value>,
) -> Option<String> {
    let name = &manifest.name;
    let missing = manifest.settings.missing_settings(given);
    if !missing.is_empty() {
        return Some(format!(
            "these settings are missing: {}; set them under [settings.{name}] in sallyport.toml",
            missing.join(", ")
        ));
    }
    // Defaults are the author's responsibility, and compiling a schema at every start takes time.
    if given.is_empty() {
        return None;
    }
    let schema = match CompiledSchema::new(manifest.settings.json_schema()) {
        Ok(schema) => schema,
        Err(reason) => return Some(format!("the manifest's settings are no schema: {reason}")),
    };
    let schema_errors = schema.check_value(&Value::Object(own.clone())).err()?;
    Some(format!("[settings.{name}] does not fit: {}", schema_errors.join("; ")))
}
