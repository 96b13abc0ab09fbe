//! The ends of a session that a run in a role holds. A tool's call holds none.

use std::sync::Arc;

use sallyport_contract::services::{Inbox, Seat};

use super::{program::Program, speech::Speech};

/// What a run is joined to, for as long as it goes on.
#[derive(Clone, Default)]
pub(crate) struct RoleLinks {
    /// Where a provider's words go while it generates.
    pub(crate) speech: Option<Arc<Speech>>,
    /// Where a listener's input goes.
    pub(crate) inlet: Option<Inlet>,
    /// Where a UI sits.
    pub(crate) seat: Option<Arc<dyn Seat>>,
    /// The streams of a program.
    pub(crate) program: Option<Program>,
}

/// A listener's way into the session.
#[derive(Clone)]
pub(crate) struct Inlet {
    pub(crate) inbox: Arc<dyn Inbox>,
    /// Where the signal came from.
    pub(crate) connection: Option<String>,
}
