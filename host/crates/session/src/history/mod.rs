//! Functions over the records of a session: restore a conversation, list turns, find and export
//! texts. Everything here is pure.

mod export;
mod notices;
mod restore;
mod turns;

pub use export::{JSON_VERSION, KeptTexts, export_json, export_markdown};
pub use notices::{PastNotice, past_notices};
pub use restore::{InterruptedTurn, RestoredSession, restore_session};
pub use turns::{PastCall, PastTurn, TurnStep, fork_at, kept_numbers, past_turns, session_title};
