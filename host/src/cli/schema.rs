//! `sallyport schema`: the published formats for programs.

use sallyport_runtime::config;
use schemars::schema_for;
use serde_json::Value;

use super::{
    args::SchemaSubject,
    events::{JsonEventLine, JsonRunResult},
    exit::ExitStatus,
    output::CliOutput,
};

/// Prints a JSON Schema.
pub(super) fn print_schema(of: SchemaSubject, out: &CliOutput) -> ExitStatus {
    let schema: Value = match of {
        SchemaSubject::Events => schema_for!(JsonEventLine<'static>).into(),
        SchemaSubject::Result => schema_for!(JsonRunResult).into(),
        SchemaSubject::Config => config::config_schema(),
    };
    out.print_json(&schema);
    ExitStatus::Done
}
