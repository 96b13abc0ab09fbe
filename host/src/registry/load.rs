//! Loading: from what was found in the plugin folders to a registry.
//!
//! 1. Find candidates and read their manifests. Two plugins with one name: both are refused.
//! 2. Ask each component for its tools, or take them from the cache.
//! 3. Compute each plugin's settings and effective grant.
//! 4. Run the set-up of those that have one; who says no is disabled, nothing else.
//! 5. Refuse tools that a model could not tell apart.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use sallyport_contract::{Consent, NameTable, PluginName, ToolId, ToolSpec, mangle::Collision};
use sallyport_sandbox::{ComponentFile, LoadError, Sandbox, schema::Schema};
use serde_json::{Map, Value};

use super::{
    Registry,
    discover::{Candidate, Problem, discover},
    entry::{Entry, State, ToolSchemas},
};
use crate::config::{Origin, Settings};

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

impl Registry {
    /// Loads what is valid, notes what is not, and goes on.
    pub async fn load(
        sandbox: Arc<Sandbox>,
        settings: &Settings,
        consent: Arc<dyn Consent>,
        selection: Selection,
    ) -> Self {
        let named = settings.plugin_dirs_origin != Origin::Default;
        let (candidates, mut problems) = discover(&settings.plugin_dirs, named);
        let candidates = without_namesakes(candidates, &mut problems);
        let names = candidates.iter().map(|one| one.manifest.name.clone()).collect();
        let mut entries = BTreeMap::new();
        for candidate in candidates {
            if selection.wants(&candidate.manifest.name) {
                match entry(&sandbox, settings, candidate, &selection).await {
                    Ok(entry) => {
                        entries.insert(entry.name().clone(), entry);
                    }
                    Err(problem) => problems.push(problem),
                }
            }
        }
        while let Err(collision) = NameTable::new(tools(&entries).map(|tool| &tool.id)) {
            refuse_both(&mut entries, &mut problems, &collision);
        }
        let tools = tools(&entries).cloned().collect();
        let policy = settings.policy.clone();
        Self { entries, names, problems, tools, policy, consent, sandbox }
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

async fn entry(
    sandbox: &Arc<Sandbox>,
    settings: &Settings,
    candidate: Candidate,
    selection: &Selection,
) -> Result<Entry, Problem> {
    let Candidate { manifest, component } = candidate;
    let problem = |error: LoadError| {
        Problem::new(&component, error.to_string(), error.hint()).of(&manifest.name)
    };
    let file = ComponentFile::read(&component).map_err(problem)?;
    let metadata = sandbox.inspect(&file, &manifest).await.map_err(problem)?;
    let none = Map::new();
    let given = settings.plugin_settings.get(&manifest.name).unwrap_or(&none);
    let own = manifest.settings.with_defaults(given);
    let state = match missing_or_wrong(&manifest, given, &own) {
        None => State::Ready,
        Some(reason) => State::Disabled { reason },
    };
    let grant = Arc::new(settings.policy.grant(&manifest, given));
    let env = granted_env(grant.env(), settings);
    let schemas = metadata.tools.iter().map(|_| ToolSchemas::default()).collect();
    let managed = metadata.managed;
    let mut entry = Entry {
        manifest,
        component,
        metadata,
        grant,
        settings: own,
        env,
        state,
        plugin: OnceLock::new(),
        schemas,
    };
    // The one plugin that is asked for will be called; the others may never be.
    if entry.is_ready() && (managed || matches!(selection, Selection::Only(_))) {
        set_up(&mut entry, sandbox, &file).await;
    }
    Ok(entry)
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
    manifest: &sallyport_policy::Manifest,
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

fn granted_env(names: &[String], settings: &Settings) -> Vec<(String, String)> {
    let value = |name: &String| Some((name.clone(), settings.env.get(name)?.to_owned()));
    names.iter().filter_map(value).collect()
}
