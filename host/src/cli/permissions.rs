//! The permissions of plugins as rows of tables.
//!
//! `sallyport policy`, `plugin list` and the chat show the same data.

use sallyport_contract::Decision;
use sallyport_policy::PluginRole;
use sallyport_runtime::{
    permissions::{FilePermission, PluginPermissions, PluginReadiness, ToolDecisions},
    registry::RegisteredPlugin,
};
use sallyport_terminal::listing::ListRow;

use super::output::format_count;

/// The names of the columns of [`table_row`].
pub(super) const COLUMNS: [&str; 7] =
    ["plugin", "works", "tools", "net", "files", "other", "missing"];

/// The names of the columns of [`short_table_row`].
pub(super) const SHORT_COLUMNS: [&str; 8] =
    ["plugin", "works", "tools", "may use", "missing", "version", "kind", "description"];

/// The row of a table whose columns are [`COLUMNS`].
pub(super) fn table_row(permissions: &PluginPermissions) -> ListRow {
    let missing = permissions.missing.iter().map(|missing| missing.request.as_str());
    ListRow::new([
        permissions.plugin.to_string(),
        works_text(permissions),
        counts_text(&permissions.tools),
        permissions.net.join(", "),
        files_text(permissions),
        other_text(permissions),
        missing.collect::<Vec<_>>().join(", "),
    ])
}

/// The row of a table whose columns are [`SHORT_COLUMNS`].
pub(super) fn short_table_row(
    permissions: &PluginPermissions,
    entry: &RegisteredPlugin,
) -> ListRow {
    let manifest = entry.manifest();
    let missing = match permissions.missing.len() {
        0 => String::new(),
        count => format_count(count, "request"),
    };
    ListRow::new([
        permissions.plugin.to_string(),
        works_text(permissions),
        counts_text(&permissions.tools),
        reach_text(permissions),
        missing,
        manifest.version.clone(),
        kind_text(entry),
        manifest.description.clone(),
    ])
}

/// Whether it works, such as `no, disabled: the setting zone is missing`.
fn works_text(permissions: &PluginPermissions) -> String {
    match &permissions.works {
        PluginReadiness::Ready => "yes".to_owned(),
        PluginReadiness::Limited => "partly".to_owned(),
        PluginReadiness::Unusable { reason } => format!("no, {reason}"),
    }
}

/// The kinds of things that it may use, such as `net, files, state`.
fn reach_text(permissions: &PluginPermissions) -> String {
    let kinds = [(!permissions.net.is_empty(), "net"), (!permissions.files.is_empty(), "files")];
    let kinds = kinds.into_iter().filter(|(held, _)| *held).map(|(_, kind)| kind.to_owned());
    let others = Some(other_text(permissions)).filter(|other| !other.is_empty());
    kinds.chain(others).collect::<Vec<_>>().join(", ")
}

fn files_text(permissions: &PluginPermissions) -> String {
    let file = |file: &FilePermission| {
        let seen = match file.path.to_str() == Some(&file.seen_as) {
            true => String::new(),
            false => format!(" as {}", file.seen_as),
        };
        format!("{} {}{seen}", file.access, file.path.display())
    };
    permissions.files.iter().map(file).collect::<Vec<_>>().join(", ")
}

fn other_text(permissions: &PluginPermissions) -> String {
    let variables = permissions.variables.iter().map(|name| format!("variable {name}"));
    let secrets = permissions.secrets.iter().map(|name| format!("secret {name}"));
    let capabilities = permissions.capabilities.iter().map(|name| (*name).to_owned());
    variables.chain(secrets).chain(capabilities).collect::<Vec<_>>().join(", ")
}

fn counts_text(decisions: &ToolDecisions) -> String {
    let lists = [
        (&decisions.allow, Decision::Allow),
        (&decisions.ask, Decision::Ask),
        (&decisions.deny, Decision::Deny),
    ];
    let counts = lists.iter().filter(|(names, _)| !names.is_empty());
    let counts = counts.map(|(names, decision)| format!("{} {}", names.len(), decision.as_str()));
    counts.collect::<Vec<_>>().join(", ")
}

/// The kind of a plugin, and its roles besides tools: `component, guide`.
pub(super) fn kind_text(entry: &RegisteredPlugin) -> String {
    let roles = entry.manifest().roles.iter().filter(|role| **role != PluginRole::Tools);
    let words = std::iter::once(entry.kind().as_str()).chain(roles.map(|role| role.as_str()));
    words.collect::<Vec<_>>().join(", ")
}
