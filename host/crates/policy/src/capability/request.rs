//! What a plugin can request of a capability.

use std::fmt;

use super::Capability;

/// The action that a plugin requests from a capability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedCapability {
    /// The capability.
    pub capability: Capability,
    /// What the request says besides its reason: the name of a scratch, a kind of signals.
    pub detail: Option<String>,
}

impl RequestedCapability {
    /// The capability that it requires.
    pub fn capability(&self) -> Capability {
        self.capability
    }
}

impl fmt::Display for RequestedCapability {
    /// The requested action, in the same words as a power in the output for the user who decides.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.capability.kind().action_phrase(self.detail.as_deref()))
    }
}
