//! From what a folder says of itself to a plugin with one tool.
//!
//! The tool keeps the name of the definition, which is what models have always been told; the plugin
//! has the same name as far as plugins can have it: in lower case, with `_` for a dot.

use std::path::Path;

use sallyport_contract::{Hints, NameError, PluginName, ToolId, ToolName, ToolSpec, text};
use sallyport_policy::Manifest;
use sallyport_process::{ProgramKind, Script, ScriptError};
use sallyport_sandbox::metadata;
use serde_json::Value;

pub(crate) use sallyport_process::DEFINITION_FILE;

/// A folder with a script, as a plugin.
#[derive(Debug)]
pub(crate) struct Described {
    pub(crate) script: Script,
    pub(crate) manifest: Manifest,
    pub(crate) tool: ToolSpec,
    /// What its owner may want to know.
    pub(crate) remarks: Vec<String>,
}

/// Why a folder cannot be a plugin.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Misdescribed {
    /// The folder is no script.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// Neither a plugin nor a tool can be called like that.
    #[error("the \"name\" of its definition cannot be used: {0}")]
    Name(#[from] NameError),
    /// The tool cannot be offered to a model.
    #[error("its definition cannot be used: {0}")]
    Tool(String),
}

impl Misdescribed {
    /// What can be done about it.
    pub(crate) fn hint(&self) -> String {
        match self {
            Self::Script(error) => error.hint(),
            Self::Name(_) => "change \"name\" in definition.json; a folder can keep its own".into(),
            Self::Tool(_) => "write \"parameters\" as the JSON Schema of an object".into(),
        }
    }
}

impl Described {
    /// Reads a folder. With a manifest, that says who the plugin is and what it requests, and the
    /// definition what its tool is.
    pub(crate) fn read(folder: &Path, manifest: Option<Manifest>) -> Result<Self, Misdescribed> {
        let script = Script::read(folder)?;
        let definition = &script.definition;
        let mut remarks: Vec<String> =
            script.remarks.iter().map(|remark| format!("{DEFINITION_FILE}: {remark}")).collect();
        let manifest = match manifest {
            Some(manifest) => manifest,
            None => own_manifest(&script, &mut remarks)?,
        };
        let tool: ToolName = definition.name.parse()?;
        let spec = ToolSpec {
            id: ToolId::new(manifest.name.clone(), tool),
            title: None,
            description: definition.description.clone(),
            parameters: as_object(definition.parameters.clone()),
            output: None,
            hints: Hints::default(),
        };
        let tool = metadata::checked(spec).map_err(Misdescribed::Tool)?;
        Ok(Self { manifest, tool, remarks, script })
    }
}

/// A component runs in the sandbox, so it asks for nothing; a program of the machine asks to be one.
fn own_manifest(script: &Script, remarks: &mut Vec<String>) -> Result<Manifest, NameError> {
    let written = &script.definition.name;
    let name: PluginName = written.to_ascii_lowercase().replace('.', "_").parse()?;
    if name.as_str() != written {
        let written = text::one_line(written);
        remarks.push(format!("the plugin of the tool {written} is called {name}"));
    }
    let description = script.definition.description.clone();
    Ok(match script.program.kind {
        ProgramKind::Native => Manifest::of_script(name, description),
        ProgramKind::Component => Manifest { description, ..Manifest::bare(name) },
    })
}

/// Definitions leave out what goes without saying: arguments are an object.
fn as_object(mut parameters: Value) -> Value {
    if let Value::Object(keys) = &mut parameters {
        keys.entry("type").or_insert_with(|| "object".into());
    }
    parameters
}
