//! What records say when they are read again: a conversation to go on with, turns to show, texts to
//! find and to hand on. Everything here is pure.

mod export;
mod notices;
mod restore;
mod turns;

pub use export::{JSON_VERSION, json, markdown};
pub use notices::{PastNotice, notices};
pub use restore::{Interrupted, Restored, restore};
pub use turns::{PastCall, PastTurn, Step, fork_at, title, turns};
