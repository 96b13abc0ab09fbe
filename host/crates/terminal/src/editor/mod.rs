//! The keyboard: the line editor, and the keys that answer a card.
//!
//! Reading a terminal blocks, so one thread does all of it. [`Keyboard`] sends it questions through
//! a channel, and the thread answers through callbacks. Between two questions the terminal is
//! quiet: typed keys are not echoed and wait for the next question, and Ctrl-C is a signal. It also
//! is one while the user types ahead ([`Keyboard::read_ahead`]). While a line is typed, Ctrl-C
//! clears it. The second one on an empty line returns [`LineInput::Interrupted`]. While a card is
//! open it cancels the turn.
//!
//! Keys typed before a card could be read do not answer it: see [`Keyboard::ask_card`].
//!
//! The terminal's modes are restored when the [`Keyboard`] is dropped, even during a read. Exits
//! without a drop (a panic, a signal) need a copy of [`TerminalModes`]. The engine writes to
//! standard error and queries the cursor on standard output, so all three standard streams must be
//! a terminal. [`Keyboard::start`] refuses anything else.

mod card_prompt;
mod completion;
mod external_editor;
mod history;
mod keyboard;
mod line;
mod mode;
mod prompt;
mod type_ahead;
mod typing;

#[cfg(test)]
mod tests;

pub use card_prompt::CardAnswer;
pub use completion::CompletionNames;
pub use keyboard::{Keyboard, KeyboardError, LineSink, PromptTicket};
pub use line::{EditorSettings, InitialInput, LineInput, MessagePrinter};
pub use mode::TerminalModes;
pub use prompt::InputPrompt;
pub use type_ahead::TypedAheadInput;
pub use typing::{KEYS, KeyStyle};
