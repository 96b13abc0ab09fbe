//! Slash commands: lines for the program instead of the model.
//!
//! There is one [`TABLE`]. It defines the meaning of a line, the completions of Tab and the output
//! of `/help`, so they cannot disagree. A line that looks like a command but is not one is refused
//! with a suggestion. It is never sent to a model, because a mistyped `/quit` would cost money and
//! answer nothing.
//!
//! Some lines that begin with a slash are not commands: a path (`/etc/hosts is what?`, whose first
//! word contains another slash), a comment (`// like this`), and any line with a second slash in
//! front (`//tmp is full` sends `/tmp is full`).

mod error;
mod foreign;
mod parse;
mod table;

#[cfg(test)]
mod tests;

pub use error::SlashError;
pub use foreign::{FOREIGN_WORDS, ForeignWord, foreign_word_command};
pub use parse::{ParsedInput, SlashCommand, parse_line};
pub use table::{
    CommandArgumentKind, SlashCommandEntry, TABLE, command_help_lines, find_command, help_lines,
};
