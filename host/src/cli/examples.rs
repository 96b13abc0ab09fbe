//! Examples of each command, which its help and its manual page show.

/// A command line, and what it is good for.
type Example = (&'static str, &'static str);

/// The examples of each command.
#[rustfmt::skip]
pub(super) const EXAMPLES: &[(&str, &[Example])] = &[
    ("chat", &[
        ("sallyport chat", "Start a conversation"),
        ("sallyport chat \"what time is it in Tokyo?\"", "Start with a question"),
        ("sallyport chat --continue --model anthropic/claude-sonnet-4-5", "Continue the last one with another model"),
    ]),
    ("run", &[
        ("sallyport run \"what time is it in Tokyo?\"", "Ask one question"),
        ("sallyport run --attach notes.md \"summarise this\"", "Ask about a file"),
        ("sallyport run --output json --max-cost 0.10 \"what is new?\"", "Get JSON, for at most ten cents"),
    ]),
    ("listen", &[
        ("sallyport listen", "Serve every listener that the policy grants an address"),
        ("sallyport listen --listener webhook --token hook", "Serve one listener, with the token in the secret `hook`"),
        ("sallyport listen --ui ui-html", "Show the session on a web page"),
    ]),
    ("mcp", &[
        ("sallyport mcp", "Serve all tools to the program that starts it"),
        ("sallyport mcp --only 'files.*' --deny '*.remove'", "Serve some of the tools"),
        ("sallyport mcp --policy ~/editor-policy.toml", "Serve them under another policy"),
    ]),
    ("acp", &[
        ("sallyport acp", "Serve sessions to the editor that starts it"),
        ("sallyport acp --model anthropic/claude-sonnet-4-5", "Serve them with another model"),
        ("sallyport acp --setup", "Set up a model in this terminal"),
    ]),
    ("serve", &[
        ("sallyport serve", "Serve users on this machine"),
        ("sallyport serve token add ann --role user", "Make a token for a user"),
        ("sallyport serve --listen 0.0.0.0:8420", "Serve other machines, behind a proxy with TLS"),
    ]),
    ("call", &[
        ("sallyport call clock.get_time", "Call a tool without arguments"),
        ("sallyport call clock.get_time '{\"timezone\": \"Asia/Tokyo\"}'", "Call it with arguments"),
        ("sallyport call weather.get_weather '{\"location\": \"Paris\"}' --emit-needed-grants", "Print the policy that a call needs"),
    ]),
    ("plugin", &[
        ("sallyport plugin list", "List the plugins"),
        ("sallyport plugin show weather", "Show what a plugin requests and has"),
        ("sallyport plugin add ./hello", "Install a plugin, after showing it"),
    ]),
    ("tool", &[
        ("sallyport tool list", "List the tools"),
        ("sallyport tool show files.read", "Show a tool with its arguments"),
        ("sallyport tool check files.read '{\"path\": \"a.txt\"}'", "Check a call without making it"),
    ]),
    ("connection", &[
        ("sallyport connection list", "List the plugins that have accounts"),
        ("sallyport connection add google-mail", "Sign in in the browser"),
        ("sallyport connection add github --device", "Sign in on another device"),
    ]),
    ("policy", &[
        ("sallyport policy check", "Show what the policy grants, and its mistakes"),
        ("sallyport policy grant files --read ~/notes", "Let a plugin read a folder"),
        ("sallyport policy learn weather -- call weather.get_weather '{\"location\": \"Paris\"}'", "Grant what a call needs"),
    ]),
    ("audit", &[
        ("sallyport audit show -n 20", "Show the newest records"),
        ("sallyport audit show --plugin files --decision deny --since 12h", "Show what was denied"),
        ("sallyport audit verify", "Check that no record was changed"),
    ]),
    ("model", &[
        ("sallyport model list", "List the models of the configuration"),
        ("sallyport model list --remote --provider ollama", "List the models of a server"),
        ("sallyport model check openai/gpt-5-mini", "Try a model"),
    ]),
    ("config", &[
        ("sallyport config show", "Show all values in use"),
        ("sallyport config show --origin", "Show where each value comes from"),
        ("sallyport config path", "Show where the files are"),
    ]),
    ("trust", &[
        ("sallyport trust", "Trust the configuration of the project in this folder"),
        ("sallyport trust ~/projects/site", "Trust that of another folder"),
        ("sallyport trust --remove ~/projects/site", "Stop trusting it"),
    ]),
    ("secret", &[
        ("sallyport secret list", "List the secrets and whether each has a value"),
        ("sallyport secret set weather_key", "Type a value, which is not shown"),
        ("sallyport secret check", "Check that every secret has a value"),
    ]),
    ("approval", &[
        ("sallyport approval list", "List the questions that wait for an answer"),
        ("sallyport approval show 1a2b", "Show a question, and its hash"),
        ("sallyport approval answer 1a2b", "Answer it here"),
    ]),
    ("connection", &[
        ("sallyport connection list", "List the plugins that have accounts"),
        ("sallyport connection add google-mail", "Sign in and connect an account"),
        ("sallyport connection add github --device", "Sign in on another device"),
    ]),
    ("session", &[
        ("sallyport session list --here", "List the sessions of this folder"),
        ("sallyport session search lisbon", "Find a word in all sessions"),
        ("sallyport session export 1a2b --format json", "Print a session as JSON"),
    ]),
    ("timer", &[
        ("sallyport timer list", "List timers and reminders, the next one first"),
        ("sallyport timer list --all", "List all of them"),
        ("sallyport timer cancel t-7", "Cancel one"),
    ]),
    ("state", &[
        ("sallyport state list", "List the plugins that keep state"),
        ("sallyport state get timer pasta", "Print a value"),
        ("sallyport state clear timer", "Delete what a plugin keeps"),
    ]),
    ("memory", &[
        ("sallyport memory list", "List what is remembered"),
        ("sallyport memory search lisbon", "Find a word in it"),
        ("sallyport memory forget 12 15", "Forget two memories"),
    ]),
    ("store", &[
        ("sallyport store migrate", "Copy your home into the database that [store] of sallyport.toml names"),
        ("sallyport store migrate --to postgres://db.example/sallyport", "Copy it into another one"),
        ("sallyport store migrate --output json", "Print how much was copied, as JSON"),
    ]),
    ("schema", &[
        ("sallyport schema", "Print the schema of `run --output jsonl`"),
        ("sallyport schema result", "Print the schema of `run --output json`"),
        ("sallyport schema config", "Print the schema of sallyport.toml"),
    ]),
    ("setup", &[
        ("sallyport setup", "Choose a model and plugins, step by step"),
        ("sallyport setup --provider ollama --model qwen3", "Use a model of the Ollama server on this machine"),
        ("sallyport setup --provider openai --model gpt-5-mini --grant-requested weather", "Set up without a question"),
    ]),
    ("doctor", &[
        ("sallyport doctor", "Check everything"),
        ("sallyport doctor --output json", "Print the checks for a program"),
        ("sallyport --plugin-dir ./plugins doctor", "Check with other plugins"),
    ]),
    ("selftest", &[
        ("sallyport selftest", "Run every sentence"),
        ("sallyport selftest --output json", "Print the results for a program"),
        ("sallyport --plugin-dir ./plugins selftest", "Try the plugins of another folder"),
    ]),
    ("man", &[
        ("sallyport man", "Print the first page"),
        ("sallyport man ~/.local/share/man/man1", "Write all pages where `man` finds them"),
        ("sallyport man ./pages", "Write all pages into a folder here"),
    ]),
    ("completions", &[
        ("sallyport completions bash", "Print the script for Bash"),
        ("sallyport completions zsh", "Print the script for Zsh"),
        ("sallyport completions fish", "Print the script for Fish"),
    ]),
    ("help", &[
        ("sallyport help grants", "Read how to grant things to plugins"),
        ("sallyport help policy grant", "Show the help of a command"),
        ("sallyport help models", "Read how to choose a model"),
    ]),
];

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::{super::command_line::CliArgs, *};

    /// The words of a command line with quotes of both kinds.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut quote) = (vec![String::new()], None);
        for letter in line.chars() {
            match (letter, quote) {
                ('\'' | '"', None) => quote = Some(letter),
                (_, Some(open)) if letter == open => quote = None,
                (' ', None) => words.push(String::new()),
                _ => words.last_mut().unwrap().push(letter),
            }
        }
        words
    }

    #[test]
    fn every_command_has_three_examples_that_are_accepted() {
        for command in CliArgs::command().get_subcommands() {
            let name = command.get_name();
            let examples = EXAMPLES.iter().find(|(command, _)| *command == name);
            let (_, examples) = examples.unwrap_or_else(|| panic!("no examples of {name}"));
            assert_eq!(examples.len(), 3, "{name}");
            for (line, _) in *examples {
                let words = words(line);
                assert!(words.iter().any(|word| word == name), "{line} does not run {name}");
                if let Err(error) = CliArgs::try_parse_from(&words) {
                    panic!("{line}: {error}");
                }
            }
        }
    }
}
