//! The metadata of a component: its tools, its roles, and whether it has a lifecycle.
//!
//! Each build of a component is asked for its tools once, without any grant, and the result is
//! cached under its digest. Listing a thousand plugins then reads a thousand small files and
//! instantiates nothing.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use sallyport_contract::{
    FailureKind, PluginName, ToolDescriptor, ToolId, ToolName, json, text::escape_excerpt,
};
use sallyport_policy::{Grant, Manifest, PluginRole};
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

/// Most tools of one plugin. A model that is offered more chooses badly.
const TOOLS_MAX: usize = 256;

/// Longest description in bytes. It fits a page of text; a longer one would be aimed at the model
/// instead of describing the tool.
const DESCRIPTION_BYTES_MAX: usize = 8 * 1024;

/// Longest title of a tool in characters: a few words on a button.
const TITLE_CHARS_MAX: usize = 80;

/// Longest wait for the list of tools. The list is fixed text, but an interpreter needs a moment to
/// start.
const LIST_TIME_MAX: Duration = Duration::from_secs(5);

/// Largest schema of one tool, in bytes.
const SCHEMA_BYTES_MAX: usize = 64 * 1024;

/// The prefix of a role's name in rules and records, where a tool call has the name of its tool.
const ROLE_PREFIX: &str = "role:";

/// Increased whenever the format of the cached metadata changes, so that older files are ignored.
const FORMAT: u32 = 4;

/// The metadata of a component, which is known without running it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    format: u32,
    /// The digest of the component.
    pub digest: String,
    /// The tools, in the component's order. Their IDs contain the plugin's name.
    pub tools: Vec<ToolDescriptor>,
    /// Whether the component exports `setup` and `teardown`.
    pub managed: bool,
    /// The interfaces that the component exports.
    exports: Vec<Export>,
    /// The power interfaces that the component imports.
    powers: Vec<String>,
}

impl Metadata {
    /// Returns the roles that the component exports, including those that its manifest does not
    /// name.
    pub fn roles(&self) -> Vec<PluginRole> {
        let exported = |role: &PluginRole| self.exports.contains(&Export::of(*role));
        ROLES.into_iter().filter(exported).collect()
    }

    fn plays(&self, roles: &[PluginRole]) -> bool {
        roles.iter().all(|role| self.exports.contains(&Export::of(*role)))
    }

    /// Returns the roles that the component exports and its manifest does not name. The host does
    /// not use them.
    pub fn unnamed_roles(&self, manifest: &Manifest) -> Vec<PluginRole> {
        let mut roles = self.roles();
        roles.retain(|role| !manifest.roles.contains(role));
        roles
    }
}

impl Sandbox {
    /// Returns the metadata of a component from the cache, or asks the component for it.
    ///
    /// # Errors
    ///
    /// Every reason that makes a component unusable; see [`LoadError`].
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

    /// Returns the cached metadata of a component, or the reason why it cannot be a plugin with
    /// this manifest. Returns `None` if the component has to be compiled to find out.
    pub fn known(
        &self,
        file: &ComponentFile,
        manifest: &Manifest,
    ) -> Option<Result<Metadata, LoadError>> {
        let kept = self.kept(file.digest(), &manifest.name);
        // The manifest may have changed since the metadata was cached.
        if let Some(metadata) = kept.filter(|metadata| metadata.plays(&manifest.roles)) {
            return Some(power::check(&metadata.powers, file, manifest).map(|()| metadata));
        }
        let interface = ComponentInterface::read(file);
        interface.and_then(|interface| interface.check(file, manifest)).err().map(Err)
    }

    /// Refuses a component that is not a program, without compiling it.
    ///
    /// # Errors
    ///
    /// The component exports no `wasi:cli/run`, is built for WASI 0.3, or is not well formed.
    pub fn check_program(&self, file: &ComponentFile) -> Result<(), LoadError> {
        ComponentInterface::read(file)?.check_program(file)
    }

    /// Returns cached metadata with the plugin's name filled in. All plugins with this component
    /// share the cache entry.
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
    ) -> Result<Vec<ToolDescriptor>, LoadError> {
        let bad = |message: String| LoadError::BadTools { path: file.path().to_owned(), message };
        let grant = Arc::new(Grant::empty(plugin.clone()));
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

/// Validates the tools that a component lists.
fn check_tools(tools: Vec<RawTool>, plugin: &PluginName) -> Result<Vec<ToolDescriptor>, String> {
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

fn check_tool(tool: RawTool, plugin: &PluginName) -> Result<ToolDescriptor, String> {
    let name: ToolName = tool.name.parse().map_err(|e| format!("{e}"))?;
    let parameters = parsed(&tool.parameters, &name, "parameters")?;
    let output = tool.output.map(|text| parsed(&text, &name, "output")).transpose()?;
    checked(ToolDescriptor {
        id: ToolId::new(plugin.clone(), name),
        title: tool.title,
        description: tool.description,
        parameters,
        output,
        hints: tool.hints,
    })
}

/// Validates a tool, and trims its title and description to their limits.
///
/// # Errors
///
/// The name is reserved for roles, the parameters are not an object schema, or a schema cannot be
/// used. The message states which.
pub fn checked(tool: ToolDescriptor) -> Result<ToolDescriptor, String> {
    let name = &tool.id.tool;
    if name.as_str().starts_with(ROLE_PREFIX) {
        return Err(format!("a tool cannot be called {name}: so the host calls runs in a role"));
    }
    check_schema(&tool.parameters, name, "parameters")?;
    if tool.parameters.get("type").and_then(Value::as_str) != Some("object") {
        return Err(format!("the parameters of {name} are not an object schema"));
    }
    tool.output.iter().try_for_each(|output| check_schema(output, name, "output"))?;
    let title = tool.title.map(|title| escape_excerpt(title.trim(), TITLE_CHARS_MAX));
    let title = title.filter(|title| !title.is_empty());
    Ok(ToolDescriptor { title, description: shorten(tool.description), ..tool })
}

fn parsed(text: &str, tool: &ToolName, what: &str) -> Result<Value, String> {
    json::parse_json(text, SCHEMA_BYTES_MAX).map_err(|e| of_schema(tool, what, &e.to_string()))
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

/// Cuts a description that is too long, with a mark that the model and the user both see.
fn shorten(text: String) -> String {
    if text.len() <= DESCRIPTION_BYTES_MAX {
        return text;
    }
    let end = text.floor_char_boundary(DESCRIPTION_BYTES_MAX);
    format!("{} … (cut: the description has {} bytes)", &text[..end], text.len())
}
