//! A tool as a server offers it.

use rmcp::model::Tool;
use sallyport_contract::ToolHints;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool as a server offers it. Everything in it is the server's claim.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OfferedTool {
    /// Its name.
    pub name: String,
    /// Its title.
    pub title: Option<String>,
    /// Its description for a model.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
    /// The JSON Schema of its structured result, if it has one.
    pub output: Option<Value>,
    /// What the server claims about its effects.
    pub claims: ToolClaims,
}

/// What a server claims about the effects of a tool. Nothing may be decided by it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolClaims {
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// It may destroy something.
    pub destructive: Option<bool>,
    /// A repeated call has no further effect.
    pub idempotent: Option<bool>,
    /// It reaches things outside this machine.
    pub open_world: Option<bool>,
}

impl From<ToolClaims> for ToolHints {
    fn from(claims: ToolClaims) -> Self {
        let ToolClaims { read_only, destructive, idempotent, open_world } = claims;
        Self { read_only, destructive, idempotent, open_world }
    }
}

impl From<Tool> for OfferedTool {
    fn from(tool: Tool) -> Self {
        let claims = tool.annotations.as_ref().map(|hints| ToolClaims {
            read_only: hints.read_only_hint,
            destructive: hints.destructive_hint,
            idempotent: hints.idempotent_hint,
            open_world: hints.open_world_hint,
        });
        let title = tool.title.or_else(|| tool.annotations.and_then(|hints| hints.title));
        Self {
            name: tool.name.into_owned(),
            title,
            description: tool.description.map(|text| text.into_owned()).unwrap_or_default(),
            parameters: Value::Object((*tool.input_schema).clone()),
            output: tool.output_schema.map(|schema| Value::Object((*schema).clone())),
            claims: claims.unwrap_or_default(),
        }
    }
}
