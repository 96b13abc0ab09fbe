//! The session's own tools: two that replace all others, and one that reads kept results. Their
//! definitions for the model, and the parsing of their calls.

use std::collections::BTreeSet;

use sallyport_contract::{CallFailure, FailureKind, ToolDescriptor, json};
use sallyport_model::{ModelCallRequest, ModelToolDefinition};
use serde_json::{Map, Value};

use super::UnwrappedCall;
use crate::results::ResultQuery;

/// Finds tools. A plugin's tool cannot have this name or the other, because its name contains two
/// underscores in a row or has the greatest length.
pub(super) const SEARCH: &str = "search_tools";

/// Calls a tool that was found.
pub(super) const USE: &str = "use_tool";

/// Reads a kept result.
pub(super) const RESULT: &str = "result";

/// Tools that a search returns when the model sets no limit.
const LIMIT_DEFAULT: usize = 5;

/// Most tools that a search returns: more schemas than these would be a full list again.
pub(super) const LIMIT_MAX: usize = 20;

/// Longest arguments of either tool, in bytes: the limit of a gate, with quotes around them and
/// escapes within.
const ARGUMENTS_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Most plugins that the search's description names.
const PLUGINS_MAX: usize = 50;

/// Returns the definitions of both tools.
pub(super) fn search_definitions(tools: &[ToolDescriptor]) -> Vec<ModelToolDefinition> {
    let search = format!(
        "Finds tools by what they do, and returns their names, descriptions and parameters. Search \
         before you say that something cannot be done. There are {} tools, of these plugins: {}.",
        tools.len(),
        plugin_names(tools),
    );
    let uses = "Calls a tool that search_tools has found. Give its name and its arguments as its \
                parameters say.";
    vec![
        ModelToolDefinition {
            name: SEARCH.to_owned(),
            description: search,
            parameters: serde_json::json!({
                "type": "object",
                "properties": {
                    "query": {
                        "type": "string",
                        "description": "A few words that say what the tool should do.",
                    },
                    "limit": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": LIMIT_MAX,
                        "description": format!("Most tools to return; {LIMIT_DEFAULT} when absent."),
                    },
                },
                "required": ["query"],
                "additionalProperties": false,
            }),
        },
        ModelToolDefinition {
            name: USE.to_owned(),
            description: uses.to_owned(),
            parameters: serde_json::json!({
                "type": "object",
                "properties": {
                    "name": { "type": "string", "description": "The tool's name." },
                    "arguments": { "type": "object", "description": "The tool's arguments." },
                },
                "required": ["name", "arguments"],
                "additionalProperties": false,
            }),
        },
    ]
}

/// Returns the definition of the tool that reads kept results.
pub(super) fn result_definition() -> ModelToolDefinition {
    let description = "Reads a result that was too long to show whole, by its number: lines, bytes, \
                       or the places that contain a text or match a regular expression. An answer \
                       with `next_byte` is not the end: call again with that as `byte`.";
    ModelToolDefinition {
        name: RESULT.to_owned(),
        description: description.to_owned(),
        parameters: ResultQuery::parameters(),
    }
}

/// Returns the names of the plugins, sorted, up to the limit.
pub(super) fn plugin_names(tools: &[ToolDescriptor]) -> String {
    let names: BTreeSet<&str> = tools.iter().map(|tool| tool.id.plugin.as_str()).collect();
    let mut shown: Vec<&str> = names.iter().take(PLUGINS_MAX).copied().collect();
    if shown.len() < names.len() {
        shown.push("and others");
    }
    shown.join(", ")
}

/// Parses a call of [`SEARCH`].
pub(super) fn parse_search(call: &ModelCallRequest) -> Result<UnwrappedCall, CallFailure> {
    let mut given = parse_arguments(call)?;
    let query = take_string(SEARCH, &mut given, "query")?;
    let limit = match given.remove("limit") {
        None | Some(Value::Null) => LIMIT_DEFAULT,
        Some(limit) => {
            let limit = limit.as_u64().filter(|limit| *limit > 0);
            let limit = limit
                .ok_or_else(|| invalid_arguments(SEARCH, "`limit` has to be a number from 1"))?;
            usize::try_from(limit).unwrap_or(LIMIT_MAX).min(LIMIT_MAX)
        }
    };
    reject_remaining(SEARCH, &given, "it takes `query` and `limit`")?;
    Ok(UnwrappedCall::Search { query, limit })
}

/// Parses a call of [`USE`] into the call that it wraps.
pub(super) fn parse_use(call: &ModelCallRequest) -> Result<UnwrappedCall, CallFailure> {
    let mut given = parse_arguments(call)?;
    let name = take_string(USE, &mut given, "name")?;
    if super::is_meta_tool(&name) {
        return Err(invalid_arguments(USE, &format!("{name} is called directly")));
    }
    let arguments = match given.remove("arguments") {
        None | Some(Value::Null) => String::from("{}"),
        // Many models write an object as a string where an object is required.
        Some(Value::String(text)) if text.trim().is_empty() => String::from("{}"),
        Some(Value::String(text)) => text,
        Some(value) => value.to_string(),
    };
    reject_remaining(USE, &given, "put the tool's own arguments into `arguments`")?;
    Ok(UnwrappedCall::Tool { name, arguments })
}

/// Parses a call of [`RESULT`].
pub(super) fn parse_result(call: &ModelCallRequest) -> Result<UnwrappedCall, CallFailure> {
    ResultQuery::from_arguments(parse_arguments(call)?).map(UnwrappedCall::ReadResult)
}

fn parse_arguments(call: &ModelCallRequest) -> Result<Map<String, Value>, CallFailure> {
    if call.arguments.trim().is_empty() {
        return Ok(Map::new());
    }
    match json::parse_json(&call.arguments, ARGUMENTS_BYTES_MAX) {
        Ok(Value::Object(given)) => Ok(given),
        Ok(_) => Err(invalid_arguments(&call.name, "the arguments have to be an object")),
        Err(error) => Err(invalid_arguments(&call.name, &error.to_string())),
    }
}

fn take_string(
    tool: &str,
    given: &mut Map<String, Value>,
    key: &str,
) -> Result<String, CallFailure> {
    match given.remove(key) {
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(text.trim().to_owned()),
        _ => Err(invalid_arguments(tool, &format!("`{key}` has to be there, as a text"))),
    }
}

fn reject_remaining(tool: &str, rest: &Map<String, Value>, fix: &str) -> Result<(), CallFailure> {
    if rest.is_empty() {
        Ok(())
    } else {
        Err(invalid_arguments(tool, &format!("too many arguments; {fix}")))
    }
}

fn invalid_arguments(tool: &str, why: &str) -> CallFailure {
    CallFailure::new(FailureKind::InvalidArguments, format!("{tool}: {why}"))
}
