//! The flags of the audit commands, parsed by clap.

use std::{num::NonZeroUsize, path::PathBuf};

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use crate::cli::{
    args::{OutputArgs, row_count},
    name_kind::NameKind,
};

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(in crate::cli) enum AuditCommand {
    /// Show records, the newest last
    Show(AuditShowArgs),
    /// Write a report about the records as one HTML page
    Report(AuditReportArgs),
    /// Check that no record was changed, removed, added or moved
    Verify {
        /// The head that an earlier check printed; the audit must still contain it
        #[arg(long, value_name = "HEX")]
        head: Option<String>,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Remove old records; the rest stays verifiable
    Prune {
        /// A time such as 2026-01-31T12:00:00Z, a date, or an age such as 2160h
        #[arg(long, value_name = "TIME")]
        before: String,
        /// Do not ask for confirmation
        #[arg(long)]
        yes: bool,
    },
}

// Selects records.
#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct AuditFilterArgs {
    /// Only records about this plugin
    #[arg(long, add = NameKind::Plugin)]
    pub(super) plugin: Option<String>,
    /// Only records about tools of this name
    #[arg(long)]
    pub(super) tool: Option<String>,
    /// Only denied calls, and calls that were refused something while they ran
    #[arg(long)]
    pub(super) denied: bool,
    /// Only calls with this outcome: completed, failed, denied, invalid-arguments, timed-out,
    /// cancelled
    #[arg(long)]
    pub(super) outcome: Option<String>,
    /// Only this decision: allow or deny
    #[arg(long)]
    pub(super) decision: Option<String>,
    /// Only records of this kind: decision, call, policy, trouble, checkpoint
    #[arg(long)]
    pub(super) kind: Option<String>,
    /// Only records of this session
    #[arg(long, add = NameKind::Session)]
    pub(super) session: Option<String>,
    /// Only records of calls for this user
    #[arg(long, value_name = "NAME")]
    pub(super) user: Option<String>,
    /// Only records since this time: 2026-01-31T12:00:00Z, 2026-01-31 (UTC), or an age such as 90m
    /// or 12h
    #[arg(long, value_name = "TIME")]
    pub(super) since: Option<String>,
    /// Only records until this time
    #[arg(long, value_name = "TIME")]
    pub(super) until: Option<String>,
    /// Only the newest N records
    #[arg(short = 'n', long, value_name = "N", value_parser = row_count)]
    pub(super) number: Option<NonZeroUsize>,
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct AuditShowArgs {
    #[command(flatten)]
    pub(super) filter: AuditFilterArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t = RecordFormat::Text)]
    pub(super) output: RecordFormat,
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct AuditReportArgs {
    /// The file to write; it needs nothing but a browser
    #[arg(long, value_name = "FILE")]
    pub(super) html: PathBuf,
    /// Replace the file if it exists
    #[arg(long)]
    pub(super) force: bool,
    #[command(flatten)]
    pub(super) filter: AuditFilterArgs,
}

/// How records are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum RecordFormat {
    /// For people
    Text,
    /// For programs: one JSON object per line
    #[value(alias = "jsonl")]
    Json,
}
