//! Loading: builds a registry from the contents of the plugin folders.
//!
//! 1. Find candidates and read their manifests. Two plugins with the same name are both rejected,
//!    and so is one with the name of a built-in plugin.
//! 2. Ask each component for its tools, or take them from the cache; a script's definition lists
//!    them. Uncompiled components are compiled concurrently, for as long as the start waits.
//! 3. Compare each plugin with its accepted version. A changed one is blocked until the user
//!    accepts it.
//! 4. Compute each plugin's settings, and create its authorizer, which knows its effective grant.
//! 5. Run the setup of the plugins that have one. A plugin whose setup fails is disabled.
//! 6. Reject tools that a model could not tell apart.
//!
//! When the plugins are loaded again, a plugin of which nothing has changed is kept as it is, with
//! its compiled code and its instances.

mod definition;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures::future::join_all;
use sallyport_contract::{
    LOCAL_USER, NameTable, PluginName, ToolDescriptor, ToolId, mangle::ToolNameCollision,
};
use sallyport_policy::{Manifest, PluginRole};
use sallyport_sandbox::{
    CompileProgress, ComponentFile, ComponentMetadata, LoadError, Sandbox, schema::CompiledSchema,
};
use serde_json::{Map, Value};

use super::{
    Registry,
    discover::{
        CandidateSource, PluginCandidate, PluginProblem, discover_plugin_file, discover_plugins,
    },
    entry::{ComponentFacts, PluginAvailability, RegisteredPlugin, ToolSchemas},
    prepare::{ComponentReadiness, PreparedCandidate, PreparedComponent, prepare_candidates},
};
use crate::{
    config::{HostSettings, McpServerError, McpServerSettings, SettingOrigin},
    executor::{LazyComponent, PluginExecutor, PluginKind},
    gate::{
        Gate,
        authorizer::{PluginAuthorizer, PluginInfo},
    },
    internal::{self, InternalTool},
    lock::{AcceptedPlugin, LockError, LockFile, PinComparison, PluginPin},
    mcp::{KnownTools, McpServerPlugin, ServerPolicy},
    script::{NativeScript, ScriptPlugin},
};

/// A host that waits less than this for its plugins starts no MCP server to learn its tools.
const SERVER_WAIT_MIN: Duration = Duration::from_secs(1);

/// Longest wait for an MCP server whose tools are not known yet, if all plugins are loaded: the
/// others should not wait for one that does not answer.
const SERVER_START_TIME_MAX: Duration = Duration::from_secs(10);

/// The plugins that a command needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PluginSelection {
    /// All plugins.
    All,
    /// One plugin. The others' manifests are read too, so that a second plugin of that name is
    /// noticed.
    Only(PluginName),
    /// Some plugins, for a session that uses no others.
    AnyOf(BTreeSet<PluginName>),
    /// The plugin of one file or folder, which need not be in a plugin folder.
    File(PathBuf),
}

impl PluginSelection {
    /// The one plugin that is selected by its name.
    fn only(&self) -> Option<&PluginName> {
        match self {
            Self::Only(name) => Some(name),
            Self::All | Self::AnyOf(_) | Self::File(_) => None,
        }
    }

    fn includes(&self, name: &PluginName) -> bool {
        match self {
            Self::All | Self::File(_) => true,
            Self::Only(only) => only == name,
            Self::AnyOf(names) => names.contains(name),
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
    /// The registry that this one replaces, if any. Its unchanged plugins are kept.
    pub previous: Option<&'a Registry>,
    /// How long to wait for components that are not compiled yet.
    pub compile_wait: Duration,
    /// MCP servers that are not in the configuration.
    pub added_servers: &'a BTreeMap<PluginName, McpServerSettings>,
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
        let (candidates, mut problems) = find_candidates(&parts);
        let candidates = remove_duplicate_names(candidates, &mut problems);
        let names = candidates.iter().map(|one| one.manifest.name.clone()).collect();
        let (mut loaded, mut accepted) = (Vec::new(), Vec::new());
        let selected =
            candidates.into_iter().filter(|one| parts.selection.includes(&one.manifest.name));
        let mut entries = BTreeMap::new();
        let mut unknown = Vec::new();
        for candidate in selected {
            match find_unchanged_plugin(&parts, &candidate) {
                Some(entry) => drop(entries.insert(entry.name().clone(), entry)),
                None => unknown.push(candidate),
            }
        }
        list_server_tools(&parts, &unknown).await;
        for prepared in prepare_candidates(&parts, unknown).await {
            match load_candidate(&parts, prepared) {
                Ok(loaded_plugin) => loaded.push(build_entry(&parts, loaded_plugin, &mut accepted)),
                Err(problem) => problems.push(problem),
            }
        }
        // Nothing of a plugin may have run if this fails.
        if !accepted.is_empty() {
            let changed = parts.lock.accept_unless_changed(accepted)?;
            loaded.iter_mut().for_each(|(entry, _)| entry.block_if_changed(&changed));
        }
        let set_up = loaded.into_iter().map(|(entry, file)| set_up_plugin(entry, file));
        let ready = join_all(set_up).await.into_iter();
        entries.extend(ready.map(|entry| (entry.name().clone(), Arc::new(entry))));
        while let Err(collision) = NameTable::new(ready_tools(&entries).map(|tool| &tool.id)) {
            reject_colliding_plugins(&mut entries, &mut problems, &collision);
        }
        let tools = ready_tools(&entries).cloned().collect();
        let LoadParts { gate, sandbox, .. } = parts;
        Ok(Self { entries, names, problems, tools, gate, sandbox })
    }
}

/// The plugins of the plugin folders and the built-in ones, or that of one file.
fn find_candidates(parts: &LoadParts<'_>) -> (Vec<PluginCandidate>, Vec<PluginProblem>) {
    let settings = parts.settings;
    if let PluginSelection::File(file) = &parts.selection {
        return discover_plugin_file(file, &settings.env);
    }
    let named = settings.plugin_dirs_origin != SettingOrigin::Default;
    let (mut candidates, mut problems) =
        discover_plugins(&settings.plugin_dirs, named, parts.selection.only(), &settings.env);
    let internal = internal::enabled_tools(settings.internal).into_iter();
    candidates.extend(internal.map(PluginCandidate::from_internal_tool));
    let servers = settings.mcp_servers.iter().chain(parts.added_servers);
    for (name, server) in servers {
        let server = McpServerPlugin::new(name, server, &settings.env, &settings.paths);
        match server.and_then(PluginCandidate::from_mcp_server) {
            Ok(candidate) => candidates.push(candidate),
            Err(error) => problems.push(mcp_problem(parts, name, &error)),
        }
    }
    (candidates, problems)
}

fn mcp_problem(parts: &LoadParts<'_>, name: &PluginName, error: &McpServerError) -> PluginProblem {
    let message = format!("[mcp.{name}] cannot be used: {error}");
    PluginProblem::new(&parts.settings.config_file, message, error.hint()).with_plugin(name)
}

/// Finds out the tools of the MCP servers among candidates, of all at the same time.
async fn list_server_tools(parts: &LoadParts<'_>, candidates: &[PluginCandidate]) {
    // A command that only lists plugins starts no server.
    let may_start = parts.compile_wait >= SERVER_WAIT_MIN;
    let start_time_max = match parts.selection {
        PluginSelection::All | PluginSelection::AnyOf(_) => SERVER_START_TIME_MAX,
        PluginSelection::Only(_) | PluginSelection::File(_) => Duration::MAX,
    };
    let policy = parts.gate.policy_store.current().policy;
    let listed = candidates.iter().filter_map(|candidate| match &candidate.source {
        CandidateSource::McpServer(server) => {
            let grant = policy.effective_grant(&candidate.manifest, &Map::new());
            let proxies = policy.proxy();
            Some(async move {
                let policy = ServerPolicy { grant: &grant, proxies };
                let credential = async {
                    let service = server.account_service()?;
                    let token = parts.gate.user_token(service, LOCAL_USER).await.ok()?;
                    Some(token.into_credential().value)
                };
                let policy = may_start.then_some(policy);
                server.find_tools(policy, credential, start_time_max, &parts.gate).await;
            })
        }
        _ => None,
    });
    join_all(listed).await;
}

/// The loaded plugin that a candidate is, if nothing about it has changed and it is still the
/// accepted one.
fn find_unchanged_plugin(
    parts: &LoadParts<'_>,
    candidate: &PluginCandidate,
) -> Option<Arc<RegisteredPlugin>> {
    let entry = parts.previous?.entries.get(&candidate.manifest.name)?;
    let digest = match &candidate.source {
        CandidateSource::Component(path) => {
            parts.sandbox.open_component(path).ok()?.digest().to_owned()
        }
        CandidateSource::Script(script_plugin) => script_plugin.script.digest.to_string(),
        CandidateSource::Definition(plugin) => {
            let component =
                plugin.component.as_ref().map(|path| parts.sandbox.open_component(path));
            let component = component.transpose().ok()?;
            plugin.digest(component.as_ref().map(ComponentFile::digest))
        }
        CandidateSource::McpServer(server) => server.digest().to_owned(),
        CandidateSource::Internal(_) => internal_plugin_digest(&candidate.manifest),
    };
    let is_same_server = match &candidate.source {
        CandidateSource::McpServer(server) => server.has_known_tools(entry.tools()),
        _ => true,
    };
    let is_unchanged = entry.is_ready()
        && is_same_server
        && entry.file() == candidate.file()
        && *entry.manifest() == candidate.manifest
        && entry.authorizer.plugin_info().settings == given_settings(parts, &candidate.manifest)
        && entry.digest() == digest;
    let is_accepted = || {
        entry.kind() == PluginKind::Internal
            || parts.lock.compare_plugin(entry.name(), &entry.pin()) == PinComparison::Same
    };
    (is_unchanged && is_accepted()).then(|| Arc::clone(entry))
}

fn ready_tools(
    entries: &BTreeMap<PluginName, Arc<RegisteredPlugin>>,
) -> impl Iterator<Item = &ToolDescriptor> {
    entries.values().filter(|entry| entry.is_ready()).flat_map(|entry| entry.tools())
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
            namesakes.into_iter().partition(PluginCandidate::is_internal);
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
    let first = all.first()?.location();
    let locations = all.iter().map(|one| one.location().display().to_string());
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
    Some(PluginProblem::new(&first, message, hint).with_plugin(name))
}

fn reject_colliding_plugins(
    entries: &mut BTreeMap<PluginName, Arc<RegisteredPlugin>>,
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

/// The facts about a plugin before it has an entry.
struct LoadedPlugin {
    manifest: Manifest,
    executor: Box<dyn PluginExecutor>,
    digest: String,
    tools: Vec<ToolDescriptor>,
    remarks: Vec<String>,
    /// Why it cannot be used, as it reports itself.
    disabled_reason: Option<String>,
    /// It is still being compiled, so its tools are unknown.
    is_compiling: bool,
    /// Its component, for a setup at the start.
    setup_file: Option<ComponentFile>,
    /// What is known of its component.
    component: Option<ComponentFacts>,
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
        (CandidateSource::Definition(plugin), component) => {
            Ok(definition::load_definition(parts, manifest, &plugin, component))
        }
        (CandidateSource::McpServer(server), _) => Ok(load_mcp_server(manifest, server)),
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
    accepted: &mut Vec<AcceptedPlugin>,
) -> (RegisteredPlugin, Option<ComponentFile>) {
    let given = given_settings(parts, &loaded_plugin.manifest);
    let disabled_reason = loaded_plugin
        .disabled_reason
        .clone()
        .or_else(|| settings_problem(&loaded_plugin.manifest, &given));
    let (availability, is_accepted_now) = match disabled_reason {
        None if loaded_plugin.is_compiling => (PluginAvailability::Compiling, false),
        None => compare_with_lock(parts, &loaded_plugin),
        Some(reason) => (PluginAvailability::Disabled { reason }, false),
    };
    let LoadedPlugin { manifest, executor, digest, tools, remarks, setup_file, component, .. } =
        loaded_plugin;
    let schemas = tools.iter().map(|_| ToolSchemas::default()).collect();
    let account = executor.account_service().cloned();
    let plugin_info = PluginInfo { manifest, settings: given, digest, account };
    let authorizer = Arc::new(PluginAuthorizer::new(Arc::clone(&parts.gate), plugin_info));
    let entry =
        RegisteredPlugin { authorizer, executor, tools, availability, schemas, remarks, component };
    if is_accepted_now {
        accepted.push(entry.as_accepted());
    }
    (entry, setup_file)
}

/// The settings of a plugin from the configuration, without defaults.
fn given_settings(parts: &LoadParts<'_>, manifest: &Manifest) -> Map<String, Value> {
    parts.settings.plugin_settings.get(&manifest.name).cloned().unwrap_or_default()
}

fn load_component_plugin(
    parts: &LoadParts<'_>,
    manifest: Manifest,
    component: PreparedComponent,
) -> LoadedPlugin {
    let PreparedComponent { file, readiness } = component;
    let settings = manifest.settings.with_defaults(&given_settings(parts, &manifest));
    let executor = Box::new(LazyComponent::new(&parts.sandbox, &file, settings, None));
    let digest = file.digest().to_owned();
    let ComponentReadiness::Tools(metadata) = readiness else {
        return LoadedPlugin {
            manifest,
            executor,
            digest,
            tools: Vec::new(),
            remarks: Vec::new(),
            disabled_reason: None,
            is_compiling: true,
            setup_file: None,
            component: None,
        };
    };
    let mut remarks = unnamed_role_remarks(&metadata, &manifest);
    let component = ComponentFacts::new(&file, &metadata, &manifest);
    remarks.extend_from_slice(metadata.refused_functions());
    remarks.extend_from_slice(&component.unrequested_imports);
    // With `Only`, the plugin will be called; with `File`, it is only looked at, so nothing of it
    // runs; otherwise it may never be called.
    let is_needed = match parts.selection {
        PluginSelection::Only(_) => true,
        PluginSelection::File(_) => false,
        PluginSelection::All | PluginSelection::AnyOf(_) => metadata.managed,
    };
    LoadedPlugin {
        executor,
        digest,
        tools: metadata.tools,
        remarks,
        disabled_reason: None,
        is_compiling: false,
        setup_file: is_needed.then_some(file),
        component: Some(component),
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
    let digest = script.digest.to_string();
    let command = (tool.clone(), script.definition.timeout);
    let is_compiling = matches!(
        &component,
        Some(PreparedComponent { readiness: ComponentReadiness::Compiling, .. })
    );
    let (executor, setup_file): (Box<dyn PluginExecutor>, _) = match component {
        None => (Box::new(NativeScript::new(script)), None),
        Some(PreparedComponent { file, .. }) => {
            let settings = manifest.settings.with_defaults(&given_settings(parts, &manifest));
            let component = LazyComponent::new(&parts.sandbox, &file, settings, Some(command));
            let is_needed = !is_compiling && matches!(parts.selection, PluginSelection::Only(_));
            (Box::new(component), is_needed.then_some(file))
        }
    };
    LoadedPlugin {
        manifest,
        executor,
        digest,
        tools: vec![tool],
        remarks,
        disabled_reason,
        is_compiling,
        setup_file,
        component: None,
    }
}

fn load_mcp_server(manifest: Manifest, server: Arc<McpServerPlugin>) -> LoadedPlugin {
    let KnownTools { tools, remarks, problem } = server.known_tools();
    LoadedPlugin {
        digest: server.digest().to_owned(),
        tools,
        executor: Box::new(server),
        remarks,
        disabled_reason: problem,
        is_compiling: false,
        setup_file: None,
        component: None,
        manifest,
    }
}

fn load_internal_plugin(manifest: Manifest, tool: Arc<dyn InternalTool>) -> LoadedPlugin {
    LoadedPlugin {
        digest: internal_plugin_digest(&manifest),
        tools: tool.tools(),
        executor: Box::new(tool),
        remarks: Vec::new(),
        disabled_reason: None,
        is_compiling: false,
        setup_file: None,
        component: None,
        manifest,
    }
}

/// Replaces a component's digest: rules and approvals apply to one version of a built-in plugin.
fn internal_plugin_digest(manifest: &Manifest) -> String {
    let version = format!("{} {}", manifest.name, manifest.version);
    blake3::hash(version.as_bytes()).to_hex().to_string()
}

fn load_problem(path: &Path, plugin: &PluginName, error: &LoadError) -> PluginProblem {
    PluginProblem::new(path, error.to_string(), error.hint()).with_plugin(plugin)
}

/// Compares a plugin with its accepted version. Returns whether it is accepted now. A built-in
/// plugin needs no acceptance: the user installed it with the program.
fn compare_with_lock(
    parts: &LoadParts<'_>,
    loaded_plugin: &LoadedPlugin,
) -> (PluginAvailability, bool) {
    let LoadedPlugin { manifest, digest, tools, .. } = loaded_plugin;
    if loaded_plugin.executor.kind() == PluginKind::Internal {
        return (PluginAvailability::Ready, false);
    }
    let pin = PluginPin::from_plugin(manifest, digest, tools);
    match parts.lock.compare_plugin(&manifest.name, &pin) {
        PinComparison::Same => (PluginAvailability::Ready, false),
        PinComparison::New => (PluginAvailability::Ready, parts.pins_new_plugins),
        PinComparison::Changed(differences) => {
            match (parts.accepts_change)(&manifest.name, &differences) {
                true => (PluginAvailability::Ready, true),
                false => (PluginAvailability::Changed { differences }, false),
            }
        }
    }
}

/// Runs the setup of a plugin that has one, and disables the plugin if the setup fails.
async fn set_up_plugin(
    mut entry: RegisteredPlugin,
    file: Option<ComponentFile>,
) -> RegisteredPlugin {
    let Some(file) = file.filter(|_| entry.is_ready()) else { return entry };
    let reason = match entry.prepare_from_file(&file) {
        Ok(plugin) => plugin.run_setup().await.err().map(|unavailable| unavailable.to_string()),
        Err(failure) => Some(failure.detail.unwrap_or(failure.message)),
    };
    if let Some(reason) = reason {
        entry.availability = PluginAvailability::Disabled { reason };
    }
    entry
}

/// Describes the problem of a plugin's settings, and where to fix it.
fn settings_problem(manifest: &Manifest, given: &Map<String, Value>) -> Option<String> {
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
    let schema_errors =
        schema.check_value(&Value::Object(manifest.settings.with_defaults(given))).err()?;
    Some(format!("[settings.{name}] does not fit: {}", schema_errors.join("; ")))
}
