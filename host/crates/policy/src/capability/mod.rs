//! Capabilities: what the host does for a plugin beyond network, files, variables and secrets.
//!
//! Each has one word. An interface, a request of the manifest, a key of the policy and the records
//! of the audit all use it. Most are granted with `true` or with a table of settings; three are
//! lists of what is granted. `false` takes a capability away, whoever grants it.

mod deny;
mod held;
mod listen;
mod open_url;
mod packages;
mod request;
mod scratch;
mod switch;
mod table;

use std::fmt;

pub(crate) use self::{
    deny::{PACKAGE, denial, new_listens, new_scratches, of_reason, of_unwalled},
    held::Held,
    open_url::{OpenUrlEntry, UrlPattern},
    packages::PackagePattern,
    request::read_all,
    scratch::ScratchEntry,
    table::Capabilities,
};
pub use self::{
    held::{NotifyGrant, ProcessGrant, ScheduleGrant, StateGrant, UiGrant},
    listen::{ListenAddress, ListenGrant, ListenKind},
    open_url::OpenUrlGrant,
    packages::PackagesGrant,
    request::{CapabilityRequest, Wish},
    scratch::{SCRATCH_QUOTA_STANDARD_BYTES, ScratchGrant},
    switch::{
        NOTIFY_PER_MINUTE_STANDARD, SCHEDULE_INTERVAL_STANDARD, SCHEDULE_TIMERS_STANDARD,
        STATE_QUOTA_STANDARD_BYTES, STATE_VALUE_STANDARD_BYTES,
    },
};

/// Something that the host does for a plugin on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Capability {
    /// Keeps keys and values.
    State,
    /// Keeps timers and calls back.
    Schedule,
    /// Passes messages on to the person.
    Notify,
    /// Shows how far a call has come.
    Progress,
    /// Opens pages in the user's browser.
    OpenUrl,
    /// Fetches packages of a language.
    Packages,
    /// Gives it a temporary file system of the session.
    Scratch,
    /// Lets signals from outside reach it.
    Listen,
    /// Makes it the user's side of a session.
    Ui,
    /// Starts it as a program of this machine.
    Process,
}

impl Capability {
    /// All of them, in the order in which they are written.
    pub const ALL: [Self; 10] = [
        Self::State,
        Self::Schedule,
        Self::Notify,
        Self::Progress,
        Self::OpenUrl,
        Self::Packages,
        Self::Scratch,
        Self::Listen,
        Self::Ui,
        Self::Process,
    ];

    /// The word for it in manifests, policies, interfaces and records.
    pub fn word(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Schedule => "schedule",
            Self::Notify => "notify",
            Self::Progress => "progress",
            Self::OpenUrl => "open-url",
            Self::Packages => "packages",
            Self::Scratch => "scratch",
            Self::Listen => "listen",
            Self::Ui => "ui",
            Self::Process => "process",
        }
    }

    /// The capability of this word, if it is one.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|capability| capability.word() == word)
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
