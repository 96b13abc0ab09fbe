//! Entries of the lists in a policy file, in any notation.

use std::{ops::Range, path::Path};

use toml_edit::{Item, Table, TableLike, Value};

use super::{error::EditError, removal::trim_trailing_slashes, tree::TomlTree};
use crate::{
    RuleText,
    addition::FsAddition,
    capability::{PAGE_RULE_KEY, UrlPattern},
    net::pattern::NetDenyPattern,
    toml_text::toml_inline_table,
    tool_pattern::ToolPattern,
};

/// One entry of a list: of an array, or of an array of tables.
#[derive(Clone, Copy)]
pub(super) enum ListEntry<'d> {
    Value(&'d Value),
    Table(&'d Table),
}

/// Returns the entries of a list.
///
/// # Errors
///
/// The value is not a list.
pub(super) fn list_entries<'d>(
    tree: &TomlTree<'_>,
    key: &str,
    item: &'d Item,
) -> Result<Vec<ListEntry<'d>>, EditError> {
    let array = item.as_array().map(|array| array.iter().map(ListEntry::Value).collect());
    let tables = || Some(item.as_array_of_tables()?.iter().map(ListEntry::Table).collect());
    array.or_else(tables).ok_or_else(|| tree.shape_error(key, item, "a list"))
}

impl<'d> ListEntry<'d> {
    fn as_table(self) -> Option<&'d dyn TableLike> {
        match self {
            Self::Value(value) => value.as_inline_table().map(|table| table as &dyn TableLike),
            Self::Table(table) => Some(table),
        }
    }

    /// The text under a key of the entry.
    pub(super) fn text_of_key(self, key: &str) -> Option<&'d str> {
        self.as_table()?.get(key)?.as_str()
    }

    /// The range of the value under a key of the entry.
    pub(super) fn span_of_key(self, key: &str) -> Option<Range<usize>> {
        self.as_table()?.get(key)?.span()
    }

    /// Whether the entry restricts its folder, and marks it, at least as an addition does.
    pub(super) fn keeps_restrictions(self, folder: &FsAddition) -> bool {
        let item = |key: &str| self.as_table()?.get(key);
        let denied = item("deny").and_then(Item::as_array).into_iter().flatten();
        let denied: Vec<&str> = denied.filter_map(Value::as_str).collect();
        folder.deny.iter().all(|pattern| denied.contains(&pattern.as_str()))
            && (folder.quota.is_none() || folder.quota.as_deref() == self.text_of_key("quota"))
            && (!folder.sensitive || item("sensitive").and_then(Item::as_bool) == Some(true))
    }

    /// The text of an entry that is a plain string.
    pub(super) fn plain_text(self) -> Option<&'d str> {
        match self {
            Self::Value(value) => value.as_str(),
            Self::Table(_) => None,
        }
    }

    /// The path at which a plugin sees the entry's folder or file.
    pub(super) fn mount_path(self) -> Option<String> {
        let own = || {
            Path::new(self.text_of_key("path")?)
                .file_name()?
                .to_str()
                .map(|name| format!("/{name}"))
        };
        self.text_of_key("mount").map(trim_trailing_slashes).or_else(own)
    }

    /// Whether the entry is exactly this rule, without other keys.
    pub(super) fn is_rule(self, rule: &RuleText) -> bool {
        let texts = self.as_table().and_then(string_keys).unwrap_or_default();
        let same = |(key, text): &(&str, &str)| match *key {
            "net" | PAGE_RULE_KEY => {
                self.text_of_key(key).map(canonical_pattern) == Some(canonical_pattern(text))
            }
            "tool" => self.text_of_key(key).map(canonical_tools) == Some(canonical_tools(text)),
            _ => self.text_of_key(key) == Some(text),
        };
        let wanted = rule_pairs(rule);
        texts.len() == wanted.len() && wanted.iter().all(same)
    }

    /// The range of the entry in the file.
    pub(super) fn span(self) -> Range<usize> {
        let span = match self {
            Self::Value(value) => value.span(),
            Self::Table(table) => table.span(),
        };
        span.unwrap_or_default()
    }

    /// The entry in the notation of an array entry.
    pub(super) fn to_toml(self, tree: &TomlTree<'_>) -> String {
        match self {
            Self::Value(_) => tree.text_in(self.span()).to_owned(),
            Self::Table(table) => {
                let value = |item: &Item| tree.text_in(item.span().unwrap_or_default()).to_owned();
                let pairs: Vec<_> = table.iter().map(|(key, item)| (key, value(item))).collect();
                toml_inline_table(&pairs)
            }
        }
    }
}

/// The keys of a table, if all of its values are strings.
fn string_keys(table: &dyn TableLike) -> Option<Vec<&str>> {
    table.iter().map(|(key, item)| item.as_str().map(|_| key)).collect()
}

/// Returns the keys of a rule and their values.
pub(super) fn rule_pairs(rule: &RuleText) -> Vec<(&'static str, &str)> {
    let pairs = [
        ("tool", Some(rule.tool.as_str())),
        ("net", rule.net.as_deref()),
        (PAGE_RULE_KEY, rule.page.as_deref()),
        ("digest", rule.digest.as_deref()),
        ("decision", Some(rule.decision.as_str())),
        ("message", rule.message.as_deref()),
    ];
    pairs.into_iter().filter_map(|(key, text)| Some((key, text?))).collect()
}

/// Returns a network pattern in canonical form: equal patterns have equal forms.
pub(super) fn canonical_pattern(text: &str) -> String {
    text.parse::<NetDenyPattern>().map_or_else(|_| text.to_owned(), |pattern| pattern.0.to_string())
}

/// Returns a tool pattern in canonical form.
pub(super) fn canonical_tools(text: &str) -> String {
    text.parse::<ToolPattern>().map_or_else(|_| text.to_owned(), |tools| tools.to_string())
}

/// Returns the pattern of a rule about pages in canonical form.
pub(super) fn canonical_page(text: &str) -> String {
    text.parse::<UrlPattern>().map_or_else(|_| text.to_owned(), |pattern| pattern.to_string())
}
