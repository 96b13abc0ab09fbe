//! The table of all slash commands.

use anstyle::{AnsiColor, Style};

use crate::style;

const CYAN: Style = AnsiColor::Cyan.on_default();
const DIM: Style = Style::new().dimmed();

/// State of the session when a line is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputState {
    /// It waits for input.
    Ready,
    /// A turn is running.
    Busy,
    /// A question about a call is waiting for an answer.
    AwaitingAnswer,
}

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
    /// A file.
    File,
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
    /// The states in which it is available.
    pub available_in: &'static [InputState],
}

const READY: &[InputState] = &[InputState::Ready];
const ALWAYS: &[InputState] = &[InputState::Ready, InputState::Busy, InputState::AwaitingAnswer];

/// All slash commands, in the order of the help.
pub const TABLE: &[SlashCommandEntry] = &[
    command_entry(
        "help",
        &["?"],
        CommandArgumentKind::Command,
        "list the commands, or explain one",
        ALWAYS,
    ),
    command_entry(
        "tools",
        &[],
        CommandArgumentKind::Tool,
        "the tools that the model can use",
        ALWAYS,
    ),
    command_entry(
        "plugins",
        &[],
        CommandArgumentKind::Plugin,
        "the plugins, and what became of them",
        ALWAYS,
    ),
    command_entry(
        "grants",
        &[],
        CommandArgumentKind::Plugin,
        "what the policy lets each plugin do",
        ALWAYS,
    ),
    command_entry(
        "model",
        &["models"],
        CommandArgumentKind::Model,
        "the models, or talk with another one",
        READY,
    ),
    command_entry(
        "session",
        &[],
        CommandArgumentKind::None,
        "this session, and how to come back to it",
        ALWAYS,
    ),
    command_entry(
        "new",
        &["clear"],
        CommandArgumentKind::None,
        "begin a new session; this one is kept",
        READY,
    ),
    command_entry("undo", &[], CommandArgumentKind::None, "take the last turn back", READY),
    command_entry(
        "retry",
        &["again"],
        CommandArgumentKind::None,
        "take the last turn back and ask it again",
        READY,
    ),
    command_entry(
        "edit",
        &["e"],
        CommandArgumentKind::Text,
        "write the next message in your editor (Ctrl-O)",
        READY,
    ),
    command_entry(
        "save",
        &["export"],
        CommandArgumentKind::File,
        "write the session to a .md or .json file",
        ALWAYS,
    ),
    command_entry(
        "cost",
        &["usage"],
        CommandArgumentKind::None,
        "tokens and money, last turn and session",
        ALWAYS,
    ),
    command_entry(
        "memory",
        &[],
        CommandArgumentKind::None,
        "what of the session is sent, and what is pinned",
        ALWAYS,
    ),
    command_entry(
        "guide",
        &[],
        CommandArgumentKind::None,
        "who the assistant is, when a guide says so",
        ALWAYS,
    ),
    command_entry(
        "pin",
        &[],
        CommandArgumentKind::Text,
        "never forget the last turn; or send this, and keep it",
        READY,
    ),
    command_entry(
        "compact",
        &["summarize"],
        CommandArgumentKind::None,
        "put a summary in place of old turns",
        READY,
    ),
    command_entry(
        "quit",
        &["exit", "q"],
        CommandArgumentKind::None,
        "leave (so does Ctrl-D)",
        ALWAYS,
    ),
];

const fn command_entry(
    name: &'static str,
    aliases: &'static [&'static str],
    argument: CommandArgumentKind,
    help: &'static str,
    available_in: &'static [InputState],
) -> SlashCommandEntry {
    SlashCommandEntry { name, aliases, argument, help, available_in }
}

impl InputState {
    /// Describes the state as the end of a sentence.
    pub(super) fn display_text(self) -> &'static str {
        match self {
            Self::Ready => "while nothing is running",
            Self::Busy => "while an answer is being given",
            Self::AwaitingAnswer => "while a question is open",
        }
    }
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
            Self::File => " [FILE]",
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

    /// Whether it is available in a state.
    pub fn is_available_in(&self, state: InputState) -> bool {
        self.available_in.contains(&state)
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

/// Returns the help of one command: its usage, its aliases, and when it is available.
pub fn command_help_lines(entry: &SlashCommandEntry) -> Vec<style::StyledLine> {
    let mut lines = vec![help_row(&entry.usage(), 0, entry.help)];
    if !entry.aliases.is_empty() {
        let aliases: Vec<_> = entry.aliases.iter().map(|alias| format!("/{alias}")).collect();
        lines.push(style::StyledLine::styled(format!("  also {}", aliases.join(", ")), DIM));
    }
    if !entry.is_available_in(InputState::Busy) {
        let only = format!("  only {}", InputState::Ready.display_text());
        lines.push(style::StyledLine::styled(only, DIM));
    }
    lines
}

fn help_row(usage: &str, width: usize, help: &str) -> style::StyledLine {
    let mut line = style::StyledLine::styled(format!("{usage:width$}"), CYAN);
    line.push("  ", Style::new());
    line.push(help, Style::new());
    line
}
