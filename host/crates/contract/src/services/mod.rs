//! What plugins keep, plan and say beyond a call, as the sandbox asks for it and the composition
//! root answers it.
//!
//! Whether a plugin may do it, and how much of it, is decided by policy before any of these traits is
//! asked; they only do it. Each is asked by one host call of the sandbox, and some by tools of the host
//! itself, so each is small and none knows the others. [`Inbox`] and [`Seat`] are not offered to all:
//! a run is joined to them while it plays its role.

mod notices;
mod packages;
mod seat;
mod state;
mod timers;

use std::sync::Arc;

use crate::name::PluginName;

pub use notices::{
    Audience, Delivery, NOTICE_BYTES_MAX, Notice, NoticeError, Notices, Opened, Opener, Progress,
};
pub use packages::{PackageError, PackageFile, Packages};
pub use seat::{Inbox, Origin, Seat, SeatError, Style};
pub use state::{Expected, Kept, StateError, StateStore, Write};
pub use timers::{Firing, Moment, Plan, Timer, TimerError, Timers};

/// Whose things they are: one plugin's, on behalf of one user.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner {
    /// The plugin.
    pub plugin: PluginName,
    /// The user, by a name that the host gives them; on a machine of one's own there is one.
    pub user: String,
}

/// Everything of this kind that the sandbox can ask for. What is missing is unavailable, with words
/// that say so.
#[derive(Clone, Default)]
pub struct Services {
    /// Keys and values.
    pub state: Option<Arc<dyn StateStore>>,
    /// Timers.
    pub timers: Option<Arc<dyn Timers>>,
    /// Messages to the person.
    pub notices: Option<Arc<dyn Notices>>,
    /// The user's browser.
    pub opener: Option<Arc<dyn Opener>>,
    /// Packages of a language.
    pub packages: Option<Arc<dyn Packages>>,
}

impl std::fmt::Debug for Services {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Services").finish_non_exhaustive()
    }
}
