//! Parses a line.

use std::path::PathBuf;

use sallyport_contract::{PluginName, text};

use super::{
    error::SlashError,
    foreign::foreign_word_command,
    table::{SlashCommandEntry, TABLE, find_command},
};

/// Most characters of a mistyped word that are quoted. A longer one gets no suggestion: no command
/// is this long, and the cost of a comparison is the product of both lengths.
const WORD_CHARS_MAX: usize = 32;

/// The meaning of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParsedInput {
    /// The line is blank.
    Blank,
    /// A message for the model.
    Text(String),
    /// A command for the program.
    Command(SlashCommand),
}

/// A slash command with its argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlashCommand {
    /// Show the list of commands, or more about one.
    Help(Option<&'static SlashCommandEntry>),
    /// Show the tools, or only those that match some words.
    Tools(Option<String>),
    /// Show the plugins, or one.
    Plugins(Option<PluginName>),
    /// Show what the policy grants, to all plugins or to one.
    Grants(Option<PluginName>),
    /// Show the accounts, or connect that of one plugin.
    Connect(Option<PluginName>),
    /// Show the models, or switch to another one.
    Model(Option<String>),
    /// Show the call with this number. The last one has number 1.
    Last(usize),
    /// Show this session.
    Session,
    /// Start a new session.
    New,
    /// Remove the last turn.
    Undo,
    /// Put back the files that the last call with changes changed.
    UndoFiles,
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
/// The words `exit`, `quit`, `bye`, `help` and `?` alone are commands too, because users of shells
/// and of other programs type them and no model can act on them.
///
/// # Errors
///
/// The line looks like a command but is not one, or has an invalid argument.
pub fn parse_line(line: &str) -> Result<ParsedInput, SlashError> {
    let line = line.trim();
    let Some(rest) = line.strip_prefix('/') else {
        return Ok(match line.to_ascii_lowercase().as_str() {
            "" => ParsedInput::Blank,
            "exit" | "quit" | "bye" => ParsedInput::Command(SlashCommand::Quit),
            "help" | "?" => ParsedInput::Command(SlashCommand::Help(None)),
            _ => ParsedInput::Text(line.to_owned()),
        });
    };
    if let Some(after) = rest.strip_prefix('/') {
        let is_comment = after.is_empty() || after.starts_with([' ', '\t', '\n', '/', '!']);
        return Ok(ParsedInput::Text(if is_comment { line } else { rest }.to_owned()));
    }
    let (word, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    if word.contains('/') {
        return Ok(ParsedInput::Text(line.to_owned()));
    }
    let entry = find_command(word).ok_or_else(|| unknown_command_error(word))?;
    parse_command(entry, argument.trim()).map(ParsedInput::Command)
}

fn parse_command(
    entry: &'static SlashCommandEntry,
    argument: &str,
) -> Result<SlashCommand, SlashError> {
    let given = || (!argument.is_empty()).then(|| argument.to_owned());
    let alone = |command| match argument {
        "" => Ok(command),
        _ => Err(SlashError::UnexpectedArgument(entry.name)),
    };
    match entry.name {
        "help" => parse_help(argument),
        "tools" => Ok(SlashCommand::Tools(given())),
        "plugins" => parse_plugin(argument).map(SlashCommand::Plugins),
        "grants" => parse_plugin(argument).map(SlashCommand::Grants),
        "connect" => parse_plugin(argument).map(SlashCommand::Connect),
        "model" => Ok(SlashCommand::Model(given())),
        "last" => parse_number(entry.name, argument).map(SlashCommand::Last),
        "session" => alone(SlashCommand::Session),
        "new" => alone(SlashCommand::New),
        "undo" if argument == "files" => Ok(SlashCommand::UndoFiles),
        "undo" => match argument {
            "" => Ok(SlashCommand::Undo),
            _ => Err(SlashError::NotFiles(entry.name)),
        },
        "retry" => alone(SlashCommand::Retry),
        "edit" => Ok(SlashCommand::Edit(argument.to_owned())),
        "save" => parse_file(entry.name, argument).map(SlashCommand::Save),
        "cost" => alone(SlashCommand::Cost),
        "memory" => alone(SlashCommand::Memory),
        "guide" => alone(SlashCommand::Guide),
        "pin" => Ok(SlashCommand::Pin(given())),
        "compact" => alone(SlashCommand::Compact),
        "quit" => alone(SlashCommand::Quit),
        // Unreachable for entries of the table, because a test parses each of them.
        other => Err(unknown_command_error(other)),
    }
}

fn parse_help(argument: &str) -> Result<SlashCommand, SlashError> {
    if argument.is_empty() {
        return Ok(SlashCommand::Help(None));
    }
    let word = argument.trim_start_matches('/');
    find_command(word)
        .map(|entry| SlashCommand::Help(Some(entry)))
        .ok_or_else(|| unknown_command_error(word))
}

fn parse_plugin(argument: &str) -> Result<Option<PluginName>, SlashError> {
    if argument.is_empty() {
        return Ok(None);
    }
    let wrong = |_| SlashError::InvalidPluginName(text::escape_excerpt(argument, WORD_CHARS_MAX));
    argument.parse().map(Some).map_err(wrong)
}

/// Reads a number from 1. Without one it is 1.
fn parse_number(name: &'static str, argument: &str) -> Result<usize, SlashError> {
    match argument {
        "" => Ok(1),
        _ => argument
            .parse()
            .ok()
            .filter(|number| *number > 0)
            .ok_or(SlashError::InvalidNumber(name)),
    }
}

/// Takes the rest of the line as one path, so quotation marks are optional.
fn parse_file(name: &'static str, argument: &str) -> Result<Option<PathBuf>, SlashError> {
    let Some(quote) = argument.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
        return Ok((!argument.is_empty()).then(|| argument.into()));
    };
    let inner = argument[1..].strip_suffix(quote).ok_or(SlashError::UnclosedQuote(name))?;
    Ok((!inner.is_empty()).then(|| inner.into()))
}

fn unknown_command_error(word: &str) -> SlashError {
    SlashError::Unknown {
        word: text::escape_excerpt(word, WORD_CHARS_MAX),
        near: nearest_command(word),
        foreign: foreign_word_command(word),
    }
}

/// Returns the command that the user probably meant: one that begins with the word, or else the
/// most similar one.
fn nearest_command(word: &str) -> Option<&'static str> {
    if word.is_empty() || word.len() > WORD_CHARS_MAX {
        return None;
    }
    let word = word.to_ascii_lowercase();
    if let Some(entry) = TABLE.iter().find(|entry| entry.name.starts_with(&word)) {
        return Some(entry.name);
    }
    let known =
        TABLE.iter().flat_map(|entry| entry.command_names().map(move |known| (entry.name, known)));
    let distance = |known: &str| strsim::damerau_levenshtein(&word, known);
    known
        .filter(|(_, known)| distance(known) <= (known.len().max(word.len()) / 3).max(1))
        // Skip names of one letter, because they are similar to every short word.
        .filter(|(_, known)| known.len() > 1)
        .min_by_key(|(_, known)| distance(known))
        .map(|(name, _)| name)
}
