//! The roles that a plugin can have in addition to tools, in plain types: their inputs, their
//! results, and the runs in between.
//!
//! A role run is a run that no model requested. Except for a guide's, which has no grants, it has
//! passed the gate like a call, is limited and recorded like one, and ends in a
//! [`CallReport`](sallyport_contract::CallReport). Its links to the session (the pieces of an
//! answer, an inbox, a seat) are valid for that run only.

mod guide;
mod http;
mod links;
mod listener;
mod program;
mod provider;
mod speech;
mod timers;
mod ui;

pub use self::http::{BodyError, HttpBody, Served};
pub use guide::Persona;
pub(crate) use links::{Inlet, RoleLinks};
pub use listener::{Handled, Listener, Reply, Signal};
pub(crate) use program::Program;
pub use provider::{
    AnswerMessage, Answered, Blob, Delta, Deltas, Finish, Generated, Generation,
    GenerationSettings, Message, ProviderFailure, ToolDefinition, ToolRequest, ToolResult, Usage,
    UserMessage,
};
pub(crate) use speech::Speech;
pub use timers::Fired;
pub use ui::{Activity, Author, Format, ToolCallRequest, ToolCallResult, Ui, UiEvent, UiMessage};
