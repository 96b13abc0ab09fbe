//! Capabilities: services of the host beyond network, files, variables and secrets.
//!
//! Each capability has one word, which its interface, the manifest's request, the policy's key and
//! the audit records share. Most are granted with `true` or with a table of settings; three are
//! lists of grants. `false` takes a capability away, regardless of other files.

mod denial;
mod effective;
mod listen;
mod open_url;
mod packages;
mod request;
mod scratch;
mod settings;
mod table;

use std::fmt;

pub(crate) use self::{
    denial::{
        PACKAGE_ACTION_PREFIX, capability_denial, capability_from_reason, missing_listen_grants,
        missing_scratch_entries, unsandboxed_denial,
    },
    effective::EffectiveCapabilities,
    open_url::{OpenUrlEntry, UrlPattern},
    packages::PackagePattern,
    request::read_capability_requests,
    scratch::ScratchEntry,
    table::CapabilityTable,
};
pub use self::{
    effective::{NotifyGrant, ProcessGrant, ScheduleGrant, StateGrant, UiGrant},
    listen::{ListenAddress, ListenGrant, ListenKind},
    open_url::OpenUrlGrant,
    packages::PackagesGrant,
    request::{CapabilityRequest, RequestedCapability},
    scratch::{SCRATCH_QUOTA_DEFAULT_BYTES, ScratchGrant},
    settings::{
        NOTIFY_PER_MINUTE_DEFAULT, SCHEDULE_INTERVAL_DEFAULT, SCHEDULE_TIMERS_DEFAULT,
        STATE_QUOTA_DEFAULT_BYTES, STATE_VALUE_DEFAULT_BYTES,
    },
};

/// A service that the host offers to plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Capability {
    /// Keeps keys and values.
    State,
    /// Keeps timers and calls the plugin when they fire.
    Schedule,
    /// Sends messages to the user.
    Notify,
    /// Shows the progress of a call.
    Progress,
    /// Opens pages in the user's browser.
    OpenUrl,
    /// Fetches packages of a programming language.
    Packages,
    /// Provides a temporary file system for the session.
    Scratch,
    /// Delivers external signals.
    Listen,
    /// Makes the plugin the user interface of a session.
    Ui,
    /// Starts the plugin as a native program.
    Process,
}

impl Capability {
    /// All capabilities, in output order.
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

    /// The word for the capability in manifests, policies, interfaces and records.
    pub fn as_str(self) -> &'static str {
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

    /// The capability with this word, if there is one.
    pub fn from_name(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|capability| capability.as_str() == word)
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
