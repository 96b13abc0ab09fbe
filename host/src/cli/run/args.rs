//! The flags of `sallyport run`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

use crate::cli::args::{FileArgs, ModelArgs, SessionArgs};

/// Arguments whose values come from the recording.
const NOT_WITH_REPLAY: [&str; 19] = [
    "prompt",
    "attach",
    "audio",
    "record",
    "session",
    "continue",
    "ephemeral",
    "model",
    "provider",
    "no_stream",
    "speak",
    "system",
    "guide",
    "max_turns",
    "max_calls",
    "max_tokens",
    "max_cost",
    "timeout",
    "emit_needed_grants",
];

#[derive(Debug, ClapArgs)]
pub(in super::super) struct RunArgs {
    /// The question; piped text is added below it
    #[arg(value_name = "PROMPT")]
    pub(in super::super) prompt: Vec<String>,

    #[command(flatten)]
    pub(in super::super) model: ModelArgs,

    #[command(flatten)]
    pub(in super::super) session: SessionArgs,

    #[command(flatten)]
    pub(in super::super) files: FileArgs,

    /// Output format
    #[arg(long, value_enum, default_value_t = RunFormat::Text)]
    pub(in super::super) output: RunFormat,

    /// Record the run to a new file, for --replay
    #[arg(long, value_name = "FILE", conflicts_with_all = ["session", "continue"])]
    pub(in super::super) record: Option<PathBuf>,

    /// Replay a recording, without a model, a plugin or a network
    #[arg(long, value_name = "FILE", conflicts_with_all = NOT_WITH_REPLAY)]
    pub(in super::super) replay: Option<PathBuf>,

    /// End with code 7 if a tool call did not complete
    #[arg(long)]
    pub(in super::super) fail_on_tool_error: bool,

    /// Print the policy that denied calls need, instead of the answer
    #[arg(long, conflicts_with = "output")]
    pub(in super::super) emit_needed_grants: bool,
}

/// The output format of `run`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in super::super) enum RunFormat {
    /// The answer
    Text,
    /// One object with the answer and all that led to it
    Json,
    /// One event per line, as it happens
    Jsonl,
}
