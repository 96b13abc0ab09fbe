//! The difference between two versions of a plugin, for the user who accepts one.
//!
//! It compares what the binaries say (imports, tools, schemas, descriptions) and what the manifests
//! request. The current policy decides what that makes possible: a request that nothing grants
//! changes nothing yet.

use std::collections::{BTreeMap, BTreeSet};

use sallyport_contract::ToolDescriptor;
use sallyport_policy::edit::{LineChange, diff_lines};
use serde::Serialize;
use serde_json::Value;

use crate::lock::PluginSnapshot;

/// A part of a difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DiffSection {
    /// What it is about.
    pub title: &'static str,
    /// The changes. Their texts are the author's, and are not escaped.
    pub changes: Vec<DiffChange>,
}

/// Something that is new, gone or different.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum DiffChange {
    /// It is new.
    Added {
        /// What.
        what: String,
    },
    /// It is gone.
    Removed {
        /// What.
        what: String,
    },
    /// It is different.
    Changed {
        /// What.
        what: String,
        /// The lines of both versions, each after `-`, `+` or a space.
        lines: Vec<String>,
    },
}

/// The difference between two versions of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PluginDiff {
    /// Its parts. Those without a change are left out.
    pub sections: Vec<DiffSection>,
    /// Whether the new version asks for more, may do more, or tells a model something else. A
    /// version that is not wider can replace the old one without a question.
    pub is_wider: bool,
}

impl PluginDiff {
    /// Compares two versions.
    pub fn between(old: &PluginSnapshot, new: &PluginSnapshot) -> Self {
        let set = |title, old, new| DiffSection { title, changes: set_changes(old, new) };
        let tools = tool_changes(&tools_by_name(old), &tools_by_name(new));
        let sections = [
            DiffSection { title: "Plugin", changes: fact_changes(old, new) },
            set("Imports", &old.imports, &new.imports),
            set("Requests", &old.requests, &new.requests),
            DiffSection { title: "Tools", changes: tools },
            set("Possible under your policy", &old.permissions, &new.permissions),
        ];
        let is_wider = sections[1..].iter().any(DiffSection::is_wider);
        let sections = sections.into_iter().filter(|section| !section.changes.is_empty());
        Self { sections: sections.collect(), is_wider }
    }

    /// Compares the accepted version of a plugin with the current one. The policy may have changed
    /// since; versions with the same requests may do the same.
    pub fn since_acceptance(accepted: PluginSnapshot, current: &PluginSnapshot) -> Self {
        let is_same = accepted.requests == current.requests;
        let permissions = if is_same { &current.permissions } else { &accepted.permissions };
        Self::between(&PluginSnapshot { permissions: permissions.clone(), ..accepted }, current)
    }

    /// Whether the versions are the same.
    pub fn is_empty(&self) -> bool {
        self.sections.is_empty()
    }
}

impl DiffSection {
    /// Whether something of it is more than that a thing is gone.
    fn is_wider(&self) -> bool {
        self.changes.iter().any(|change| !matches!(change, DiffChange::Removed { .. }))
    }
}

fn fact_changes(old: &PluginSnapshot, new: &PluginSnapshot) -> Vec<DiffChange> {
    let size = |plugin: &PluginSnapshot| {
        plugin.size_bytes.map_or("unknown".to_owned(), |bytes| format!("{bytes} bytes"))
    };
    let facts = [
        ("name", old.name.clone(), new.name.clone()),
        ("version", old.version.clone(), new.version.clone()),
        ("size", size(old), size(new)),
        ("digest", old.digest.clone(), new.digest.clone()),
    ];
    let changed = facts.into_iter().filter(|(_, old, new)| old != new);
    let change = |(what, old, new): (&str, String, String)| DiffChange::Changed {
        what: what.to_owned(),
        lines: vec![format!("- {old}"), format!("+ {new}")],
    };
    changed.map(change).collect()
}

fn set_changes(old: &BTreeSet<String>, new: &BTreeSet<String>) -> Vec<DiffChange> {
    let added = new.difference(old).map(|what| DiffChange::Added { what: what.clone() });
    let removed = old.difference(new).map(|what| DiffChange::Removed { what: what.clone() });
    added.chain(removed).collect()
}

fn tools_by_name(plugin: &PluginSnapshot) -> BTreeMap<&str, &ToolDescriptor> {
    plugin.tools.iter().map(|tool| (tool.id.tool.as_str(), tool)).collect()
}

fn tool_changes(
    old: &BTreeMap<&str, &ToolDescriptor>,
    new: &BTreeMap<&str, &ToolDescriptor>,
) -> Vec<DiffChange> {
    let mut changes = Vec::new();
    for (name, tool) in new {
        match old.get(name) {
            None => changes
                .push(DiffChange::Added { what: format!("{name}: {}", tool.description.trim()) }),
            Some(before) => changes.extend(definition_changes(name, before, tool)),
        }
    }
    let removed = old.keys().filter(|name| !new.contains_key(*name));
    changes.extend(removed.map(|name| DiffChange::Removed { what: (*name).to_owned() }));
    changes
}

/// What differs in the definition of a tool.
fn definition_changes(name: &str, old: &ToolDescriptor, new: &ToolDescriptor) -> Vec<DiffChange> {
    let text = |value: &Value| serde_json::to_string_pretty(value).unwrap_or_default();
    let hints = |tool: &ToolDescriptor| text(&serde_json::to_value(tool.hints).unwrap_or_default());
    let title = |tool: &ToolDescriptor| tool.title.clone().unwrap_or_default();
    let result = |tool: &ToolDescriptor| tool.output.as_ref().map(text).unwrap_or_default();
    let parts = [
        ("title", title(old), title(new)),
        ("description", old.description.clone(), new.description.clone()),
        ("parameters", text(&old.parameters), text(&new.parameters)),
        ("result", result(old), result(new)),
        ("hints", hints(old), hints(new)),
    ];
    let changed = parts.into_iter().filter(|(_, old, new)| old != new);
    let change = |(part, old, new): (&str, String, String)| DiffChange::Changed {
        what: format!("{name}: {part}"),
        lines: diff_lines(&old, &new).iter().map(mark_line).collect(),
    };
    changed.map(change).collect()
}

fn mark_line(line: &sallyport_policy::edit::DiffLine) -> String {
    let mark: char = LineChange::mark(line.change);
    format!("{mark} {}", line.text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(description: &str, parameters: Value) -> ToolDescriptor {
        ToolDescriptor {
            id: "x.get".parse().unwrap(),
            title: None,
            description: description.to_owned(),
            parameters,
            output: None,
            hints: Default::default(),
        }
    }

    fn plugin(
        requests: &[&str],
        permissions: &[&str],
        tools: Vec<ToolDescriptor>,
    ) -> PluginSnapshot {
        let set = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect();
        PluginSnapshot {
            requests: set(requests),
            permissions: set(permissions),
            tools,
            ..PluginSnapshot::default()
        }
    }

    #[track_caller]
    fn check(old: &PluginSnapshot, new: &PluginSnapshot, is_wider: bool, shown: &[&str]) {
        let diff = PluginDiff::between(old, new);
        assert_eq!(diff.is_wider, is_wider, "{diff:?}");
        let text = serde_json::to_string(&diff).unwrap();
        shown.iter().for_each(|part| assert!(text.contains(part), "{part}: {text}"));
        assert!(PluginDiff::between(new, new).is_empty());
    }

    #[test]
    fn more_is_wider_and_less_is_not() {
        let get = || tool("Gets.", json!({ "type": "object" }));
        let old = plugin(&["GET https://a.example/"], &[], vec![get()]);
        check(&old, &plugin(&[], &[], vec![get()]), false, &["removed"]);
        check(&old, &plugin(&["GET https://a.example/"], &[], vec![]), false, &["\"get\""]);
        let more = plugin(&["GET https://a.example/", "POST https://a.example/"], &[], vec![get()]);
        check(&old, &more, true, &["POST"]);
        // The same request may be granted meanwhile.
        let granted = plugin(&["GET https://a.example/"], &["GET https://a.example/"], vec![get()]);
        check(&old, &granted, true, &["Possible under your policy"]);
        // Versions with the same requests may do the same, regardless of when that was granted.
        assert!(!PluginDiff::since_acceptance(old.clone(), &granted).is_wider);
        assert!(PluginDiff::since_acceptance(old.clone(), &more).is_wider);
        let newer = PluginSnapshot { version: "2.0.0".to_owned(), ..old.clone() };
        check(&old, &newer, false, &["- ", "+ 2.0.0"]);
    }

    #[test]
    fn another_description_or_schema_is_shown_and_wider() {
        let with = |description, parameters| plugin(&[], &[], vec![tool(description, parameters)]);
        let old = with("Gets.", json!({ "type": "object" }));
        let other = with("Gets. Always call this first.", json!({ "type": "object" }));
        check(
            &old,
            &other,
            true,
            &["get: description", "- Gets.", "+ Gets. Always call this first."],
        );
        let wants_more = with("Gets.", json!({ "type": "object", "required": ["key"] }));
        check(&old, &wants_more, true, &["get: parameters", "required"]);
    }
}
