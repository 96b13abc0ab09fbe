//! `sallyport memory`: memories of earlier conversations, which the memory `vector-db` uses.

use clap::Subcommand;
use sallyport_contract::LOCAL_USER;
use sallyport_runtime::config::ConfigFlags;
use sallyport_store::{HostStore, MemorySelection, StoredMemory};
use sallyport_terminal::listing::ListRow;
use serde_json::{Value, json};

use super::{
    args::{OutputArgs, OutputFormat},
    exit::{CommandFailure, ExitStatus},
    name_kind::NameKind,
    output::CliOutput,
    session::format_utc_time,
    setup,
};

/// Most memories that are searched for a session, which is as many as are stored.
const LISTED_MAX: usize = 20_000;

/// Most characters of a memory in a list. JSON output contains all of it.
const TEXT_CHARS_MAX: usize = 300;

// Commands for memories.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(super) enum MemoryCommand {
    /// List the memories, newest first
    #[command(visible_alias = "ls")]
    List {
        /// Only memories of this session; the start of its ID is enough
        #[arg(long, value_name = "ID", add = NameKind::Session)]
        session: Option<String>,
        /// At most so many
        #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
        number: usize,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Search the memories
    Search {
        /// The words to find, all of them; "a phrase" in quotation marks
        #[arg(required = true, value_name = "WORDS")]
        words: Vec<String>,
        /// At most so many
        #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
        number: usize,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Delete memories; the sessions stay
    Forget {
        /// The numbers of the memories, as the list has them
        #[arg(required_unless_present_any = ["all", "session"], value_name = "NUMBER")]
        ids: Vec<u64>,
        /// All that comes from this session and no other; the start of its id is enough
        #[arg(long, value_name = "ID", conflicts_with_all = ["ids", "all"], add = NameKind::Session)]
        session: Option<String>,
        /// Everything
        #[arg(long, conflicts_with = "ids")]
        all: bool,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

pub(super) async fn run_memory_command(
    flags: &ConfigFlags,
    command: &MemoryCommand,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let settings = setup::read_settings(flags)?;
    let store = setup::open_store(&settings)?;
    match command {
        MemoryCommand::List { session, number, output } => {
            let memories = list_memories(&store, session.as_deref(), *number).await?;
            print_memories(&memories, output.output, "Nothing is remembered.", out);
            Ok(ExitStatus::Done)
        }
        MemoryCommand::Search { words, number, output } => {
            let found = store.memories.search(LOCAL_USER, &words.join(" "), *number).await?;
            print_memories(&found, output.output, "Nothing is found.", out);
            Ok(if found.is_empty() { ExitStatus::Failed } else { ExitStatus::Done })
        }
        MemoryCommand::Forget { ids, session, all, yes } => {
            let count = match (session, all) {
                (Some(session), _) => forget_session_memories(&store, session, *yes, out).await?,
                (None, true) => forget_all_memories(&store, *yes, out).await?,
                (None, false) => {
                    let which = MemorySelection::Ids(ids.clone());
                    Some(store.memories.forget(LOCAL_USER, which).await?)
                }
            };
            Ok(report_forgotten(count, out))
        }
    }
}

async fn list_memories(
    store: &HostStore,
    session: Option<&str>,
    number: usize,
) -> Result<Vec<StoredMemory>, CommandFailure> {
    let count_max = if session.is_some() { LISTED_MAX } else { number };
    let mut memories = store.memories.list_newest(LOCAL_USER, count_max).await?;
    if let Some(session) = session {
        memories.retain(|memory| memory.session_id.starts_with(session));
        memories.truncate(number);
    }
    Ok(memories)
}

/// Deletes the memories of the one session whose id starts with `id`. The session itself may have
/// been removed.
async fn forget_session_memories(
    store: &HostStore,
    id: &str,
    yes: bool,
    out: &CliOutput,
) -> Result<Option<usize>, CommandFailure> {
    let memories = list_memories(store, Some(id), LISTED_MAX).await?;
    let Some(first) = memories.first() else { return Ok(Some(0)) };
    let session = &first.session_id;
    if let Some(other) = memories.iter().find(|memory| memory.session_id != *session) {
        let message = format!("{id:?} could be {session} or {}", other.session_id);
        return Err(
            CommandFailure::new(ExitStatus::Usage, message).with_hint("type more of the ID")
        );
    }
    if !yes && !setup::ask_confirmation(&format!("Delete the memories of session {session}?"), out)?
    {
        return Ok(None);
    }
    Ok(Some(store.memories.forget(LOCAL_USER, MemorySelection::Session(session.clone())).await?))
}

async fn forget_all_memories(
    store: &HostStore,
    yes: bool,
    out: &CliOutput,
) -> Result<Option<usize>, CommandFailure> {
    if !yes && !setup::ask_confirmation("Delete all memories?", out)? {
        return Ok(None);
    }
    Ok(Some(store.memories.forget(LOCAL_USER, MemorySelection::All).await?))
}

/// Reports the number of deleted memories, or nothing if the user declined.
fn report_forgotten(count: Option<usize>, out: &CliOutput) -> ExitStatus {
    match count {
        None => ExitStatus::Done,
        Some(0) => {
            out.print_note("There is no such memory.");
            ExitStatus::Failed
        }
        Some(1) => {
            out.print_line("1 memory forgotten.");
            ExitStatus::Done
        }
        Some(count) => {
            out.print_line(&format!("{count} memories forgotten."));
            ExitStatus::Done
        }
    }
}

fn print_memories(memories: &[StoredMemory], format: OutputFormat, none: &str, out: &CliOutput) {
    if format == OutputFormat::Json {
        return out.print_json(&memories.iter().map(memory_json).collect());
    }
    out.print_list(&memories.iter().map(memory_row).collect::<Vec<_>>());
    if memories.is_empty() {
        out.print_note(none);
    }
}

fn memory_row(memory: &StoredMemory) -> ListRow {
    let StoredMemory { id, at_ms, session_id, turn, text, .. } = memory;
    let place = match turn {
        0 => format!("{session_id}, from the start"),
        turn => format!("{session_id}, turn {turn}"),
    };
    let cut = text.char_indices().nth(TEXT_CHARS_MAX);
    let shown = cut.map_or(text.clone(), |(end, _)| format!("{}…", &text[..end]));
    ListRow::new([id.to_string(), format_utc_time(*at_ms), place]).with_below([shown])
}

fn memory_json(memory: &StoredMemory) -> Value {
    json!({
        "id": memory.id,
        "text": memory.text,
        "session_id": memory.session_id,
        "turn": memory.turn,
        "kind": memory.kind.as_str(),
        "at_ms": memory.at_ms,
        "embedder": memory.embedder,
    })
}
