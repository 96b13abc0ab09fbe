//! The table of all slash commands.

use anstyle::{AnsiColor, Style};

use self::CommandArgumentKind as Argument;
use crate::style;

const CYAN: Style = AnsiColor::Cyan.on_default();
const DIM: Style = Style::new().dimmed();

/// The kind of argument that a command accepts. All arguments are optional.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommandArgumentKind {
    /// None.
    None,
    /// The name of a slash command.
    Command,
    /// Words that occur in a tool's name or description.
    Tool,
    /// The name of a plugin.
    Plugin,
    /// The name of a model.
    Model,
    /// A number.
    Number,
    /// A file.
    File,
    /// The word `files`.
    Files,
    /// Any text.
    Text,
}

/// One slash command.
#[derive(Debug, PartialEq, Eq)]
pub struct SlashCommandEntry {
    /// Name, without the slash.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// The argument that it accepts.
    pub argument: CommandArgumentKind,
    /// What it does, in one line.
    pub help: &'static str,
}

/// All slash commands, in the order of the help.
#[rustfmt::skip]
pub const TABLE: &[SlashCommandEntry] = &[
    command_entry("help", &["?"], Argument::Command, "list the commands, or explain one"),
    command_entry("tools", &[], Argument::Tool, "list the tools that the model can use"),
    command_entry("plugins", &[], Argument::Plugin, "list the plugins and their state"),
    command_entry("grants", &[], Argument::Plugin, "show what the policy lets each plugin do"),
    command_entry("connect", &["connections", "accounts"], Argument::Plugin, "list your accounts, or connect one in your browser"),
    command_entry("model", &["models"], Argument::Model, "list the models, or switch to another one"),
    command_entry("last", &["result"], Argument::Number, "show the last call whole, or the Nth last one"),
    command_entry("session", &[], Argument::None, "show this session and how to resume it"),
    command_entry("new", &["clear"], Argument::None, "start a new session; this one is kept"),
    command_entry("undo", &[], Argument::Files, "remove the last turn, or put back files that a call changed"),
    command_entry("retry", &["again"], Argument::None, "remove the last turn and send its input again"),
    command_entry("edit", &["e"], Argument::Text, "write the next message in your editor (Ctrl-O)"),
    command_entry("save", &["export"], Argument::File, "write the session to a .md or .json file"),
    command_entry("cost", &["usage"], Argument::None, "show tokens and cost of the turn and the session"),
    command_entry("memory", &[], Argument::None, "show which part of the session the model receives"),
    command_entry("guide", &[], Argument::None, "show the guide that describes the assistant"),
    command_entry("pin", &[], Argument::Text, "always send the last turn, or send a text and keep it"),
    command_entry("compact", &["summarize"], Argument::None, "replace old turns with a summary"),
    command_entry("quit", &["exit", "q"], Argument::None, "leave (also Ctrl-D)"),
];

const fn command_entry(
    name: &'static str,
    aliases: &'static [&'static str],
    argument: CommandArgumentKind,
    help: &'static str,
) -> SlashCommandEntry {
    SlashCommandEntry { name, aliases, argument, help }
}

impl CommandArgumentKind {
    /// Returns the form in the help, such as ` [FILE]`.
    pub fn usage_text(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Command => " [COMMAND]",
            Self::Tool => " [WORDS]",
            Self::Plugin => " [PLUGIN]",
            Self::Model => " [MODEL]",
            Self::Number => " [N]",
            Self::File => " [FILE]",
            Self::Files => " [files]",
            Self::Text => " [TEXT]",
        }
    }
}

impl SlashCommandEntry {
    /// Returns the name and the aliases.
    pub fn command_names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// Returns the usage, such as `/save [FILE]`.
    pub fn usage(&self) -> String {
        format!("/{}{}", self.name, self.argument.usage_text())
    }
}

/// Finds a command by name or alias, ignoring case.
pub fn find_command(word: &str) -> Option<&'static SlashCommandEntry> {
    TABLE.iter().find(|entry| entry.command_names().any(|known| known.eq_ignore_ascii_case(word)))
}

/// Returns the list of all commands.
pub fn help_lines() -> Vec<style::StyledLine> {
    let width = TABLE.iter().map(|entry| entry.usage().len()).max().unwrap_or(0);
    TABLE.iter().map(|entry| help_row(&entry.usage(), width, entry.help)).collect()
}

/// Returns the help of one command: its usage and its aliases.
pub fn command_help_lines(entry: &SlashCommandEntry) -> Vec<style::StyledLine> {
    let mut lines = vec![help_row(&entry.usage(), 0, entry.help)];
    if !entry.aliases.is_empty() {
        let aliases: Vec<_> = entry.aliases.iter().map(|alias| format!("/{alias}")).collect();
        lines.push(style::StyledLine::styled(format!("  also {}", aliases.join(", ")), DIM));
    }
    lines
}

fn help_row(usage: &str, width: usize, help: &str) -> style::StyledLine {
    let mut line = style::StyledLine::styled(format!("{usage:width$}"), CYAN);
    line.push("  ", Style::new());
    line.push(help, Style::new());
    line
}
