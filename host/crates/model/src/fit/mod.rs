//! Fits a request to the limits of its provider.
//!
//! Tools come with any JSON Schema, models write anything into a call, and every provider refuses
//! some of both. One refused definition fails the whole request, and one refused call fails every
//! later request. So both are fitted first: a schema that the provider would refuse is rewritten in
//! a plainer form ([`plain`]), properties with refused names are renamed in requests and restored
//! in answers ([`names`]), and the calls of the conversation are repaired ([`history`]). A plainer
//! form may be looser than the schema because the gate still validates against the full schema.

mod forms;
mod history;
mod names;
mod plain;
mod taken;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, collections::HashMap};

use crate::{
    chat::{CallRequest, LeftOut, Message, ToolDefinition},
    endpoint::{Endpoint, Protocol},
};
use names::PropertyNames;

/// Longest tool description that OpenAI accepts, in characters.
const DESCRIPTION_CHARS_MAX: usize = 1024;

/// Domains of the servers that limit tool descriptions to [`DESCRIPTION_CHARS_MAX`].
const SHORT_DESCRIPTIONS: [&str; 2] = ["openai.com", "azure.com"];

/// The restrictions of a provider on tool definitions, beyond those of all providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dialect {
    /// Property names must match `[A-Za-z0-9_.-]{1,64}`.
    limits_names: bool,
    /// Keywords outside a short list are refused or not understood.
    limits_keywords: bool,
    /// References are not resolved.
    ignores_references: bool,
    /// Patterns must match a whole text, from `^` to `$`.
    wants_whole_patterns: bool,
    /// The longest description; the rest of a longer one moves to the parameters.
    description_chars_max: Option<usize>,
}

impl Dialect {
    /// Has every restriction of any provider except the limit on descriptions.
    pub(crate) const STRICTEST: Self = Self {
        limits_names: true,
        limits_keywords: true,
        ignores_references: true,
        wants_whole_patterns: true,
        description_chars_max: None,
    };

    const GENEROUS: Self = Self {
        limits_names: false,
        limits_keywords: false,
        ignores_references: false,
        wants_whole_patterns: false,
        description_chars_max: None,
    };

    /// Returns the restrictions of an endpoint's server.
    pub(crate) fn of(endpoint: &Endpoint) -> Self {
        match endpoint.protocol {
            // llama.cpp uses the same protocol and refuses a pattern without `^` and `$`.
            Protocol::OpenAiChat | Protocol::OpenAiResponses => Self {
                wants_whole_patterns: true,
                description_chars_max: endpoint
                    .is_at(&SHORT_DESCRIPTIONS)
                    .then_some(DESCRIPTION_CHARS_MAX),
                ..Self::GENEROUS
            },
            Protocol::Anthropic => Self { limits_names: true, ..Self::GENEROUS },
            Protocol::Gemini => Self { ignores_references: false, ..Self::STRICTEST },
            Protocol::Ollama => Self { ignores_references: true, ..Self::GENEROUS },
        }
    }
}

/// The tools of a request in a form that its provider accepts.
#[derive(Debug, Default)]
pub struct Fit {
    tools: Vec<ToolDefinition>,
    /// Renamed properties by tool name; only tools with a renamed property are listed.
    names: HashMap<String, PropertyNames>,
    left_out: Vec<LeftOut>,
}

impl Fit {
    /// Fits tools to an unknown provider.
    pub fn careful(tools: &[ToolDefinition]) -> Self {
        Self::new(tools, Dialect::STRICTEST)
    }

    /// Fits tools to a provider with these restrictions.
    pub(crate) fn new(tools: &[ToolDefinition], dialect: Dialect) -> Self {
        let mut fit = Self::default();
        for tool in tools {
            match fitted(tool, dialect) {
                Ok((fitted, names)) => {
                    if !names.is_empty() {
                        fit.names.insert(fitted.name.clone(), names);
                    }
                    fit.tools.push(fitted);
                }
                Err(why) => {
                    fit.left_out.push(LeftOut::Tool { name: tool.name.clone(), why });
                }
            }
        }
        fit
    }

    /// Returns the fitted tools, without those that are left out.
    pub fn tools(&self) -> &[ToolDefinition] {
        &self.tools
    }

    /// Returns the tools that have no form that the provider accepts.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// Returns a conversation whose calls every server accepts. `origin` is the receiver of the
    /// request: ids that it gave itself stay unless they repeat.
    pub fn history<'a>(&self, messages: &'a [Message], origin: &str) -> Cow<'a, [Message]> {
        history::mended(messages, origin, &self.names)
    }

    /// Restores the tool's own property names in the arguments of calls.
    pub fn restore(&self, calls: &mut [CallRequest]) {
        for call in calls {
            if let Some(names) = self.names.get(&call.name)
                && let Some(restored) = names.restored(&call.arguments)
            {
                call.arguments = restored;
            }
        }
    }
}

fn fitted(
    tool: &ToolDefinition,
    dialect: Dialect,
) -> Result<(ToolDefinition, PropertyNames), String> {
    let (mut tool, mut names) = (tool.clone(), PropertyNames::default());
    if !taken::is_taken(&tool.parameters, dialect) {
        if dialect.limits_names {
            names = PropertyNames::of(&tool.parameters);
        }
        let plain = plain::parameters(&tool.parameters, &names)?;
        if !taken::is_taken(&plain.parameters, dialect) {
            return Err("its parameters have no form that the provider takes".to_owned());
        }
        tool.parameters = plain.parameters;
        if let Some(note) = plain.note {
            tool.description = joined(&tool.description, &note);
        }
    }
    if let Some(chars_max) = dialect.description_chars_max {
        shorten(&mut tool, chars_max);
    }
    Ok((tool, names))
}

fn joined(text: &str, more: &str) -> String {
    if text.is_empty() { more.to_owned() } else { format!("{text}\n\n{more}") }
}

/// Moves the end of a long description to the parameters, where no limit is known.
fn shorten(tool: &mut ToolDefinition, chars_max: usize) {
    let Some((end, _)) = tool.description.char_indices().nth(chars_max) else { return };
    let cut = tool.description[..end].rfind(char::is_whitespace).unwrap_or(end);
    let rest = tool.description.split_off(cut);
    if let Some(parameters) = tool.parameters.as_object_mut() {
        let told = parameters.get("description").and_then(|told| told.as_str()).unwrap_or("");
        let rest = joined(rest.trim(), told);
        parameters.insert("description".to_owned(), rest.trim_end().into());
    }
}
