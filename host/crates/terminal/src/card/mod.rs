//! The approval card: the question that the user sees before a call runs, and the keys that answer
//! it.
//!
//! A card shows everything or marks what it omits. Every argument has its own lines, so a long one
//! cannot push another off the screen. Cut parts are counted, and [`ApprovalChoice::More`] shows
//! everything, page by page. Numbers are shown as the model wrote them. Characters that a terminal
//! would interpret or a reader could not see are spelt out, with a warning.
//!
//! A card that is higher than the window is shown in parts. Its first part begins with its title, and
//! later ones have the title above the keys.
//!
//! If a card omits part of a request, it accepts no approval before its pages were seen.
//!
//! A card about a missing grant shows one choice at a time, the narrowest first, and asks for the
//! folder where only the user can name it.
//!
//! A card about a question of an MCP server shows the server's words behind a bar, and what the user
//! is asked to fill in. Each field is then read on a line of its own.
//!
//! A key is an answer only if the card offers it. Enter never approves, and neither does any other
//! key that is easily pressed by accident.

mod argument;
mod file_change;
mod form;
mod grant;
mod json;
mod keys;
mod layout;
mod request;

#[cfg(test)]
mod tests;

pub use argument::{format_editable, full_value_lines};
pub use file_change::FileChange;
pub use keys::{ApprovalChoice, ApprovalOptions, choice_for_key};
pub(crate) use layout::count_rows;
pub use layout::{ApprovalCard, QuestionPosition, is_summary_cut, request_lines, subject_line};
