//! Resolves the tool names that a model writes.
//!
//! Models invent names, write the plain `plugin.tool` or misspell one. Names are resolved only
//! here: a name refers to exactly the tool that has it, never to a similar one. The error lists
//! similar names, and the model can try again.

use std::{cmp::Reverse, fmt};

use sallyport_contract::{
    CallFailure, FailureKind, NameTable, ToolId,
    mangle::{MODEL_NAME_BYTES_MAX, model_tool_name},
    text,
};
use sallyport_model::AssistantMessage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::toolset;

/// Characters of an invented name that are compared and shown: no tool's name is longer.
const UNKNOWN_NAME_CHARS_MAX: usize = MODEL_NAME_BYTES_MAX;

/// Most similar names in the error for a tool that does not exist.
const SIMILAR_NAMES_MAX: usize = 5;

/// A tool as a model named it.
///
/// It is written as its name alone. One that is read is therefore classified by the form of the
/// name: an invented name in the form of a tool's is read as [`ToolRef::Known`], whether the
/// session had that tool or not.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(from = "String", into = "String")]
#[schemars(with = "String")]
pub enum ToolRef {
    /// A tool of the session's toolbox.
    Known(ToolId),
    /// A tool of the session itself, such as the search among its tools.
    Own(String),
    /// An unknown name, as the model wrote it.
    Unknown(String),
}

impl fmt::Display for ToolRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(id) => id.fmt(f),
            Self::Own(name) | Self::Unknown(name) => {
                f.write_str(&text::escape_excerpt(name, UNKNOWN_NAME_CHARS_MAX))
            }
        }
    }
}

impl From<ToolRef> for String {
    fn from(tool: ToolRef) -> Self {
        tool.to_string()
    }
}

impl From<String> for ToolRef {
    fn from(name: String) -> Self {
        match name.parse() {
            Ok(id) => Self::Known(id),
            Err(_) if toolset::is_meta_tool(&name) => Self::Own(name),
            Err(_) => Self::Unknown(name),
        }
    }
}

impl ToolRef {
    /// Returns the tool with a name, or [`ToolRef::Unknown`].
    pub(super) fn resolve(name: &str, names: &NameTable) -> Self {
        let resolved = names.resolve(name).cloned();
        resolved.map_or_else(|| Self::Unknown(name.to_owned()), Self::Known)
    }
}

/// Rewrites call names that a provider would not accept even from its own model. The provider's own
/// form of the message would then contradict the rest and is dropped.
pub(super) fn normalize_names(message: &mut AssistantMessage, names: &NameTable) {
    for call in &mut message.calls {
        let name =
            names.resolve(&call.name).map_or_else(|| sanitize_name(&call.name), model_tool_name);
        if name != call.name {
            call.name = name;
            message.opaque = None;
        }
    }
}

fn sanitize_name(name: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let mut safe: String =
        name.chars().take(MODEL_NAME_BYTES_MAX).map(|c| if is_safe(c) { c } else { '_' }).collect();
    if !safe.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        safe.insert(0, '_');
        safe.truncate(MODEL_NAME_BYTES_MAX);
    }
    safe
}

/// Returns the error for a tool that does not exist, with the names that the model may have meant.
pub(super) fn unknown_tool_failure(name: &str, names: &NameTable) -> CallFailure {
    let escaped_name = text::escape_excerpt(name, UNKNOWN_NAME_CHARS_MAX);
    let hint = match similar_names(name, names).join(", ") {
        none if none.is_empty() => String::from("use one of the tools that are listed"),
        similar => format!("similar tools: {similar}"),
    };
    CallFailure::new(FailureKind::NotFound, format!("there is no tool \"{escaped_name}\"; {hint}"))
}

/// Returns the names that share a word with the requested one, the likeliest first.
fn similar_names<'a>(requested: &str, names: &'a NameTable) -> Vec<&'a str> {
    let requested: String = requested.chars().take(UNKNOWN_NAME_CHARS_MAX).collect();
    let mut similar: Vec<&str> =
        names.model_names().filter(|name| count_shared_words(name, &requested) > 0).collect();
    similar.sort_by_key(|name| {
        Reverse((count_shared_words(name, &requested), common_prefix_length(name, &requested)))
    });
    similar.truncate(SIMILAR_NAMES_MAX);
    similar
}

fn count_shared_words(a: &str, b: &str) -> usize {
    name_words(a).filter(|word| name_words(b).any(|other| other.eq_ignore_ascii_case(word))).count()
}

fn name_words(name: &str) -> impl Iterator<Item = &str> {
    name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty())
}

fn common_prefix_length(a: &str, b: &str) -> usize {
    a.chars().zip(b.chars()).take_while(|(x, y)| x.eq_ignore_ascii_case(y)).count()
}
