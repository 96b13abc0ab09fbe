//! The tools that a model sees, and the tool that it means by a call.
//!
//! A model sees every tool as long as the definitions are few. More would fill its context, and it
//! chooses badly among hundreds; it then sees exactly two tools, one that searches and one that
//! calls a found tool. The list does not depend on the searches. It changes only between two turns
//! when the host's plugins have changed, and once when the session has kept its first long result,
//! because a change invalidates the provider's cache.
//!
//! A call is resolved here before any other code sees it: approvals, budgets and records only ever
//! contain the real tool and its arguments.

mod meta_tools;
#[cfg(test)]
mod tests;

use sallyport_contract::{CallFailure, NameTable, ToolDescriptor, mangle::ToolNameCollision};
use sallyport_model::{ModelCallRequest, ModelToolDefinition, ToolIndex};
use serde_json::{Value, json};

use crate::{memory::json_bytes, results::ResultQuery};

/// Bytes of a definition that count as a token.
const TOKEN_BYTES: usize = 4;

/// Longest result of a search, in bytes of JSON: about 4,000 tokens.
const FOUND_BYTES_MAX: usize = 16 * 1024;

/// Longest description of a tool that was found, in bytes.
const DESCRIPTION_BYTES_MAX: usize = 2 * 1024;

/// Longest schema of a found tool, in bytes of JSON. The best match is always shown, so this bounds
/// the result of a search in the worst case.
const SCHEMA_BYTES_MAX: usize = 64 * 1024;

/// Whether a name is that of a tool of the session itself.
pub(crate) fn is_meta_tool(name: &str) -> bool {
    matches!(name, meta_tools::SEARCH | meta_tools::USE | meta_tools::RESULT)
}

/// The tools of a session.
#[derive(Debug)]
pub struct Toolset {
    names: NameTable,
    tools: Vec<ModelToolDefinition>,
    search: Option<ToolSearch>,
    /// The tool that reads kept results is among the definitions.
    offers_results: bool,
}

/// The search that replaces a list of too many tools.
#[derive(Debug)]
struct ToolSearch {
    definitions: Vec<ModelToolDefinition>,
    index: ToolIndex,
    plugins: String,
}

/// The meaning of a model's call.
#[derive(Debug, Clone, PartialEq)]
pub enum UnwrappedCall {
    /// A tool, which may not exist.
    Tool {
        /// Its name, as the model wrote it.
        name: String,
        /// Its arguments as text; nothing about them has been checked.
        arguments: String,
    },
    /// A search for tools, answered with `Toolset::search`.
    Search {
        /// A description of the tool.
        query: String,
        /// Most tools to return.
        limit: usize,
    },
    /// A query about a kept result.
    ReadResult(ResultQuery),
    /// A call that could not be parsed; the model receives the error.
    Broken(CallFailure),
}

impl Toolset {
    /// Creates the toolset of a session. The model gets a search if the definitions exceed
    /// `tokens_max`, by estimate; never if that is `None`.
    ///
    /// # Errors
    ///
    /// Two tools have the same model name.
    pub fn new(
        tools: &[ToolDescriptor],
        tokens_max: Option<u64>,
    ) -> Result<Self, ToolNameCollision> {
        let names = NameTable::new(tools.iter().map(|tool| &tool.id))?;
        let definitions: Vec<ModelToolDefinition> =
            tools.iter().map(ModelToolDefinition::from).collect();
        let too_many =
            tokens_max.is_some_and(|tokens_max| estimate_tokens(&definitions) > tokens_max);
        let search = too_many.then(|| ToolSearch {
            definitions: meta_tools::search_definitions(tools),
            index: ToolIndex::new(&definitions),
            plugins: meta_tools::plugin_names(tools),
        });
        Ok(Self { names, tools: definitions, search, offers_results: false })
    }

    /// Adds the tool that reads kept results to the definitions. Returns whether it is new there.
    pub fn offer_results(&mut self) -> bool {
        if self.offers_results {
            return false;
        }
        let definition = meta_tools::result_definition();
        match &mut self.search {
            Some(search) => search.definitions.push(definition),
            None => self.tools.push(definition),
        }
        self.offers_results = true;
        true
    }

    /// Returns the definitions for the model.
    pub fn definitions(&self) -> &[ModelToolDefinition] {
        self.search.as_ref().map_or(&self.tools, |search| &search.definitions)
    }

    /// The names by which a model can call tools, listed or not.
    pub fn name_table(&self) -> &NameTable {
        &self.names
    }

    /// Returns the meaning of a call. A tool can be called by its own name even if there is a
    /// search.
    pub fn parse_call(&self, call: &ModelCallRequest) -> UnwrappedCall {
        let parsed_call = match call.name.as_str() {
            meta_tools::SEARCH if self.search.is_some() => meta_tools::parse_search(call),
            meta_tools::USE if self.search.is_some() => meta_tools::parse_use(call),
            meta_tools::RESULT if self.offers_results => meta_tools::parse_result(call),
            name => {
                let arguments = call.arguments.clone();
                Ok(UnwrappedCall::Tool { name: name.to_owned(), arguments })
            }
        };
        parsed_call.unwrap_or_else(UnwrappedCall::Broken)
    }

    /// Returns the tools that match a query, the best first, as JSON for the model. A query that is
    /// the name of a tool finds that tool first.
    pub fn search_tools(&self, query: &str, limit: usize) -> Value {
        let Some(search) = &self.search else { return json!({ "tools": [] }) };
        let named_tool = self.find_by_name(query);
        let mut found: Vec<usize> =
            search.index.find_tools(query).iter().map(|found| found.document).collect();
        found.retain(|tool| Some(*tool) != named_tool);
        let found: Vec<usize> = named_tool.into_iter().chain(found).collect();
        if found.is_empty() {
            let hint = format!("no tool has these words, try others; plugins: {}", search.plugins);
            return json!({ "tools": [], "hint": hint });
        }
        let top_matches = found.iter().take(limit.clamp(1, meta_tools::LIMIT_MAX));
        let described =
            take_within_bytes(top_matches.map(|tool| describe_tool(&self.tools[*tool])));
        let hint = format!("call one of them with {}", meta_tools::USE);
        json!({ "tools": described, "matches": found.len(), "hint": hint })
    }

    fn find_by_name(&self, query: &str) -> Option<usize> {
        let name = sallyport_contract::mangle::model_tool_name(self.names.resolve(query.trim())?);
        self.tools.iter().position(|tool| tool.name == name)
    }
}

/// Estimates the tokens of the definitions.
fn estimate_tokens(definitions: &[ModelToolDefinition]) -> u64 {
    let bytes = |tool: &ModelToolDefinition| {
        tool.name.len() + tool.description.len() + json_bytes(&tool.parameters)
    };
    definitions.iter().map(|tool| bytes(tool).div_ceil(TOKEN_BYTES) as u64).sum()
}

/// Takes the first value and the following ones that fit.
fn take_within_bytes(described: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut bytes = 0;
    let fits = |described: &Value| {
        let is_first = bytes == 0;
        bytes += json_bytes(described);
        is_first || bytes <= FOUND_BYTES_MAX
    };
    described.take_while(fits).collect()
}

fn describe_tool(tool: &ModelToolDefinition) -> Value {
    let end = tool.description.floor_char_boundary(DESCRIPTION_BYTES_MAX);
    let mut described = json!({ "name": tool.name, "description": tool.description[..end] });
    if json_bytes(&tool.parameters) <= SCHEMA_BYTES_MAX {
        described["parameters"] = tool.parameters.clone();
    } else {
        described["parameters"] = json!({ "type": "object" });
        described["cut"] = "the parameters are too long to be shown".into();
    }
    described
}
