//! `sallyport schema`: the published formats for programs.

use sallyport_runtime::config;
use schemars::schema_for;
use serde_json::Value;

use super::{
    args::SchemaOf,
    events::{Line, Summary},
    exit::Exit,
    output::Output,
};

/// Prints a JSON Schema.
pub(super) fn schema(of: SchemaOf, out: &Output) -> Exit {
    let schema: Value = match of {
        SchemaOf::Events => schema_for!(Line).into(),
        SchemaOf::Result => schema_for!(Summary).into(),
        SchemaOf::Config => config::config_schema(),
    };
    out.json(&schema);
    Exit::Done
}
