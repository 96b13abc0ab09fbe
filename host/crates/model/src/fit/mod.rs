//! A request in a form that its provider takes.
//!
//! Tools come with any JSON Schema, models write anything into a call, and every provider refuses
//! something of both. One definition that is refused fails the whole request, and one call that is
//! refused fails every request after it. So both are fitted before they are written: a schema that
//! the provider would refuse is told in a plainer form ([`plain`]), properties whose names it
//! refuses get other names on the way out and their own ones back on the way in ([`names`]), and
//! calls of the conversation are mended ([`history`]). The full schema still decides at the gate,
//! so a plainer form may say less than it, never more.

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

/// Longest description of a tool that OpenAI takes, in characters.
const DESCRIPTION_CHARS_MAX: usize = 1024;

/// Where descriptions of tools are that short.
const SHORT_DESCRIPTIONS: [&str; 2] = ["openai.com", "azure.com"];

/// What a provider refuses in the definition of a tool, beyond what all of them do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dialect {
    /// Names of properties have to match `[A-Za-z0-9_.-]{1,64}`.
    limits_names: bool,
    /// Keywords outside a short list are refused or not understood.
    limits_keywords: bool,
    /// References are not followed.
    ignores_references: bool,
    /// Patterns have to stand for a whole text, from `^` to `$`.
    wants_whole_patterns: bool,
    /// The rest of a description that is longer goes with the parameters.
    description_chars_max: Option<usize>,
}

impl Dialect {
    /// Refuses whatever any provider refuses.
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

    /// What the server of an endpoint refuses.
    pub(crate) fn of(endpoint: &Endpoint) -> Self {
        match endpoint.protocol {
            // llama.cpp speaks the same protocol and refuses a pattern without its ends.
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

/// The tools of a request as its provider takes them.
#[derive(Debug, Default)]
pub struct Fit {
    tools: Vec<ToolDefinition>,
    /// By the name of the tool; only tools of which a property had to be renamed.
    names: HashMap<String, PropertyNames>,
    left_out: Vec<LeftOut>,
}

impl Fit {
    /// Fits tools to a provider of which nothing is known.
    pub fn careful(tools: &[ToolDefinition]) -> Self {
        Self::new(tools, Dialect::STRICTEST)
    }

    /// Fits tools to a provider.
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

    /// The tools, without those that are left out.
    pub fn tools(&self) -> &[ToolDefinition] {
        &self.tools
    }

    /// The tools that have no form which the provider takes.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// Returns a conversation of which every server takes each call back. `origin` is whom the
    /// request goes to: ids that it gave itself stay as they are.
    pub fn history<'a>(&self, messages: &'a [Message], origin: &str) -> Cow<'a, [Message]> {
        history::mended(messages, origin, &self.names)
    }

    /// Gives the properties in the arguments of calls the names that their tools know.
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

/// Moves what is too long for a description to the parameters, where no limit is known.
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
