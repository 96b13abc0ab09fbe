//! Commands and flags of similar programs, with their equivalents here.

use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

/// Words of other programs, with what to do here instead.
#[rustfmt::skip]
const ALIASES: [(&str, &str); 34] = [
    ("plugins", "`sallyport plugin list` shows the plugins"),
    ("tools", "`sallyport tool list` shows the tools"),
    ("models", "`sallyport model list` shows the models"),
    ("sessions", "`sallyport session list` shows the sessions"),
    ("history", "`sallyport session list` shows the sessions"),
    ("resume", "`sallyport chat --continue` goes on with the last session"),
    ("continue", "`sallyport chat --continue` goes on with the last session"),
    ("ask", "`sallyport run PROMPT` asks one question"),
    ("exec", "`sallyport run PROMPT` asks one question"),
    ("prompt", "`sallyport run PROMPT` asks one question"),
    ("query", "`sallyport run PROMPT` asks one question"),
    ("start", "`sallyport chat` begins a conversation"),
    ("repl", "`sallyport chat` begins a conversation"),
    ("login", "set the provider's key, such as OPENAI_API_KEY; `sallyport model check` tries it"),
    ("auth", "set the provider's key, such as OPENAI_API_KEY; `sallyport model check` tries it"),
    ("init", "nothing has to be made; `sallyport doctor` shows what is in place"),
    ("setup", "nothing has to be made; `sallyport doctor` shows what is in place"),
    ("check", "`sallyport doctor` shows what is in place, `sallyport model check` tries a model"),
    ("status", "`sallyport doctor` shows what is in place"),
    ("install", "put the plugin's folder into one that `sallyport config show` lists as plugin_dir"),
    ("permissions", "`sallyport plugin show NAME` shows what a plugin may do"),
    ("logs", "`sallyport audit show` shows every decision and call"),
    ("secrets", "`sallyport secret list` shows the secrets"),
    ("mcp", "tools are sandboxed components here, not servers; `sallyport plugin list` shows them"),
    ("-p", "`sallyport run PROMPT` asks one question and prints the answer"),
    ("--print", "`sallyport run PROMPT` asks one question and prints the answer"),
    ("--prompt", "`sallyport run PROMPT` asks one question and prints the answer"),
    ("--resume", "`sallyport chat --continue` goes on with the last session"),
    ("--yolo", ALLOW_HINT),
    ("--yes", ALLOW_HINT),
    ("--allow-all", ALLOW_HINT),
    ("--allow-all-tools", ALLOW_HINT),
    ("--auto-approve", ALLOW_HINT),
    ("--dangerously-skip-permissions", ALLOW_HINT),
];

const ALLOW_HINT: &str = "nothing is allowed all at once here: `sallyport policy grant` allows one \
    thing, and `sallyport policy learn` proposes what was missing";

/// Returns a hint if the command line was written for another program.
pub(super) fn foreign_command_hint(error: &Error) -> Option<&'static str> {
    let kind = match error.kind() {
        ErrorKind::InvalidSubcommand => ContextKind::InvalidSubcommand,
        ErrorKind::UnknownArgument => ContextKind::InvalidArg,
        _ => return None,
    };
    let Some(ContextValue::String(word)) = error.get(kind) else { return None };
    ALIASES.iter().find(|(known, _)| known == word).map(|(_, hint)| *hint)
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::{super::args::CliArgs, *};

    #[test]
    fn every_word_of_another_program_is_answered() {
        for (word, want) in ALIASES {
            let error = CliArgs::try_parse_from(["sallyport", word]).unwrap_err();
            assert_eq!(foreign_command_hint(&error), Some(want), "{word}");
        }
        let error = CliArgs::try_parse_from(["sallyport", "chta"]).unwrap_err();
        assert_eq!(foreign_command_hint(&error), None);
    }

    #[test]
    fn every_command_that_is_named_exists() {
        for (_, hint) in ALIASES {
            for named in hint.split('`').filter_map(|part| part.strip_prefix("sallyport ")) {
                let words = named
                    .split(' ')
                    .take_while(|word| word.starts_with(|c: char| c.is_ascii_lowercase()));
                let mut command = CliArgs::command();
                for word in words {
                    let next = command.find_subcommand(word).cloned();
                    command = next.unwrap_or_else(|| panic!("{word} of {named}"));
                }
            }
        }
    }
}
