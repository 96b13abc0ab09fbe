//! The flags of `sallyport session`.

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use crate::cli::args::{FileArgs, ModelArgs, OutputArgs};

#[derive(Debug, Subcommand)]
pub(in super::super) enum SessionCommand {
    #[command(flatten)]
    Kept(KeptCommand),
    /// Go on with a session, as `chat --session ID` does
    Resume {
        /// The session; the start of its id is enough
        id: String,
        #[command(flatten)]
        model: ModelArgs,
        #[command(flatten)]
        files: FileArgs,
    },
}

/// What is done with sessions without talking in them.
#[derive(Debug, Subcommand)]
pub(in super::super) enum KeptCommand {
    /// List the sessions that are kept, the one that was used last first
    List {
        /// Only those that were begun in this folder
        #[arg(long)]
        here: bool,
        /// At most so many
        #[arg(short = 'n', long, value_name = "N")]
        number: Option<usize>,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Show what was said and done in a session
    Show {
        /// The session; the start of its id is enough
        id: String,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Find what was said in any session
    Search {
        /// All of these words; "several words" in quotation marks are found as they are
        #[arg(required = true, value_name = "WORDS")]
        words: Vec<String>,
        /// At most so many places
        #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
        number: usize,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Begin a session with what was said in another one, which stays as it is
    Fork {
        /// The session; the start of its id is enough
        id: String,
        /// Up to this turn; all of it when absent
        #[arg(long, value_name = "N")]
        turn: Option<usize>,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Print a session as a document
    Export {
        /// The session; the start of its id is enough
        id: String,
        /// The form of the document
        #[arg(long, value_enum, default_value_t = ExportFormat::Markdown)]
        format: ExportFormat,
    },
    /// Remove sessions for good
    Remove {
        /// The sessions; the starts of their ids are enough
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        #[command(flatten)]
        consent: YesArgs,
    },
    /// Remove the sessions that have had their time, as the configuration says
    Prune {
        #[command(flatten)]
        consent: YesArgs,
    },
}

#[derive(Debug, Clone, Copy, ClapArgs)]
pub(in super::super) struct YesArgs {
    /// Do not ask
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
