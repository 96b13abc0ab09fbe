//! Reads `sallyport.toml` with the place of each mistake.
//!
//! The schema of [`FileConfig`] knows the keys, their words, which of them a project may set and
//! where variables are replaced. Serde does the rest.

use std::sync::LazyLock;

use sallyport_policy::{
    SourceError,
    document::TomlDocument,
    source::{SourceLocation, nearest_match, quoted},
};
use serde::Deserialize;
use serde_json::Value;
use toml::{
    Spanned,
    de::{DeString, DeTable, DeValue, Deserializer},
};

use super::{Env, FileConfig, file::config_schema};

static SCHEMA: LazyLock<Value> = LazyLock::new(config_schema);

/// A file: its name for messages, and its text.
#[derive(Debug)]
pub(super) struct ConfigText<'t> {
    pub(super) name: String,
    pub(super) text: &'t str,
}

impl<'t> ConfigText<'t> {
    /// Parses the text, checks its keys and words, and replaces `${VAR}` from the environment.
    ///
    /// # Errors
    ///
    /// The first mistake, or a key that needs the user's trust.
    pub(super) fn parse(&self, env: &Env, is_trusted: bool) -> Result<DeTable<'t>, SourceError> {
        // This refuses a file that is too long or nests too deeply for the parser.
        TomlDocument::read_with(&self.name, self.text, |root| {
            root.take_rest();
            Ok(())
        })?;
        let mut root = self.parse_table()?;
        let needs_trust = |key: &str| {
            let schema = &SCHEMA["properties"][key];
            schema.is_object() && schema["x-untrusted-project"].is_null()
        };
        let refused = root.iter().filter(|(key, _)| !is_trusted && needs_trust(key.get_ref()));
        if let Some((key, value)) = refused.min_by_key(|(_, value)| value.span().start) {
            let message = format!("a project that is not trusted may not set {:?}", key.get_ref());
            let hint = "read the file, then trust it with `sallyport trust` in its folder";
            return Err(self.place(value.span().start).into_error(message).with_hint(hint));
        }
        self.check_table(&mut root, 0, &SCHEMA, env)?;
        Ok(root)
    }

    /// Reads a table of this file.
    ///
    /// # Errors
    ///
    /// The first value that its key does not accept.
    pub(super) fn read(&self, root: DeTable<'t>) -> Result<FileConfig, SourceError> {
        let spanned = Spanned::new(0..self.text.len(), root.clone());
        let config = FileConfig::deserialize(Deserializer::from(spanned)).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let label = find_label(&root, at).unwrap_or_else(|| "a value".to_owned());
            let text = match error.message() {
                text if text.contains("{key}") => text.replace("{key}", &label),
                text if text.starts_with('"') => text.to_owned(),
                text => format!("{label}: {text}"),
            };
            match text.split_once('\n') {
                Some((message, hint)) => self.place(at).into_error(message).with_hint(hint),
                None => self.place(at).into_error(text),
            }
        })?;
        config.check_model_entries(self, &root)?;
        config.check_mcp_entries(self, &root)?;
        Ok(config)
    }

    /// Parses and reads a file that is trusted.
    pub(super) fn parse_and_read(&self, env: &Env) -> Result<FileConfig, SourceError> {
        self.read(self.parse(env, true)?)
    }

    /// The place of a byte of the text.
    pub(super) fn place(&self, offset: usize) -> SourceLocation {
        let before = self.text.get(..offset).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        SourceLocation {
            file: self.name.clone(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }

    fn parse_table(&self) -> Result<DeTable<'t>, SourceError> {
        DeTable::parse(self.text).map(Spanned::into_inner).map_err(|error| {
            self.place(error.span().map_or(0, |span| span.start)).into_error(error.message())
        })
    }

    fn check_table(
        &self,
        table: &mut DeTable<'_>,
        start: usize,
        schema: &Value,
        env: &Env,
    ) -> Result<(), SourceError> {
        for key in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let known = table.keys().any(|found| nearest_match(found.get_ref(), [key]).is_some());
            if !known {
                let message = format!("key \"{key}\" is missing");
                return Err(self.place(start).into_error(message));
            }
        }
        let place = |at: usize| self.place(at);
        for (key, value) in table.iter_mut() {
            let (key_at, value_at) = (key.span().start, value.span().start);
            let named = schema["properties"].get(&**key.get_ref());
            let any = schema.get("additionalProperties").filter(|any| any.is_object());
            let Some(schema) = named.or(any) else {
                return Err(unknown_key_error(place(key_at), key.get_ref(), schema));
            };
            let label = quoted(key.get_ref());
            check_type(value.get_ref(), schema)
                .map_err(|message| place(value_at).into_error(format!("{label} {message}")))?;
            match value.get_mut() {
                DeValue::Table(inner) if schema["type"] == "object" => {
                    self.check_table(inner, value_at, schema, env)?;
                }
                DeValue::String(text) if !schema["x-variables"].is_null() => {
                    expand_variables(text, &place(value_at), env)?;
                }
                DeValue::Array(list) if schema["x-variables"] == true => {
                    for entry in list.iter_mut() {
                        let at = entry.span().start;
                        if let DeValue::String(text) = entry.get_mut() {
                            expand_variables(text, &place(at), env)?;
                        }
                    }
                }
                DeValue::String(text) => {
                    let options = schema["oneOf"].as_array().into_iter().flatten();
                    let words: Vec<_> =
                        options.filter_map(|option| option["const"].as_str()).collect();
                    if !words.is_empty() && !words.contains(&&**text) {
                        let message = format!("{label} cannot be {}", quoted(text));
                        let hint = suggest_word(text, &words, "write one of");
                        return Err(place(value_at).into_error(message).with_hint(hint));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Compares a value with the type that the schema names.
fn check_type(value: &DeValue<'_>, schema: &Value) -> Result<(), String> {
    let wanted = match (schema["type"].as_str(), value) {
        // JSON, in which plugins get their settings, has no other numbers.
        (_, DeValue::Float(float)) if float.as_str().ends_with(['n', 'f']) => "a finite number",
        (Some("string"), DeValue::String(_))
        | (Some("integer" | "number"), DeValue::Integer(_))
        | (Some("number"), DeValue::Float(_))
        | (Some("boolean"), DeValue::Boolean(_))
        | (Some("array"), DeValue::Array(_))
        | (Some("object"), DeValue::Table(_))
        | (None, _) => return Ok(()),
        (Some("boolean"), _) => "true or false",
        (Some("array"), _) => "a list",
        (Some("object"), _) => "a table",
        (Some("number"), _) => "a number",
        (Some("integer"), _) => "an integer",
        (Some(_), _) => "a string",
    };
    let found = value.type_str();
    let article = if matches!(found, "integer" | "array") { "an" } else { "a" };
    Err(format!("must be {wanted}, not {article} {found}"))
}

fn unknown_key_error(place: SourceLocation, key: &str, schema: &Value) -> SourceError {
    let known = schema["properties"].as_object().into_iter().flatten();
    let known: Vec<_> = known.map(|(key, _)| key.as_str()).collect();
    let hint = suggest_word(key, &known, "the keys known here are");
    place.into_error(format!("unknown key {}", quoted(key))).with_hint(hint)
}

fn suggest_word(word: &str, known: &[&str], all: &str) -> String {
    match nearest_match(word, known.iter().copied()) {
        Some(known) => format!("did you mean \"{known}\"?"),
        None => format!("{all} {}", known.join(", ")),
    }
}

/// The quoted key of the value that contains this byte.
fn find_label(table: &DeTable<'_>, at: usize) -> Option<String> {
    table.iter().find_map(|(key, value)| match value.get_ref() {
        DeValue::Table(inner) => find_label(inner, at),
        _ => value.span().contains(&at).then(|| quoted(key.get_ref())),
    })
}

/// Puts a project's table over the user's. The keys of two tables such as `[chat]` are merged. A
/// table under a name and `[embedding]` are taken from one file, because half of a table could send
/// the other file's key to another address.
pub(super) fn merge_tables<'t>(user: &mut DeTable<'t>, project: DeTable<'t>) {
    for (key, value) in project {
        // Otherwise the key of one file could be sent to the address of the other.
        let is_whole =
            ["embedding", "login", "serve", "store", "telemetry"].contains(&&**key.get_ref());
        match (user.get_mut(&**key.get_ref()).map(Spanned::get_mut), value.get_ref()) {
            (Some(DeValue::Table(base)), DeValue::Table(nearest)) if !is_whole => {
                base.extend(nearest.clone());
            }
            _ => {
                user.insert(key, value);
            }
        }
    }
}

/// Replaces every `${VAR}` in a text. An unset variable is an error, because an empty key or
/// address would fail later with a less helpful message.
fn expand_variables(
    text: &mut DeString<'_>,
    place: &SourceLocation,
    env: &Env,
) -> Result<(), SourceError> {
    let mut expanded = String::new();
    let mut rest = &**text;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else { break };
        let name = &rest[start + 2..start + length];
        let value = env.get(name).ok_or_else(|| {
            let message = format!("the environment variable {name:?} is not set");
            place.clone().into_error(message).with_hint("set it, or write the value itself")
        })?;
        expanded.push_str(&rest[..start]);
        expanded.push_str(value);
        rest = &rest[start + length + 1..];
    }
    expanded.push_str(rest);
    *text = expanded.into();
    Ok(())
}
