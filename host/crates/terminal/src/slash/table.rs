//! The table of all slash commands.

use anstyle::{AnsiColor, Style};

use crate::style;

const CYAN: Style = AnsiColor::Cyan.on_default();
const DIM: Style = Style::new().dimmed();

/// State of the session when a line is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It waits for input.
    Ready,
    /// A turn is running.
    Busy,
    /// A question about a call is waiting for an answer.
    Asked,
}

/// The kind of argument that a command accepts. All arguments are optional.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Argument {
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
pub struct Entry {
    /// Name, without the slash.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// The argument that it accepts.
    pub argument: Argument,
    /// What it does, in one line.
    pub help: &'static str,
    /// The states in which it is available.
    pub fits: &'static [State],
}

const READY: &[State] = &[State::Ready];
const ALWAYS: &[State] = &[State::Ready, State::Busy, State::Asked];

/// All slash commands, in the order of the help.
pub const TABLE: &[Entry] = &[
    entry("help", &["?"], Argument::Command, "list the commands, or explain one", ALWAYS),
    entry("tools", &[], Argument::Tool, "the tools that the model can use", ALWAYS),
    entry("plugins", &[], Argument::Plugin, "the plugins, and what became of them", ALWAYS),
    entry("grants", &[], Argument::Plugin, "what the policy lets each plugin do", ALWAYS),
    entry("model", &["models"], Argument::Model, "the models, or talk with another one", READY),
    entry("session", &[], Argument::None, "this session, and how to come back to it", ALWAYS),
    entry("new", &["clear"], Argument::None, "begin a new session; this one is kept", READY),
    entry("undo", &[], Argument::None, "take the last turn back", READY),
    entry("retry", &["again"], Argument::None, "take the last turn back and ask it again", READY),
    entry("edit", &["e"], Argument::Text, "write the next message in your editor (Ctrl-O)", READY),
    entry("save", &["export"], Argument::File, "write the session to a .md or .json file", ALWAYS),
    entry("cost", &["usage"], Argument::None, "tokens and money, last turn and session", ALWAYS),
    entry("memory", &[], Argument::None, "what of the session is sent, and what is pinned", ALWAYS),
    entry("guide", &[], Argument::None, "who the assistant is, when a guide says so", ALWAYS),
    entry(
        "pin",
        &[],
        Argument::Text,
        "never forget the last turn; or send this, and keep it",
        READY,
    ),
    entry("compact", &["summarize"], Argument::None, "put a summary in place of old turns", READY),
    entry("quit", &["exit", "q"], Argument::None, "leave (so does Ctrl-D)", ALWAYS),
];

const fn entry(
    name: &'static str,
    aliases: &'static [&'static str],
    argument: Argument,
    help: &'static str,
    fits: &'static [State],
) -> Entry {
    Entry { name, aliases, argument, help, fits }
}

impl State {
    /// Describes the state as the end of a sentence.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Ready => "while nothing is running",
            Self::Busy => "while an answer is being given",
            Self::Asked => "while a question is open",
        }
    }
}

impl Argument {
    /// Returns the form in the help, such as ` [FILE]`.
    pub fn form(self) -> &'static str {
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

impl Entry {
    /// Returns the name and the aliases.
    pub fn words(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// Returns the usage, such as `/save [FILE]`.
    pub fn usage(&self) -> String {
        format!("/{}{}", self.name, self.argument.form())
    }

    /// Whether it is available in a state.
    pub fn fits(&self, state: State) -> bool {
        self.fits.contains(&state)
    }
}

/// Finds a command by name or alias, ignoring case.
pub fn find(word: &str) -> Option<&'static Entry> {
    TABLE.iter().find(|entry| entry.words().any(|known| known.eq_ignore_ascii_case(word)))
}

/// Returns the list of all commands.
pub fn help() -> Vec<style::Line> {
    let width = TABLE.iter().map(|entry| entry.usage().len()).max().unwrap_or(0);
    TABLE.iter().map(|entry| row(&entry.usage(), width, entry.help)).collect()
}

/// Returns the help of one command: its usage, its aliases, and when it is available.
pub fn help_of(entry: &Entry) -> Vec<style::Line> {
    let mut lines = vec![row(&entry.usage(), 0, entry.help)];
    if !entry.aliases.is_empty() {
        let aliases: Vec<_> = entry.aliases.iter().map(|alias| format!("/{alias}")).collect();
        lines.push(style::Line::styled(format!("  also {}", aliases.join(", ")), DIM));
    }
    if !entry.fits(State::Busy) {
        let only = format!("  only {}", State::Ready.words());
        lines.push(style::Line::styled(only, DIM));
    }
    lines
}

fn row(usage: &str, width: usize, help: &str) -> style::Line {
    let mut line = style::Line::styled(format!("{usage:width$}"), CYAN);
    line.push("  ", Style::new());
    line.push(help, Style::new());
    line
}
