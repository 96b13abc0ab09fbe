//! Parses `definition.json`, which describes a script as a tool.
//!
//! Existing folders must keep working unchanged, so an unknown key is ignored with a remark, and a
//! timeout that is too long is cut with one. A value that would change the tool's meaning is an
//! error.

use std::{io::Read, path::Path, time::Duration};

use sallyport_contract::{json, name::TOOL_NAME_BYTES_MAX, text};
use serde_json::{Map, Value};

use crate::{error::ScriptError, script_file::open_regular_file};

/// The name of the definition file.
pub const DEFINITION_FILE: &str = "definition.json";

/// The timeout of a definition that sets none. Existing folders rely on it.
pub const TIMEOUT_STANDARD: Duration = Duration::from_secs(30);

/// The maximum timeout of a definition.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(60 * 60);

/// The minimum timeout, so that rounding does not yield zero.
const TIMEOUT_MIN: Duration = Duration::from_millis(1);

/// Maximum size of a definition, in bytes. The largest schemas of real tools are a tenth of it.
const DEFINITION_BYTES_MAX: u64 = 256 << 10;

/// Maximum size of a description, in bytes. Models receive a few hundred characters at most.
const DESCRIPTION_BYTES_MAX: usize = 16 << 10;

/// Maximum number of unknown keys that are named one by one.
const WARNINGS_MAX: usize = 8;

/// Maximum length of an unknown key in a remark, in characters.
const KEY_CHARS_MAX: usize = 40;

/// The definition of a script.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptDefinition {
    /// The tool's name: letters, digits, `_`, `-` and `.`; at most 128 bytes.
    pub name: String,
    /// The description for a model. It is untrusted text.
    pub description: String,
    /// Whether the tool is offered.
    pub enabled: bool,
    /// The timeout of a call.
    pub timeout: Duration,
    /// The JSON Schema of the arguments. It is an object, but not validated yet.
    pub parameters: Value,
}

/// A parsed definition, with its bytes and remarks.
pub(crate) struct ScriptDefinitionFile {
    pub(crate) definition: ScriptDefinition,
    pub(crate) bytes: Vec<u8>,
    pub(crate) warnings: Vec<String>,
}

impl ScriptDefinition {
    /// Reads the definition in a folder.
    pub(crate) fn read_folder(folder: &Path) -> Result<ScriptDefinitionFile, ScriptError> {
        let path = folder.join(DEFINITION_FILE);
        let bytes = read_definition_bytes(&path)?;
        let not_text = |_| json::JsonError::Malformed("it is not UTF-8".into());
        let keys = std::str::from_utf8(&bytes)
            .map_err(not_text)
            .and_then(|text| json::parse_json(text, text.len()))
            .map_err(|error| ScriptError::NotJson { path: path.clone(), error })?;
        let Value::Object(mut keys) = keys else {
            let error = json::JsonError::Malformed("it is not an object".into());
            return Err(ScriptError::NotJson { path, error });
        };
        let mut warnings = Vec::new();
        let definition = parse_definition(&path, &mut keys, &mut warnings)?;
        warnings.extend(ignored_key_remarks(&keys));
        Ok(ScriptDefinitionFile { definition, bytes, warnings })
    }
}

fn read_definition_bytes(path: &Path) -> Result<Vec<u8>, ScriptError> {
    let mut bytes = Vec::new();
    let file = open_regular_file(path)?;
    let read = file.take(DEFINITION_BYTES_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| ScriptError::unreadable(path, &error))?;
    if bytes.len() as u64 > DEFINITION_BYTES_MAX {
        return Err(ScriptError::TooLarge {
            path: path.to_owned(),
            bytes_max: DEFINITION_BYTES_MAX,
        });
    }
    Ok(bytes)
}

/// Removes the known keys and parses them.
fn parse_definition(
    path: &Path,
    keys: &mut Map<String, Value>,
    warnings: &mut Vec<String>,
) -> Result<ScriptDefinition, ScriptError> {
    let mut take =
        |key| keys.remove(key).ok_or(ScriptError::Missing { path: path.to_owned(), key });
    let invalid = |key, wanted| ScriptError::Invalid { path: path.to_owned(), key, wanted };
    let name = match take("name")? {
        Value::String(name) if is_tool_name(&name) => name,
        _ => {
            let wanted = "a text of letters, digits, '_', '-' and '.', at most 128 of them";
            return Err(invalid("name", wanted));
        }
    };
    let description = match take("description")? {
        Value::String(text) if !text.trim().is_empty() && text.len() <= DESCRIPTION_BYTES_MAX => {
            text
        }
        _ => return Err(invalid("description", "a text that is not empty, at most 16 KiB of it")),
    };
    let enabled = match take("enabled") {
        Err(_) => true,
        Ok(Value::Bool(enabled)) => enabled,
        Ok(_) => return Err(invalid("enabled", "true or false")),
    };
    let timeout = match take("timeout").map(|value| value.as_f64()) {
        Err(_) => TIMEOUT_STANDARD,
        Ok(Some(seconds)) if seconds > TIMEOUT_MAX.as_secs_f64() => {
            warnings.push(format!("timeout is cut to {} seconds", TIMEOUT_MAX.as_secs()));
            TIMEOUT_MAX
        }
        Ok(Some(seconds)) if seconds > 0.0 => Duration::from_secs_f64(seconds).max(TIMEOUT_MIN),
        Ok(_) => return Err(invalid("timeout", "a number above 0")),
    };
    let parameters = match take("parameters")? {
        schema @ Value::Object(_) => schema,
        _ => return Err(invalid("parameters", "a JSON Schema, an object")),
    };
    Ok(ScriptDefinition { name, description, enabled, timeout, parameters })
}

fn is_tool_name(name: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    !name.is_empty() && name.len() <= TOOL_NAME_BYTES_MAX && name.bytes().all(fits)
}

fn ignored_key_remarks(ignored_keys: &Map<String, Value>) -> Vec<String> {
    let named = ignored_keys.keys().take(WARNINGS_MAX);
    let mut warnings: Vec<String> = named
        .map(|key| format!("the key \"{}\" is ignored", text::escape_excerpt(key, KEY_CHARS_MAX)))
        .collect();
    if ignored_keys.len() > WARNINGS_MAX {
        warnings.push(format!("{} more keys are ignored", ignored_keys.len() - WARNINGS_MAX));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn read(text: impl AsRef<[u8]>) -> Result<ScriptDefinitionFile, ScriptError> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(DEFINITION_FILE), text).unwrap();
        ScriptDefinition::read_folder(folder.path())
    }

    /// A minimal definition with these keys added or replaced.
    fn with(keys: Value) -> Value {
        let mut all = json!({"name": "ps", "description": "Lists.", "parameters": {}});
        let more = keys.as_object().cloned().unwrap_or_default();
        all.as_object_mut().unwrap().extend(more);
        all
    }

    #[test]
    fn what_is_not_said_is_as_it_always_was() {
        let parameters = json!({"type": "object", "properties": {"sort": {"type": "string"}}});
        let read = read(with(json!({"parameters": parameters})).to_string()).ok().unwrap();
        let want = ScriptDefinition {
            name: "ps".into(),
            description: "Lists.".into(),
            enabled: true,
            timeout: TIMEOUT_STANDARD,
            parameters,
        };
        assert_eq!(read.definition, want);
        assert!(read.warnings.is_empty(), "{:?}", read.warnings);
    }

    #[test]
    fn what_is_said_holds() {
        let keys = json!({"name": "My_tool-1.2", "enabled": false, "timeout": 2.5});
        let definition = read(with(keys).to_string()).ok().unwrap().definition;
        assert_eq!(definition.name, "My_tool-1.2");
        assert!(!definition.enabled);
        assert_eq!(definition.timeout, Duration::from_millis(2500));
    }

    #[test]
    fn what_needs_no_error_is_a_remark() {
        let rows = [
            (json!({"version": "1"}), vec!["the key \"version\" is ignored"]),
            (json!({"\u{1b}[31m": 1}), vec!["the key \"\\u{1b}[31m\" is ignored"]),
            (json!({"timeout": 1e12}), vec!["timeout is cut to 3600 seconds"]),
        ];
        for (keys, want) in rows {
            assert_eq!(read(with(keys).to_string()).ok().unwrap().warnings, want);
        }
        let many: Map<String, Value> = (0..30).map(|n| (format!("k{n}"), Value::Null)).collect();
        let warnings = read(with(Value::Object(many)).to_string()).ok().unwrap().warnings;
        assert_eq!(
            (warnings.len(), warnings.last().unwrap().as_str()),
            (9, "22 more keys are ignored")
        );
        let soon = read(with(json!({"timeout": 1e-300})).to_string()).ok().unwrap();
        assert_eq!(soon.definition.timeout, TIMEOUT_MIN);
    }

    #[track_caller]
    fn check_refused(text: impl AsRef<[u8]>, words: &str) {
        let error = read(text).err().expect(words);
        assert!(error.to_string().contains(words), "{error}");
        assert!(!error.hint().is_empty());
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (keys, words) in [
            (json!({"name": ""}), "\"name\" has to be"),
            (json!({"name": "a b"}), "\"name\" has to be"),
            (json!({"name": "../x"}), "\"name\" has to be"),
            (json!({"name": "\u{e9}"}), "\"name\" has to be"),
            (json!({"name": "n".repeat(129)}), "\"name\" has to be"),
            (json!({"name": 1}), "\"name\" has to be"),
            (json!({"description": " "}), "\"description\" has to be"),
            (json!({"description": "d".repeat(20_000)}), "\"description\" has to be"),
            (json!({"description": null}), "\"description\" has to be"),
            (json!({"enabled": "yes"}), "\"enabled\" has to be"),
            (json!({"timeout": 0}), "\"timeout\" has to be"),
            (json!({"timeout": -1}), "\"timeout\" has to be"),
            (json!({"timeout": "30"}), "\"timeout\" has to be"),
            (json!({"parameters": []}), "\"parameters\" has to be"),
        ] {
            check_refused(with(keys).to_string(), words);
        }
        for key in ["name", "description", "parameters"] {
            let mut keys = with(json!({}));
            keys.as_object_mut().unwrap().remove(key);
            check_refused(keys.to_string(), &format!("{key:?} is missing"));
        }
    }

    #[test]
    fn what_is_no_definition_is_refused() {
        check_refused("", "not valid JSON");
        check_refused("[]", "not an object");
        check_refused("{\"name\":\"a\",\"name\":\"b\"}", "stands twice");
        check_refused([0xff, 0xfe], "not UTF-8");
        check_refused("[".repeat(100_000), "not valid JSON");
        check_refused(" ".repeat(DEFINITION_BYTES_MAX as usize + 1), "more than 262144 bytes");
        let folder = tempfile::tempdir().unwrap();
        let read = |folder| ScriptDefinition::read_folder(folder).err().unwrap();
        assert!(matches!(read(folder.path()), ScriptError::Unreadable { .. }));
        fs::create_dir(folder.path().join(DEFINITION_FILE)).unwrap();
        assert!(matches!(read(folder.path()), ScriptError::NotAFile { .. }));
    }
}
