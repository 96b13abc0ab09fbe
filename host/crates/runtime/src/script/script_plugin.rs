//! Reads a script folder as a plugin with one tool.
//!
//! The tool keeps the name in the definition, which models already know. The plugin's name is the
//! same in lower case, with `_` instead of a dot.

use std::path::Path;

use sallyport_contract::{
    NameError, PluginName, ToolDescriptor, ToolHints, ToolId, ToolName, text,
};
use sallyport_policy::Manifest;
use sallyport_process::{ProgramKind, Script, ScriptError};
use sallyport_sandbox::metadata;
use serde_json::Value;

pub(crate) use sallyport_process::DEFINITION_FILE;

/// A script folder, as a plugin.
#[derive(Debug)]
pub(crate) struct ScriptPlugin {
    pub(crate) script: Script,
    pub(crate) manifest: Manifest,
    pub(crate) tool: ToolDescriptor,
    /// Remarks for the owner.
    pub(crate) remarks: Vec<String>,
}

/// Why a folder cannot be a plugin.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScriptPluginError {
    /// The folder is not a script.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// The name is valid for neither a plugin nor a tool.
    #[error("the \"name\" of its definition cannot be used: {0}")]
    Name(#[from] NameError),
    /// The tool cannot be offered to a model.
    #[error("its definition cannot be used: {0}")]
    Tool(String),
}

impl ScriptPluginError {
    /// Returns how to fix it.
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::Script(error) => error.hint(),
            Self::Name(_) => "change \"name\" in definition.json; a folder can keep its own".into(),
            Self::Tool(_) => "write \"parameters\" as the JSON Schema of an object".into(),
        }
    }
}

impl ScriptPlugin {
    /// Reads a folder. If there is a manifest, it defines the plugin and its requests, and the
    /// definition describes the tool.
    pub(crate) fn read_folder(
        folder: &Path,
        manifest: Option<Manifest>,
    ) -> Result<Self, ScriptPluginError> {
        let script = Script::read_folder(folder)?;
        let definition = &script.definition;
        let mut remarks: Vec<String> =
            script.warnings.iter().map(|remark| format!("{DEFINITION_FILE}: {remark}")).collect();
        let manifest = match manifest {
            Some(manifest) => manifest,
            None => derive_manifest(&script, &mut remarks)?,
        };
        let tool: ToolName = definition.name.parse()?;
        let spec = ToolDescriptor {
            id: ToolId::new(manifest.name.clone(), tool),
            title: None,
            description: definition.description.clone(),
            parameters: with_object_type(definition.parameters.clone()),
            output: None,
            hints: ToolHints::default(),
        };
        let tool = metadata::check_and_trim_tool(spec).map_err(ScriptPluginError::Tool)?;
        Ok(Self { manifest, tool, remarks, script })
    }
}

/// Returns the manifest of a folder that has none. A component runs in the sandbox, so it requests
/// nothing. A native program requests to run as one.
fn derive_manifest(script: &Script, remarks: &mut Vec<String>) -> Result<Manifest, NameError> {
    let original_name = &script.definition.name;
    let name: PluginName = original_name.to_ascii_lowercase().replace('.', "_").parse()?;
    if name.as_str() != original_name {
        let original_name = text::escape_line(original_name);
        remarks.push(format!("the plugin of the tool {original_name} is called {name}"));
    }
    let description = script.definition.description.clone();
    Ok(match script.program.kind {
        ProgramKind::Native => Manifest::for_script(name, description),
        ProgramKind::Component => Manifest { description, ..Manifest::for_bare_component(name) },
    })
}

/// Adds the type "object" to a schema without a type. Definitions usually omit it.
fn with_object_type(mut parameters: Value) -> Value {
    if let Value::Object(keys) = &mut parameters {
        keys.entry("type").or_insert_with(|| "object".into());
    }
    parameters
}
