//! Edits of a policy file: functions from its text to a text that grants more, or less.
//!
//! A policy is its operator's own work, so an edit changes only what it is asked to change and
//! keeps the rest byte for byte: comments, order, line endings, and the style of each table.
//! Nothing here reads or writes a file. The new text must still be parsed as a policy: two entries
//! that are valid alone may conflict.
//!
//! Comments on the line of a removed entry or inside a removed table are removed too. All others
//! stay.
//!
//! ```
//! use sallyport_policy::edit::{self, GrantAddition, RemovalTarget};
//!
//! let text = "[plugin.clock]\nenv = [\"TZ\"] # where we are\n";
//! let clock = "clock".parse()?;
//! let more = edit::add_grant(text, &clock, &GrantAddition::Env("LANG".into()))?;
//! assert_eq!(more, "[plugin.clock]\nenv = [\"TZ\", \"LANG\"] # where we are\n");
//! assert_eq!(edit::revoke_grant(&more, &clock, &RemovalTarget::Env("LANG".into()))?, text);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod brackets;
mod capability;
mod diff;
mod entry;
mod error;
mod objection;
mod removal;
mod text_edit;
mod tree;

use sallyport_contract::PluginName;
use toml_edit::Item;

pub use self::{
    diff::{DiffLine, LineChange, diff_lines},
    error::EditError,
    objection::AdditionObjection,
    removal::{RemovalTarget, RuleRemovalTarget, remove_rule, revoke_grant, revoke_shared_limit},
};
pub use crate::{
    addition::{
        FsAddition, GrantAddition, GrantTextError, NetAddition, NetReachText, SecretAddition,
        SecretUseText,
    },
    capability::{CapabilityAddition, CapabilityPart},
    ungranted::RequestedGrants,
};

use self::{
    entry::{ListEntry, list_entries, rule_pairs},
    text_edit::{TextEdit, apply_edits},
    tree::TomlTree,
};
use crate::{
    RuleText,
    addition::{canonical_values, makes_question_idle},
    capability::ValueShape,
    folder::FsAccess,
    policy::Policy,
    secret::{SecretName, secret_source_toml},
    toml_text::{toml_inline_table, toml_key, toml_string},
};

/// The key of the list of rules.
const RULE_KEY: &str = "rule";

/// The key of the table of plugins.
const PLUGIN_KEY: &str = "plugin";

/// The key of the table of secrets.
const SECRET_KEY: &str = "secret";

/// The key of a plugin's limits, and of the limits for all plugins.
const LIMITS_KEY: &str = "limits";

/// Adds a rule after the others. A rule that exists already is not added again.
///
/// # Errors
///
/// The text is not TOML, its rules are not a list, or the rule is not valid in a policy.
pub fn add_rule(text: &str, rule: &RuleText) -> Result<String, EditError> {
    let block = rule.to_string();
    Policy::from_user_file("policy", &block, None)?;
    let tree = TomlTree::parse(text)?;
    let Some(item) = tree.root_table().get(RULE_KEY) else {
        return Ok(apply_edits(text, tree.add_table(&block)));
    };
    let known = list_entries(&tree, RULE_KEY, item)?;
    if known.into_iter().any(|entry| entry.is_rule(rule)) {
        return Ok(text.to_owned());
    }
    let text_edits = match item.as_array() {
        Some(array) => tree.add_entry(array, &rule_inline_table(rule)),
        None => tree.add_table(&block),
    };
    Ok(apply_edits(text, text_edits))
}

/// Grants several things to a plugin, one after another.
///
/// # Errors
///
/// As [`add_grant`], for the first addition that fails.
pub fn add_grants(
    text: &str,
    plugin: &PluginName,
    additions: &[GrantAddition],
) -> Result<String, EditError> {
    additions.iter().try_fold(text.to_owned(), |text, one| add_grant(&text, plugin, one))
}

/// Grants several things to a plugin, without those that the text takes away with `false`.
///
/// # Errors
///
/// As [`add_grants`], for the additions that are left.
pub fn add_grants_unless_denied(
    text: &str,
    plugin: &PluginName,
    additions: &[GrantAddition],
) -> Result<String, EditError> {
    let tree = TomlTree::parse(text)?;
    let table = tree.find_table(&[PLUGIN_KEY, plugin.as_str()])?;
    let is_kept = |one: &&GrantAddition| !capability::is_denied(table.as_ref(), one);
    let mut kept = additions.iter().filter(is_kept);
    let Some(first) = kept.next() else { return Ok(text.to_owned()) };
    let granted = add_to_tree(&tree, text, plugin, first)?;
    kept.try_fold(granted, |text, one| add_grant(&text, plugin, one))
}

/// Grants something to a plugin.
///
/// The addition goes into the plugin's table, which is created if it is missing, at the end of the
/// list and in the list's style. An entry that exists already, in any spelling, is not added again.
/// A wider entry does not count as the same entry, with one exception: a page is not added if every
/// page may be opened. A limit and a setting replace the current one, and a capability that `false`
/// took away is granted again.
///
/// # Errors
///
/// The text is not TOML, a key on the path has a value that policies do not allow there, or the
/// addition is not valid in a policy.
pub fn add_grant(
    text: &str,
    plugin: &PluginName,
    addition: &GrantAddition,
) -> Result<String, EditError> {
    add_to_tree(&TomlTree::parse(text)?, text, plugin, addition)
}

fn add_to_tree(
    tree: &TomlTree<'_>,
    text: &str,
    plugin: &PluginName,
    addition: &GrantAddition,
) -> Result<String, EditError> {
    let form = addition.canonical_entries()?;
    let Some(table) = tree.find_table(&[PLUGIN_KEY, plugin.as_str()])? else {
        return Ok(apply_edits(text, add_plugin_table(tree, plugin, addition)?));
    };
    let text_edits = match table.get(addition.table_key()) {
        None => tree.add_key(&table, addition.table_key(), &addition.value_alone()),
        Some(item) => match addition {
            GrantAddition::Limit { key, .. } => {
                add_limit(tree, plugin, key, &addition.entry_toml())?
            }
            GrantAddition::Capability(wanted) => {
                match (&wanted.part, wanted.capability.kind().shape()) {
                    (CapabilityPart::Entry(_), ValueShape::Table(list)) => {
                        capability::add_table_item(tree, plugin, item, wanted, list)?
                    }
                    (CapabilityPart::Entry(_), _) => {
                        add_list_entry(tree, plugin, item, addition, &form)?
                    }
                    (CapabilityPart::Whole | CapabilityPart::Setting { .. }, _) => {
                        capability::grant_capability(tree, plugin, item, wanted)?
                    }
                }
            }
            GrantAddition::Net(_)
            | GrantAddition::Fs(_)
            | GrantAddition::Env(_)
            | GrantAddition::Secret(_) => add_list_entry(tree, plugin, item, addition, &form)?,
        },
    };
    Ok(apply_edits(text, text_edits))
}

fn add_plugin_table(
    tree: &TomlTree<'_>,
    plugin: &PluginName,
    addition: &GrantAddition,
) -> Result<Vec<TextEdit>, EditError> {
    let (name, key, value) = (plugin.as_str(), addition.table_key(), addition.value_alone());
    Ok(match tree.find_table(&[PLUGIN_KEY])? {
        Some(plugins) if plugins.has_inline_subtables() => {
            tree.add_key(&plugins, name, &toml_inline_table(&[(key, value)]))
        }
        Some(_) | None => tree.add_table(&format!("[{PLUGIN_KEY}.{name}]\n{key} = {value}\n")),
    })
}

fn add_limit(
    tree: &TomlTree<'_>,
    plugin: &PluginName,
    key: &str,
    value: &str,
) -> Result<Vec<TextEdit>, EditError> {
    let limits = tree.find_table(&[PLUGIN_KEY, plugin.as_str(), LIMITS_KEY])?;
    let limits = limits.expect("a plugin's limits have been found before one is added");
    match limits.get(key) {
        None => Ok(tree.add_key(&limits, &toml_key(key), value)),
        Some(item) => tree.replace_value(key, item, value),
    }
}

/// States a limit for all plugins, replacing the current one.
///
/// # Errors
///
/// The text is not TOML, its `limits` is not a table, or the limit or its value is not valid.
pub fn set_shared_limit(text: &str, key: &str, value: &str) -> Result<String, EditError> {
    let limit = GrantAddition::Limit { key: key.to_owned(), value: value.to_owned() };
    limit.canonical_entries()?;
    let (tree, value) = (TomlTree::parse(text)?, limit.entry_toml());
    let text_edits = match tree.find_table(&[LIMITS_KEY])? {
        None => tree.add_table(&format!("[{LIMITS_KEY}]\n{} = {value}\n", toml_key(key))),
        Some(limits) => match limits.get(key) {
            None => tree.add_key(&limits, &toml_key(key), &value),
            Some(item) => tree.replace_value(key, item, &value)?,
        },
    };
    Ok(apply_edits(text, text_edits))
}

/// Says that a secret is in the system's keyring, unless the text says where it is.
///
/// # Errors
///
/// The text is not TOML.
pub fn add_secret_source(text: &str, name: &SecretName) -> Result<String, EditError> {
    let tree = TomlTree::parse(text)?;
    let is_known = tree.find_table(&[SECRET_KEY, name.as_str()])?.is_some();
    let text_edits = if is_known { Vec::new() } else { tree.add_table(&secret_source_toml(name)) };
    Ok(apply_edits(text, text_edits))
}

/// Widens the access of the entry that mounts the same folder at the same path, if there is one
/// for reading only: a second entry would conflict with it.
///
/// # Errors
///
/// The addition restricts the folder in a way that the entry does not. The wider entry alone would
/// grant more than the addition.
fn widen_folder(
    entries: &[ListEntry<'_>],
    addition: &GrantAddition,
) -> Result<Option<TextEdit>, EditError> {
    let GrantAddition::Fs(folder @ FsAddition { access: FsAccess::ReadWrite, .. }) = addition
    else {
        return Ok(None);
    };
    let path = removal::trim_trailing_slashes(&folder.path);
    let found = entries.iter().find(|entry| {
        let is_same_mount = |mount| entry.mount_path().as_ref() == Some(mount);
        entry.text_of_key("path").map(removal::trim_trailing_slashes).as_ref() == Some(&path)
            && folder.mount.as_ref().is_none_or(is_same_mount)
            && entry.text_of_key("access") == Some(FsAccess::Read.as_str())
    });
    let Some((entry, span)) = found.and_then(|entry| Some((entry, entry.span_of_key("access")?)))
    else {
        return Ok(None);
    };
    match entry.keeps_restrictions(folder) {
        true => Ok(Some(TextEdit::replace(span, toml_string(FsAccess::ReadWrite.as_str())))),
        false => Err(EditError::NotRestricted { path: folder.path.clone() }),
    }
}

fn add_list_entry(
    tree: &TomlTree<'_>,
    plugin: &PluginName,
    item: &Item,
    addition: &GrantAddition,
    form: &[String],
) -> Result<Vec<TextEdit>, EditError> {
    let key = addition.table_key();
    // The list was taken away with `false`, and is now granted again.
    if item.as_bool() == Some(false) {
        return tree.replace_value(key, item, &addition.value_alone());
    }
    let repeats = |entry: &ListEntry<'_>| {
        canonical_values(key, &format!("[{}]", entry.to_toml(tree)))
            .is_ok_and(|other| other == form)
    };
    let entries = list_entries(tree, key, item)?;
    if entries.iter().any(repeats) {
        return Ok(Vec::new());
    }
    if let GrantAddition::Net(net) = addition
        && entries
            .iter()
            .any(|entry| makes_question_idle(&entry.to_toml(tree), &addition.entry_toml()))
    {
        return Err(EditError::NeverAsked { pattern: net.pattern.clone() });
    }
    if let Some(text_edit) = widen_folder(&entries, addition)? {
        return Ok(vec![text_edit]);
    }
    let pairs = addition.entry_pairs();
    match (item.as_array(), item.as_array_of_tables()) {
        (Some(array), _) => Ok(tree.add_entry(array, &addition.entry_toml())),
        (None, Some(tables)) if !pairs.is_empty() => {
            let lines: String =
                pairs.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
            let block = format!("[[{PLUGIN_KEY}.{plugin}.{key}]]\n{lines}");
            Ok(tree.add_array_table(tables, &block))
        }
        (None, _) => Err(tree.shape_error(key, item, "a list of texts")),
    }
}

fn rule_inline_table(rule: &RuleText) -> String {
    let texts = rule_pairs(rule).into_iter();
    toml_inline_table(&texts.map(|(key, text)| (key, toml_string(text))).collect::<Vec<_>>())
}
