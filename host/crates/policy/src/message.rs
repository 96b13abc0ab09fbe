//! The message of a rule for a call that it stops.
//!
//! `"cannot send to {args.to}"` contains a placeholder. The name of a placeholder is checked when
//! the file is read. Its value in a call is shown on one line and truncated, because a model wrote
//! it.

use std::{fmt, str::FromStr};

use sallyport_contract::text::escape_excerpt;
use serde_json::Value;

use crate::{
    argument_names::{ArgumentNames, ArgumentPath, NameMeaning, NameMeaningError},
    document::TomlItem,
    question::{CONTEXT_KEYS, CallFacts},
    source::{HintedError, SourceError, nearest_match, quoted},
};

/// Most characters of a value that a message shows: enough to recognise it, too few to drown the
/// sentence around it.
const VALUE_CHARS_MAX: usize = 80;

/// Longest message, in bytes: the model and the user read it with every refusal.
const MESSAGE_BYTES_MAX: usize = 1024;

/// The text for a value that a call does not have.
const MISSING_VALUE_TEXT: &str = "(none)";

/// The message of a rule, with its placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleMessage {
    text: String,
    parts: Vec<MessagePart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum MessagePart {
    Text(String),
    Tool,
    Plugin,
    /// An argument, by the keys and indexes that lead to it.
    Argument(Vec<String>),
    /// The number of entries of a list, or of all lists in an object of the arguments.
    Count(ArgumentPath),
    Context(String),
}

/// Why a text is not a message.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RuleMessageError {
    #[error("a message of {bytes} bytes is longer than {MESSAGE_BYTES_MAX}")]
    TooLong { bytes: usize },
    #[error("a brace stands alone")]
    LoneBrace,
    #[error(transparent)]
    Name(NameMeaningError),
    #[error("{} is not something that a message can name", quoted(&format!("{{{name}}}")))]
    Unknown { name: String },
}

impl HintedError for RuleMessageError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::TooLong { .. } => None,
            Self::Name(error) => error.hint(),
            Self::LoneBrace => Some("write {{ or }} for a brace".to_owned()),
            Self::Unknown { name } => Some(match nearest_match(name, placeholder_names()) {
                Some(known) => format!("did you mean {{{known}}}?"),
                None => "write {tool}, {plugin}, {args.NAME} or {context.NAME}".to_owned(),
            }),
        }
    }
}

fn placeholder_names() -> impl Iterator<Item = &'static str> {
    const CONTEXT: [&str; 4] =
        ["context.call_id", "context.session_id", "context.user_id", "context.conversation_id"];
    ["tool", "plugin", "args"].into_iter().chain(CONTEXT)
}

impl FromStr for RuleMessage {
    type Err = RuleMessageError;

    fn from_str(text: &str) -> Result<Self, RuleMessageError> {
        Self::parse_parts(text, &MessagePart::from_name)
    }
}

impl RuleMessage {
    /// Parses a message of an author, who may use the names of parameters.
    pub(crate) fn parse_with_names(
        text: &str,
        names: &ArgumentNames,
    ) -> Result<Self, RuleMessageError> {
        Self::parse_parts(text, &|name| {
            MessagePart::from_name(name).or_else(|_| MessagePart::from_author_name(name, names))
        })
    }

    fn parse_parts(
        text: &str,
        placeholder: &dyn Fn(&str) -> Result<MessagePart, RuleMessageError>,
    ) -> Result<Self, RuleMessageError> {
        if text.len() > MESSAGE_BYTES_MAX {
            return Err(RuleMessageError::TooLong { bytes: text.len() });
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, brace) = rest.split_at(at);
            parts.push(MessagePart::Text(before.to_owned()));
            let (part, after) = split_brace(brace, placeholder)?;
            parts.push(part);
            rest = after;
        }
        parts.push(MessagePart::Text(rest.to_owned()));
        Ok(Self { text: text.to_owned(), parts })
    }
}

/// Splits text that begins with a brace into the part that the brace makes and the text after it.
fn split_brace<'t>(
    text: &'t str,
    placeholder: &dyn Fn(&str) -> Result<MessagePart, RuleMessageError>,
) -> Result<(MessagePart, &'t str), RuleMessageError> {
    for (doubled, brace) in [("{{", "{"), ("}}", "}")] {
        if let Some(after) = text.strip_prefix(doubled) {
            return Ok((MessagePart::Text(brace.to_owned()), after));
        }
    }
    let inside = text.strip_prefix('{').and_then(|open| open.split_once('}'));
    let (name, after) = inside.ok_or(RuleMessageError::LoneBrace)?;
    Ok((placeholder(name)?, after))
}

impl MessagePart {
    fn from_name(name: &str) -> Result<Self, RuleMessageError> {
        let unknown = || RuleMessageError::Unknown { name: name.to_owned() };
        let mut steps = name.split('.');
        let root = steps.next().unwrap_or_default();
        let path: Vec<String> = steps.map(str::to_owned).collect();
        match (root, path.as_slice()) {
            ("tool", []) => Ok(Self::Tool),
            ("plugin", []) => Ok(Self::Plugin),
            ("args", path) if path.iter().all(|step| !step.is_empty()) => {
                Ok(Self::Argument(path.to_vec()))
            }
            ("context", [key]) if CONTEXT_KEYS.contains(&key.as_str()) => {
                Ok(Self::Context(key.clone()))
            }
            _ => Err(unknown()),
        }
    }

    /// A placeholder of an author: `{amount}`, `{content.subject}`, `{total_recipients}`.
    fn from_author_name(name: &str, names: &ArgumentNames) -> Result<Self, RuleMessageError> {
        let mut steps = name.split('.');
        let root = steps.next().unwrap_or_default();
        match names.meaning(root).map_err(RuleMessageError::Name)? {
            NameMeaning::Argument(path) => {
                Ok(Self::Argument(path.into_iter().chain(steps.map(str::to_owned)).collect()))
            }
            NameMeaning::Count(path) => Ok(Self::Count(path)),
        }
    }

    fn fill_placeholder(&self, of: &CallFacts<'_>) -> String {
        let shown = match self {
            Self::Text(text) => return text.clone(),
            Self::Tool => Some(of.tool.to_owned()),
            Self::Plugin => Some(of.plugin_name().to_owned()),
            Self::Argument(path) => value_at_path(of.arguments, path).and_then(value_text),
            Self::Count(path) => Some(NameMeaning::count_entries(path, of.arguments).to_string()),
            Self::Context(key) => of.context_text(key).map(str::to_owned),
        };
        shown.map_or_else(
            || MISSING_VALUE_TEXT.to_owned(),
            |text| escape_excerpt(&text, VALUE_CHARS_MAX),
        )
    }
}

fn value_at_path<'v>(value: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, step| match value {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        Value::Object(fields) => fields.get(step),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    })
}

/// Returns a value as a message shows it: on one line, and truncated.
pub(crate) fn shown_value(value: &Value) -> Option<String> {
    value_text(value).map(|text| escape_excerpt(&text, VALUE_CHARS_MAX))
}

fn value_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Some(value.to_string())
        }
    }
}

impl RuleMessage {
    pub(crate) fn from_toml(item: TomlItem<'_>) -> Result<Self, SourceError> {
        let place = item.place();
        item.read_nonblank_string()?
            .parse()
            .map_err(|parse_error: RuleMessageError| place.into_hinted_error(&parse_error))
    }

    /// Returns the message for one call.
    pub(crate) fn fill(&self, of: &CallFacts<'_>) -> String {
        self.parts.iter().map(|part| part.fill_placeholder(of)).collect()
    }
}

impl fmt::Display for RuleMessage {
    /// The message as written, with its placeholders.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
