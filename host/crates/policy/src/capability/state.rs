//! `state`: keys and values that a plugin keeps.

use super::{CapabilityKind, HeldCapability, kind::GrantedEntries, settings::SettingSpec};
use crate::{limits::LimitRange, unit::ByteSize};

/// All keys and values of one plugin and user: some thousand notes, but not a bulk store.
pub const STATE_QUOTA_DEFAULT_BYTES: u64 = 1 << 20;

/// The largest quota that a policy may state: the store is a single file, not a file server.
const STATE_QUOTA_BYTES_MAX: u64 = 1 << 30;

/// The longest single value: a text document; larger data belongs in a file.
pub const STATE_VALUE_DEFAULT_BYTES: u64 = 64 << 10;

/// The longest value that a policy may allow: each value is held in memory as a whole.
const STATE_VALUE_BYTES_MAX: u64 = 64 << 20;

/// The state that a plugin may keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateGrant {
    /// Total size of all keys and values for one user, in bytes.
    pub quota_bytes: u64,
    /// Size of the largest single value, in bytes.
    pub value_bytes_max: u64,
}

/// The capability.
pub(crate) struct State;

static SETTINGS: [SettingSpec; 2] = [
    SettingSpec::new(
        "quota",
        LimitRange::Bytes(1..=STATE_QUOTA_BYTES_MAX),
        STATE_QUOTA_DEFAULT_BYTES,
    ),
    SettingSpec::new(
        "value",
        LimitRange::Bytes(1..=STATE_VALUE_BYTES_MAX),
        STATE_VALUE_DEFAULT_BYTES,
    ),
];

impl CapabilityKind for State {
    fn word(&self) -> &'static str {
        "state"
    }

    fn settings(&self) -> &'static [SettingSpec] {
        &SETTINGS
    }

    fn action_phrase(&self, _detail: Option<&str>) -> String {
        "keep state".to_owned()
    }

    fn hold(&self, granted: &GrantedEntries<'_>) -> Option<HeldCapability> {
        let settings = granted.settings()?;
        let quota_bytes = settings.effective_value("quota");
        let value_bytes_max = settings.effective_value("value").min(quota_bytes);
        let line = format!("keep up to {} of state", ByteSize(quota_bytes));
        let grant = StateGrant { quota_bytes, value_bytes_max };
        Some(HeldCapability::new(grant, vec![line], self.danger()))
    }
}
