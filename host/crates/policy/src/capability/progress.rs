//! `progress`: the progress of a call, shown to the user.

use super::{CapabilityKind, HeldCapability, kind::GrantedEntries};

/// The capability.
pub(crate) struct Progress;

impl CapabilityKind for Progress {
    fn word(&self) -> &'static str {
        "progress"
    }

    /// Progress may not be shown, so a plugin must work without it.
    fn is_needed(&self) -> bool {
        false
    }

    fn action_phrase(&self, _detail: Option<&str>) -> String {
        "show its progress".to_owned()
    }

    fn hold(&self, granted: &GrantedEntries<'_>) -> Option<HeldCapability> {
        let line = self.action_phrase(None);
        (!granted.entries.is_empty()).then(|| HeldCapability::new((), vec![line], self.danger()))
    }
}
