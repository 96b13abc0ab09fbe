//! The help: commands in groups, examples below each command, and pages about topics.

use std::fmt::Write as _;

use clap::{
    Command, CommandFactory, FromArgMatches,
    builder::{StyledStr, Styles},
    error::ErrorKind,
};
use sallyport_policy::source::nearest_match;
use sallyport_terminal::{
    listing::{ListRow, list_lines},
    markdown::render_markdown,
    style::ColourMode,
};

use super::{
    command_line::CliArgs,
    examples::EXAMPLES,
    exit::{CommandFailure, ExitStatus},
    output::CliOutput,
};

/// Widest help in columns, as for the texts that clap lays out.
const COLUMNS_MAX: usize = 100;

/// Space before a command and an example.
const INDENT: &str = "  ";

/// The commands by purpose. A command without a group is shown with the last one.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Talk with a model", &["chat", "run", "listen", "acp", "mcp", "serve", "call"]),
    (
        "Plugins and permissions",
        &["plugin", "tool", "connection", "policy", "approval", "secret", "trust", "audit"],
    ),
    ("Set up and check", &["setup", "model", "config", "doctor", "selftest"]),
    ("What is kept", &["session", "timer", "state", "memory", "store"]),
    ("For shells and programs", &["help", "completions", "man", "schema"]),
];

/// The pages about topics. Each is also a document.
const TOPICS: [(&str, &str); 4] = [
    ("grants", include_str!("../../../docs/help/grants.md")),
    ("models", include_str!("../../../docs/help/models.md")),
    ("plugins", include_str!("../../../docs/help/plugins.md")),
    ("scripts", include_str!("../../../docs/help/scripts.md")),
];

/// Parses the command line of this process.
pub(super) fn parse_command_line() -> Result<CliArgs, clap::Error> {
    // Most commands print no help, and its texts take longer than all that is parsed.
    let matches = match CliArgs::command().try_get_matches() {
        Err(error) if error.kind() != ErrorKind::DisplayVersion => command().try_get_matches(),
        parsed => parsed,
    };
    CliArgs::from_arg_matches(&matches?)
}

/// The definition of the command line as `command` has it, with every command defined in full.
pub(super) fn complete_command() -> Command {
    let mut command = command();
    command.build();
    command
}

/// The definition of the command line, with examples and with the commands in groups. A command of
/// it gets its arguments when it is used.
pub(super) fn command() -> Command {
    let command = EXAMPLES.iter().fold(CliArgs::command(), |command, (name, examples)| {
        command.mut_subcommand(name, |command| command.after_help(example_text(examples)))
    });
    let groups = grouped_commands(&command, CliOutput::new().stdout_columns());
    let heading = Styles::default();
    let heading = heading.get_header();
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}\
         {heading}Options:{heading:#}\n{{options}}{{after-help}}"
    ))
}

fn example_text(examples: &[(&str, &str)]) -> StyledStr {
    let styles = Styles::default();
    let heading = styles.get_header();
    let mut text = format!("{heading}Examples:{heading:#}");
    for (line, purpose) in examples {
        let _ = write!(text, "\n{INDENT}# {purpose}\n{INDENT}{line}");
    }
    text.into()
}

fn grouped_commands(command: &Command, columns: Option<usize>) -> String {
    let is_grouped = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let all: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
    let rest: Vec<&str> = all.iter().copied().filter(|name| !is_grouped(name)).collect();
    let longest = all.iter().copied().max_by_key(|name| name.len()).unwrap_or_default();
    let width = columns.unwrap_or(COLUMNS_MAX).min(COLUMNS_MAX).saturating_sub(INDENT.len());
    let styles = Styles::default();
    let heading = styles.get_header();
    let mut text = String::new();
    for (index, (title, names)) in GROUPS.iter().enumerate() {
        let rest = rest.iter().filter(|_| index + 1 == GROUPS.len());
        let rows = names.iter().chain(rest).map(|name| command_row(command, name));
        // The longest name makes the columns of all groups line up. Its own line is not shown.
        let rows: Vec<ListRow> = rows.chain([ListRow::new([longest, ""])]).collect();
        let mut lines = list_lines(&rows, Some(width));
        lines.pop();
        let _ = writeln!(text, "{heading}{title}:{heading:#}");
        for line in lines {
            let _ = writeln!(text, "{INDENT}{}", line.to_terminal_text(ColourMode::On));
        }
        text.push('\n');
    }
    text
}

fn command_row(command: &Command, name: &str) -> ListRow {
    let about = command.find_subcommand(name).and_then(Command::get_about);
    ListRow::new([name, &about.map(ToString::to_string).unwrap_or_default()])
}

/// Prints the page of a topic, or the help of a command.
pub(super) fn run_help_command(
    words: &[String],
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    if let [word] = words
        && let Some((_, page)) = TOPICS.iter().find(|(topic, _)| topic == word)
    {
        print_page(page, out);
        return Ok(ExitStatus::Done);
    }
    // This gives each command its full name, such as `sallyport plugin list`.
    let mut root = complete_command();
    let mut command = &mut root;
    for word in words {
        let names: Vec<String> =
            command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
        command = match command.find_subcommand_mut(word) {
            Some(command) => command,
            None => return Err(unknown_topic_failure(word, &names)),
        };
    }
    out.print_help(&command.render_long_help());
    Ok(ExitStatus::Done)
}

/// The words that `sallyport help` explains.
pub(super) fn topic_names() -> Vec<String> {
    let command = command();
    let commands = command.get_subcommands().map(|command| command.get_name().to_owned());
    commands.chain(TOPICS.map(|(topic, _)| topic.to_owned())).collect()
}

fn print_page(page: &str, out: &CliOutput) {
    match out.stdout_columns() {
        Some(columns) => out.print_styled_lines(&render_markdown(page, columns.min(COLUMNS_MAX))),
        None => out.print_line(page.trim_end()),
    }
}

fn unknown_topic_failure(word: &str, commands: &[String]) -> CommandFailure {
    let topics = TOPICS.map(|(topic, _)| topic);
    let known = commands.iter().map(String::as_str).chain(topics);
    let hint = match nearest_match(word, known) {
        Some(near) => format!("did you mean {near:?}?"),
        None => {
            format!("the topics are {}; `sallyport --help` lists the commands", topics.join(", "))
        }
    };
    let message = format!("there is no help about {word:?}");
    CommandFailure::new(ExitStatus::Usage, message).with_hint(hint)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_command_is_in_one_group() {
        let command = command();
        let names: BTreeSet<&str> = command.get_subcommands().map(Command::get_name).collect();
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        assert_eq!(grouped.iter().copied().collect::<BTreeSet<_>>(), names);
        assert_eq!(grouped.len(), names.len(), "a command is in two groups");
    }

    #[test]
    fn the_help_shows_each_command_at_any_width() {
        for columns in [Some(40), Some(80), Some(120), None] {
            let text =
                anstream::adapter::strip_str(&grouped_commands(&command(), columns)).to_string();
            for name in command().get_subcommands().map(Command::get_name) {
                assert!(text.contains(&format!("\n  {name} ")), "{columns:?} {name}: {text}");
            }
            let widest = text.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(columns.unwrap_or(COLUMNS_MAX)), "{columns:?}: {text}");
        }
    }

    /// Each topic links to nothing, since a terminal cannot follow a link between files.
    #[test]
    fn topics_are_short_pages() {
        for (topic, page) in TOPICS {
            assert!(page.starts_with("# ") && page.lines().count() <= 60, "{topic}");
            assert!(page.lines().all(|line| line.chars().count() <= 100), "{topic}");
            assert!(!page.contains("]("), "{topic}");
            // A command that does not fit a terminal of 80 columns cannot be read at a glance.
            let code = page.split("```").skip(1).step_by(2).flat_map(str::lines);
            assert!(code.clone().all(|line| line.chars().count() <= 76), "{topic}");
        }
    }
}
