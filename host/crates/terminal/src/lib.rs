//! What a person sees and types at a terminal.
//!
//! Everything between the bytes of a terminal and their meaning stands here: the [`editor`] that a
//! line is typed in, the [`markdown`] of an answer while it arrives, the [`screen`] whose lowest
//! lines are alive, the [`card`] that asks before a call runs, [`slash`] commands, and files
//! that are attached by name ([`attach`]).
//!
//! Architecture invariant: this crate knows no session and no model, only the contract; and what it
//! writes it writes to a sink that it is given, so that every screen can be tested without one.

pub mod attach;
pub mod card;
pub mod editor;
pub mod markdown;
pub mod screen;
pub mod slash;
pub mod style;
