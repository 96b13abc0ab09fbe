//! Slash commands: lines that are for the program and not for the model.
//!
//! There is one [`TABLE`]. What a line means, what Tab offers, what `/help` prints and which state a
//! command fits all come from it, so that they cannot disagree. A line that looks like a command but
//! is none is refused with a suggestion: it is never sent to a model, where a mistyped `/quit` would
//! cost money and answer nothing.
//!
//! What is not a command although it begins with a slash: a path (`/etc/hosts is what?`: its first
//! word has another slash), a comment (`// like this`), and whatever is written with a second slash
//! in front (`//tmp is full` sends `/tmp is full`).

mod error;
mod parse;
mod table;

#[cfg(test)]
mod tests;

pub use error::SlashError;
pub use parse::{Command, Line, parse};
pub use table::{Argument, Entry, State, TABLE, find, help, help_of};
