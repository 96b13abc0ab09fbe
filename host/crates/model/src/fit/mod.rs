//! Fits a request to the limits of its provider.
//!
//! Tools come with any JSON Schema, models write anything into a call, and every provider refuses
//! some of both. One refused definition fails the whole request, and one refused call fails every
//! later request. So both are fitted first: a schema that the provider would refuse is rewritten in
//! a plainer form ([`schema_rewrite`]), properties with refused names are renamed in requests and restored
//! in answers ([`names`]), and the calls of the conversation are repaired ([`history`]). A plainer
//! form may be looser than the schema because the gate still validates against the full schema.

mod acceptance;
pub(crate) mod conversation;
mod history;
mod names;
mod schema_rewrite;
mod schema_variants;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, collections::HashMap};

use crate::{
    chat::{ChatMessage, ModelCallRequest, ModelToolDefinition, OmittedContent},
    endpoint::ModelEndpoint,
    protocol::ProviderProtocol,
};
pub(crate) use history::HistoryRepair;
use names::PropertyNameMap;

/// Longest tool description that OpenAI accepts, in characters.
const DESCRIPTION_CHARS_MAX: usize = 1024;

/// Domains of the servers that limit tool descriptions to [`DESCRIPTION_CHARS_MAX`].
const SHORT_DESCRIPTIONS: [&str; 2] = ["openai.com", "azure.com"];

/// The restrictions of a provider on tool definitions, beyond those of all providers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SchemaDialect {
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

impl SchemaDialect {
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
    pub(crate) fn from_endpoint(endpoint: &ModelEndpoint) -> Self {
        match endpoint.protocol {
            // llama.cpp uses the same protocol and refuses a pattern without `^` and `$`.
            ProviderProtocol::OpenAiChat | ProviderProtocol::OpenAiResponses => Self {
                wants_whole_patterns: true,
                description_chars_max: endpoint
                    .is_at_domain(&SHORT_DESCRIPTIONS)
                    .then_some(DESCRIPTION_CHARS_MAX),
                ..Self::GENEROUS
            },
            ProviderProtocol::Anthropic => Self { limits_names: true, ..Self::GENEROUS },
            ProviderProtocol::Gemini => Self { ignores_references: false, ..Self::STRICTEST },
            ProviderProtocol::Ollama => Self { ignores_references: true, ..Self::GENEROUS },
        }
    }
}

/// The tools of a request in a form that its provider accepts.
#[derive(Debug, Default)]
pub struct FittedTools {
    tools: Vec<ModelToolDefinition>,
    /// Renamed properties by tool name; only tools with a renamed property are listed.
    names: HashMap<String, PropertyNameMap>,
    left_out: Vec<OmittedContent>,
}

impl FittedTools {
    /// Fits tools to an unknown provider.
    pub fn with_strictest_dialect(tools: &[ModelToolDefinition]) -> Self {
        Self::new(tools, SchemaDialect::STRICTEST)
    }

    /// Fits tools to a provider with these restrictions.
    pub(crate) fn new(tools: &[ModelToolDefinition], dialect: SchemaDialect) -> Self {
        let mut fit = Self::default();
        for tool in tools {
            match fit_tool(tool, dialect) {
                Ok((fitted, names)) => {
                    if !names.is_empty() {
                        fit.names.insert(fitted.name.clone(), names);
                    }
                    fit.tools.push(fitted);
                }
                Err(why) => {
                    fit.left_out.push(OmittedContent::Tool { name: tool.name.clone(), why });
                }
            }
        }
        fit
    }

    /// Returns the fitted tools, without those that are left out.
    pub fn tools(&self) -> &[ModelToolDefinition] {
        &self.tools
    }

    /// Returns the tools that have no form that the provider accepts.
    pub fn omitted_tools(&self) -> &[OmittedContent] {
        &self.left_out
    }

    /// Returns a conversation whose calls every server accepts. `origin` is the receiver of the
    /// request: ids that it gave itself stay unless they repeat.
    pub fn fit_history<'a>(
        &self,
        messages: &'a [ChatMessage],
        origin: &str,
    ) -> Cow<'a, [ChatMessage]> {
        history::repair_history(messages, origin, &self.names)
    }

    /// Begins to repair a conversation message by message, as [`Self::fit_history`] does.
    pub(crate) fn begin_repair(&self) -> HistoryRepair {
        HistoryRepair::new(self.names.clone())
    }

    /// Restores the tool's own property names in the arguments of calls.
    pub fn restore_arguments(&self, calls: &mut [ModelCallRequest]) {
        for call in calls {
            if let Some(names) = self.names.get(&call.name)
                && let Some(restored) = names.restore_arguments(&call.arguments)
            {
                call.arguments = restored;
            }
        }
    }
}

fn fit_tool(
    tool: &ModelToolDefinition,
    dialect: SchemaDialect,
) -> Result<(ModelToolDefinition, PropertyNameMap), String> {
    let (mut tool, mut names) = (tool.clone(), PropertyNameMap::default());
    if !acceptance::is_accepted_schema(&tool.parameters, dialect) {
        if dialect.limits_names {
            names = PropertyNameMap::from_schema(&tool.parameters);
        }
        let plain = schema_rewrite::plain_parameters(&tool.parameters, &names)?;
        if !acceptance::is_accepted_schema(&plain.parameters, dialect) {
            return Err("its parameters have no form that the provider takes".to_owned());
        }
        tool.parameters = plain.parameters;
        if let Some(note) = plain.note {
            tool.description = join_descriptions(&tool.description, &note);
        }
    }
    if let Some(chars_max) = dialect.description_chars_max {
        shorten_description(&mut tool, chars_max);
    }
    Ok((tool, names))
}

fn join_descriptions(text: &str, more: &str) -> String {
    if text.is_empty() { more.to_owned() } else { format!("{text}\n\n{more}") }
}

/// Moves the end of a long description to the parameters, where no limit is known.
fn shorten_description(tool: &mut ModelToolDefinition, chars_max: usize) {
    let Some((end, _)) = tool.description.char_indices().nth(chars_max) else { return };
    let cut = tool.description[..end].rfind(char::is_whitespace).unwrap_or(end);
    let rest = tool.description.split_off(cut);
    if let Some(parameters) = tool.parameters.as_object_mut() {
        let own_description = parameters
            .get("description")
            .and_then(|own_description| own_description.as_str())
            .unwrap_or("");
        let rest = join_descriptions(rest.trim(), own_description);
        parameters.insert("description".to_owned(), rest.trim_end().into());
    }
}
