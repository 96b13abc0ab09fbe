//! Host implementations of the services for plugins.
//!
//! Each trait of [`sallyport_contract::services`] is implemented here: the store keeps state and
//! timers, open conversations show messages, the user's browser opens pages, and the configured
//! index provides packages. Each service is opened at its first use.

mod alarm;
pub mod browser;
mod delivery;
mod file_copies;
mod notification_hub;
mod packages;

use std::{path::PathBuf, sync::Arc};

use sallyport_contract::Services;
use sallyport_store::HostStore;

pub use alarm::TimerAlarm;
pub use browser::Browser;
pub use file_copies::FileCopies;
pub use notification_hub::{NotificationHub, ProgressSink, Subscription};

use crate::gate::MessageSink;
use alarm::NotifyingTimers;
use packages::LazyPackageIndex;

/// The parts that the services are made of.
pub struct HostServicesParts {
    /// The store.
    pub store: HostStore,
    /// Opens pages.
    pub browser: Browser,
    /// The address of the package index, if one is configured.
    pub package_index: Option<String>,
    /// The folder that caches fetched packages.
    pub package_folder: PathBuf,
    /// The folder with copies of files that calls changed.
    pub undo_folder: PathBuf,
    /// Receives warnings.
    pub message_sink: MessageSink,
}

/// The services of a program for its plugins, with handles to the parts that keep running.
pub struct HostServices {
    /// The services that the sandbox uses.
    pub services: Services,
    /// The open conversations.
    pub notification_hub: Arc<NotificationHub>,
    /// Rings when timers are set.
    pub alarm: Arc<TimerAlarm>,
    /// The sessions that can undo changes of files.
    pub file_copies: Arc<FileCopies>,
}

impl HostServices {
    /// Creates the services. Each is opened at its first use.
    pub fn new(parts: HostServicesParts) -> Self {
        let HostServicesParts { store, browser, package_index, package_folder, .. } = parts;
        let message_sink = parts.message_sink;
        let file_copies = Arc::new(FileCopies::new(parts.undo_folder));
        let alarm = Arc::new(TimerAlarm::default());
        let notification_hub = Arc::new(NotificationHub::new(store.clone(), message_sink));
        let services = Services {
            state: Some(store.state),
            timers: Some(Arc::new(NotifyingTimers {
                timer_store: store.timers,
                alarm: Arc::clone(&alarm),
            })),
            notices: Some(Arc::clone(&notification_hub) as Arc<_>),
            url_opener: Some(Arc::new(browser)),
            packages: Some(Arc::new(LazyPackageIndex::new(package_index, package_folder))),
            file_copies: Some(Arc::clone(&file_copies) as Arc<_>),
        };
        Self { services, notification_hub, alarm, file_copies }
    }
}
