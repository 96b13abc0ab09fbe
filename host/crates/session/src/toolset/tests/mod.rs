//! The tools that a model sees, and the meaning of its calls.

mod calls;
mod ranking;

use sallyport_contract::{ToolDescriptor, ToolHints};
use serde_json::{Value, json};

use super::Toolset;

/// A tool with one text parameter.
fn tool(id: &str, description: &str) -> ToolDescriptor {
    with_parameters(id, description, json!({ "text": { "type": "string" } }))
}

fn with_parameters(id: &str, description: &str, properties: Value) -> ToolDescriptor {
    ToolDescriptor {
        id: id.parse().unwrap(),
        title: None,
        description: description.to_owned(),
        parameters: json!({ "type": "object", "properties": properties }),
        output: None,
        hints: ToolHints::default(),
    }
}

/// Tools that a model has to search.
fn searched(tools: &[ToolDescriptor]) -> Toolset {
    Toolset::new(tools, Some(0)).unwrap()
}

/// Returns the names of the tools that match a query.
fn found(toolset: &Toolset, query: &str) -> Vec<String> {
    let found = toolset.search_tools(query, 5);
    let tools = found["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}
