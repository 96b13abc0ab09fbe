//! The user interface at a terminal.
//!
//! It contains the [`editor`] for typed lines, the lines that are [`typed_ahead`], the [`markdown`]
//! renderer for streamed answers, the [`screen`] with its live lowest lines, the approval [`card`],
//! [`slash`] commands, lists in columns ([`listing`]), files attached by name ([`attach`]), and
//! [`picture`]s.
//!
//! Architecture invariant: this crate depends on the contract but not on sessions or models. It
//! writes only to sinks that it is given, so every screen can be tested without a terminal.

pub mod attach;
pub mod card;
pub mod editor;
pub mod listing;
pub mod markdown;
pub mod picture;
pub mod screen;
pub mod slash;
pub mod style;
pub mod typed_ahead;

mod columns;
mod fold;
mod wrap;
