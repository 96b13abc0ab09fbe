//! Loading: from what was found in the plugin folders to a registry.
//!
//! 1. Find candidates and read their manifests. Two plugins with one name: both are refused. The
//!    host's own names are nobody else's.
//! 2. Ask each component for its tools, or take them from the cache; a script's definition tells.
//! 3. Compare each with what was agreed to about it; a changed one stops until the user agrees.
//! 4. Compute each plugin's settings, and put a warden over it, who knows its effective grant.
//! 5. Run the set-up of those that have one; who says no is disabled, nothing else.
//! 6. Refuse tools that a model could not tell apart.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use sallyport_contract::{NameTable, PluginName, ToolId, ToolSpec, mangle::Collision};
use sallyport_policy::{Manifest, Role};
use sallyport_process::{ProgramKind, Script};
use sallyport_sandbox::{ComponentFile, LoadError, Metadata, Sandbox, schema::Schema};
use serde_json::{Map, Value};

use super::{
    Registry,
    body::{Body, Component},
    discover::{Candidate, Problem, Source, discover},
    entry::{Entry, State, ToolSchemas},
};
use crate::{
    config::{Origin, Settings},
    gate::{
        Gate,
        warden::{Charge, PluginWarden},
    },
    internal::{self, InternalTool},
    lock::{Lock, LockError, Match, Pin},
    script::{Described, Native},
};

/// Which plugins a command needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// All of them.
    All,
    /// One. The others' manifests are read, so that a second plugin of that name is noticed.
    Only(PluginName),
}

impl Selection {
    fn wants(&self, name: &PluginName) -> bool {
        match self {
            Self::All => true,
            Self::Only(only) => only == name,
        }
    }
}

/// What a registry is loaded from.
pub struct LoadParts<'a> {
    /// Runs the components.
    pub sandbox: Arc<Sandbox>,
    /// Where plugins are, and their settings.
    pub settings: &'a Settings,
    /// The gate that their calls will pass.
    pub gate: Arc<Gate>,
    /// Which of them are needed.
    pub selection: Selection,
    /// What was agreed to about plugins.
    pub lock: &'a Lock,
    /// Whether plugins are going to be used: then new ones are pinned.
    pub pins: bool,
    /// Shows the user what has changed about a plugin; true when they agree to it.
    pub agrees: &'a (dyn Fn(&PluginName, &[String]) -> bool + Sync),
}

impl Registry {
    /// Loads what is valid, notes what is not, and goes on.
    ///
    /// # Errors
    ///
    /// The lock cannot be written, so that a change could not be told from a first sight later.
    pub async fn load(parts: LoadParts<'_>) -> Result<Self, LockError> {
        let settings = parts.settings;
        let named = settings.plugin_dirs_origin != Origin::Default;
        let (mut candidates, mut problems) = discover(&settings.plugin_dirs, named);
        candidates.extend(internal::tools(settings.internal).into_iter().map(Candidate::internal));
        let candidates = without_namesakes(candidates, &mut problems);
        let names = candidates.iter().map(|one| one.manifest.name.clone()).collect();
        let (mut entries, mut agreed) = (BTreeMap::new(), Vec::new());
        for candidate in candidates {
            if parts.selection.wants(&candidate.manifest.name) {
                match entry(&parts, candidate, &mut agreed).await {
                    Ok(entry) => {
                        entries.insert(entry.name().clone(), entry);
                    }
                    Err(problem) => problems.push(problem),
                }
            }
        }
        if !agreed.is_empty() {
            parts.lock.accept(agreed)?;
        }
        while let Err(collision) = NameTable::new(tools(&entries).map(|tool| &tool.id)) {
            refuse_both(&mut entries, &mut problems, &collision);
        }
        let tools = tools(&entries).cloned().collect();
        let LoadParts { gate, sandbox, .. } = parts;
        Ok(Self { entries, names, problems, tools, gate, sandbox })
    }
}

fn tools(entries: &BTreeMap<PluginName, Entry>) -> impl Iterator<Item = &ToolSpec> {
    entries.values().filter(|entry| entry.is_ready()).flat_map(Entry::tools)
}

/// Of two plugins with one name neither is loaded: which one was meant, nobody can tell. A name of
/// the host's own is never another's.
fn without_namesakes(candidates: Vec<Candidate>, problems: &mut Vec<Problem>) -> Vec<Candidate> {
    let mut by_name: BTreeMap<PluginName, Vec<Candidate>> = BTreeMap::new();
    for candidate in candidates {
        by_name.entry(candidate.manifest.name.clone()).or_default().push(candidate);
    }
    let mut single = Vec::new();
    for (name, namesakes) in by_name {
        let (mut own, mut others): (Vec<_>, Vec<_>) =
            namesakes.into_iter().partition(|one| one.file().is_none());
        let is_own = internal::owns(&name);
        if !is_own && others.len() == 1 {
            single.append(&mut others);
        } else {
            problems.extend(namesake(&name, &others, is_own));
            single.append(&mut own);
        }
    }
    single
}

/// What is wrong with plugins that have one name, if there are any.
fn namesake(name: &PluginName, all: &[Candidate], is_own: bool) -> Option<Problem> {
    let first = all.first()?.file()?;
    let places = all.iter().filter_map(Candidate::file).map(|file| file.display().to_string());
    let places = places.collect::<Vec<_>>().join(" and ");
    let (message, hint) = match is_own {
        true => (
            format!("{name} is the name of tools that the program brings along: {places}"),
            "give it another name in its manifest or definition".to_owned(),
        ),
        false => (
            format!("several plugins are called {name}: {places}"),
            "remove or rename all but one; until then none of them is loaded".to_owned(),
        ),
    };
    Some(Problem::new(first, message, hint).of(name))
}

fn refuse_both(
    entries: &mut BTreeMap<PluginName, Entry>,
    problems: &mut Vec<Problem>,
    collision: &Collision,
) {
    for ToolId { plugin, .. } in [&collision.first, &collision.second] {
        if let Some(entry) = entries.remove(plugin) {
            let hint = "until then the plugins that hold them are not loaded";
            let place = entry.file().unwrap_or(Path::new("the program itself"));
            let problem = Problem::new(place, collision.to_string(), hint);
            problems.push(problem.of(plugin));
        }
    }
}

type Agreed = Vec<(PluginName, Pin)>;

/// What is known of a plugin before it has an entry.
struct Known {
    manifest: Manifest,
    body: Body,
    digest: String,
    tools: Vec<ToolSpec>,
    remarks: Vec<String>,
    /// Why it cannot be used, as it says itself.
    disabled: Option<String>,
    /// Its component, to be set up before anybody needs it.
    to_set_up: Option<ComponentFile>,
}

async fn entry(
    parts: &LoadParts<'_>,
    candidate: Candidate,
    agreed: &mut Agreed,
) -> Result<Entry, Problem> {
    let Candidate { manifest, source } = candidate;
    let known = match source {
        Source::Component(path) => component(parts, manifest, &path).await?,
        Source::Script(described) => script(parts, *described)?,
        Source::Internal(tool) => internal(manifest, tool),
    };
    let (mut entry, file) = made(parts, known, agreed);
    if let Some(file) = file.filter(|_| entry.is_ready()) {
        set_up(&mut entry, &parts.sandbox, &file).await;
    }
    Ok(entry)
}

fn made(
    parts: &LoadParts<'_>,
    known: Known,
    agreed: &mut Agreed,
) -> (Entry, Option<ComponentFile>) {
    let none = Map::new();
    let given = parts.settings.plugin_settings.get(&known.manifest.name).unwrap_or(&none).clone();
    let settings = known.manifest.settings.with_defaults(&given);
    let disabled =
        known.disabled.clone().or_else(|| missing_or_wrong(&known.manifest, &given, &settings));
    let state = match disabled {
        None => compare(parts, &known, agreed),
        Some(reason) => State::Disabled { reason },
    };
    let Known { manifest, body, digest, tools, remarks, to_set_up, .. } = known;
    let schemas = tools.iter().map(|_| ToolSchemas::default()).collect();
    let charge = Charge { manifest, settings: given, digest };
    let warden = Arc::new(PluginWarden::new(Arc::clone(&parts.gate), charge));
    (Entry { warden, body, tools, settings, state, schemas, remarks }, to_set_up)
}

async fn component(
    parts: &LoadParts<'_>,
    manifest: Manifest,
    path: &Path,
) -> Result<Known, Problem> {
    let problem = |error: LoadError| unloadable(path, &manifest.name, &error);
    let file = ComponentFile::read(path).map_err(problem)?;
    let metadata = parts.sandbox.inspect(&file, &manifest).await.map_err(problem)?;
    let remarks = unnamed_roles(&metadata, &manifest);
    // The one plugin that is asked for will be called; the others may never be.
    let is_needed = metadata.managed || matches!(parts.selection, Selection::Only(_));
    Ok(Known {
        body: Body::Component(Component::new(&file)),
        digest: metadata.digest,
        tools: metadata.tools,
        remarks,
        disabled: None,
        to_set_up: is_needed.then_some(file),
        manifest,
    })
}

/// Parts that a component could play and is not asked to.
fn unnamed_roles(metadata: &Metadata, manifest: &Manifest) -> Vec<String> {
    let remark = |role: Role| {
        format!("it exports the role \"{}\", which its manifest does not name", role.word())
    };
    metadata.unnamed_roles(manifest).into_iter().map(remark).collect()
}

fn script(parts: &LoadParts<'_>, described: Described) -> Result<Known, Problem> {
    let Described { script, manifest, tool, remarks } = described;
    let says_no = "its definition.json says that it is not enabled";
    let disabled = (!script.definition.enabled).then(|| says_no.to_owned());
    let (digest, path) = (script.digest.to_string(), script.program.path.clone());
    let (body, to_set_up) = match script.program.kind {
        ProgramKind::Native => (Body::Script { native: Native::new(script), file: path }, None),
        ProgramKind::Component => {
            let file = program(&path, &script)
                .map_err(|error| unloadable(&path, &manifest.name, &error))?;
            let time_max = script.definition.timeout;
            let body = Body::Component(Component::command(&file, tool.clone(), time_max));
            let is_needed = matches!(parts.selection, Selection::Only(_));
            (body, is_needed.then_some(file))
        }
    };
    Ok(Known { manifest, body, digest, tools: vec![tool], remarks, disabled, to_set_up })
}

/// Reads the component again, which has to be the one that was read with the definition.
fn program(path: &Path, script: &Script) -> Result<ComponentFile, LoadError> {
    let file = ComponentFile::read(path)?;
    if file.digest() == script.program.digest.as_str() {
        return Ok(file);
    }
    let message = "it changed while it was read".to_owned();
    Err(LoadError::Invalid { path: path.to_owned(), message })
}

fn internal(manifest: Manifest, tool: Arc<dyn InternalTool>) -> Known {
    Known {
        digest: own_digest(&manifest).to_hex().to_string(),
        tools: tool.tools(),
        body: Body::Internal(tool),
        remarks: Vec::new(),
        disabled: None,
        to_set_up: None,
        manifest,
    }
}

/// Stands in for the digest of a component: rules and approvals of one version hold for that.
fn own_digest(manifest: &Manifest) -> blake3::Hash {
    blake3::hash(format!("{} {}", manifest.name, manifest.version).as_bytes())
}

fn unloadable(path: &Path, plugin: &PluginName, error: &LoadError) -> Problem {
    Problem::new(path, error.to_string(), error.hint()).of(plugin)
}

/// Compares a plugin with what was agreed to, and notes what is agreed to now. A part of the host is
/// what its user installed.
fn compare(parts: &LoadParts<'_>, known: &Known, agreed: &mut Agreed) -> State {
    let Known { manifest, digest, tools, .. } = known;
    if let Body::Internal(_) = known.body {
        return State::Ready;
    }
    let pin = Pin::of(manifest, digest, tools);
    match parts.lock.compare(&manifest.name, &pin) {
        Match::Same => return State::Ready,
        Match::New if !parts.pins => return State::Ready,
        Match::New => {}
        Match::Changed(differences) => {
            if !(parts.agrees)(&manifest.name, &differences) {
                return State::Changed { differences };
            }
        }
    }
    agreed.push((manifest.name.clone(), pin));
    State::Ready
}

async fn set_up(entry: &mut Entry, sandbox: &Arc<Sandbox>, file: &ComponentFile) {
    let reason = match entry.prepare(sandbox, file) {
        Ok(plugin) => plugin.setup().await.err().map(|unavailable| unavailable.to_string()),
        Err(failure) => Some(failure.detail.unwrap_or(failure.message)),
    };
    if let Some(reason) = reason {
        entry.state = State::Disabled { reason };
    }
}

/// What is wrong with a plugin's settings, with the place where to mend it.
fn missing_or_wrong(
    manifest: &Manifest,
    given: &Map<String, Value>,
    own: &Map<String, Value>,
) -> Option<String> {
    let name = &manifest.name;
    let missing = manifest.settings.missing(given);
    if !missing.is_empty() {
        return Some(format!(
            "these settings are missing: {}; set them under [settings.{name}] in sallyport.toml",
            missing.join(", ")
        ));
    }
    // The defaults are the author's business, and preparing a schema takes its time at every start.
    if given.is_empty() {
        return None;
    }
    let schema = match Schema::new(manifest.settings.schema()) {
        Ok(schema) => schema,
        Err(reason) => return Some(format!("the manifest's settings are no schema: {reason}")),
    };
    let complaints = schema.check(&Value::Object(own.clone())).err()?;
    Some(format!("[settings.{name}] does not fit: {}", complaints.join("; ")))
}
