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
//! use sallyport_policy::edit::{self, Addition, Target};
//!
//! let text = "[plugin.clock]\nenv = [\"TZ\"] # where we are\n";
//! let clock = "clock".parse()?;
//! let more = edit::grant(text, &clock, &Addition::Env("LANG".into()))?;
//! assert_eq!(more, "[plugin.clock]\nenv = [\"TZ\", \"LANG\"] # where we are\n");
//! assert_eq!(edit::revoke(&more, &clock, &Target::Env("LANG".into()))?, text);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod addition;
mod brackets;
mod capability;
mod diff;
mod entry;
mod error;
mod objection;
mod removal;
mod splice;
mod tree;

use sallyport_contract::PluginName;
use toml_edit::Item;

pub use self::{
    addition::{
        Addition, CapabilityAddition, FsAddition, ListenAddition, NetAddition, ReachText,
        ScratchAddition, SecretAddition, SecretWayText,
    },
    diff::{Change, DiffLine, diff},
    error::EditError,
    objection::Objection,
    removal::{RuleTarget, Target, remove_rule, revoke, revoke_shared_limit},
};
use self::{
    addition::{braced, key_text},
    entry::{Entry, canonical, entries, rule_texts},
    splice::{Splice, apply},
    tree::Tree,
};
use crate::{RuleText, fix::toml_string, policy::Policy};

/// The key of the list of rules.
const RULES: &str = "rule";

/// The key of the table of plugins.
const PLUGINS: &str = "plugin";

/// The key of the pages that a plugin may open.
const PAGES: &str = "allow";

/// The key of a plugin's limits, and of the limits for all plugins.
const LIMITS: &str = "limits";

/// Adds a rule after the others. A rule that exists already is not added again.
///
/// # Errors
///
/// The text is not TOML, its rules are not a list, or the rule is not valid in a policy.
pub fn add_rule(text: &str, rule: &RuleText) -> Result<String, EditError> {
    let block = rule.to_string();
    Policy::of_user("policy", &block, None)?;
    let tree = Tree::parse(text)?;
    let Some(item) = tree.root().get(RULES) else {
        return Ok(apply(text, tree.add_table(&block)));
    };
    let known = entries(&tree, RULES, item)?;
    if known.into_iter().any(|entry| entry.is_rule(rule)) {
        return Ok(text.to_owned());
    }
    let splices = match item.as_array() {
        Some(array) => tree.add_entry(array, &rule_in_braces(rule)),
        None => tree.add_table(&block),
    };
    Ok(apply(text, splices))
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
pub fn grant(text: &str, plugin: &PluginName, addition: &Addition) -> Result<String, EditError> {
    let form = addition.canonical()?;
    let tree = Tree::parse(text)?;
    let Some(table) = tree.place(&[PLUGINS, plugin.as_str()])? else {
        return Ok(apply(text, add_plugin(&tree, plugin, addition)?));
    };
    let splices = match table.get(addition.key()) {
        None => tree.add_pair(&table, addition.key(), &addition.only()),
        Some(item) => match addition {
            Addition::Limit { key, .. } => add_limit(&tree, plugin, key, &addition.entry())?,
            Addition::Capability(wanted) => capability::switch_on(&tree, plugin, item, wanted)?,
            Addition::Page(_) => capability::add_page(&tree, plugin, item, addition)?,
            Addition::Net(_)
            | Addition::Fs(_)
            | Addition::Env(_)
            | Addition::Secret(_)
            | Addition::Package(_)
            | Addition::Scratch(_)
            | Addition::Listen(_) => add_entry(&tree, plugin, item, addition, &form)?,
        },
    };
    Ok(apply(text, splices))
}

fn add_plugin(
    tree: &Tree<'_>,
    plugin: &PluginName,
    addition: &Addition,
) -> Result<Vec<Splice>, EditError> {
    let (name, key, value) = (plugin.as_str(), addition.key(), addition.only());
    Ok(match tree.place(&[PLUGINS])? {
        Some(plugins) if plugins.holds_braces() => {
            tree.add_pair(&plugins, name, &braced(&[(key, value)]))
        }
        Some(_) | None => tree.add_table(&format!("[{PLUGINS}.{name}]\n{key} = {value}\n")),
    })
}

fn add_limit(
    tree: &Tree<'_>,
    plugin: &PluginName,
    key: &str,
    value: &str,
) -> Result<Vec<Splice>, EditError> {
    let limits = tree.place(&[PLUGINS, plugin.as_str(), LIMITS])?;
    let limits = limits.expect("a plugin's limits have been found before one is added");
    match limits.get(key) {
        None => Ok(tree.add_pair(&limits, &key_text(key), value)),
        Some(item) => tree.replace(key, item, value),
    }
}

/// States a limit for all plugins, replacing the current one.
///
/// # Errors
///
/// The text is not TOML, its `limits` is not a table, or the limit or its value is not valid.
pub fn grant_shared_limit(text: &str, key: &str, value: &str) -> Result<String, EditError> {
    let limit = Addition::Limit { key: key.to_owned(), value: value.to_owned() };
    limit.canonical()?;
    let (tree, value) = (Tree::parse(text)?, limit.entry());
    let splices = match tree.place(&[LIMITS])? {
        None => tree.add_table(&format!("[{LIMITS}]\n{} = {value}\n", key_text(key))),
        Some(limits) => match limits.get(key) {
            None => tree.add_pair(&limits, &key_text(key), &value),
            Some(item) => tree.replace(key, item, &value)?,
        },
    };
    Ok(apply(text, splices))
}

fn add_entry(
    tree: &Tree<'_>,
    plugin: &PluginName,
    item: &Item,
    addition: &Addition,
    form: &[String],
) -> Result<Vec<Splice>, EditError> {
    let key = addition.key();
    // The list was taken away with `false`, and is now granted again.
    if item.as_bool() == Some(false) {
        return tree.replace(key, item, &addition.only());
    }
    let repeats = |entry: &Entry<'_>| {
        canonical(key, &format!("[{}]", entry.toml(tree))).is_ok_and(|other| other == form)
    };
    if entries(tree, key, item)?.iter().any(repeats) {
        return Ok(Vec::new());
    }
    let pairs = addition.pairs();
    match (item.as_array(), item.as_array_of_tables()) {
        (Some(array), _) => Ok(tree.add_entry(array, &addition.entry())),
        (None, Some(tables)) if !pairs.is_empty() => {
            let lines: String =
                pairs.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
            let block = format!("[[{PLUGINS}.{plugin}.{key}]]\n{lines}");
            Ok(tree.add_element(tables, &block))
        }
        (None, _) => Err(tree.misshapen(key, item, "a list of texts")),
    }
}

fn rule_in_braces(rule: &RuleText) -> String {
    let texts = rule_texts(rule).into_iter();
    braced(&texts.map(|(key, text)| (key, toml_string(text))).collect::<Vec<_>>())
}
