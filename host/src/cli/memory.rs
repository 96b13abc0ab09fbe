//! `sallyport memory`: memories of earlier conversations, which the memory `vector-db` uses.

use clap::Subcommand;
use sallyport_contract::text;
use sallyport_runtime::{config::ConfigFlags, services::USER};
use sallyport_store::{HostStore, MemorySelection, StoredMemory};
use serde_json::{Value, json};

use super::{
    args::{Format, OutputArgs},
    compose,
    exit::{Exit, Failure},
    output::Output,
    session::moment,
};

/// Most memories that are searched for a session, which is as many as are stored.
const LISTED_MAX: usize = 20_000;

/// Most characters of a memory in a list. JSON output contains all of it.
const TEXT_CHARS_MAX: usize = 300;

/// Commands for memories.
#[derive(Debug, Subcommand)]
pub(super) enum MemoryCommand {
    /// List the memories, newest first
    List {
        /// Only memories of this session; the start of its ID is enough
        #[arg(long, value_name = "ID")]
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
        #[arg(long, value_name = "ID", conflicts_with_all = ["ids", "all"])]
        session: Option<String>,
        /// Everything
        #[arg(long, conflicts_with = "ids")]
        all: bool,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

pub(super) fn memory(
    flags: &ConfigFlags,
    command: &MemoryCommand,
    out: &Output,
) -> Result<Exit, Failure> {
    let settings = compose::settings(flags)?;
    let store = compose::store(&settings)?;
    match command {
        MemoryCommand::List { session, number, output } => {
            let memories = listed(&store, session.as_deref(), *number)?;
            show(&memories, output.output, "Nothing is remembered.", out);
            Ok(Exit::Done)
        }
        MemoryCommand::Search { words, number, output } => {
            let found = store.memories().search(USER, &words.join(" "), *number)?;
            show(&found, output.output, "Nothing is found.", out);
            Ok(if found.is_empty() { Exit::Failed } else { Exit::Done })
        }
        MemoryCommand::Forget { ids, session, all, yes } => {
            let count = match (session, all) {
                (Some(session), _) => of_session(&store, session, *yes, out)?,
                (None, true) => everything(&store, *yes, out)?,
                (None, false) => Some(store.memories().forget(USER, MemorySelection::Ids(ids))?),
            };
            Ok(told(count, out))
        }
    }
}

fn listed(
    store: &HostStore,
    session: Option<&str>,
    number: usize,
) -> Result<Vec<StoredMemory>, Failure> {
    let count_max = if session.is_some() { LISTED_MAX } else { number };
    let mut memories = store.memories().list_newest(USER, count_max)?;
    if let Some(session) = session {
        memories.retain(|memory| memory.session_id.starts_with(session));
        memories.truncate(number);
    }
    Ok(memories)
}

/// Deletes the memories of the one session whose id starts with `id`. The session itself may have
/// been removed.
fn of_session(
    store: &HostStore,
    id: &str,
    yes: bool,
    out: &Output,
) -> Result<Option<usize>, Failure> {
    let memories = listed(store, Some(id), LISTED_MAX)?;
    let Some(first) = memories.first() else { return Ok(Some(0)) };
    let session = &first.session_id;
    if let Some(other) = memories.iter().find(|memory| memory.session_id != *session) {
        let message = format!("{id:?} could be {session} or {}", other.session_id);
        return Err(Failure::new(Exit::Usage, message).with_hint("type more of the ID"));
    }
    if !yes && !compose::confirms(&format!("Delete the memories of session {session}?"), out)? {
        return Ok(None);
    }
    Ok(Some(store.memories().forget(USER, MemorySelection::Session(session))?))
}

fn everything(store: &HostStore, yes: bool, out: &Output) -> Result<Option<usize>, Failure> {
    if !yes && !compose::confirms("Delete all memories?", out)? {
        return Ok(None);
    }
    Ok(Some(store.memories().forget(USER, MemorySelection::All)?))
}

/// Reports the number of deleted memories, or nothing if the user declined.
fn told(count: Option<usize>, out: &Output) -> Exit {
    match count {
        None => Exit::Done,
        Some(0) => {
            out.note("There is no such memory.");
            Exit::Failed
        }
        Some(1) => {
            out.line("1 memory forgotten.");
            Exit::Done
        }
        Some(count) => {
            out.line(&format!("{count} memories forgotten."));
            Exit::Done
        }
    }
}

fn show(memories: &[StoredMemory], format: Format, none: &str, out: &Output) {
    if format == Format::Json {
        return out.json(&memories.iter().map(about).collect());
    }
    for memory in memories {
        let StoredMemory { id, at_ms, session_id, .. } = memory;
        let place = match memory.turn {
            0 => format!("{session_id}, from the start"),
            turn => format!("{session_id}, turn {turn}"),
        };
        out.line(&format!("{id}  {}  {place}", moment(*at_ms)));
        let words = memory.text.replace('\n', " ");
        out.line(&format!("    {}", text::escape_excerpt(&words, TEXT_CHARS_MAX)));
    }
    if memories.is_empty() {
        out.note(none);
    }
}

fn about(memory: &StoredMemory) -> Value {
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
