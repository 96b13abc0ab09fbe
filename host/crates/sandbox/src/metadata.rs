//! What is known of a component without running it: its tools, and whether it is managed.
//!
//! Tools are asked for once for every build of a component, without any grant, and kept under its
//! digest. Listing a thousand plugins then reads a thousand small files and instantiates nothing.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use sallyport_contract::{FailureKind, PluginName, ToolId, ToolName, ToolSpec, json};
use sallyport_policy::{Grant, Manifest};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    ComponentFile, LoadError, Sandbox,
    abi::RawTool,
    case::Case,
    plugin::Prepared,
    power,
    run::{self, Stop},
    schema::Schema,
    warden::Unattended,
};

/// Tools of one plugin. A model that is offered more chooses badly.
const TOOLS_MAX: usize = 256;

/// Longest description. Enough for a page of text; more would be aimed at the model, not about the
/// tool.
const DESCRIPTION_BYTES_MAX: usize = 8 * 1024;

/// Longest wait for the list of tools. It is fixed text; an interpreter needs a moment to start.
const LIST_TIME_MAX: Duration = Duration::from_secs(5);

/// Largest schema of one tool.
const SCHEMA_BYTES_MAX: usize = 64 * 1024;

/// Raised whenever the form of the kept metadata changes, so that older files do not count.
const FORMAT: u32 = 2;

/// What is known of a component without running it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    format: u32,
    /// Digest of the component.
    pub digest: String,
    /// Its tools, in the order in which it lists them; the ids carry the plugin's name.
    pub tools: Vec<ToolSpec>,
    /// Whether it exports `setup` and `teardown`.
    pub managed: bool,
    /// Interfaces that give power and that it imports.
    powers: Vec<String>,
}

impl Sandbox {
    /// Returns the metadata of a component: kept from before, or by asking the component.
    ///
    /// # Errors
    ///
    /// Everything that makes a component unusable, see [`LoadError`].
    pub async fn inspect(
        self: &Arc<Self>,
        file: &ComponentFile,
        manifest: &Manifest,
    ) -> Result<Metadata, LoadError> {
        if let Some(metadata) = self.kept(file.digest(), &manifest.name) {
            // The manifest may be another one since.
            power::check(&metadata.powers, file, manifest)?;
            return Ok(metadata);
        }
        let prepared = Prepared::new(self, file, manifest)?;
        let tools = self.ask_for_tools(&prepared, file, &manifest.name).await?;
        let managed = prepared.abi.is_managed();
        let digest = file.digest().to_owned();
        let powers = power::imported(prepared.pre.component());
        let metadata = Metadata { format: FORMAT, digest, tools, managed, powers };
        if let Ok(text) = serde_json::to_string(&metadata) {
            self.cache.keep_metadata(file.digest(), &text);
        }
        Ok(metadata)
    }

    /// Metadata of an earlier start. It belongs to the component, whatever plugin it is part of.
    fn kept(&self, digest: &str, plugin: &PluginName) -> Option<Metadata> {
        let mut metadata: Metadata = serde_json::from_str(&self.cache.metadata(digest)?).ok()?;
        if metadata.format != FORMAT || metadata.digest != digest {
            return None;
        }
        for tool in &mut metadata.tools {
            tool.id.plugin = plugin.clone();
        }
        Some(metadata)
    }

    async fn ask_for_tools(
        self: &Arc<Self>,
        prepared: &Prepared,
        file: &ComponentFile,
        plugin: &PluginName,
    ) -> Result<Vec<ToolSpec>, LoadError> {
        let bad = |message: String| LoadError::BadTools { path: file.path().to_owned(), message };
        let grant = Arc::new(Grant::none(plugin.clone()));
        let case = Case::of_nobody(Arc::new(Unattended::new(grant)), Some(LIST_TIME_MAX));
        let guest = self.guest(&case, &Arc::new(Map::new()));
        let guest = guest.map_err(|error| bad(error.to_string()))?;
        let abi = Arc::clone(&prepared.abi);
        let body = run::body(move |store, instance| {
            Box::pin(async move { abi.list_tools(store, instance).await })
        });
        let run = run::run(prepared, guest, body).await;
        match run.result {
            Ok(tools) => check_tools(tools, plugin).map_err(bad),
            Err(Stop::Expired(_)) => Err(bad(format!("it took longer than {LIST_TIME_MAX:?}"))),
            Err(Stop::Failed(failure)) if failure.kind == FailureKind::BadOutput => {
                let (path, message) = (file.path().to_owned(), failure.message);
                Err(LoadError::Mismatch { path, message })
            }
            Err(Stop::Failed(failure)) => Err(bad(failure.message)),
        }
    }
}

/// Turns what a component says of its tools into what the rest of the host can rely on.
fn check_tools(tools: Vec<RawTool>, plugin: &PluginName) -> Result<Vec<ToolSpec>, String> {
    if tools.len() > TOOLS_MAX {
        return Err(format!("it lists {} tools, at most {TOOLS_MAX} are taken", tools.len()));
    }
    let mut seen = BTreeSet::new();
    let specs = tools.into_iter().map(|tool| {
        let spec = check_tool(tool, plugin)?;
        if seen.insert(spec.id.tool.clone()) {
            Ok(spec)
        } else {
            Err(format!("it lists the tool {:?} twice", spec.id.tool.as_str()))
        }
    });
    specs.collect()
}

fn check_tool(tool: RawTool, plugin: &PluginName) -> Result<ToolSpec, String> {
    let name: ToolName = tool.name.parse().map_err(|e| format!("{e}"))?;
    let parameters = schema(&tool.parameters, &name, "parameters")?;
    if parameters.get("type").and_then(Value::as_str) != Some("object") {
        return Err(format!("the parameters of {name} are not an object schema"));
    }
    let output = tool.output.map(|text| schema(&text, &name, "output")).transpose()?;
    Ok(ToolSpec {
        id: ToolId::new(plugin.clone(), name),
        description: shorten(tool.description),
        parameters,
        output,
        hints: tool.hints,
    })
}

fn schema(text: &str, tool: &ToolName, what: &str) -> Result<Value, String> {
    let named = |e: String| format!("the {what} schema of {tool}: {e}");
    let schema = json::parse(text, SCHEMA_BYTES_MAX).map_err(|e| named(e.to_string()))?;
    Schema::new(&schema).map_err(named)?;
    Ok(schema)
}

/// A description that is too long is cut, with a mark that the model and the person both see.
fn shorten(text: String) -> String {
    if text.len() <= DESCRIPTION_BYTES_MAX {
        return text;
    }
    let end = text.floor_char_boundary(DESCRIPTION_BYTES_MAX);
    format!("{} … (cut: the description has {} bytes)", &text[..end], text.len())
}
