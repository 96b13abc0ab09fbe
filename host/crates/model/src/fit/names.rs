//! Replacements for property names that a provider refuses.
//!
//! A replacement means the same name everywhere in the arguments, so the module does not have to
//! know which part of a schema a value belongs to. No replacement equals one of the schema's own
//! names.

use std::collections::BTreeSet;

use sallyport_contract::json;
use serde_json::{Map, Value};

use super::{
    acceptance::{is_property_name, subschemas},
    conversation::ARGUMENTS_BYTES_MAX,
};

/// Most characters of a name that its replacement keeps.
const KEPT_CHARS_MAX: usize = 48;

/// The replaced property names of one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PropertyNameMap {
    /// Pairs of a property's own name and the name that the provider sees.
    replaced: Vec<(String, String)>,
}

impl PropertyNameMap {
    /// Chooses a replacement for every refused property name in a schema.
    pub(super) fn from_schema(schema: &Value) -> Self {
        let mut original = BTreeSet::new();
        collect_names(schema, &mut original);
        let mut taken = original.clone();
        let refused = original.into_iter().filter(|name| !is_property_name(name));
        let replaced = refused.map(|name| {
            let safe = unused_name(&name, &taken);
            taken.insert(safe.clone());
            (name, safe)
        });
        Self { replaced: replaced.collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.replaced.is_empty()
    }

    /// Returns the name that the provider sees.
    pub(super) fn provider_name<'a>(&'a self, original: &'a str) -> &'a str {
        self.replaced.iter().find(|(name, _)| name == original).map_or(original, |(_, safe)| safe)
    }

    fn original_name<'a>(&'a self, seen: &'a str) -> &'a str {
        self.replaced.iter().find(|(_, safe)| safe == seen).map_or(seen, |(name, _)| name)
    }

    /// Returns arguments under the tool's own names; `None` if they are not JSON or nothing
    /// changes.
    pub(super) fn restore_arguments(&self, arguments: &str) -> Option<String> {
        rewrite_arguments(arguments, &|key| self.original_name(key).to_owned())
    }

    /// Returns arguments under the names that the provider sees; `None` if they are not JSON or
    /// nothing changes.
    pub(super) fn replace_arguments(&self, arguments: &str) -> Option<String> {
        rewrite_arguments(arguments, &|key| self.provider_name(key).to_owned())
    }
}

fn rewrite_arguments(arguments: &str, name: &dyn Fn(&str) -> String) -> Option<String> {
    let original = json::parse_json(arguments, ARGUMENTS_BYTES_MAX).ok()?;
    let renamed = rename_keys(&original, name);
    (renamed != original).then(|| renamed.to_string())
}

fn rename_keys(value: &Value, name: &dyn Fn(&str) -> String) -> Value {
    match value {
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| (name(key), rename_keys(value, name));
            Value::Object(fields.iter().map(field).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(|item| rename_keys(item, name)).collect(),
        other => other.clone(),
    }
}

fn collect_names(schema: &Value, names: &mut BTreeSet<String>) {
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        names.extend(properties.keys().cloned());
    }
    subschemas(schema).for_each(|(_, inner)| collect_names(inner, names));
}

fn unused_name(name: &str, taken: &BTreeSet<String>) -> String {
    let safe = |char: char| if char.is_ascii_alphanumeric() || char == '_' { char } else { '_' };
    let kept: String = name.chars().take(KEPT_CHARS_MAX).map(safe).collect();
    let says_nothing = kept.chars().all(|char| char == '_');
    let kept = if says_nothing { "property".to_owned() } else { kept };
    let numbered = (2_u64..).map(|n| format!("{kept}_{n}"));
    let mut free = std::iter::once(kept.clone()).chain(numbered).filter(|it| !taken.contains(it));
    free.next().unwrap_or_default()
}
