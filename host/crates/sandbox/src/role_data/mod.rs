//! What the host and a plugin in a role give each other, in plain types.
//!
//! The exports of a component take and return them, whatever the version of the contract, and so do
//! the runs of the roles. Nothing in them has been checked.

mod guide;
mod listener;
mod ui;

pub use guide::GuidePersona;
pub use listener::{ListenerReply, ListenerSignal};
pub use ui::{
    UiActivity, UiEvent, UiMessage, UiMessageAuthor, UiTextFormat, UiToolCallRequest,
    UiToolCallResult,
};
