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

/// Returns a key as TOML.
pub(crate) fn toml_key(key: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let bare = !key.is_empty() && key.bytes().all(is_bare);
    if bare { key.to_owned() } else { toml_string(key) }
}

/// Returns keys and values as a table in braces.
pub(crate) fn toml_inline_table(pairs: &[(impl AsRef<str>, String)]) -> String {
    let pair = |(key, value): &(_, String)| format!("{} = {value}", AsRef::<str>::as_ref(key));
    let pairs: Vec<_> = pairs.iter().map(pair).collect();
    format!("{{ {} }}", pairs.join(", "))
}

/// Returns a boolean or a number as TOML, and anything else as a string.
pub(crate) fn toml_setting_value(value: &str) -> String {
    match value {
        "true" | "false" => value.to_owned(),
        _ => toml_limit_value(value),
    }
}

/// Returns a number as TOML, and anything else as a string.
pub(crate) fn toml_limit_value(value: &str) -> String {
    let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { value.to_owned() } else { toml_string(value) }
}
