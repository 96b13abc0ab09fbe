//! Loading: from what was found in the plugin folders to a registry.
//!
//! 1. Find candidates and read their manifests. Two plugins with one name: both are refused.
//! 2. Ask each component for its tools, or take them from the cache.
//! 3. Compare each with what was agreed to about it; a changed one stops until the user agrees.
//! 4. Compute each plugin's settings, and put a warden over it, who knows its effective grant.
//! 5. Run the set-up of those that have one; who says no is disabled, nothing else.
//! 6. Refuse tools that a model could not tell apart.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use sallyport_contract::{NameTable, PluginName, ToolId, ToolSpec, mangle::Collision};
use sallyport_policy::Manifest;
use sallyport_sandbox::{ComponentFile, LoadError, Metadata, Sandbox, schema::Schema};
use serde_json::{Map, Value};

use super::{
    Registry,
    discover::{Candidate, Problem, discover},
    entry::{Entry, State, ToolSchemas},
};
use crate::{
    config::{Origin, Settings},
    gate::{
        Gate,
        warden::{Charge, PluginWarden},
    },
    lock::{Lock, LockError, Match, Pin},
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
        let (candidates, mut problems) = discover(&settings.plugin_dirs, named);
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

/// Of two plugins with one name neither is loaded: which one was meant, nobody can tell.
fn without_namesakes(candidates: Vec<Candidate>, problems: &mut Vec<Problem>) -> Vec<Candidate> {
    let mut by_name: BTreeMap<PluginName, Vec<Candidate>> = BTreeMap::new();
    for candidate in candidates {
        by_name.entry(candidate.manifest.name.clone()).or_default().push(candidate);
    }
    let mut single = Vec::new();
    for (name, mut namesakes) in by_name {
        if namesakes.len() == 1 {
            single.append(&mut namesakes);
            continue;
        }
        let places: Vec<String> =
            namesakes.iter().map(|one| one.component.display().to_string()).collect();
        let message = format!("several plugins are called {name}: {}", places.join(" and "));
        let hint = "remove or rename all but one; until then none of them is loaded";
        problems.push(Problem::new(&namesakes[0].component, message, hint).of(&name));
    }
    single
}

fn refuse_both(
    entries: &mut BTreeMap<PluginName, Entry>,
    problems: &mut Vec<Problem>,
    collision: &Collision,
) {
    for ToolId { plugin, .. } in [&collision.first, &collision.second] {
        if let Some(entry) = entries.remove(plugin) {
            let hint = "until then the plugins that hold them are not loaded";
            let problem = Problem::new(&entry.component, collision.to_string(), hint);
            problems.push(problem.of(plugin));
        }
    }
}

type Agreed = Vec<(PluginName, Pin)>;

async fn entry(
    parts: &LoadParts<'_>,
    candidate: Candidate,
    agreed: &mut Agreed,
) -> Result<Entry, Problem> {
    let Candidate { manifest, component } = candidate;
    let problem = |error: LoadError| {
        Problem::new(&component, error.to_string(), error.hint()).of(&manifest.name)
    };
    let file = ComponentFile::read(&component).map_err(problem)?;
    let metadata = parts.sandbox.inspect(&file, &manifest).await.map_err(problem)?;
    let none = Map::new();
    let given = parts.settings.plugin_settings.get(&manifest.name).unwrap_or(&none).clone();
    let own = manifest.settings.with_defaults(&given);
    let state = match missing_or_wrong(&manifest, &given, &own) {
        None => compare(parts, &manifest, &metadata, agreed),
        Some(reason) => State::Disabled { reason },
    };
    let schemas = metadata.tools.iter().map(|_| ToolSchemas::default()).collect();
    let managed = metadata.managed;
    let charge = Charge { manifest, settings: given, digest: metadata.digest.clone() };
    let warden = Arc::new(PluginWarden::new(Arc::clone(&parts.gate), charge));
    let plugin = OnceLock::new();
    let mut entry = Entry { warden, component, metadata, settings: own, state, plugin, schemas };
    // The one plugin that is asked for will be called; the others may never be.
    if entry.is_ready() && (managed || matches!(parts.selection, Selection::Only(_))) {
        set_up(&mut entry, &parts.sandbox, &file).await;
    }
    Ok(entry)
}

/// Compares a plugin with what was agreed to, and notes what is agreed to now.
fn compare(
    parts: &LoadParts<'_>,
    manifest: &Manifest,
    metadata: &Metadata,
    agreed: &mut Agreed,
) -> State {
    let pin = Pin::of(manifest, &metadata.digest, &metadata.tools);
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
