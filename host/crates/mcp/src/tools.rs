//! The tools as a client sees them: which ones, under which names, and how they are described.

use std::{collections::HashMap, sync::Arc};

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use sallyport_contract::{
    ToolDescriptor, ToolId,
    mangle::{NameTable, ToolNameCollision, bare_tool_name, model_tool_name},
};
use sallyport_policy::ToolPattern;
use sallyport_runtime::internal::is_internal_plugin;

/// The tools that clients may see. A tool that they may not see does not exist for them.
///
/// Internal tools are never among them: a reminder belongs to its conversation, and that of a
/// client ends with its connection.
#[derive(Debug, Clone, Default)]
pub struct ToolSelection {
    /// Only tools that match one of these; all tools if it is empty.
    pub only: Vec<ToolPattern>,
    /// No tool that matches one of these, even if `only` names it.
    pub denied: Vec<ToolPattern>,
    /// How they are named.
    pub names: NameStyle,
}

impl ToolSelection {
    /// Whether clients may see a tool.
    pub fn includes(&self, tool: &ToolId) -> bool {
        let matches = |patterns: &[ToolPattern]| patterns.iter().any(|one| one.matches(tool));
        (self.only.is_empty() || matches(&self.only))
            && !matches(&self.denied)
            && !is_internal_plugin(&tool.plugin)
    }
}

/// How tools and prompts are named towards clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NameStyle {
    /// `plugin__tool`, which is never ambiguous.
    #[default]
    PluginAndTool,
    /// `tool`. Two tools of the same name cannot be served then.
    Tool,
}

impl NameStyle {
    /// The name of a tool or prompt.
    pub(crate) fn name_of(self, id: &ToolId) -> String {
        match self {
            Self::PluginAndTool => model_tool_name(id),
            Self::Tool => bare_tool_name(id),
        }
    }
}

/// The selected tools at one moment.
#[derive(Debug)]
pub(crate) struct OfferedTools {
    /// The list that this was made of. The host replaces its list when plugins change.
    source: Arc<[ToolDescriptor]>,
    listed: Vec<Tool>,
    names: NameTable,
    descriptors: HashMap<ToolId, usize>,
}

impl OfferedTools {
    /// Selects tools and names them.
    ///
    /// # Errors
    ///
    /// Two of them would have the same name.
    pub(crate) fn new(
        source: Arc<[ToolDescriptor]>,
        selection: &ToolSelection,
    ) -> Result<Self, ToolNameCollision> {
        let selected =
            || source.iter().enumerate().filter(|(_, tool)| selection.includes(&tool.id));
        let name_of = |id: &ToolId| selection.names.name_of(id);
        let names = NameTable::named_by(selected().map(|(_, tool)| &tool.id), name_of)?;
        let listed = selected().map(|(_, tool)| describe_tool(tool, name_of(&tool.id))).collect();
        let descriptors = selected().map(|(index, tool)| (tool.id.clone(), index)).collect();
        Ok(Self { source, listed, names, descriptors })
    }

    /// Whether this was made of a list.
    pub(crate) fn is_made_of(&self, source: &Arc<[ToolDescriptor]>) -> bool {
        Arc::ptr_eq(&self.source, source)
    }

    /// The descriptions of all tools, in a stable order.
    pub(crate) fn listed(&self) -> &[Tool] {
        &self.listed
    }

    /// The tool of a name that a client wrote.
    pub(crate) fn find_tool(&self, name: &str) -> Option<&ToolDescriptor> {
        let index = self.descriptors.get(self.names.resolve(name)?)?;
        self.source.get(*index)
    }
}

/// Describes a tool. Its hints are the author's claims, which is what annotations are by
/// definition.
fn describe_tool(tool: &ToolDescriptor, name: String) -> Tool {
    let hints = tool.hints;
    let annotations = ToolAnnotations::from_raw(
        tool.title.clone(),
        hints.read_only,
        hints.destructive,
        hints.idempotent,
        hints.open_world,
    );
    // The host takes no other parameters than objects.
    let parameters = tool.parameters.as_object().cloned().unwrap_or_default();
    let mut described =
        Tool::new(name, tool.description.clone(), parameters).with_annotations(annotations);
    described.title = tool.title.clone();
    described.output_schema = object_output(tool).cloned().map(Arc::new);
    described
}

/// The schema of a tool's data if these are an object. The protocol takes no other ones, and a
/// client that validates would refuse the whole list because of one; such data are text only.
pub(crate) fn object_output(tool: &ToolDescriptor) -> Option<&JsonObject> {
    let schema = tool.output.as_ref()?.as_object()?;
    (schema.get("type")? == "object").then_some(schema)
}

#[cfg(test)]
mod tests {
    use sallyport_contract::ToolHints;
    use serde_json::json;

    use super::*;

    fn descriptor(id: &str) -> ToolDescriptor {
        ToolDescriptor {
            id: id.parse().unwrap(),
            title: Some("A title".to_owned()),
            description: "Does it.".to_owned(),
            parameters: json!({ "type": "object" }),
            output: Some(json!({ "type": "object", "required": ["a"] })),
            hints: ToolHints { read_only: Some(true), ..ToolHints::default() },
        }
    }

    fn patterns(texts: &[&str]) -> Vec<ToolPattern> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn patterns_select_tools_and_a_denied_one_cannot_be_called() {
        let all = ["clock.get_time", "files.read", "files.remove", "reminder.set"];
        let rows: [(&[&str], &[&str], &[&str]); 5] = [
            (&[], &[], &["clock__get_time", "files__read", "files__remove"]),
            (&["files.*"], &[], &["files__read", "files__remove"]),
            (&["*"], &["*.remove"], &["clock__get_time", "files__read"]),
            (&["files.read"], &["files.*"], &[]),
            (&["clock.get_time", "files.read"], &[], &["clock__get_time", "files__read"]),
        ];
        for (only, denied, want) in rows {
            let selection = ToolSelection {
                only: patterns(only),
                denied: patterns(denied),
                names: NameStyle::PluginAndTool,
            };
            let source: Arc<[ToolDescriptor]> = all.iter().map(|id| descriptor(id)).collect();
            let offered = OfferedTools::new(Arc::clone(&source), &selection).unwrap();
            let names: Vec<&str> = offered.listed().iter().map(|tool| &*tool.name).collect();
            assert_eq!(names, want, "{only:?} {denied:?}");
            for id in all {
                let name = model_tool_name(&id.parse().unwrap());
                let is_offered = want.contains(&name.as_str());
                assert_eq!(offered.find_tool(&name).is_some(), is_offered, "{name}");
                assert_eq!(offered.find_tool(id).is_some(), is_offered, "{id}");
            }
            assert!(offered.is_made_of(&source));
        }
    }

    #[test]
    fn a_description_has_all_that_the_author_said() {
        let tool = serde_json::to_value(describe_tool(
            &descriptor("clock.get_time"),
            "clock__get_time".to_owned(),
        ))
        .unwrap();
        let want = json!({
            "name": "clock__get_time",
            "title": "A title",
            "description": "Does it.",
            "inputSchema": { "type": "object" },
            "outputSchema": { "type": "object", "required": ["a"] },
            "annotations": { "title": "A title", "readOnlyHint": true },
        });
        assert_eq!(tool, want);
    }

    #[test]
    fn one_output_that_was_no_object_made_clients_refuse_the_whole_list() {
        let rows = [
            (json!({ "type": "object", "required": ["a"] }), true),
            (json!({ "type": "string" }), false),
            (json!({ "type": ["object", "null"] }), false),
            (json!({}), false),
            (json!(true), false),
        ];
        for (output, is_shown) in rows {
            let tool = ToolDescriptor { output: Some(output.clone()), ..descriptor("a.b") };
            assert_eq!(
                describe_tool(&tool, String::new()).output_schema.is_some(),
                is_shown,
                "{output}"
            );
        }
    }
}
