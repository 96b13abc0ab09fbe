//! Values as TOML text.

use serde_json::Value;

/// Returns a TOML string. TOML escapes like JSON, except for U+007F, which JSON leaves unescaped
/// and TOML rejects.
pub(crate) fn toml_string(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// Returns a TOML list on one line.
pub(crate) fn toml_list(entries: impl Iterator<Item = String>) -> String {
    format!("[{}]", entries.collect::<Vec<_>>().join(", "))
}
