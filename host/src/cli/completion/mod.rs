//! Completions: the scripts of `sallyport completions`, and the words that they ask for.
//!
//! At each Tab, the script of a shell runs `sallyport __complete SHELL INDEX -- WORD…`. The answer
//! has one candidate per line, or [`PATHS`] alone if the shell itself should complete a path. It is
//! made from files that are there: nothing is compiled, fetched or created. An error means that
//! there are no candidates, because a message would end up in the middle of the user's line.

mod names;

use std::{env, ffi::OsString};

use clap::{Arg, Command, ValueHint};
use clap_complete::{
    ArgValueCandidates, CompletionCandidate, Shell,
    engine::{self},
};
use sallyport_contract::text;

use super::{exit::ExitStatus, help, name_kind::NameKind, output::CliOutput};

/// The first argument of a request for candidates. It is not a command, since no user types it.
const REQUEST: &str = "__complete";

/// Answer for an argument that is a path.
const PATHS: &str = ":paths";

/// Most characters of the explanation next to a candidate. Shells show them in columns.
const NOTE_CHARS_MAX: usize = 60;

/// The scripts that ask for candidates.
const BASH_SCRIPT: &str = include_str!("bash.sh");
const ZSH_SCRIPT: &str = include_str!("zsh.sh");
const FISH_SCRIPT: &str = include_str!("script.fish");

/// Prints the completion script of a shell. Those of Elvish and PowerShell know no names.
pub(super) fn print_script(shell: Shell, out: &CliOutput) -> ExitStatus {
    let mut script = Vec::new();
    match shell {
        Shell::Bash => script.extend_from_slice(BASH_SCRIPT.as_bytes()),
        Shell::Zsh => script.extend_from_slice(ZSH_SCRIPT.as_bytes()),
        Shell::Fish => script.extend_from_slice(FISH_SCRIPT.as_bytes()),
        _ => clap_complete::generate(shell, &mut help::command(), "sallyport", &mut script),
    }
    out.print_generated(&script);
    ExitStatus::Done
}

/// Prints the candidates if this process was started to do so. Returns whether it was.
pub(super) fn print_if_asked(out: &CliOutput) -> bool {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    if arguments.first().is_none_or(|first| first != REQUEST) {
        return false;
    }
    if let Some(request) = CompletionRequest::parse(&arguments[1..]) {
        out.print_generated(request.answer().as_bytes());
    }
    true
}

/// A line to complete.
#[derive(Debug, PartialEq, Eq)]
struct CompletionRequest {
    shell: Shell,
    /// The words up to the one to complete, which may be empty. The first is the program.
    words: Vec<String>,
    /// The part of the last word in front of the piece that the shell replaces.
    kept_prefix: String,
}

impl CompletionRequest {
    /// Parses `SHELL INDEX -- WORD…`.
    fn parse(arguments: &[OsString]) -> Option<Self> {
        let words: Option<Vec<&str>> = arguments.iter().map(|word| word.to_str()).collect();
        let words = words?;
        let [shell, index, "--", words @ ..] = words.as_slice() else { return None };
        let (shell, index): (Shell, usize) = (shell.parse().ok()?, index.parse().ok()?);
        let mut words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        words.resize(index.checked_add(1)?.min(words.len() + 1), String::new());
        let kept_prefix = match shell {
            Shell::Bash => join_split_words(&mut words),
            _ => String::new(),
        };
        Some(Self { shell, words: inner_command(words), kept_prefix })
    }

    /// The candidates, one per line.
    fn answer(self) -> String {
        let last = self.words.len() - 1;
        let is_flag = self.words[last].starts_with('-');
        let arguments = self.words.iter().map(OsString::from).collect();
        let mut command = with_names(help::complete_command(), &self.words);
        let found = engine::complete(&mut command, arguments, last, None).unwrap_or_default();
        let mut found: Vec<(String, String)> = found.iter().filter_map(candidate_text).collect();
        // Flags are offered where nothing else is, and to users who begin to type one.
        if !is_flag && found.iter().any(|(value, _)| !value.starts_with('-')) {
            found.retain(|(value, _)| !value.starts_with('-'));
        }
        if found.iter().any(|(value, _)| value == PATHS) {
            return format!("{PATHS}\n");
        }
        found.iter().filter_map(|candidate| self.answer_line(candidate)).collect()
    }

    fn answer_line(&self, (value, note): &(String, String)) -> Option<String> {
        let value = value.strip_prefix(&self.kept_prefix)?;
        Some(match self.shell {
            Shell::Zsh if !note.is_empty() => format!("{}:{note}\n", value.replace(':', "\\:")),
            Shell::Zsh => format!("{}\n", value.replace(':', "\\:")),
            Shell::Fish => format!("{value}\t{note}\n"),
            _ => format!("{value}\n"),
        })
    }
}

/// The value of a candidate and its explanation. Returns `None` for what could harm a line.
fn candidate_text(candidate: &CompletionCandidate) -> Option<(String, String)> {
    let value = candidate.get_value().to_str()?;
    let note = candidate.get_help().map(ToString::to_string).unwrap_or_default();
    let note = note.lines().next().unwrap_or_default();
    let is_safe = !value.chars().any(|character| character.is_control());
    is_safe.then(|| (value.to_owned(), text::escape_excerpt(note, NOTE_CHARS_MAX)))
}

/// Joins what Bash splits: it takes `=` and `:` for the ends of words, so `--model=gpt` has three.
/// Returns the part of the last word that Bash keeps.
fn join_split_words(words: &mut Vec<String>) -> String {
    let mut joined: Vec<String> = Vec::new();
    let mut kept_prefix = String::new();
    let mut is_open = false;
    for word in words.drain(..) {
        let is_separator = word == ":"
            || (word == "=" && joined.last().is_some_and(|flag| flag.starts_with("--")));
        match joined.last_mut() {
            Some(last) if is_separator || is_open => {
                kept_prefix.clone_from(last);
                last.push_str(&word);
                if is_separator {
                    kept_prefix.clone_from(last);
                }
            }
            _ => {
                kept_prefix.clear();
                joined.push(word);
            }
        }
        is_open = is_separator;
    }
    *words = joined;
    kept_prefix
}

/// The command line that `policy learn PLUGIN -- COMMAND…` runs, if the cursor is in it.
fn inner_command(words: Vec<String>) -> Vec<String> {
    let is_learn = words.windows(2).any(|pair| pair == ["policy", "learn"]);
    match words.iter().position(|word| word == "--") {
        Some(end) if is_learn && end + 1 < words.len() => {
            words.iter().take(1).chain(&words[end + 1..]).cloned().collect()
        }
        _ => words,
    }
}

/// Adds to the definition of the command line where the values of its arguments come from.
fn with_names(command: Command, words: &[String]) -> Command {
    let add = |argument: Arg| {
        if let Some(&kind) = argument.get::<NameKind>() {
            let words = words.to_vec();
            return argument.add(ArgValueCandidates::new(move || kind.candidates(&words)));
        }
        match argument.get_value_hint() {
            ValueHint::Unknown | ValueHint::Other => argument,
            _ => argument.add(ArgValueCandidates::new(|| vec![CompletionCandidate::new(PATHS)])),
        }
    };
    command.mut_args(add).mut_subcommands(|command| with_names(command, words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Option<CompletionRequest> {
        CompletionRequest::parse(&arguments.iter().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn words_that_bash_splits_are_joined() {
        let rows: [(&[&str], &[&str], &str); 6] = [
            (&["sallyport", "ch"], &["sallyport", "ch"], ""),
            (
                &["sallyport", "chat", "--model", "=", "of"],
                &["sallyport", "chat", "--model=of"],
                "--model=",
            ),
            (
                &["sallyport", "chat", "--model", "="],
                &["sallyport", "chat", "--model="],
                "--model=",
            ),
            (
                &["sallyport", "chat", "-m", "plugin", ":", "a"],
                &["sallyport", "chat", "-m", "plugin:a"],
                "plugin:",
            ),
            (
                &["sallyport", "chat", "--model", "=", "a", "x"],
                &["sallyport", "chat", "--model=a", "x"],
                "",
            ),
            (&["sallyport", "=", "x"], &["sallyport", "=", "x"], ""),
        ];
        for (words, joined, kept) in rows {
            let index = (words.len() - 1).to_string();
            let request = parse(&[&["bash", &index, "--"], words].concat()).unwrap();
            assert_eq!(
                (request.words.as_slice(), request.kept_prefix.as_str()),
                (&joined.iter().map(ToString::to_string).collect::<Vec<_>>()[..], kept)
            );
        }
    }

    #[test]
    fn a_request_that_is_not_one_is_refused() {
        for no in [
            &["bash"][..],
            &["bash", "1"],
            &["tcsh", "1", "--", "a"],
            &["bash", "x", "--", "a"],
            &["bash", "-1", "--", "a"],
        ] {
            assert_eq!(parse(no), None, "{no:?}");
        }
        let far = parse(&["zsh", "18446744073709551614", "--", "sallyport"]).unwrap();
        assert_eq!(far.words, ["sallyport", ""]);
    }

    #[test]
    fn the_command_behind_learn_is_completed_as_its_own() {
        let words = ["sallyport", "policy", "learn", "weather", "--", "ca"].map(str::to_owned);
        assert_eq!(inner_command(words.to_vec()), ["sallyport", "ca"]);
        let words = ["sallyport", "policy", "learn", "--"].map(str::to_owned);
        assert_eq!(inner_command(words.to_vec()), words);
    }

    /// A new argument that names something has to say what it names.
    #[test]
    fn arguments_with_the_name_of_something_are_completed() {
        fn check(command: &Command, path: &str) {
            for argument in command.get_arguments() {
                let id = argument.get_id().as_str();
                let names_something = ["plugin", "tool", "session", "model", "provider", "guide"];
                let is_free = path.ends_with("setup")
                    || path.ends_with("audit show")
                    || path.ends_with("audit report");
                if names_something.contains(&id) && !(is_free && ["tool", "model"].contains(&id)) {
                    assert!(argument.get::<NameKind>().is_some(), "{path} {id}");
                }
            }
            command
                .get_subcommands()
                .for_each(|sub| check(sub, &format!("{path} {}", sub.get_name())));
        }
        check(&help::complete_command(), "");
    }
}
