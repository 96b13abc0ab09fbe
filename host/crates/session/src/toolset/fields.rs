//! What is written about a tool, field by field.

use sallyport_model::ToolDefinition;
use serde_json::Value;

/// How deep into a schema parameters are looked for: those of objects within objects are seen, a
/// schema without end is not followed.
const DEPTH_MAX: usize = 4;

/// Most parameters of one tool that are looked at.
const PARAMETERS_MAX: usize = 200;

/// The texts of a tool.
#[derive(Debug, Default)]
pub(super) struct Fields<'a> {
    pub(super) name: &'a str,
    pub(super) description: &'a str,
    pub(super) parameter_names: Vec<&'a str>,
    pub(super) parameter_descriptions: Vec<&'a str>,
}

impl<'a> Fields<'a> {
    pub(super) fn of(tool: &'a ToolDefinition) -> Self {
        let (name, description) = (tool.name.as_str(), tool.description.as_str());
        let mut fields = Self { name, description, ..Self::default() };
        fields.parameters(&tool.parameters, DEPTH_MAX);
        fields
    }

    fn parameters(&mut self, schema: &'a Value, depth: usize) {
        let Some(below) = depth.checked_sub(1) else { return };
        for (name, parameter) in schema["properties"].as_object().into_iter().flatten() {
            if self.parameter_names.len() >= PARAMETERS_MAX {
                return;
            }
            self.parameter_names.push(name);
            self.parameter_descriptions.extend(parameter["description"].as_str());
            self.parameters(parameter, below);
            self.parameters(&parameter["items"], below);
        }
    }
}
