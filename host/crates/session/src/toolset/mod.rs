//! Which tools a model is told of, and which one it means by a call.
//!
//! A model is told of every tool as long as the definitions are few. Beyond that they would fill
//! what it can hold, and choosing among hundreds it chooses badly; then it is told of exactly two
//! tools, one that searches and one that calls what was found. The list never changes within a
//! session, whatever is found, so that a provider's cache of it holds.
//!
//! What the model means is settled here, before anything else looks at a call: approvals, budgets
//! and records only ever see the real tool and its arguments.

mod meta;
#[cfg(test)]
mod tests;

use sallyport_contract::{Failure, NameTable, ToolSpec, mangle::Collision};
use sallyport_model::{CallRequest, ToolDefinition, ToolIndex};
use serde_json::{Value, json};

use crate::memory::json_bytes;

/// Bytes of a definition that count as a token.
const TOKEN_BYTES: usize = 4;

/// Longest result of a search, in bytes of JSON: about 4,000 tokens.
const FOUND_BYTES_MAX: usize = 16 * 1024;

/// Longest description of a tool that was found, in bytes.
const DESCRIPTION_BYTES_MAX: usize = 2 * 1024;

/// Longest schema of a tool that was found, in bytes of JSON. The best match is always shown, so
/// this bounds what a search gives at worst.
const SCHEMA_BYTES_MAX: usize = 64 * 1024;

/// The tools of a session.
#[derive(Debug)]
pub struct Toolset {
    names: NameTable,
    tools: Vec<ToolDefinition>,
    search: Option<Search>,
}

/// What stands between a model and tools that are too many to be told.
#[derive(Debug)]
struct Search {
    offered: [ToolDefinition; 2],
    index: ToolIndex,
    plugins: String,
}

/// What a model means by a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// A tool, which may not exist.
    Tool {
        /// Its name, as the model wrote it.
        name: String,
        /// Its arguments as text; nothing about them has been checked.
        arguments: String,
    },
    /// A search for tools, answered with [`Toolset::search`].
    Search {
        /// What the tool should do.
        query: String,
        /// Most tools to give.
        limit: usize,
    },
    /// Nothing that could be made out; the model is told why.
    Broken(Failure),
}

impl Toolset {
    /// Takes the tools of a session. The model is given a search once their definitions come to
    /// more than `tokens_max`, by estimate; never when there is no limit.
    ///
    /// # Errors
    ///
    /// Two tools whose names a model could not tell apart.
    pub fn new(tools: &[ToolSpec], tokens_max: Option<u64>) -> Result<Self, Collision> {
        let names = NameTable::new(tools.iter().map(|tool| &tool.id))?;
        let definitions: Vec<ToolDefinition> = tools.iter().map(ToolDefinition::from).collect();
        let too_many = tokens_max.is_some_and(|tokens_max| tokens(&definitions) > tokens_max);
        let search = too_many.then(|| Search {
            offered: meta::definitions(tools),
            index: ToolIndex::new(&definitions),
            plugins: meta::plugins(tools),
        });
        Ok(Self { names, tools: definitions, search })
    }

    /// What the model is told: the same at every request of the session.
    pub fn definitions(&self) -> &[ToolDefinition] {
        self.search.as_ref().map_or(&self.tools, |search| &search.offered)
    }

    /// The names by which a model can call tools, told of them or not.
    pub fn names(&self) -> &NameTable {
        &self.names
    }

    /// Returns what the model means by a call. A tool that is called by its own name is meant, also
    /// where there is a search.
    pub fn unwrap(&self, call: &CallRequest) -> Wanted {
        let meant = match call.name.as_str() {
            meta::SEARCH if self.search.is_some() => meta::search(call),
            meta::USE if self.search.is_some() => meta::uses(call),
            name => {
                let arguments = call.arguments.clone();
                Ok(Wanted::Tool { name: name.to_owned(), arguments })
            }
        };
        meant.unwrap_or_else(Wanted::Broken)
    }

    /// Returns the tools that a query is about, the best first, as the model reads it. A query that
    /// is the name of a tool finds that tool first.
    pub fn search(&self, query: &str, limit: usize) -> Value {
        let Some(search) = &self.search else { return json!({ "tools": [] }) };
        let named = self.named(query);
        let mut found: Vec<usize> =
            search.index.find(query).iter().map(|found| found.document).collect();
        found.retain(|tool| Some(*tool) != named);
        let found: Vec<usize> = named.into_iter().chain(found).collect();
        if found.is_empty() {
            let hint = format!("no tool has these words, try others; plugins: {}", search.plugins);
            return json!({ "tools": [], "hint": hint });
        }
        let best = found.iter().take(limit.clamp(1, meta::LIMIT_MAX));
        let shown = within_bytes(best.map(|tool| shown(&self.tools[*tool])));
        let hint = format!("call one of them with {}", meta::USE);
        json!({ "tools": shown, "matches": found.len(), "hint": hint })
    }

    fn named(&self, query: &str) -> Option<usize> {
        let name = sallyport_contract::mangle::mangle(self.names.resolve(query.trim())?);
        self.tools.iter().position(|tool| tool.name == name)
    }
}

/// Estimates what the definitions come to.
fn tokens(definitions: &[ToolDefinition]) -> u64 {
    let bytes = |tool: &ToolDefinition| {
        tool.name.len() + tool.description.len() + json_bytes(&tool.parameters)
    };
    definitions.iter().map(|tool| bytes(tool).div_ceil(TOKEN_BYTES) as u64).sum()
}

/// Takes the first and what fits beside it.
fn within_bytes(shown: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut bytes = 0;
    let fits = |shown: &Value| {
        let is_first = bytes == 0;
        bytes += json_bytes(shown);
        is_first || bytes <= FOUND_BYTES_MAX
    };
    shown.take_while(fits).collect()
}

fn shown(tool: &ToolDefinition) -> Value {
    let end = tool.description.floor_char_boundary(DESCRIPTION_BYTES_MAX);
    let mut shown = json!({ "name": tool.name, "description": tool.description[..end] });
    if json_bytes(&tool.parameters) <= SCHEMA_BYTES_MAX {
        shown["parameters"] = tool.parameters.clone();
    } else {
        shown["parameters"] = json!({ "type": "object" });
        shown["cut"] = "the parameters are too long to be shown".into();
    }
    shown
}
