//! Completion with Tab: slash commands, their arguments, and files after an `@`.

use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use reedline::{Completer, CompletionResult, Span, Suggestion};
use sallyport_contract::text;

use crate::{
    attach::LocalFiles,
    slash::{self, CommandArgumentKind},
};

/// Most offers shown together. A longer list is narrowed by typing, not read.
const CANDIDATES_MAX: usize = 100;

/// Most entries of a folder that are read.
const ENTRIES_MAX: usize = 10_000;

/// Most characters of the explanation next to an offer.
const NOTE_CHARS_MAX: usize = 60;

/// The names that Tab completes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompletionNames {
    /// The tools, `plugin.tool`, each with its description.
    pub tools: Vec<(String, String)>,
    /// The names of the plugins.
    pub plugins: Vec<String>,
    /// The names of the models.
    pub models: Vec<String>,
}

/// A completion of the end of the typed text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CompletionCandidate {
    /// Byte offset at which it starts.
    pub(super) start: usize,
    /// The replacement text.
    pub(super) value: String,
    /// A short explanation.
    pub(super) note: String,
    /// Whether it is complete. A space may then follow.
    pub(super) is_complete: bool,
}

/// Lists the entries of a folder: each name, and whether it is a folder.
pub(super) type FolderLister<'a> = &'a dyn Fn(&Path) -> Vec<(String, bool)>;

/// Returns the completions for the end of a text.
pub(super) fn find_completions(
    before: &str,
    completion_names: &CompletionNames,
    folder_lister: FolderLister<'_>,
) -> Vec<CompletionCandidate> {
    let mut candidates = command_completions(before, completion_names, folder_lister)
        .unwrap_or_else(|| mention_completions(before, folder_lister).unwrap_or_default());
    candidates.truncate(CANDIDATES_MAX);
    candidates
}

/// Returns `None` unless the text is a slash command whose argument can be completed.
fn command_completions(
    before: &str,
    completion_names: &CompletionNames,
    folder_lister: FolderLister<'_>,
) -> Option<Vec<CompletionCandidate>> {
    let typed = before.trim_start().strip_prefix('/')?;
    let start = before.len() - typed.len();
    let Some((word, argument)) = typed.split_once(char::is_whitespace) else {
        let is_command = !typed.contains('/');
        return is_command.then(|| name_completions(start, typed, command_names()));
    };
    let argument = argument.trim_start();
    let start = before.len() - argument.len();
    let plain = |names: &[String]| names.iter().map(|n| (n.clone(), String::new())).collect();
    match slash::find_command(word)?.argument {
        CommandArgumentKind::Command => Some(name_completions(start, argument, command_names())),
        CommandArgumentKind::Tool => {
            Some(name_completions(start, argument, completion_names.tools.clone()))
        }
        CommandArgumentKind::Plugin => {
            Some(name_completions(start, argument, plain(&completion_names.plugins)))
        }
        CommandArgumentKind::Model => {
            Some(name_completions(start, argument, plain(&completion_names.models)))
        }
        CommandArgumentKind::File => Some(path_completions(start, argument, "", folder_lister)),
        CommandArgumentKind::Files => {
            Some(name_completions(start, argument, vec![("files".to_owned(), String::new())]))
        }
        CommandArgumentKind::None | CommandArgumentKind::Number => Some(Vec::new()),
        CommandArgumentKind::Text => None,
    }
}

fn command_names() -> Vec<(String, String)> {
    slash::TABLE.iter().map(|entry| (entry.name.to_owned(), entry.help.to_owned())).collect()
}

fn name_completions(
    start: usize,
    typed: &str,
    names: Vec<(String, String)>,
) -> Vec<CompletionCandidate> {
    let begins = |(name, _): &(String, String)| name.starts_with(typed) && is_plain_name(name);
    let to_candidate = |(value, note): (String, String)| CompletionCandidate {
        start,
        value,
        note: text::escape_excerpt(&note, NOTE_CHARS_MAX),
        is_complete: true,
    };
    names.into_iter().filter(begins).map(to_candidate).collect()
}

/// Returns `None` if the text does not end in a mention.
fn mention_completions(
    before: &str,
    folder_lister: FolderLister<'_>,
) -> Option<Vec<CompletionCandidate>> {
    let at = before.rfind('@').filter(|at| {
        let last = before[..*at].chars().next_back();
        last.is_none_or(|c| c.is_whitespace() || matches!(c, '(' | '[' | '{' | '<'))
    })?;
    let typed = &before[at + 1..];
    match typed.strip_prefix('"') {
        Some(quoted) if !quoted.contains('"') => {
            Some(path_completions(at, quoted, "@", folder_lister))
        }
        None if !typed.contains(char::is_whitespace) => {
            Some(path_completions(at, typed, "@", folder_lister))
        }
        _ => None,
    }
}

fn path_completions(
    start: usize,
    typed: &str,
    mark: &str,
    folder_lister: FolderLister<'_>,
) -> Vec<CompletionCandidate> {
    let (folder, prefix) = match typed.rfind('/') {
        Some(slash) => typed.split_at(slash + 1),
        None => ("", typed),
    };
    let mut names = folder_lister(Path::new(folder));
    names.retain(|(name, _)| {
        let shown = prefix.starts_with('.') || !name.starts_with('.');
        shown && name.starts_with(prefix) && is_plain_name(name)
    });
    names.sort();
    let to_candidate = |(name, is_folder): (String, bool)| CompletionCandidate {
        start,
        value: format!("{mark}{}", quote_path(&format!("{folder}{name}"), is_folder, mark)),
        note: String::new(),
        is_complete: !is_folder,
    };
    names.into_iter().map(to_candidate).collect()
}

/// A path as the user would type it. The quotation mark of a folder stays open for what follows.
fn quote_path(path: &str, is_folder: bool, mark: &str) -> String {
    let end = if is_folder { "/" } else { "" };
    if mark.is_empty()
        || !path.contains(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '\\'))
    {
        return format!("{path}{end}");
    }
    let escaped = path.replace('\\', "\\\\").replace('"', "\\\"");
    if is_folder { format!("\"{escaped}/") } else { format!("\"{escaped}\"") }
}

/// Whether a name can be shown and typed unchanged.
fn is_plain_name(name: &str) -> bool {
    text::escape_line(name) == name
}

/// The completer: the current vocabulary, and the folders on disk.
pub(super) struct TabCompleter {
    pub(super) completion_names: Arc<Mutex<CompletionNames>>,
    pub(super) local_files: LocalFiles,
}

impl TabCompleter {
    fn list_folder(&self, folder: &Path) -> Vec<(String, bool)> {
        let Ok(entries) = fs::read_dir(self.local_files.resolve_path(folder)) else {
            return Vec::new();
        };
        let entry = |entry: fs::DirEntry| {
            let is_folder = fs::metadata(entry.path()).is_ok_and(|metadata| metadata.is_dir());
            Some((entry.file_name().into_string().ok()?, is_folder))
        };
        entries.take(ENTRIES_MAX).flatten().filter_map(entry).collect()
    }
}

impl Completer for TabCompleter {
    fn complete(&mut self, line: &str, pos: usize) -> CompletionResult {
        let before = line.get(..pos).unwrap_or(line);
        let completion_names =
            self.completion_names.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let candidates =
            find_completions(before, &completion_names, &|folder| self.list_folder(folder));
        let suggestion = |to_candidate: CompletionCandidate| Suggestion {
            value: to_candidate.value,
            description: Some(to_candidate.note).filter(|note| !note.is_empty()),
            span: Span::new(to_candidate.start, before.len()),
            append_whitespace: to_candidate.is_complete,
            ..Suggestion::default()
        };
        CompletionResult::fresh(candidates.into_iter().map(suggestion).collect::<Vec<_>>())
    }
}
