//! `sallyport schema`: the published formats for programs.

use clap::ValueEnum;
use sallyport_runtime::config;
use schemars::schema_for;
use serde_json::Value;

use super::{
    events::{JsonEventLine, JsonRunResult},
    exit::ExitStatus,
    output::CliOutput,
};

/// Data formats with a published schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum SchemaSubject {
    /// A line of `run --output jsonl`
    Events,
    /// The answer of `run --output json`
    Result,
    /// The configuration file
    Config,
}

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
