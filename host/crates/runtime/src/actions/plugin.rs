//! Reads a definition and the component beside it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use sallyport_connections::{Action, Definition, definition::DEFINITION_BYTES_MAX};
use sallyport_contract::{PluginName, ToolDescriptor, ToolHints, ToolId};
use sallyport_policy::{Manifest, SourceError};
use sallyport_sandbox::metadata;
use sallyport_untrusted_file as untrusted_file;
use serde::Deserialize;

use crate::environment::Env;

/// The ending of a definition's name.
const DEFINITION_EXTENSION: &str = "json";

/// A definition, as a plugin.
pub(crate) struct ActionPlugin {
    pub(crate) definition: Arc<Definition>,
    pub(crate) manifest: Manifest,
    pub(crate) tools: Vec<ToolDescriptor>,
    /// The file of the definition.
    pub(crate) file: PathBuf,
    /// The component that runs the actions without a request.
    pub(crate) component: Option<PathBuf>,
    /// The hash of the definition's text.
    digest: blake3::Hash,
}

/// Why a file cannot be a plugin.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ActionPluginError {
    /// The file cannot be read.
    #[error("cannot read it: {0}")]
    Read(std::io::Error),
    /// The definition has a mistake.
    #[error("line {}, column {}: {}", .0.line, .0.column, .0.message)]
    Definition(SourceError),
    /// An action cannot be offered to a model.
    #[error("the action {0}")]
    Tool(String),
    /// An address cannot be granted.
    #[error("an address of its actions cannot be used: {0}")]
    Address(String),
}

impl ActionPluginError {
    /// Returns how to fix it.
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::Read(_) => "check the file".to_owned(),
            Self::Definition(error) => error
                .hint
                .clone()
                .unwrap_or_else(|| "docs/definitions.md lists the fields".to_owned()),
            Self::Tool(_) => "write \"parameters\" as the JSON Schema of an object".to_owned(),
            Self::Address(_) => "write it like https://api.example.com/path".to_owned(),
        }
    }
}

/// The definition in a folder: the file with the folder's name.
pub(crate) fn definition_file(folder: &Path) -> Option<PathBuf> {
    let mut name = folder.file_name()?.to_owned();
    name.push(".");
    name.push(DEFINITION_EXTENSION);
    let file = folder.join(name);
    file.symlink_metadata().is_ok().then_some(file)
}

/// Whether a file of a plugin folder is a definition.
pub(crate) fn is_definition_file(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == DEFINITION_EXTENSION) && path.is_file()
}

/// The name of a definition's plugin, if that much of it can be read.
pub(crate) fn definition_name(file: &Path) -> Option<PluginName> {
    #[derive(Deserialize)]
    struct NamedFile {
        plugin: NamedPlugin,
    }
    #[derive(Deserialize)]
    struct NamedPlugin {
        name: String,
    }
    let text = untrusted_file::read_text(file, DEFINITION_BYTES_MAX).ok()?;
    serde_json::from_str::<NamedFile>(&text).ok()?.plugin.name.parse().ok()
}

impl ActionPlugin {
    /// Reads a definition. `beside` is the manifest of its component, whose requests are the
    /// plugin's too.
    pub(crate) fn read(
        file: &Path,
        component: Option<PathBuf>,
        beside: Option<Manifest>,
        env: &Env,
    ) -> Result<Self, ActionPluginError> {
        let text = untrusted_file::read_text(file, DEFINITION_BYTES_MAX)
            .map_err(|error| ActionPluginError::Read(std::io::Error::other(error.to_string())))?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let variable = |name: &str| env.get(name).map(str::to_owned);
        let definition =
            Definition::parse(&name, &text, &variable).map_err(ActionPluginError::Definition)?;
        let manifest = build_manifest(&definition, beside)?;
        let tools = definition.actions.iter().map(|action| tool_descriptor(&definition, action));
        Ok(Self {
            tools: tools.collect::<Result<_, _>>()?,
            manifest,
            file: file.to_owned(),
            component,
            digest: blake3::hash(text.as_bytes()),
            definition: Arc::new(definition),
        })
    }

    /// The digest of the plugin: of its definition, and of its component if it has one.
    pub(crate) fn digest(&self, component: Option<&str>) -> String {
        match component {
            None => self.digest.to_hex().to_string(),
            Some(component) => {
                let both = format!("{} {component}", self.digest.to_hex());
                blake3::hash(both.as_bytes()).to_hex().to_string()
            }
        }
    }

    /// Why the plugin cannot be used: a variable is missing, or none of its actions can run.
    pub(crate) fn disabled_reason(&self, idle: &[&Action]) -> Option<String> {
        let missing = &self.definition.missing_variables;
        match missing.as_slice() {
            [] if idle.len() == self.definition.actions.len() => Some(no_way_to_run(idle)),
            [] => None,
            [one] => Some(format!("the environment variable {one} is not set")),
            _ => Some(format!("these environment variables are not set: {}", missing.join(", "))),
        }
    }

    /// The actions that neither send a request nor are a tool of the component. The tools of a
    /// component that is still being compiled are not known, so it may have them all.
    pub(crate) fn idle_actions(&self, component_tools: Option<&[ToolDescriptor]>) -> Vec<&Action> {
        let is_run = |action: &Action| {
            let exports = |tools: &[ToolDescriptor]| tools.iter().any(|t| t.id.tool == action.name);
            action.request.is_some()
                || (self.component.is_some() && component_tools.is_none_or(exports))
        };
        self.definition.actions.iter().filter(|action| !is_run(action)).collect()
    }

    /// The tools for the model: its actions, except those that nothing runs.
    pub(crate) fn tools_except(&self, idle: &[&Action]) -> Vec<ToolDescriptor> {
        let is_idle = |tool: &ToolDescriptor| idle.iter().any(|a| a.name == tool.id.tool);
        self.tools.iter().filter(|tool| !is_idle(tool)).cloned().collect()
    }
}

/// Why actions cannot run, and what would run them.
pub(crate) fn no_way_to_run(idle: &[&Action]) -> String {
    let names: Vec<&str> = idle.iter().map(|action| action.name.as_str()).collect();
    let names = names.join(", ");
    format!(
        "nothing runs {names}. Put a component that exports {names} next to the definition, or \
         write a \"request\" in the definition"
    )
}

fn build_manifest(
    definition: &Definition,
    beside: Option<Manifest>,
) -> Result<Manifest, ActionPluginError> {
    // With a missing variable, an address is not known. The plugin is disabled then.
    let addresses = match definition.missing_variables.is_empty() {
        true => definition.addresses(),
        false => Vec::new(),
    };
    let context = definition.context.as_deref().map(|context| format!(". {context}"));
    let description = format!("{}{}", definition.description, context.unwrap_or_default());
    let mut manifest = Manifest::for_definition(
        definition.name.clone(),
        definition.version.clone(),
        description,
        &addresses,
    )
    .map_err(|error| ActionPluginError::Address(error.to_string()))?;
    if let Some(beside) = beside {
        manifest.request.merge(beside.request);
        manifest.settings = beside.settings;
        manifest.instance = beside.instance;
    }
    Ok(manifest)
}

fn tool_descriptor(
    definition: &Definition,
    action: &Action,
) -> Result<ToolDescriptor, ActionPluginError> {
    let descriptor = ToolDescriptor {
        id: ToolId::new(definition.name.clone(), action.name.clone()),
        title: None,
        description: action.text_for_model(),
        parameters: action.parameters.clone(),
        output: None,
        hints: ToolHints::default(),
    };
    let checked = metadata::check_and_trim_tool(descriptor);
    checked.map_err(|problem| ActionPluginError::Tool(format!("{}: {problem}", action.name)))
}
