//! The keyboard: the line editor, and the keys that answer a card.
//!
//! Reading a terminal blocks, so all of it lives on one thread, [`Keyboard`], which is asked through
//! a channel and answers through a function that it is given. Between two questions the terminal is
//! quiet: what is typed is not shown, waits for the next line, and Ctrl-C is a signal. While a line
//! is typed, Ctrl-C clears it, and on an empty line it is the answer [`Input::Interrupted`]; while a
//! card is open it cancels the turn.
//!
//! Nothing that was typed before a card could be read is an answer to it: see [`Keyboard::ask`].
//!
//! The terminal gets its modes back when the [`Keyboard`] is dropped, also while something is being
//! read; for exits without that (a panic, a signal) [`Original`] can be kept elsewhere. The engine
//! writes to standard error and asks the terminal for its cursor on standard output, so all three
//! standard streams have to be a terminal; [`Keyboard::start`] refuses anything else.

mod ask;
mod complete;
mod history;
mod keyboard;
mod line;
mod mode;
mod outside;
mod prompt;
mod typing;

#[cfg(test)]
mod tests;

pub use ask::Answer;
pub use complete::Vocabulary;
pub use keyboard::{Keyboard, KeyboardError, Show, Ticket};
pub use line::{Begin, Input, Printer, Settings};
pub use mode::Original;
pub use prompt::Prompt;
pub use typing::{KEYS, KeyStyle};
