//! Removal of grants and rules from a policy file.

use std::{cmp::Reverse, collections::BTreeSet};

use sallyport_contract::{Decision, PluginName};
use toml_edit::Item;

use super::{
    LIMITS, PAGES, PLUGINS, RULES,
    entry::{
        Entry, canonical_address, canonical_package, canonical_page, canonical_pattern,
        canonical_tools, entries,
    },
    error::EditError,
    splice::{Splice, apply},
    tree::{Place, Tree},
};
use crate::Capability;

/// Most similar names that an error lists.
const NEAR_MAX: usize = 3;

/// Most characters of a name that are compared with another: the time is quadratic in the length.
const COMPARED_CHARS_MAX: usize = 256;

/// Something to take away from a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
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
    /// This capability: its grants, or the `false` that takes it away.
    Capability(Capability),
    /// The pages of this pattern.
    Page(String),
    /// This package, as the file writes it.
    Package(String),
    /// The scratch of this name.
    Scratch(String),
    /// This listen address, or `stdin`.
    Listen(String),
    /// This limit, so that the default applies again.
    Limit(String),
    /// The plugin's whole table. Rules about the plugin stay.
    Plugin,
}

/// The rules to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleTarget {
    /// Their tools, as the rules write them.
    pub tool: String,
    /// The requests that they are about; `None` for rules about calls.
    pub net: Option<String>,
    /// The pages that they are about.
    pub open_url: Option<String>,
    /// Their decision; `None` for any, provided that all of them have the same one.
    pub decision: Option<Decision>,
}

/// Takes something away from a plugin. A list or a table that becomes empty is removed too.
///
/// # Errors
///
/// The text is not TOML, a key on the path has a value that policies do not allow there, or the
/// target does not exist.
pub fn revoke(text: &str, plugin: &PluginName, target: &Target) -> Result<String, EditError> {
    let tree = Tree::parse(text)?;
    let path = [PLUGINS, plugin.as_str()];
    let Some(table) = tree.place(&path)? else {
        let known = tree.place(&[PLUGINS])?.map(|plugins| plugins.names());
        return Err(absent(Target::Plugin.kind(), plugin.as_str(), known.unwrap_or_default()));
    };
    let splices = match target {
        Target::Plugin => tree.remove_key(&path),
        Target::Limit(key) => remove_limit(&tree, plugin, key)?,
        Target::Capability(capability) => match table.get(capability.word()) {
            Some(_) => tree.remove_key(&[PLUGINS, plugin.as_str(), capability.word()]),
            None => return Err(target.absent(capabilities_of(&table))),
        },
        Target::Page(_) => remove_page(&tree, plugin, target)?,
        Target::Net(_)
        | Target::Deny(_)
        | Target::Fs(_)
        | Target::Env(_)
        | Target::Secret(_)
        | Target::Package(_)
        | Target::Scratch(_)
        | Target::Listen(_) => {
            let item = table.get(target.key()).ok_or_else(|| target.absent(Vec::new()))?;
            let doomed = target.find(&tree, item)?;
            tree.remove_entries(&[PLUGINS, plugin.as_str(), target.key()], &doomed)
        }
    };
    Ok(apply(text, splices))
}

fn capabilities_of(table: &Place<'_>) -> Vec<String> {
    let is_capability = |name: &String| Capability::of_word(name).is_some();
    table.names().into_iter().filter(is_capability).collect()
}

/// Removes a page. With the last page the whole key is removed, because a table without the list
/// would allow every page.
fn remove_page(
    tree: &Tree<'_>,
    plugin: &PluginName,
    target: &Target,
) -> Result<Vec<Splice>, EditError> {
    let path = [PLUGINS, plugin.as_str(), target.key(), PAGES];
    let absent = || target.absent(Vec::new());
    let plugins = tree.place(&path[..2])?.ok_or_else(absent)?;
    let is_table = plugins.get(target.key()).is_some_and(Item::is_table_like);
    let pages = if is_table { tree.place(&path[..3])? } else { None };
    let item = pages.as_ref().and_then(|pages| pages.get(PAGES)).ok_or_else(absent)?;
    let doomed = target.find(tree, item)?;
    match entries(tree, PAGES, item)?.len() == doomed.len() {
        true => Ok(tree.remove_key(&path[..3])),
        false => Ok(tree.remove_entries(&path, &doomed)),
    }
}

fn remove_limit(tree: &Tree<'_>, plugin: &PluginName, key: &str) -> Result<Vec<Splice>, EditError> {
    let limits = tree.place(&[PLUGINS, plugin.as_str(), LIMITS])?;
    match limits.as_ref().and_then(|limits| limits.get(key)) {
        Some(_) => Ok(tree.remove_key(&[PLUGINS, plugin.as_str(), LIMITS, key])),
        None => {
            let known = limits.map(|limits| limits.names()).unwrap_or_default();
            Err(Target::Limit(key.to_owned()).absent(known))
        }
    }
}

/// Removes a limit for all plugins.
///
/// # Errors
///
/// The text is not TOML, or states no such limit.
pub fn revoke_shared_limit(text: &str, key: &str) -> Result<String, EditError> {
    let tree = Tree::parse(text)?;
    let limits = tree.place(&[LIMITS])?;
    match limits.as_ref().and_then(|limits| limits.get(key)) {
        Some(_) => Ok(apply(text, tree.remove_key(&[LIMITS, key]))),
        None => {
            let known = limits.map(|limits| limits.names()).unwrap_or_default();
            Err(Target::Limit(key.to_owned()).absent(known))
        }
    }
}

impl Target {
    /// The key for such targets.
    fn key(&self) -> &'static str {
        match self {
            Self::Net(_) | Self::Deny(_) => "net",
            Self::Fs(_) => "fs",
            Self::Env(_) => "env",
            Self::Secret(_) => "secrets",
            Self::Capability(capability) => capability.word(),
            Self::Page(_) => Capability::OpenUrl.word(),
            Self::Package(_) => Capability::Packages.word(),
            Self::Scratch(_) => Capability::Scratch.word(),
            Self::Listen(_) => Capability::Listen.word(),
            Self::Limit(_) => LIMITS,
            Self::Plugin => PLUGINS,
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
            Self::Page(_) => "page",
            Self::Package(_) => "package",
            Self::Scratch(_) => "scratch",
            Self::Listen(_) => "address to listen to",
            Self::Limit(_) => "limit",
            Self::Plugin => "table for the plugin",
        }
    }

    /// The indexes of the entries that the target names.
    fn find(&self, tree: &Tree<'_>, item: &Item) -> Result<BTreeSet<usize>, EditError> {
        let entries = entries(tree, self.key(), item)?.into_iter();
        let names: Vec<_> = entries.map(|entry| self.names(entry)).collect();
        let wanted = self.wanted();
        let is_meant = |index: &usize| names[*index].contains(&wanted);
        let found: BTreeSet<_> = (0..names.len()).filter(is_meant).collect();
        match found.is_empty() {
            true => Err(self.absent(names.concat())),
            false => Ok(found),
        }
    }

    /// The names by which such a target can refer to an entry.
    fn names(&self, entry: Entry<'_>) -> Vec<String> {
        let texts = match self {
            Self::Net(_) => {
                vec![entry.plain().or_else(|| entry.text("allow")).map(canonical_pattern)]
            }
            Self::Deny(_) => vec![entry.text("deny").map(canonical_pattern)],
            Self::Fs(_) => vec![entry.text("path").map(plain_path), entry.mount()],
            Self::Env(_) => vec![entry.plain().map(str::to_owned)],
            Self::Secret(_) | Self::Scratch(_) => vec![entry.text("name").map(str::to_owned)],
            Self::Page(_) => vec![entry.plain().map(canonical_page)],
            Self::Package(_) => vec![entry.plain().map(canonical_package)],
            Self::Listen(_) => {
                vec![entry.plain().or_else(|| entry.text("at")).map(canonical_address)]
            }
            Self::Capability(_) | Self::Limit(_) | Self::Plugin => Vec::new(),
        };
        texts.into_iter().flatten().collect()
    }

    fn wanted(&self) -> String {
        match self {
            Self::Net(pattern) | Self::Deny(pattern) => canonical_pattern(pattern),
            Self::Fs(path) => plain_path(path),
            Self::Page(pattern) => canonical_page(pattern),
            Self::Package(package) => canonical_package(package),
            Self::Listen(address) => canonical_address(address),
            Self::Capability(capability) => capability.word().to_owned(),
            Self::Env(name) | Self::Secret(name) | Self::Scratch(name) | Self::Limit(name) => {
                name.clone()
            }
            Self::Plugin => String::new(),
        }
    }

    fn absent(&self, known: Vec<String>) -> EditError {
        absent(self.kind(), &self.wanted(), known)
    }
}

/// Returns a path without trailing slashes.
pub(super) fn plain_path(path: &str) -> String {
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() { path.to_owned() } else { trimmed.to_owned() }
}

/// Removes rules.
///
/// # Errors
///
/// The text is not TOML, its rules are not a list, no rule matches the target, or the matching
/// rules have different decisions.
pub fn remove_rule(text: &str, target: &RuleTarget) -> Result<String, EditError> {
    let tree = Tree::parse(text)?;
    let Some(item) = tree.root().get(RULES) else { return Err(target.absent(&[])) };
    let rules = entries(&tree, RULES, item)?;
    let meant: BTreeSet<usize> =
        (0..rules.len()).filter(|index| target.means(rules[*index])).collect();
    let mut decisions: Vec<_> = meant.iter().map(|index| rules[*index].text("decision")).collect();
    decisions.dedup();
    match decisions.len() {
        0 => Err(target.absent(&rules)),
        1 => Ok(apply(text, tree.remove_entries(&[RULES], &meant))),
        _ => {
            let lines = meant.iter().map(|index| tree.line(rules[*index].span().start));
            Err(EditError::Ambiguous { tools: target.tool.clone(), lines: lines.collect() })
        }
    }
}

impl RuleTarget {
    fn means(&self, rule: Entry<'_>) -> bool {
        let pattern = |text: Option<&str>| text.map(canonical_pattern);
        let page = |text: Option<&str>| text.map(canonical_page);
        rule.text("tool").map(canonical_tools) == Some(canonical_tools(&self.tool))
            && pattern(rule.text("net")) == pattern(self.net.as_deref())
            && page(rule.text("open-url")) == page(self.open_url.as_deref())
            && self.decision.is_none_or(|decision| rule.text("decision") == Some(decision.as_str()))
    }

    fn absent(&self, rules: &[Entry<'_>]) -> EditError {
        let name = |tool: &str, net: Option<&str>, page: Option<&str>| {
            let net = net.map(|net| format!(" {}", canonical_pattern(net)));
            let page = page.map(|page| format!(" {}", canonical_page(page)));
            format!("{tool}{}", net.or(page).unwrap_or_default())
        };
        let known = rules.iter().filter_map(|rule| {
            Some(name(rule.text("tool")?, rule.text("net"), rule.text("open-url")))
        });
        let own = name(&self.tool, self.net.as_deref(), self.open_url.as_deref());
        absent("rule for", &own, known.collect())
    }
}

/// Returns the error for a name that does not exist, with the most similar names that do.
fn absent(kind: &'static str, name: &str, mut known: Vec<String>) -> EditError {
    known.sort();
    known.dedup();
    known.sort_by_cached_key(|known| Reverse(likeness(name, known)));
    known.truncate(NEAR_MAX);
    EditError::Absent { kind, name: name.to_owned(), near: known }
}

/// The similarity of two names, from 0 to 1000.
fn likeness(a: &str, b: &str) -> u32 {
    let head = |text: &str| text.chars().take(COMPARED_CHARS_MAX).collect::<String>();
    let share = strsim::normalized_damerau_levenshtein(&head(a), &head(b));
    // The product is at most 1000, so it fits in a `u32`.
    (share * 1000.0) as u32
}
