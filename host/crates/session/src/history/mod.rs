//! Functions over the records of a session: restore a conversation, list turns, find and export
//! texts. Everything here is pure.

mod export;
mod notices;
mod restore;
mod turns;

pub use export::{JSON_VERSION, json, markdown};
pub use notices::{PastNotice, notices};
pub use restore::{Interrupted, Restored, restore};
pub use turns::{PastCall, PastTurn, Step, fork_at, title, turns};
