//! `notify`: messages to the user.

use super::{CapabilityKind, HeldCapability, kind::GrantedEntries, settings::SettingSpec};
use crate::limits::LimitRange;

/// Messages of a plugin per minute: enough for a busy timer, too few for a flood.
pub const NOTIFY_PER_MINUTE_DEFAULT: u32 = 10;

/// The most messages that a policy may allow: ten per second, too many to read.
const NOTIFY_PER_MINUTE_MAX: u32 = 600;

/// How often a plugin may send the user a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotifyGrant {
    /// Messages per minute.
    pub per_minute: u32,
}

/// The capability.
pub(crate) struct Notify;

static SETTINGS: [SettingSpec; 1] = [SettingSpec::new(
    "per-minute",
    LimitRange::Count(1..=NOTIFY_PER_MINUTE_MAX),
    NOTIFY_PER_MINUTE_DEFAULT as u64,
)];

impl CapabilityKind for Notify {
    fn word(&self) -> &'static str {
        "notify"
    }

    fn settings(&self) -> &'static [SettingSpec] {
        &SETTINGS
    }

    fn danger(&self) -> Option<&'static str> {
        Some("send messages")
    }

    fn action_phrase(&self, _detail: Option<&str>) -> String {
        "send messages".to_owned()
    }

    fn hold(&self, granted: &GrantedEntries<'_>) -> Option<HeldCapability> {
        let settings = granted.settings()?;
        let per_minute = settings.effective_count("per-minute");
        let line = format!("send you up to {per_minute} messages a minute");
        Some(HeldCapability::new(NotifyGrant { per_minute }, vec![line], self.danger()))
    }
}
