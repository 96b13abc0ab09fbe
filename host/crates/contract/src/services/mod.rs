//! Host services for plugins, such as state, timers and notices: the sandbox calls them and the
//! composition root implements them.
//!
//! Policy decides whether a plugin may use a service, and how much of it, before any of these
//! traits is called; the traits only carry it out. Each is called by one host call of the sandbox,
//! and some by tools of the host itself, so each is small and independent of the others.
//! [`SessionInbox`] and [`UiSession`] are not offered to every run: a run is connected to them
//! while it plays its role.

mod file_copies;
mod notices;
mod packages;
mod participants;
mod state;
mod timers;

use std::sync::Arc;

use crate::name::PluginName;

pub use file_copies::FileCopyFolders;
pub use notices::{
    CallProgress, DeliveryTime, NOTICE_BYTES_MAX, NoticeAudience, NoticeError, NoticeService,
    PluginNotice, UrlOpenResult, UrlOpener,
};
pub use packages::{PackageFetchError, PackageFile, PackageService};
pub use participants::{InputOrigin, SessionInbox, SubmissionError, TextStyle, UiSession};
pub use state::{StateStore, StateStoreError, StateWrite, StoredValue, WriteCondition};
pub use timers::{StoredTimer, TimerError, TimerFiring, TimerRequest, TimerSchedule, TimerStore};

/// The owner of stored data: one plugin, on behalf of one user.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DataOwner {
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
    pub timers: Option<Arc<dyn TimerStore>>,
    /// Messages to the user.
    pub notices: Option<Arc<dyn NoticeService>>,
    /// The user's browser.
    pub url_opener: Option<Arc<dyn UrlOpener>>,
    /// Language packages.
    pub packages: Option<Arc<dyn PackageService>>,
    /// Copies of the files that calls change.
    pub file_copies: Option<Arc<dyn FileCopyFolders>>,
}

impl std::fmt::Debug for Services {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Services").finish_non_exhaustive()
    }
}
