//! Parses a line.

use std::path::PathBuf;

use sallyport_contract::{PluginName, text};

use super::{
    error::SlashError,
    table::{Entry, State, TABLE, find},
};

/// Most characters of a mistyped word that are quoted. A longer one gets no suggestion: no command
/// is this long, and the cost of a comparison is the product of both lengths.
const WORD_CHARS_MAX: usize = 32;

/// The meaning of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// The line is blank.
    Nothing,
    /// A message for the model.
    Text(String),
    /// A command for the program.
    Command(Command),
}

/// A slash command with its argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Show the list of commands, or more about one.
    Help(Option<&'static Entry>),
    /// Show the tools, or only those that match some words.
    Tools(Option<String>),
    /// Show the plugins, or one.
    Plugins(Option<PluginName>),
    /// Show what the policy grants, to all plugins or to one.
    Grants(Option<PluginName>),
    /// Show the models, or switch to another one.
    Model(Option<String>),
    /// Show this session.
    Session,
    /// Start a new session.
    New,
    /// Remove the last turn.
    Undo,
    /// Remove the last turn and send its input again.
    Retry,
    /// Write the next message in the user's editor, starting with this text.
    Edit(String),
    /// Write the session to this file, or to one with a generated name.
    Save(Option<PathBuf>),
    /// Show tokens and cost.
    Cost,
    /// Show which part of the session is sent.
    Memory,
    /// Show which guide describes the assistant.
    Guide,
    /// Pin the last message, or a text.
    Pin(Option<String>),
    /// Summarise old turns now.
    Compact,
    /// Leave the program.
    Quit,
}

/// Parses a line.
///
/// # Errors
///
/// The line looks like a command but is not one, is not available in this state, or has an invalid
/// argument.
pub fn parse(line: &str, state: State) -> Result<Line, SlashError> {
    let line = line.trim();
    let Some(rest) = line.strip_prefix('/') else {
        return Ok(if line.is_empty() { Line::Nothing } else { Line::Text(line.to_owned()) });
    };
    if let Some(after) = rest.strip_prefix('/') {
        let is_comment = after.is_empty() || after.starts_with([' ', '\t', '\n', '/', '!']);
        return Ok(Line::Text(if is_comment { line } else { rest }.to_owned()));
    }
    let (word, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if word.contains('/') {
        return Ok(Line::Text(line.to_owned()));
    }
    let entry = find(word).ok_or_else(|| unknown(word))?;
    if !entry.fits(state) {
        return Err(SlashError::Unfitting { name: entry.name, state });
    }
    command(entry, argument.trim()).map(Line::Command)
}

fn command(entry: &'static Entry, argument: &str) -> Result<Command, SlashError> {
    let given = || (!argument.is_empty()).then(|| argument.to_owned());
    let alone = |command| match argument {
        "" => Ok(command),
        _ => Err(SlashError::Unwanted { name: entry.name }),
    };
    match entry.name {
        "help" => help(argument),
        "tools" => Ok(Command::Tools(given())),
        "plugins" => plugin(argument).map(Command::Plugins),
        "grants" => plugin(argument).map(Command::Grants),
        "model" => Ok(Command::Model(given())),
        "session" => alone(Command::Session),
        "new" => alone(Command::New),
        "undo" => alone(Command::Undo),
        "retry" => alone(Command::Retry),
        "edit" => Ok(Command::Edit(argument.to_owned())),
        "save" => file(entry.name, argument).map(Command::Save),
        "cost" => alone(Command::Cost),
        "memory" => alone(Command::Memory),
        "guide" => alone(Command::Guide),
        "pin" => Ok(Command::Pin(given())),
        "compact" => alone(Command::Compact),
        "quit" => alone(Command::Quit),
        // Unreachable for entries of the table, because a test parses each of them.
        other => Err(unknown(other)),
    }
}

fn help(argument: &str) -> Result<Command, SlashError> {
    if argument.is_empty() {
        return Ok(Command::Help(None));
    }
    let word = argument.trim_start_matches('/');
    find(word).map(|entry| Command::Help(Some(entry))).ok_or_else(|| unknown(word))
}

fn plugin(argument: &str) -> Result<Option<PluginName>, SlashError> {
    if argument.is_empty() {
        return Ok(None);
    }
    let wrong = |_| SlashError::NoPlugin { text: text::escape_excerpt(argument, WORD_CHARS_MAX) };
    argument.parse().map(Some).map_err(wrong)
}

/// Takes the rest of the line as one path, so quotation marks are optional.
fn file(name: &'static str, argument: &str) -> Result<Option<PathBuf>, SlashError> {
    let Some(quote) = argument.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
        return Ok((!argument.is_empty()).then(|| argument.into()));
    };
    let inner = argument[1..].strip_suffix(quote).ok_or(SlashError::Unclosed { name })?;
    Ok((!inner.is_empty()).then(|| inner.into()))
}

fn unknown(word: &str) -> SlashError {
    SlashError::Unknown { word: text::escape_excerpt(word, WORD_CHARS_MAX), near: nearest(word) }
}

/// Returns the command that the user probably meant: one that begins with the word, or else the
/// most similar one.
fn nearest(word: &str) -> Option<&'static str> {
    if word.is_empty() || word.len() > WORD_CHARS_MAX {
        return None;
    }
    let word = word.to_ascii_lowercase();
    if let Some(entry) = TABLE.iter().find(|entry| entry.name.starts_with(&word)) {
        return Some(entry.name);
    }
    let known = TABLE.iter().flat_map(|entry| entry.words().map(move |known| (entry.name, known)));
    let distance = |known: &str| strsim::damerau_levenshtein(&word, known);
    known
        .filter(|(_, known)| distance(known) <= (known.len().max(word.len()) / 3).max(1))
        // Skip names of one letter, because they are similar to every short word.
        .filter(|(_, known)| known.len() > 1)
        .min_by_key(|(_, known)| distance(known))
        .map(|(name, _)| name)
}
