//! What a plugin holds of each capability.

use super::Grant;
use crate::capability::{
    Capability, ListenGrant, NotifyGrant, OpenUrlGrant, PackagesGrant, ProcessGrant, ScheduleGrant,
    ScratchGrant, StateGrant, UiGrant,
};

impl Grant {
    /// How much state the plugin may keep.
    pub fn state(&self) -> Option<&StateGrant> {
        self.held_capability(Capability::State)
    }

    /// The timers that the plugin may set.
    pub fn schedule(&self) -> Option<&ScheduleGrant> {
        self.held_capability(Capability::Schedule)
    }

    /// How often the plugin may send the user a message.
    pub fn notify(&self) -> Option<&NotifyGrant> {
        self.held_capability(Capability::Notify)
    }

    /// Whether the plugin may show the progress of a call.
    pub fn can_show_progress(&self) -> bool {
        self.has_capability(Capability::Progress)
    }

    /// The pages that the plugin may open in the user's browser.
    pub fn open_url(&self) -> Option<&OpenUrlGrant> {
        self.held_capability(Capability::OpenUrl)
    }

    /// The packages that the plugin may fetch.
    pub fn packages(&self) -> &PackagesGrant {
        PackagesGrant::of(self.effective_capabilities())
    }

    /// The scratches that the guest sees. Their mounts never nest, neither with each other nor with
    /// folders.
    pub fn scratch(&self) -> &[ScratchGrant] {
        self.held_capability::<Vec<_>>(Capability::Scratch).map_or(&[], Vec::as_slice)
    }

    /// The addresses that the plugin may listen on.
    pub fn listen(&self) -> &[ListenGrant] {
        self.held_capability::<Vec<_>>(Capability::Listen).map_or(&[], Vec::as_slice)
    }

    /// What the plugin may do as the user interface of a session.
    pub fn ui(&self) -> Option<UiGrant> {
        self.held_capability(Capability::Ui).copied()
    }

    /// How the plugin may run as a native program.
    pub fn process(&self) -> Option<&ProcessGrant> {
        self.held_capability(Capability::Process)
    }
}
