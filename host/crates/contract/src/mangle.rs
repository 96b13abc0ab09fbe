//! The tool names that models see.
//!
//! All providers accept `[A-Za-z_][A-Za-z0-9_-]{0,63}` and nothing wider. A [`ToolId`] becomes
//! `plugin__tool` with other characters replaced by `_`. The reverse mapping is a table, never
//! parsing: two ids with the same model name are an error when the table is built.

use std::collections::BTreeMap;

use crate::name::ToolId;

/// Longest function name that all providers accept.
pub const MODEL_NAME_BYTES_MAX: usize = 64;

/// Two tools have the same model name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "tools {first} and {second} would both be called {name:?} towards a model; rename one of the two"
)]
pub struct ToolNameCollision {
    /// The tool that comes first in the list.
    pub first: ToolId,
    /// The tool that comes second.
    pub second: ToolId,
    /// The name that both mangle to.
    pub name: String,
}

/// The names that a model sees, and the [`ToolId`] of each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameTable {
    by_name: BTreeMap<String, ToolId>,
}

impl NameTable {
    /// Builds the table.
    ///
    /// # Errors
    ///
    /// Two different tools that mangle to one name.
    pub fn new<'a>(ids: impl IntoIterator<Item = &'a ToolId>) -> Result<Self, ToolNameCollision> {
        Self::named_by(ids, model_tool_name)
    }

    /// Builds the table with names that `name_of` makes.
    ///
    /// # Errors
    ///
    /// Two different tools for which it makes the same name.
    pub fn named_by<'a>(
        ids: impl IntoIterator<Item = &'a ToolId>,
        name_of: impl Fn(&ToolId) -> String,
    ) -> Result<Self, ToolNameCollision> {
        let mut by_name = BTreeMap::new();
        for id in ids {
            let name = name_of(id);
            if let Some(first) = by_name.insert(name.clone(), id.clone()) {
                return Err(ToolNameCollision { first, second: id.clone(), name });
            }
        }
        Ok(Self { by_name })
    }

    /// Returns the tool for a name that a model wrote. The plain form `plugin.tool` is accepted
    /// too.
    pub fn resolve(&self, name: &str) -> Option<&ToolId> {
        self.by_name.get(name).or_else(|| {
            let id: ToolId = name.parse().ok()?;
            self.by_name.values().find(|known| **known == id)
        })
    }

    /// Lists the names that the model sees, in a stable order.
    pub fn model_names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }
}

/// Returns the name that a model sees for a tool.
pub fn model_tool_name(id: &ToolId) -> String {
    safe_name(&format!("{}__{}", id.plugin, id.tool))
}

/// Returns the name of a tool without that of its plugin, for those who take one plugin's tools.
pub fn bare_tool_name(id: &ToolId) -> String {
    safe_name(id.tool.as_str())
}

/// Makes a name of a text that all providers accept.
pub fn safe_name(plain: &str) -> String {
    let mut name: String = plain.chars().map(|c| if is_safe(c) { c } else { '_' }).collect();
    if name.len() > MODEL_NAME_BYTES_MAX {
        name.truncate(MODEL_NAME_BYTES_MAX - 9);
        name.push_str(&format!("_{:08x}", name_fingerprint(plain)));
    }
    name
}

fn is_safe(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// FNV-1a hash that distinguishes long names with a common prefix. Security does not depend on it:
/// a collision is an error of [`NameTable::new`].
fn name_fingerprint(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> ToolId {
        text.parse().unwrap()
    }

    #[test]
    fn names_are_safe_for_every_provider_and_come_back() {
        let long = format!("plugin.{}", "x".repeat(120));
        let ids =
            [id("clock.get_time"), id("python.python:execute"), id("law.lawsuit.check"), id(&long)];
        let table = NameTable::new(&ids).unwrap();
        for (name, want) in table.model_names().map(|n| (n, table.resolve(n))) {
            assert!(name.len() <= MODEL_NAME_BYTES_MAX, "{name}");
            assert!(name.chars().all(is_safe), "{name}");
            assert!(ids.contains(want.unwrap()));
        }
        assert_eq!(table.resolve("clock__get_time"), Some(&ids[0]));
        assert_eq!(table.resolve("clock.get_time"), Some(&ids[0]));
        assert_eq!(table.resolve("get_time"), None);
    }

    #[test]
    fn bare_names_are_a_choice_and_must_differ() {
        let ids = [id("clock.get_time"), id("files.read:all")];
        let table = NameTable::named_by(&ids, bare_tool_name).unwrap();
        assert_eq!(table.resolve("get_time"), Some(&ids[0]));
        assert_eq!(table.resolve("read_all"), Some(&ids[1]));
        assert_eq!(table.resolve("clock.get_time"), Some(&ids[0]));
        assert_eq!(table.resolve("clock__get_time"), None);
        let error = NameTable::named_by(&[id("a.read"), id("b.read")], bare_tool_name).unwrap_err();
        assert_eq!((error.first, error.second), (id("a.read"), id("b.read")));
    }

    #[test]
    fn names_that_look_alike_are_refused_and_both_are_named() {
        let error = NameTable::new(&[id("a.b:c"), id("a.b.c")]).unwrap_err();
        assert_eq!((error.first, error.second), (id("a.b:c"), id("a.b.c")));
    }
}
