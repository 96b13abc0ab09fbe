//! Removal of grants and rules from a policy file.

use std::{cmp::Reverse, collections::BTreeSet, fmt};

use sallyport_contract::{Decision, PluginName};
use toml_edit::Item;

use super::{
    LIMITS_KEY, PLUGIN_KEY, RULE_KEY, add_grant,
    entry::{ListEntry, canonical_page, canonical_pattern, canonical_tools, list_entries},
    error::EditError,
    text_edit::{TextEdit, apply_edits},
    tree::{TableNode, TomlTree},
};
use crate::{
    addition::GrantAddition,
    capability::{Capability, CapabilityPart, PAGE_RULE_KEY, ValueShape},
};

/// Most similar names that an error lists.
const NEAR_MAX: usize = 3;

/// Most characters of a name that are compared with another: the time is quadratic in the length.
const COMPARED_CHARS_MAX: usize = 256;

/// Something to take away from a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemovalTarget {
    /// The entries that allow this network pattern.
    Net(String),
    /// The entries that deny this network pattern.
    Deny(String),
    /// The folder or file with this host path, as the file writes it, or with this guest path.
    Fs(String),
    /// This environment variable.
    Env(String),
    /// This secret, regardless of how it is granted.
    Secret(String),
    /// This capability, with all that is granted of it.
    Capability(Capability),
    /// This item of a capability: a page, a package, a scratch, an address, as the file writes it.
    CapabilityItem(Capability, String),
    /// This setting of a capability, so that its default applies again.
    CapabilitySetting(Capability, String),
    /// This limit, so that the default applies again.
    Limit(String),
    /// The plugin's whole table. Rules about the plugin stay.
    Plugin,
}

/// The rules to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleRemovalTarget {
    /// Their tools, as the rules write them.
    pub tool: String,
    /// The requests that they are about; `None` for rules about calls.
    pub net: Option<String>,
    /// The pages that they are about.
    pub page: Option<String>,
    /// Their decision; `None` for any, provided that all of them have the same one.
    pub decision: Option<Decision>,
}

/// Takes something away from a plugin. A list or a table that becomes empty is removed too.
///
/// # Errors
///
/// The text is not TOML, a key on the path has a value that policies do not allow there, or the
/// target does not exist. A `false` that takes something away is not a grant.
pub fn revoke_grant(
    text: &str,
    plugin: &PluginName,
    target: &RemovalTarget,
) -> Result<String, EditError> {
    let tree = TomlTree::parse(text)?;
    let path = [PLUGIN_KEY, plugin.as_str()];
    let Some(table) = tree.find_table(&path)? else {
        let known = tree.find_table(&[PLUGIN_KEY])?.map(|plugins| plugins.key_names());
        return Err(absent_target_error(
            RemovalTarget::Plugin.kind(),
            plugin.as_str(),
            known.unwrap_or_default(),
        ));
    };
    if let Some(item) = table.get(target.table_key())
        && item.as_bool() == Some(false)
    {
        return Err(target.taken_away_error(&tree, item));
    }
    let text_edits = match target {
        RemovalTarget::Plugin => tree.remove_key(&path),
        RemovalTarget::Limit(key) => remove_limit(&tree, plugin, key)?,
        RemovalTarget::CapabilitySetting(of, key) => {
            return remove_setting(text, &tree, plugin, *of, key);
        }
        RemovalTarget::Capability(capability) => match table.get(capability.as_str()) {
            Some(_) => tree.remove_key(&[PLUGIN_KEY, plugin.as_str(), capability.as_str()]),
            None => return Err(target.absent_error(granted_capabilities(&table))),
        },
        RemovalTarget::CapabilityItem(of, _) if let ValueShape::Table(list) = of.kind().shape() => {
            remove_table_item(&tree, plugin, target, list)?
        }
        RemovalTarget::Net(_)
        | RemovalTarget::Deny(_)
        | RemovalTarget::Fs(_)
        | RemovalTarget::Env(_)
        | RemovalTarget::Secret(_)
        | RemovalTarget::CapabilityItem(..) => {
            let item =
                table.get(target.table_key()).ok_or_else(|| target.absent_error(Vec::new()))?;
            let removed_indices = target.find_entries(&tree, item)?;
            tree.remove_entries(
                &[PLUGIN_KEY, plugin.as_str(), target.table_key()],
                &removed_indices,
            )
        }
    };
    Ok(apply_edits(text, text_edits))
}

fn granted_capabilities(table: &TableNode<'_>) -> Vec<String> {
    let is_denied = |name: &str| table.get(name).and_then(Item::as_bool) == Some(false);
    let is_capability = |name: &String| Capability::from_name(name).is_some() && !is_denied(name);
    table.key_names().into_iter().filter(is_capability).collect()
}

/// Removes an item of the list under a key of a capability's table. With the last item the whole
/// capability is removed, because a table without the list would grant every item.
fn remove_table_item(
    tree: &TomlTree<'_>,
    plugin: &PluginName,
    target: &RemovalTarget,
    list_key: &'static str,
) -> Result<Vec<TextEdit>, EditError> {
    let path = [PLUGIN_KEY, plugin.as_str(), target.table_key(), list_key];
    let absent = || target.absent_error(Vec::new());
    let plugins = tree.find_table(&path[..2])?.ok_or_else(absent)?;
    let is_table = plugins.get(target.table_key()).is_some_and(Item::is_table_like);
    let pages = if is_table { tree.find_table(&path[..3])? } else { None };
    let item = pages.as_ref().and_then(|pages| pages.get(list_key)).ok_or_else(absent)?;
    let removed_indices = target.find_entries(tree, item)?;
    match list_entries(tree, list_key, item)?.len() == removed_indices.len() {
        true => Ok(tree.remove_key(&path[..3])),
        false => Ok(tree.remove_entries(&path, &removed_indices)),
    }
}

/// Removes a setting. The capability itself stays, unless the key is that of its list: a table
/// without the list would grant every item.
fn remove_setting(
    text: &str,
    tree: &TomlTree<'_>,
    plugin: &PluginName,
    of: Capability,
    key: &str,
) -> Result<String, EditError> {
    let path = [PLUGIN_KEY, plugin.as_str(), of.as_str()];
    let absent = |known| RemovalTarget::CapabilitySetting(of, key.to_owned()).absent_error(known);
    let is_table = tree
        .find_table(&path[..2])?
        .is_some_and(|table| table.get(of.as_str()).is_some_and(Item::is_table_like));
    let settings = if is_table { tree.find_table(&path)? } else { None };
    let settings = settings.ok_or_else(|| absent(Vec::new()))?;
    if settings.get(key).is_none() {
        return Err(absent(settings.key_names()));
    }
    if matches!(of.kind().shape(), ValueShape::Table(list_key) if list_key == key) {
        return Ok(apply_edits(text, tree.remove_key(&path)));
    }
    let is_last = settings.key_names().len() == 1;
    let removed = [&path[..], &[key]].concat();
    let without = apply_edits(text, tree.remove_key(&removed));
    match is_last {
        true => add_grant(&without, plugin, &GrantAddition::capability(of)),
        false => Ok(without),
    }
}

fn remove_limit(
    tree: &TomlTree<'_>,
    plugin: &PluginName,
    key: &str,
) -> Result<Vec<TextEdit>, EditError> {
    let limits = tree.find_table(&[PLUGIN_KEY, plugin.as_str(), LIMITS_KEY])?;
    match limits.as_ref().and_then(|limits| limits.get(key)) {
        Some(_) => Ok(tree.remove_key(&[PLUGIN_KEY, plugin.as_str(), LIMITS_KEY, key])),
        None => {
            let known = limits.map(|limits| limits.key_names()).unwrap_or_default();
            Err(RemovalTarget::Limit(key.to_owned()).absent_error(known))
        }
    }
}

/// Removes a limit for all plugins.
///
/// # Errors
///
/// The text is not TOML, or states no such limit.
pub fn revoke_shared_limit(text: &str, key: &str) -> Result<String, EditError> {
    let tree = TomlTree::parse(text)?;
    let limits = tree.find_table(&[LIMITS_KEY])?;
    match limits.as_ref().and_then(|limits| limits.get(key)) {
        Some(_) => Ok(apply_edits(text, tree.remove_key(&[LIMITS_KEY, key]))),
        None => {
            let known = limits.map(|limits| limits.key_names()).unwrap_or_default();
            Err(RemovalTarget::Limit(key.to_owned()).absent_error(known))
        }
    }
}

impl fmt::Display for RemovalTarget {
    /// The target in a few words, for records.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Net(text) | Self::Fs(text) => f.write_str(text),
            Self::Deny(pattern) => write!(f, "the refusal of {pattern}"),
            Self::Env(name) => write!(f, "the variable {name}"),
            Self::Secret(name) => write!(f, "the secret {name}"),
            Self::Limit(key) => write!(f, "the limit {key}"),
            Self::CapabilitySetting(of, key) => write!(f, "the setting {key} of {of}"),
            Self::Capability(capability) => write!(f, "{capability}"),
            Self::CapabilityItem(capability, item) => {
                f.write_str(&capability.kind().item_phrase(item))
            }
            Self::Plugin => f.write_str("everything that it had"),
        }
    }
}

impl RemovalTarget {
    /// The target that takes an addition away again.
    pub fn of_addition(addition: &GrantAddition) -> Self {
        match addition {
            GrantAddition::Net(net) => Self::Net(net.pattern.clone()),
            GrantAddition::Fs(folder) => Self::Fs(folder.path.clone()),
            GrantAddition::Env(name) => Self::Env(name.clone()),
            GrantAddition::Secret(secret) => Self::Secret(secret.name.clone()),
            GrantAddition::Limit { key, .. } => Self::Limit(key.clone()),
            GrantAddition::Capability(wanted) => match (&wanted.part, wanted.item_name()) {
                (CapabilityPart::Setting { key, .. }, _) => {
                    Self::CapabilitySetting(wanted.capability, key.clone())
                }
                (_, Some(item)) => Self::CapabilityItem(wanted.capability, item),
                (_, None) => Self::Capability(wanted.capability),
            },
        }
    }

    /// The key for such targets.
    fn table_key(&self) -> &'static str {
        match self {
            Self::Net(_) | Self::Deny(_) => "net",
            Self::Fs(_) => "fs",
            Self::Env(_) => "env",
            Self::Secret(_) => "secrets",
            Self::Capability(of) | Self::CapabilityItem(of, _) | Self::CapabilitySetting(of, _) => {
                of.as_str()
            }
            Self::Limit(_) => LIMITS_KEY,
            Self::Plugin => PLUGIN_KEY,
        }
    }

    /// The kind of such targets in messages.
    fn kind(&self) -> &'static str {
        match self {
            Self::Net(_) => "entry that allows",
            Self::Deny(_) => "entry that denies",
            Self::Fs(_) => "folder or file",
            Self::Env(_) => "environment variable",
            Self::Secret(_) => "secret",
            Self::Capability(_) => "capability",
            Self::CapabilityItem(capability, _) => capability.kind().item_noun(),
            Self::CapabilitySetting(..) => "setting",
            Self::Limit(_) => "limit",
            Self::Plugin => "table for the plugin",
        }
    }

    /// The indexes of the entries that the target names.
    fn find_entries(&self, tree: &TomlTree<'_>, item: &Item) -> Result<BTreeSet<usize>, EditError> {
        let entries = list_entries(tree, self.table_key(), item)?.into_iter();
        let names: Vec<_> = entries.map(|entry| self.entry_names(entry)).collect();
        let wanted = self.canonical_name();
        let is_meant = |index: &usize| names[*index].contains(&wanted);
        let found: BTreeSet<_> = (0..names.len()).filter(is_meant).collect();
        match found.is_empty() {
            true => Err(self.absent_error(names.concat())),
            false => Ok(found),
        }
    }

    /// The names by which such a target can refer to an entry.
    fn entry_names(&self, entry: ListEntry<'_>) -> Vec<String> {
        let texts = match self {
            Self::Net(_) => {
                vec![
                    entry
                        .plain_text()
                        .or_else(|| entry.text_of_key("allow"))
                        .map(canonical_pattern),
                ]
            }
            Self::Deny(_) => vec![entry.text_of_key("deny").map(canonical_pattern)],
            Self::Fs(_) => {
                vec![entry.text_of_key("path").map(trim_trailing_slashes), entry.mount_path()]
            }
            Self::Env(_) => vec![entry.plain_text().map(str::to_owned)],
            Self::Secret(_) => vec![entry.text_of_key("name").map(str::to_owned)],
            Self::CapabilityItem(capability, _) => {
                let kind = capability.kind();
                let name = entry.plain_text().or_else(|| entry.text_of_key(kind.item_key()));
                vec![name.map(|name| kind.canonical_item(name))]
            }
            Self::Capability(_) | Self::CapabilitySetting(..) | Self::Limit(_) | Self::Plugin => {
                Vec::new()
            }
        };
        texts.into_iter().flatten().collect()
    }

    fn canonical_name(&self) -> String {
        match self {
            Self::Net(pattern) | Self::Deny(pattern) => canonical_pattern(pattern),
            Self::Fs(path) => trim_trailing_slashes(path),
            Self::CapabilityItem(capability, item) => capability.kind().canonical_item(item),
            Self::Capability(capability) => capability.as_str().to_owned(),
            Self::Env(name)
            | Self::Secret(name)
            | Self::Limit(name)
            | Self::CapabilitySetting(_, name) => name.clone(),
            Self::Plugin => String::new(),
        }
    }

    fn taken_away_error(&self, tree: &TomlTree<'_>, item: &Item) -> EditError {
        let line = tree.line_at(item.span().unwrap_or_default().start);
        EditError::TakenAway { key: self.table_key(), line }
    }

    fn absent_error(&self, known: Vec<String>) -> EditError {
        absent_target_error(self.kind(), &self.canonical_name(), known)
    }
}

/// Returns a path without trailing slashes.
pub(super) fn trim_trailing_slashes(path: &str) -> String {
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() { path.to_owned() } else { trimmed.to_owned() }
}

/// Removes rules.
///
/// # Errors
///
/// The text is not TOML, its rules are not a list, no rule matches the target, or the matching
/// rules have different decisions.
pub fn remove_rule(text: &str, target: &RuleRemovalTarget) -> Result<String, EditError> {
    let tree = TomlTree::parse(text)?;
    let Some(item) = tree.root_table().get(RULE_KEY) else { return Err(target.absent_error(&[])) };
    let rules = list_entries(&tree, RULE_KEY, item)?;
    let meant: BTreeSet<usize> =
        (0..rules.len()).filter(|index| target.matches_rule(rules[*index])).collect();
    let mut decisions: Vec<_> =
        meant.iter().map(|index| rules[*index].text_of_key("decision")).collect();
    decisions.dedup();
    match decisions.len() {
        0 => Err(target.absent_error(&rules)),
        1 => Ok(apply_edits(text, tree.remove_entries(&[RULE_KEY], &meant))),
        _ => {
            let lines = meant.iter().map(|index| tree.line_at(rules[*index].span().start));
            Err(EditError::Ambiguous { tools: target.tool.clone(), lines: lines.collect() })
        }
    }
}

impl RuleRemovalTarget {
    fn matches_rule(&self, rule: ListEntry<'_>) -> bool {
        let pattern = |text: Option<&str>| text.map(canonical_pattern);
        let page = |text: Option<&str>| text.map(canonical_page);
        rule.text_of_key("tool").map(canonical_tools) == Some(canonical_tools(&self.tool))
            && pattern(rule.text_of_key("net")) == pattern(self.net.as_deref())
            && page(rule.text_of_key(PAGE_RULE_KEY)) == page(self.page.as_deref())
            && self
                .decision
                .is_none_or(|decision| rule.text_of_key("decision") == Some(decision.as_str()))
    }

    fn absent_error(&self, rules: &[ListEntry<'_>]) -> EditError {
        let name = |tool: &str, net: Option<&str>, page: Option<&str>| {
            let net = net.map(|net| format!(" {}", canonical_pattern(net)));
            let page = page.map(|page| format!(" {}", canonical_page(page)));
            format!("{tool}{}", net.or(page).unwrap_or_default())
        };
        let known = rules.iter().filter_map(|rule| {
            Some(name(
                rule.text_of_key("tool")?,
                rule.text_of_key("net"),
                rule.text_of_key(PAGE_RULE_KEY),
            ))
        });
        let own = name(&self.tool, self.net.as_deref(), self.page.as_deref());
        absent_target_error("rule for", &own, known.collect())
    }
}

/// Returns the error for a name that does not exist, with the most similar names that do.
fn absent_target_error(kind: &'static str, name: &str, mut known: Vec<String>) -> EditError {
    known.sort();
    known.dedup();
    known.sort_by_cached_key(|known| Reverse(name_similarity(name, known)));
    known.truncate(NEAR_MAX);
    EditError::NotFound { kind, name: name.to_owned(), near: known }
}

/// The similarity of two names, from 0 to 1000.
fn name_similarity(a: &str, b: &str) -> u32 {
    let head = |text: &str| text.chars().take(COMPARED_CHARS_MAX).collect::<String>();
    let share = strsim::normalized_damerau_levenshtein(&head(a), &head(b));
    // The product is at most 1000, so it fits in a `u32`.
    (share * 1000.0) as u32
}
