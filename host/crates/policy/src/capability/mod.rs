//! Capabilities: services of the host beyond network, files, variables and secrets.
//!
//! Each capability has one word, which its interface, the manifest's request, the policy's key and
//! the audit records share. Most are granted with `true` or with a table of settings; three are
//! lists of grants. `false` takes a capability away, regardless of other files.
//!
//! The list at the end of this file names them all. Each one is a module that implements
//! `CapabilityKind`.

mod addition;
mod context;
mod denial;
mod effective;
mod kind;
mod request;
mod settings;
mod table;

mod listen;
mod notify;
mod open_url;
mod packages;
mod process;
mod progress;
mod schedule;
mod scratch;
mod state;
mod ui;

use std::fmt;

pub use self::{
    addition::{CapabilityAddition, CapabilityPart},
    listen::{ListenAddress, ListenGrant, ListenKind},
    notify::*,
    open_url::*,
    packages::*,
    process::*,
    request::RequestedCapability,
    schedule::*,
    scratch::*,
    state::*,
    ui::*,
};
pub(crate) use self::{
    context::CapabilityContext,
    denial::{action_subject, denied_by, not_granted, not_requested},
    effective::EffectiveCapabilities,
    kind::{CapabilityEntry, CapabilityHolder, CapabilityKind, HeldCapability, ValueShape},
    settings::CapabilitySettings,
    table::{CapabilityTable, read_bounded_list},
};

impl Capability {
    /// The word for the capability in manifests, policies, interfaces and records.
    pub fn as_str(self) -> &'static str {
        self.kind().word()
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

/// Defines [`Capability`] from its list.
macro_rules! capabilities {
    ($($(#[$doc:meta])* $module:ident::$name:ident,)*) => {
        /// A service that the host offers to plugins.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Capability {
            $($(#[$doc])* $name,)*
        }

        impl Capability {
            /// All capabilities, in output order.
            pub const ALL: [Self; [$(Self::$name),*].len()] = [$(Self::$name),*];

            pub(crate) fn kind(self) -> &'static dyn CapabilityKind {
                match self {
                    $(Self::$name => &$module::$name,)*
                }
            }
        }
    };
}

capabilities! {
    /// Keeps keys and values.
    state::State,
    /// Keeps timers and calls the plugin when they fire.
    schedule::Schedule,
    /// Sends messages to the user.
    notify::Notify,
    /// Shows the progress of a call.
    progress::Progress,
    /// Opens pages in the user's browser.
    open_url::OpenUrl,
    /// Fetches packages of a programming language.
    packages::Packages,
    /// Provides a temporary file system for the session.
    scratch::Scratch,
    /// Delivers external signals.
    listen::Listen,
    /// Makes the plugin the user interface of a session.
    ui::Ui,
    /// Starts the plugin as a native program.
    process::Process,
}
