//! The links between a run and its session. A tool's call has none, except the streams of a
//! program.

mod delta_stream;
mod program;

use std::sync::Arc;

use sallyport_contract::services::{SessionInbox, UiSession};

pub(crate) use self::{
    delta_stream::DeltaStream,
    program::{OutputCapture, ProgramStreams},
};

/// The links of one run, for as long as it lasts.
#[derive(Clone, Default)]
pub(crate) struct RoleLinks {
    /// Receives the pieces of a provider's answer while it generates.
    pub(crate) delta_stream: Option<Arc<DeltaStream>>,
    /// Receives a listener's input.
    pub(crate) listener_input: Option<ListenerInputLink>,
    /// Receives a UI's commands and drawings.
    pub(crate) ui_session: Option<Arc<dyn UiSession>>,
    /// The streams of a program.
    pub(crate) program: Option<ProgramStreams>,
}

/// A listener's connection to the session.
#[derive(Clone)]
pub(crate) struct ListenerInputLink {
    pub(crate) inbox: Arc<dyn SessionInbox>,
    /// The connection that the signal came from.
    pub(crate) connection: Option<String>,
}
