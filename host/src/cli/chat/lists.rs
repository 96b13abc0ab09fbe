//! Lists of tools, plugins, grants and models.

use anstyle::Style;
use sallyport_contract::{PluginName, ToolDescriptor, Toolbox, text};
use sallyport_runtime::registry::{PluginLookupError, RegisteredPlugin, Registry};
use sallyport_terminal::style::StyledLine;

use super::view::{self, note, pair};
use crate::cli::{plugin, show};

/// Most characters of a description in a list.
const DESCRIPTION_CHARS_MAX: usize = 80;

/// Lists the tools, or those that match all of the words.
pub(super) fn tools(registry: &Registry, words: Option<&str>) -> Vec<StyledLine> {
    let words: Vec<String> =
        words.unwrap_or_default().split_whitespace().map(str::to_lowercase).collect();
    let found: Vec<&ToolDescriptor> =
        registry.tools().iter().filter(|tool| fits(tool, &words)).collect();
    if found.is_empty() {
        let there_are_some = !registry.tools().is_empty();
        return note(if there_are_some { "No tool matches." } else { "there is no tool" });
    }
    let width = found.iter().map(|tool| tool.id.to_string().len()).max().unwrap_or(0);
    let row = |tool: &&ToolDescriptor| {
        let description = text::escape_excerpt(&tool.description, DESCRIPTION_CHARS_MAX);
        pair(&tool.id.to_string(), width, &description)
    };
    found.iter().map(row).collect()
}

fn fits(tool: &ToolDescriptor, words: &[String]) -> bool {
    let text = format!("{} {}", tool.id, tool.description).to_lowercase();
    words.iter().all(|word| text.contains(word))
}

/// Lists the plugins with their states, or one plugin with its tools.
pub(super) fn plugins(registry: &Registry, name: Option<&PluginName>) -> Vec<StyledLine> {
    if let Some(name) = name {
        return one(registry, name, |entry| {
            let tools = entry.tools().iter().map(|tool| {
                pair(
                    tool.id.tool.as_str(),
                    0,
                    &text::escape_excerpt(&tool.description, DESCRIPTION_CHARS_MAX),
                )
            });
            let instances = entry.warm_instances();
            let instances = instances.iter().map(|info| StyledLine::plain(plugin::instance(info)));
            tools.chain(instances).collect()
        });
    }
    let width = registry.entries().map(|entry| entry.name().as_str().len()).max().unwrap_or(0);
    let mut lines: Vec<StyledLine> =
        registry.entries().map(|entry| pair(entry.name().as_str(), width, &state(entry))).collect();
    lines.extend(registry.problems().iter().map(|problem| {
        view::warning(&format!("{}: {}", problem.place.display(), problem.message))
    }));
    if lines.is_empty() { note("there is no plugin") } else { lines }
}

/// Lists what the policy grants to each plugin, or to one.
pub(super) fn grants(registry: &Registry, name: Option<&PluginName>) -> Vec<StyledLine> {
    if let Some(name) = name {
        return one(registry, name, powers);
    }
    let lines: Vec<StyledLine> = registry
        .entries()
        .flat_map(|entry| {
            let name = StyledLine::styled(entry.name().to_string(), Style::new().bold());
            std::iter::once(name).chain(powers(entry))
        })
        .collect();
    if lines.is_empty() { note("there is no plugin") } else { lines }
}

/// Lists the models by name and marks the current one.
pub(super) fn models(models: &[String], present: &str) -> Vec<StyledLine> {
    let known = models.iter().map(String::as_str);
    let other = known.clone().all(|name| name != present).then_some(present);
    let mark = |name: &str| if name == present { "* " } else { "  " };
    let row = |name: &str| StyledLine::plain(format!("{}{}", mark(name), text::escape_line(name)));
    let mut lines: Vec<StyledLine> = known.chain(other).map(row).collect();
    lines.extend(note("Switch with /model NAME or /model PROVIDER/NAME."));
    lines
}

fn one(
    registry: &Registry,
    name: &PluginName,
    show: impl FnOnce(&RegisteredPlugin) -> Vec<StyledLine>,
) -> Vec<StyledLine> {
    match registry.find_plugin(name.as_str()) {
        Ok(entry) => {
            let mut lines = vec![pair(entry.name().as_str(), 0, &state(entry))];
            lines.extend(show(entry));
            lines
        }
        Err(PluginLookupError::Unknown { message, near }) => {
            let near = near.map(|near| view::hint(&format!("did you mean {near}?")));
            std::iter::once(view::error(&message)).chain(near).collect()
        }
        Err(PluginLookupError::Unusable { message, hint, .. }) => {
            let hint = hint.as_deref().map(view::hint);
            std::iter::once(view::error(&message)).chain(hint).collect()
        }
    }
}

fn powers(entry: &RegisteredPlugin) -> Vec<StyledLine> {
    let powers = entry.grant().permission_lines();
    let mut lines = match powers.is_empty() {
        true => note("    nothing granted"),
        false => powers
            .iter()
            .map(|power| StyledLine::plain(format!("    {}", text::escape_line(power))))
            .collect(),
    };
    let lacking = show::ungranted(entry).into_iter();
    lines.extend(lacking.map(|line| StyledLine::plain(format!("    {line}"))));
    lines
}

fn state(entry: &RegisteredPlugin) -> String {
    let version = &entry.manifest().version;
    let warm = match entry.warm_instances().as_slice() {
        [] => String::new(),
        warm => {
            let bytes: u64 = warm.iter().map(|info| info.memory_bytes).sum();
            format!(", {:.1} MiB in use", bytes as f64 / f64::from(1 << 20))
        }
    };
    format!("{version}  {}  {}{warm}", entry.kind().as_str(), plugin::state(entry))
}
