//! Words that are not commands: each is answered with one line that names the right command.
//!
//! Many words come from other programs. clap would answer them with the command whose letters are
//! most similar, such as `serve` for `server`, so its tip is replaced here.

use std::{borrow::Cow, path::Path};

use clap::{
    Command,
    error::{ContextKind, ContextValue, Error, ErrorKind},
};
use sallyport_contract::text;
use sallyport_policy::source::nearest_match;

use super::{
    exit::{CommandFailure, ExitStatus},
    help,
};

/// Most characters of an unknown word that are quoted.
const WORD_CHARS_MAX: usize = 40;

/// Words of other programs, with what to do here instead.
struct ForeignWords {
    /// The command that they follow; empty for the program itself.
    parent: &'static str,
    words: &'static [&'static str],
    hint: &'static str,
}

const fn foreign(
    parent: &'static str,
    words: &'static [&'static str],
    hint: &'static str,
) -> ForeignWords {
    ForeignWords { parent, words, hint }
}

#[rustfmt::skip]
const FOREIGN_WORDS: &[ForeignWords] = &[
    foreign("", &["ls", "list"], "`sallyport tool list` lists the tools, `sallyport plugin list` the plugins"),
    foreign("", &["plugins"], "`sallyport plugin list` lists the plugins"),
    foreign("", &["tools"], "`sallyport tool list` lists the tools"),
    foreign("", &["models"], "`sallyport model list` lists the models"),
    foreign("", &["sessions", "history"], "`sallyport session list` lists the sessions"),
    foreign("", &["resume", "continue"], RESUME_HINT),
    foreign("", &["ask", "exec", "prompt", "query"], "`sallyport run PROMPT` asks one question"),
    foreign("", &["start", "repl"], "`sallyport chat` starts a conversation"),
    foreign("", &["server"], "`sallyport serve` serves many users over HTTP, `sallyport mcp` the tools to other programs, `sallyport acp` whole sessions to editors, `sallyport listen` takes input from webhooks"),
    foreign("", &["login", "auth", "init", "configure", "onboard"], "`sallyport setup` chooses a model and stores its key"),
    foreign("", &["approve", "approvals"], "`sallyport approval answer ID` answers a question of another program"),
    foreign("", &["logout"], "`sallyport config show --origin` shows where the key comes from, `sallyport setup` replaces it"),
    foreign("", &["check", "status"], "`sallyport doctor` checks the installation, `sallyport model check` tries the model"),
    foreign("", &["install", "add"], INSTALL_HINT),
    foreign("", &["remove", "uninstall"], REMOVE_HINT),
    foreign("", &["enable"], ENABLE_HINT),
    foreign("", &["disable", "deny"], DISABLE_HINT),
    foreign("", &["allow", "grant"], "`sallyport policy grant PLUGIN --allow TOOL` allows a tool, `sallyport help grants` explains the rest"),
    foreign("", &["permissions"], "`sallyport policy check` shows what each plugin may do"),
    foreign("", &["logs", "log"], "`sallyport audit show` shows every decision and call"),
    foreign("", &["undo"], "`sallyport chat --continue` continues the last session; /undo there removes the last turn"),
    foreign("", &["secrets"], "`sallyport secret list` lists the secrets"),
    foreign("", &["version"], "`sallyport --version` prints the version"),
    foreign("plugin", &["new", "init", "create"], "write one in Rust as docs/first-plugin.md shows; `sallyport help plugins` explains the folder"),
    foreign("plugin", &["delete", "uninstall"], REMOVE_HINT),
    foreign("plugin", &["enable"], ENABLE_HINT),
    foreign("plugin", &["disable"], DISABLE_HINT),
    foreign("tool", &["call", "run", "exec"], "`sallyport call PLUGIN.TOOL` calls a tool"),
    foreign("policy", &["show", "list", "ls"], "`sallyport policy check` shows what the policy grants"),
    foreign("policy", &["edit"], "`sallyport config path` shows where policy.toml is; `sallyport policy grant PLUGIN --allow TOOL` edits it for you"),
    foreign("policy", &["allow", "add"], "`sallyport policy grant PLUGIN --allow TOOL` allows a tool"),
    foreign("policy", &["deny", "remove", "rm"], "`sallyport policy revoke PLUGIN --all` takes away what a plugin has"),
    foreign("config", &["edit", "set"], "`sallyport config path` shows where sallyport.toml is; `sallyport setup` changes the model"),
    foreign("config", &["get", "list", "ls"], "`sallyport config show` shows all values"),
    foreign("config", &["init"], "`sallyport setup` writes a first configuration"),
    foreign("model", &["add", "set", "use", "default"], "`sallyport setup` chooses the model that is used"),
    foreign("model", &["test", "try"], "`sallyport model check` tries the model"),
    foreign("session", &["continue"], RESUME_HINT),
    foreign("secret", &["add"], "`sallyport secret set NAME` stores a value"),
    foreign("secret", &["get", "show"], "values are never shown; `sallyport secret list` shows which are ready"),
    foreign("audit", &["list", "ls", "log"], "`sallyport audit show` shows every decision and call"),
];

/// Options of other programs. They mean the same after every command.
const FOREIGN_OPTIONS: &[(&[&str], &str)] = &[
    (
        &["-p", "--print", "--prompt"],
        "`sallyport run PROMPT` asks one question and prints the answer",
    ),
    (&["--resume", "-c", "-r"], RESUME_HINT),
    (&["--yolo", "--yes", "--allow-all", "--allow-all-tools"], ALLOW_HINT),
    (&["--auto-approve", "--dangerously-skip-permissions"], ALLOW_HINT),
];

const RESUME_HINT: &str =
    "`sallyport chat --continue` resumes the last session, `sallyport session list` lists all";

const INSTALL_HINT: &str = "`sallyport plugin add PATH` installs a plugin";

const REMOVE_HINT: &str = "`sallyport plugin remove PLUGIN` removes an installed plugin";

const ENABLE_HINT: &str =
    "`sallyport setup --grant-requested PLUGIN` grants a plugin what it requests";

const DISABLE_HINT: &str = "`sallyport policy revoke PLUGIN --all` takes away what a plugin has";

const ALLOW_HINT: &str = "no option allows everything: `sallyport policy grant PLUGIN --allow TOOL` \
    allows a tool, and `sallyport help grants` explains the rest";

/// Words that ask for a newer version of the program.
const UPDATE_WORDS: [&str; 3] = ["update", "upgrade", "self-update"];

/// Returns what to print for a word that is not a command, and for an option of another program.
/// `None` if the message of clap is the right one.
pub(super) fn unknown_word_failure(error: &Error, arguments: &[String]) -> Option<CommandFailure> {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    };
    let (message, hint) = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = context(ContextKind::InvalidSubcommand)?;
            let root = &help::complete_command();
            let parent = parent_command(root, arguments, word);
            let message = match parent.get_name() == root.get_name() {
                true => format!("there is no command {}", quoted(word)),
                false => {
                    format!("`sallyport {}` has no command {}", parent.get_name(), quoted(word))
                }
            };
            (message, command_hint(root, parent, word))
        }
        ErrorKind::UnknownArgument => {
            let word = context(ContextKind::InvalidArg)?;
            let known = FOREIGN_OPTIONS.iter().find(|(words, _)| words.contains(&word))?;
            (format!("there is no option {word}"), known.1.into())
        }
        _ => return None,
    };
    Some(CommandFailure::new(ExitStatus::Usage, message).with_hint(hint))
}

fn quoted(word: &str) -> String {
    format!("{:?}", text::escape_excerpt(word, WORD_CHARS_MAX))
}

/// Returns the command that the unknown word follows.
fn parent_command<'c>(root: &'c Command, arguments: &[String], unknown: &str) -> &'c Command {
    let words = arguments.iter().skip(1).take_while(|word| *word != unknown);
    words.fold(root, |command, word| command.find_subcommand(word).unwrap_or(command))
}

fn command_hint(root: &Command, parent: &Command, word: &str) -> Cow<'static, str> {
    let is_root = parent.get_name() == root.get_name();
    let parent_name = if is_root { "" } else { parent.get_name() };
    let is_meant = |row: &&ForeignWords| row.parent == parent_name && row.words.contains(&word);
    if let Some(row) = FOREIGN_WORDS.iter().find(is_meant) {
        return row.hint.into();
    }
    if is_root && UPDATE_WORDS.contains(&word) {
        return update_hint(std::env::current_exe().ok().as_deref()).into();
    }
    let prefix = if is_root { String::new() } else { format!("{parent_name} ") };
    let names = parent.get_subcommands().map(Command::get_name);
    match nearest_match(word, names) {
        Some(near) => format!("did you mean `sallyport {prefix}{near}`?").into(),
        None if is_root && is_tool_name(word) => {
            format!("`sallyport call {word}` calls a tool").into()
        }
        None => format!("`sallyport {prefix}--help` lists the commands").into(),
    }
}

/// Whether the word has the form PLUGIN.TOOL. It is shown unescaped, so nothing else may pass.
fn is_tool_name(word: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
    };
    word.len() <= WORD_CHARS_MAX
        && word.split_once('.').is_some_and(|(plugin, tool)| is_name(plugin) && is_name(tool))
}

/// Returns how to update the program, according to the place of its file.
fn update_hint(program: Option<&Path>) -> String {
    let Some(program) = program else {
        return "update Sallyport in the way that you installed it".to_owned();
    };
    let has_folder = |name: &str| program.components().any(|part| part.as_os_str() == name);
    let place = program.display();
    if has_folder(".cargo") {
        format!(
            "{place} was installed with cargo: run `git pull` and `cargo install --path host` in \
             your clone"
        )
    } else if has_folder("target") {
        format!("{place} was built in a clone: run `git pull` and `cargo build --release` there")
    } else {
        format!("update {place} in the way that you installed it, such as your package manager")
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{super::command_line::CliArgs, *};

    fn failure(line: &str) -> Option<CommandFailure> {
        let arguments: Vec<String> =
            ["sallyport"].into_iter().chain(line.split(' ')).map(str::to_owned).collect();
        let error = CliArgs::try_parse_from(&arguments).err()?;
        let failure = unknown_word_failure(&error, &arguments);
        Some(failure.unwrap_or_else(|| panic!("{line}: {error}")))
    }

    /// The words that users of other programs type, each with a part of the hint; an empty one for
    /// a line that simply works.
    #[test]
    fn words_of_other_programs_lead_to_the_right_command() {
        #[rustfmt::skip]
        let rows = [
            ("ls", "tool list"), ("list", "tool list"), ("tools", "tool list"),
            ("plugins", "plugin list"), ("sessions", "session list"), ("models", "model list"),
            ("install X", "plugin add"), ("add X", "plugin add"), ("remove X", "plugin remove"),
            ("uninstall X", "plugin remove"), ("update", "git pull"), ("upgrade", "git pull"),
            ("self-update", "git pull"), ("version", "--version"), ("exec X", "run PROMPT"),
            ("ask X", "run PROMPT"), ("prompt X", "run PROMPT"), ("chta", "sallyport chat"),
            ("login", "sallyport setup"), ("logout", "config show"), ("auth", "sallyport setup"),
            ("configure", "sallyport setup"), ("init", "sallyport setup"), ("setup", ""),
            ("server", "mcp"), ("server", "serve"), ("approve X", "approval answer"),
            ("allow X", "policy grant"), ("grant X", "policy grant"), ("deny X", "policy revoke"),
            ("permissions", "policy check"), ("logs", "audit show"), ("history", "session list"),
            ("resume", "chat --continue"), ("undo", "/undo"), ("doctr", "sallyport doctor"),
            ("secrt", "sallyport secret"), ("zzzzzz", "sallyport --help"),
            ("plugin ls", ""), ("plugin add X", ""), ("plugin new X --lang rust", ""),
            ("plugin install X", ""), ("plugin uninstall X", "plugin remove"),
            ("plugin enable X", "setup --grant-requested"), ("plugin disable X", "policy revoke"),
            ("plugin zzzzzz", "sallyport plugin --help"), ("tool call X", "call PLUGIN.TOOL"),
            ("tool lst", "sallyport tool list"), ("policy show", "policy check"),
            ("policy list", "policy check"), ("policy edit", "config path"),
            ("policy allow", "policy grant"), ("config edit", "config path"),
            ("config set", "config path"), ("config get", "config show"), ("session ls", ""),
            ("session rm X", ""), ("session delete X", ""),
            ("clock.get_time", "sallyport call clock.get_time"), ("chat hello", ""),
            ("-p X", "run PROMPT"), ("--print X", "run PROMPT"), ("--yolo", "policy grant"),
            ("--dangerously-skip-permissions", "policy grant"), ("--resume", "chat --continue"),
            ("-c", "chat --continue"), ("chat -c", "chat --continue"),
        ];
        for (line, want) in rows {
            let failure = failure(line);
            assert_eq!(failure.is_none(), want.is_empty(), "{line}: {failure:?}");
            let hint = failure.and_then(|failure| failure.hint).unwrap_or_default();
            assert!(hint.contains(want) && !hint.contains('\n'), "{line}: {hint}");
        }
    }

    #[test]
    fn every_command_that_a_hint_names_is_accepted() {
        let hints = FOREIGN_WORDS.iter().map(|row| row.hint);
        let chat_hints = sallyport_terminal::slash::FOREIGN_WORDS.iter().map(|row| row.hint);
        let options = FOREIGN_OPTIONS.iter().map(|(_, hint)| *hint);
        for hint in hints.chain(options).chain(chat_hints) {
            check_named_commands(hint);
        }
    }

    #[track_caller]
    fn check_named_commands(hint: &str) {
        for line in hint.split('`').filter(|part| part.starts_with("sallyport ")) {
            // A plugin's name is in lower case, and the placeholder is not.
            let line = line.replace("PLUGIN", "plugin");
            if let Err(error) = CliArgs::try_parse_from(line.split(' ')) {
                assert_eq!(error.kind(), ErrorKind::DisplayVersion, "{line}: {error}");
            }
        }
    }

    /// A row after another one with the same word would have no effect.
    #[test]
    fn each_word_has_one_hint() {
        let words = FOREIGN_WORDS.iter().flat_map(|row| row.words.iter().map(|w| (row.parent, w)));
        let words: Vec<_> = words.collect();
        for (index, word) in words.iter().enumerate() {
            assert!(!words[..index].contains(word), "{word:?}");
        }
    }

    #[test]
    fn an_update_depends_on_how_the_program_was_installed() {
        for (program, want) in [
            (Some("/home/a/.cargo/bin/sallyport"), "cargo install --path host"),
            (Some("/src/sallyport/target/release/sallyport"), "cargo build --release"),
            (Some("/usr/bin/sallyport"), "package manager"),
            (None, "the way that you installed it"),
        ] {
            let hint = update_hint(program.map(Path::new));
            assert!(hint.contains(want), "{program:?}: {hint}");
        }
    }
}
