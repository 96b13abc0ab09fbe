//! Lists of tools, plugins, grants and models.

use anstyle::Style;
use sallyport_contract::{PluginName, ToolDescriptor, Toolbox, text};
use sallyport_runtime::registry::{PluginLookupError, RegisteredPlugin, Registry};
use sallyport_terminal::style::StyledLine;

use super::view::{self, note_lines, pair_line};
use crate::cli::{call_display, plugin};

/// Most characters of a description in a list.
const DESCRIPTION_CHARS_MAX: usize = 80;

/// Lists the tools, or those that match all of the words.
pub(super) fn tool_lines(registry: &Registry, words: Option<&str>) -> Vec<StyledLine> {
    let words: Vec<String> =
        words.unwrap_or_default().split_whitespace().map(str::to_lowercase).collect();
    let found: Vec<&ToolDescriptor> =
        registry.tools().iter().filter(|tool| matches_words(tool, &words)).collect();
    if found.is_empty() {
        let has_tools = !registry.tools().is_empty();
        return note_lines(if has_tools { "No tool matches." } else { "there is no tool" });
    }
    let width = found.iter().map(|tool| tool.id.to_string().len()).max().unwrap_or(0);
    let row = |tool: &&ToolDescriptor| {
        let description = text::escape_excerpt(&tool.description, DESCRIPTION_CHARS_MAX);
        pair_line(&tool.id.to_string(), width, &description)
    };
    found.iter().map(row).collect()
}

fn matches_words(tool: &ToolDescriptor, words: &[String]) -> bool {
    let text = format!("{} {}", tool.id, tool.description).to_lowercase();
    words.iter().all(|word| text.contains(word))
}

/// Lists the plugins with their states, or one plugin with its tools.
pub(super) fn plugin_lines(registry: &Registry, name: Option<&PluginName>) -> Vec<StyledLine> {
    if let Some(name) = name {
        return single_plugin_lines(registry, name, |entry| {
            let tools = entry.tools().iter().map(|tool| {
                pair_line(
                    tool.id.tool.as_str(),
                    0,
                    &text::escape_excerpt(&tool.description, DESCRIPTION_CHARS_MAX),
                )
            });
            let instances = entry.warm_instances();
            let instances =
                instances.iter().map(|info| StyledLine::plain(plugin::describe_instance(info)));
            tools.chain(instances).collect()
        });
    }
    let width = registry.entries().map(|entry| entry.name().as_str().len()).max().unwrap_or(0);
    let mut lines: Vec<StyledLine> = registry
        .entries()
        .map(|entry| pair_line(entry.name().as_str(), width, &describe_entry(entry)))
        .collect();
    lines.extend(registry.problems().iter().map(|problem| {
        view::warning_line(&format!("{}: {}", problem.location.display(), problem.message))
    }));
    if lines.is_empty() { note_lines("there is no plugin") } else { lines }
}

/// Lists what the policy grants to each plugin, or to one.
pub(super) fn grant_lines(registry: &Registry, name: Option<&PluginName>) -> Vec<StyledLine> {
    if let Some(name) = name {
        return single_plugin_lines(registry, name, capability_lines);
    }
    let lines: Vec<StyledLine> = registry
        .entries()
        .flat_map(|entry| {
            let name = StyledLine::styled(entry.name().to_string(), Style::new().bold());
            std::iter::once(name).chain(capability_lines(entry))
        })
        .collect();
    if lines.is_empty() { note_lines("there is no plugin") } else { lines }
}

/// Lists the models by name and marks the current one.
pub(super) fn model_lines(models: &[String], current: &str) -> Vec<StyledLine> {
    let known = models.iter().map(String::as_str);
    let other = known.clone().all(|name| name != current).then_some(current);
    let mark = |name: &str| if name == current { "* " } else { "  " };
    let row = |name: &str| StyledLine::plain(format!("{}{}", mark(name), text::escape_line(name)));
    let mut lines: Vec<StyledLine> = known.chain(other).map(row).collect();
    lines.extend(note_lines("Switch with /model NAME or /model PROVIDER/NAME."));
    lines
}

fn single_plugin_lines(
    registry: &Registry,
    name: &PluginName,
    show: impl FnOnce(&RegisteredPlugin) -> Vec<StyledLine>,
) -> Vec<StyledLine> {
    match registry.find_plugin(name.as_str()) {
        Ok(entry) => {
            let mut lines = vec![pair_line(entry.name().as_str(), 0, &describe_entry(entry))];
            lines.extend(show(entry));
            lines
        }
        Err(PluginLookupError::Unknown { message, suggestion: near }) => {
            let near = near.map(|near| view::hint_line(&format!("did you mean {near}?")));
            std::iter::once(view::error_line(&message)).chain(near).collect()
        }
        Err(PluginLookupError::Unusable { message, hint, .. }) => {
            let hint = hint.as_deref().map(view::hint_line);
            std::iter::once(view::error_line(&message)).chain(hint).collect()
        }
    }
}

fn capability_lines(entry: &RegisteredPlugin) -> Vec<StyledLine> {
    let permissions = entry.grant().permission_lines();
    let mut lines = match permissions.is_empty() {
        true => note_lines("    nothing granted"),
        false => permissions
            .iter()
            .map(|permission| StyledLine::plain(format!("    {}", text::escape_line(permission))))
            .collect(),
    };
    let ungranted = call_display::ungranted_lines(entry).into_iter();
    lines.extend(ungranted.map(|line| StyledLine::plain(format!("    {line}"))));
    lines
}

fn describe_entry(entry: &RegisteredPlugin) -> String {
    let version = &entry.manifest().version;
    let warm = match entry.warm_instances().as_slice() {
        [] => String::new(),
        warm => {
            let bytes: u64 = warm.iter().map(|info| info.memory_bytes).sum();
            format!(", {:.1} MiB in use", bytes as f64 / f64::from(1 << 20))
        }
    };
    format!("{version}  {}  {}{warm}", entry.kind().as_str(), plugin::describe_state(entry))
}
