//! The approval card: what a person sees before a call runs, and the keys that answer it.
//!
//! A card hides nothing without saying so. Every argument has its own lines, so that a long one
//! cannot push another out of sight; what is cut is counted, and [`Choice::More`] shows all of it,
//! page by page. Numbers stand as the model wrote them. Characters that a terminal would obey or a
//! reader could not see are spelt out, with a line that warns of them.
//!
//! A card about a request that could not be shown whole takes no yes before its pages were seen.
//!
//! A key is an answer only if it is one of those offered. Enter never means yes, and neither does
//! anything else that somebody might press in passing.

mod argument;
mod json;
mod keys;
mod layout;
mod request;

#[cfg(test)]
mod tests;

pub use argument::editable;
pub use keys::{Choice, Offers, key};
pub use layout::{Card, Position, is_cut, request_lines, subject_line};
