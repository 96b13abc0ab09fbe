//! Host services for plugins, such as state, timers and notices: the sandbox calls them and the
//! composition root implements them.
//!
//! Policy decides whether a plugin may use a service, and how much of it, before any of these
//! traits is called; the traits only carry it out. Each is called by one host call of the sandbox,
//! and some by tools of the host itself, so each is small and independent of the others. [`Inbox`]
//! and [`Seat`] are not offered to every run: a run is connected to them while it plays its role.

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

/// The owner of stored data: one plugin, on behalf of one user.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner {
    /// The plugin.
    pub plugin: PluginName,
    /// The user, by a name that the host assigns; a personal machine has one user.
    pub user: String,
}

/// The services that the sandbox can use. A missing one is unavailable, and its error states so.
#[derive(Clone, Default)]
pub struct Services {
    /// Keys and values.
    pub state: Option<Arc<dyn StateStore>>,
    /// Timers.
    pub timers: Option<Arc<dyn Timers>>,
    /// Messages to the user.
    pub notices: Option<Arc<dyn Notices>>,
    /// The user's browser.
    pub opener: Option<Arc<dyn Opener>>,
    /// Language packages.
    pub packages: Option<Arc<dyn Packages>>,
}

impl std::fmt::Debug for Services {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Services").finish_non_exhaustive()
    }
}
