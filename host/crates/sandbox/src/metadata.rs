//! What is known of a component without running it: its tools, its roles, and whether it is managed.
//!
//! Tools are asked for once for every build of a component, without any grant, and kept under its
//! digest. Listing a thousand plugins then reads a thousand small files and instantiates nothing.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use sallyport_contract::{
    FailureKind, PluginName, ToolId, ToolName, ToolSpec, json, text::excerpt,
};
use sallyport_policy::{Grant, Manifest, Role};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    ComponentFile, LoadError, Sandbox,
    abi::{Export, ROLES, RawTool},
    case::Case,
    guest::Common,
    interface::ComponentInterface,
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

/// Longest title of a tool: a few words on a button.
const TITLE_CHARS_MAX: usize = 80;

/// Longest wait for the list of tools. It is fixed text; an interpreter needs a moment to start.
const LIST_TIME_MAX: Duration = Duration::from_secs(5);

/// Largest schema of one tool.
const SCHEMA_BYTES_MAX: usize = 64 * 1024;

/// How the host calls a run in a role where it calls a tool by its name: in rules and in records.
const ROLE_PREFIX: &str = "role:";

/// Raised whenever the form of the kept metadata changes, so that older files do not count.
const FORMAT: u32 = 4;

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
    /// What it exports.
    exports: Vec<Export>,
    /// Interfaces that give power and that it imports.
    powers: Vec<String>,
}

impl Metadata {
    /// Returns the roles that the component exports, whatever its manifest names.
    pub fn roles(&self) -> Vec<Role> {
        let exported = |role: &Role| self.exports.contains(&Export::of(*role));
        ROLES.into_iter().filter(exported).collect()
    }

    fn plays(&self, roles: &[Role]) -> bool {
        roles.iter().all(|role| self.exports.contains(&Export::of(*role)))
    }

    /// Returns the roles that it exports and its manifest does not name: it is not asked to play
    /// them.
    pub fn unnamed_roles(&self, manifest: &Manifest) -> Vec<Role> {
        let mut roles = self.roles();
        roles.retain(|role| !manifest.roles.contains(role));
        roles
    }
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
        if let Some(known) = self.known(file, manifest) {
            return known;
        }
        let prepared = Prepared::new(self, file, manifest)?;
        let tools = self.ask_for_tools(&prepared, file, &manifest.name).await?;
        let exports = Export::ALL.into_iter().filter(|export| prepared.abi.exports(*export));
        let exports: Vec<Export> = exports.collect();
        let managed = exports.contains(&Export::Lifecycle);
        let digest = file.digest().to_owned();
        let powers = power::imported(prepared.pre.component());
        let metadata = Metadata { format: FORMAT, digest, tools, managed, exports, powers };
        if let Ok(text) = serde_json::to_string(&metadata) {
            self.cache.keep_metadata(file.digest(), &text);
        }
        Ok(metadata)
    }

    /// What is known of a component without compiling it: its metadata of an earlier start, or why
    /// it can be no plugin with this manifest.
    pub fn known(
        &self,
        file: &ComponentFile,
        manifest: &Manifest,
    ) -> Option<Result<Metadata, LoadError>> {
        let kept = self.kept(file.digest(), &manifest.name);
        // The manifest may be another one since.
        if let Some(metadata) = kept.filter(|metadata| metadata.plays(&manifest.roles)) {
            return Some(power::check(&metadata.powers, file, manifest).map(|()| metadata));
        }
        let interface = ComponentInterface::read(file);
        interface.and_then(|interface| interface.check(file, manifest)).err().map(Err)
    }

    /// Refuses a component that is no program, without compiling it.
    ///
    /// # Errors
    ///
    /// It exports no `wasi:cli/run`, or is not well formed.
    pub fn check_program(&self, file: &ComponentFile) -> Result<(), LoadError> {
        ComponentInterface::read(file)?.check_program(file)
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
        let guest = self.guest(&case, &Common::bare());
        let guest = guest.map_err(|error| bad(error.to_string()))?;
        let abi = Arc::clone(&prepared.abi);
        let body = run::body(move |store, instance| {
            Box::pin(async move { abi.list_tools(store, instance).await })
        });
        let run = run::run(prepared, guest, body).await;
        match run.result {
            Ok(tools) => check_tools(tools, plugin).map_err(|message| LoadError::ImpossibleTools {
                path: file.path().to_owned(),
                message,
            }),
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
    let parameters = parsed(&tool.parameters, &name, "parameters")?;
    let output = tool.output.map(|text| parsed(&text, &name, "output")).transpose()?;
    checked(ToolSpec {
        id: ToolId::new(plugin.clone(), name),
        title: tool.title,
        description: tool.description,
        parameters,
        output,
        hints: tool.hints,
    })
}

/// Turns what anybody says of a tool into what the rest of the host can rely on.
///
/// # Errors
///
/// It is called as the host calls runs in a role, its parameters are no object, or a schema of it
/// cannot be used. The text says which.
pub fn checked(tool: ToolSpec) -> Result<ToolSpec, String> {
    let name = &tool.id.tool;
    if name.as_str().starts_with(ROLE_PREFIX) {
        return Err(format!("a tool cannot be called {name}: so the host calls runs in a role"));
    }
    check_schema(&tool.parameters, name, "parameters")?;
    if tool.parameters.get("type").and_then(Value::as_str) != Some("object") {
        return Err(format!("the parameters of {name} are not an object schema"));
    }
    tool.output.iter().try_for_each(|output| check_schema(output, name, "output"))?;
    let title = tool.title.map(|title| excerpt(title.trim(), TITLE_CHARS_MAX));
    let title = title.filter(|title| !title.is_empty());
    Ok(ToolSpec { title, description: shorten(tool.description), ..tool })
}

fn parsed(text: &str, tool: &ToolName, what: &str) -> Result<Value, String> {
    json::parse(text, SCHEMA_BYTES_MAX).map_err(|e| of_schema(tool, what, &e.to_string()))
}

fn check_schema(schema: &Value, tool: &ToolName, what: &str) -> Result<(), String> {
    let bytes = schema.to_string().len();
    if bytes > SCHEMA_BYTES_MAX {
        let message = format!("it has {bytes} bytes, at most {SCHEMA_BYTES_MAX} are taken");
        return Err(of_schema(tool, what, &message));
    }
    Schema::new(schema).map_err(|e| of_schema(tool, what, &e))?;
    Ok(())
}

fn of_schema(tool: &ToolName, what: &str, message: &str) -> String {
    format!("the {what} schema of {tool}: {message}")
}

/// A description that is too long is cut, with a mark that the model and the person both see.
fn shorten(text: String) -> String {
    if text.len() <= DESCRIPTION_BYTES_MAX {
        return text;
    }
    let end = text.floor_char_boundary(DESCRIPTION_BYTES_MAX);
    format!("{} … (cut: the description has {} bytes)", &text[..end], text.len())
}
