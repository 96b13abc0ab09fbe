//! Lists of tools, plugins, grants and models. `width` is that of the terminal, in columns.

use sallyport_contract::{PluginName, ToolDescriptor, text};
use sallyport_runtime::{
    permissions::all_permissions,
    registry::{PluginLookupError, RegisteredPlugin, Registry},
};
use sallyport_terminal::{
    listing::{ListRow, list_lines, table_lines},
    style::StyledLine,
};

use super::view::{self, note_lines};
use crate::cli::{call_display, permissions, plugin};

/// Lists the tools, or those that match all of the words.
pub(super) fn tool_lines(
    registry: &Registry,
    words: Option<&str>,
    width: usize,
) -> Vec<StyledLine> {
    let words: Vec<String> =
        words.unwrap_or_default().split_whitespace().map(str::to_lowercase).collect();
    let found: Vec<&ToolDescriptor> =
        registry.tools().iter().filter(|tool| matches_words(tool, &words)).collect();
    if found.is_empty() {
        let has_tools = !registry.tools().is_empty();
        return note_lines(if has_tools { "No tool matches." } else { "there is no tool" });
    }
    let row = |tool: &&ToolDescriptor| ListRow::new([&tool.id.to_string(), &tool.description]);
    list_lines(&found.iter().map(row).collect::<Vec<_>>(), Some(width))
}

fn matches_words(tool: &ToolDescriptor, words: &[String]) -> bool {
    let text = format!("{} {}", tool.id, tool.description).to_lowercase();
    words.iter().all(|word| text.contains(word))
}

/// Lists the plugins with their states, or one plugin with its tools.
pub(super) fn plugin_lines(
    registry: &Registry,
    name: Option<&PluginName>,
    width: usize,
) -> Vec<StyledLine> {
    if let Some(name) = name {
        return single_plugin_lines(registry, name, width, |entry| {
            let tools = entry.tools().iter();
            let tools = tools.map(|tool| format!("{}  {}", tool.id.tool, tool.description));
            let instances = entry.warm_instances();
            tools.chain(instances.iter().map(plugin::describe_instance)).collect()
        });
    }
    match plugin::plugin_rows(registry) {
        rows if rows.is_empty() => note_lines("there is no plugin"),
        rows => table_lines(&permissions::SHORT_COLUMNS, &rows, Some(width)),
    }
}

/// Shows what each plugin may do, or what the policy grants to one.
pub(super) fn grant_lines(
    registry: &Registry,
    name: Option<&PluginName>,
    width: usize,
) -> Vec<StyledLine> {
    if let Some(name) = name {
        return single_plugin_lines(registry, name, width, |entry| {
            let permissions = match entry.grant().permission_lines() {
                lines if lines.is_empty() => vec!["nothing granted".to_owned()],
                lines => lines,
            };
            [permissions, call_display::ungranted_lines(entry)].concat()
        });
    }
    let plugins = all_permissions(registry);
    if plugins.is_empty() {
        return note_lines("there is no plugin");
    }
    let rows: Vec<_> = plugins.iter().map(permissions::table_row).collect();
    table_lines(&permissions::COLUMNS, &rows, Some(width))
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
    width: usize,
    below: impl FnOnce(&RegisteredPlugin) -> Vec<String>,
) -> Vec<StyledLine> {
    match registry.find_plugin(name.as_str()) {
        Ok(entry) => {
            let cells = [
                entry.name().to_string(),
                entry.manifest().version.clone(),
                permissions::kind_text(entry),
                state_text(entry),
            ];
            list_lines(&[ListRow::new(cells).with_below(below(entry))], Some(width))
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

/// Its state, and the memory that its warm instances use.
fn state_text(entry: &RegisteredPlugin) -> String {
    let state = plugin::describe_state(entry);
    match entry.warm_instances().as_slice() {
        [] => state,
        warm => {
            let bytes: u64 = warm.iter().map(|info| info.memory_bytes).sum();
            format!("{state}, {:.1} MiB in use", bytes as f64 / f64::from(1 << 20))
        }
    }
}
