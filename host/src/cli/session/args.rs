//! The flags of `sallyport session`.

use std::num::NonZeroUsize;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use crate::cli::{
    args::{FileArgs, ModelArgs, OutputArgs, row_count},
    name_kind::NameKind,
};

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(in super::super) enum SessionCommand {
    #[command(flatten)]
    Kept(StoredSessionCommand),
    /// Resume a session, like `chat --session ID`
    Resume {
        /// The session; the start of its id is enough
        #[arg(add = NameKind::Session)]
        id: String,
        #[command(flatten)]
        model: ModelArgs,
        #[command(flatten)]
        files: FileArgs,
    },
}

// Commands for stored sessions.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(in super::super) enum StoredSessionCommand {
    /// List the sessions, last used first
    #[command(visible_alias = "ls")]
    List {
        /// Only sessions that were started in this folder
        #[arg(long)]
        here: bool,
        /// At most so many
        #[arg(short = 'n', long, value_name = "N", value_parser = row_count)]
        number: Option<NonZeroUsize>,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Show what was said and done in a session
    Show {
        /// The session; the start of its id is enough
        #[arg(add = NameKind::Session)]
        id: String,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Search all sessions
    Search {
        /// The words to find, all of them; "a phrase" in quotation marks
        #[arg(required = true, value_name = "WORDS")]
        words: Vec<String>,
        /// Show at most N matches
        #[arg(short = 'n', long, value_name = "N", default_value = "20", value_parser = row_count)]
        number: NonZeroUsize,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Copy a session, or its first turns, to a new one
    Fork {
        /// The session; the start of its id is enough
        #[arg(add = NameKind::Session)]
        id: String,
        /// The last turn to copy; all turns by default
        #[arg(long, value_name = "N")]
        turn: Option<usize>,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Print a session as Markdown or JSON
    Export {
        /// The session; the start of its id is enough
        #[arg(add = NameKind::Session)]
        id: String,
        /// The form of the document
        #[arg(long, value_enum, default_value_t = ExportFormat::Markdown)]
        format: ExportFormat,
    },
    /// Delete sessions
    #[command(visible_aliases = ["rm", "delete"])]
    Remove {
        /// The sessions; the starts of their ids are enough
        #[arg(required = true, value_name = "ID", add = NameKind::Session)]
        ids: Vec<String>,
        #[command(flatten)]
        consent: ConfirmArgs,
    },
    /// Delete sessions that are beyond `keep` or `keep_max`
    Prune {
        #[command(flatten)]
        consent: ConfirmArgs,
    },
}

#[derive(Debug, Clone, Copy, ClapArgs)]
pub(in super::super) struct ConfirmArgs {
    /// Do not ask for confirmation
    #[arg(long)]
    pub(super) yes: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in super::super) enum ExportFormat {
    /// For people
    Markdown,
    /// For programs
    Json,
}
