//! Landlock: denies opening, creating, renaming and executing files, making TCP connections,
//! binding TCP ports, and signalling other processes.

use sallyport_walls::landlock::{ABI, RulesetStatus, deny_all};

use super::IsolationLayerStatus;

/// The newest ABI known here. An older kernel enforces the part that it supports.
const NEWEST_ABI: ABI = ABI::V7;

/// Denies everything that Landlock can deny to this thread and to threads that it starts.
pub(super) fn apply_landlock() -> IsolationLayerStatus {
    let rules = deny_all(NEWEST_ABI, None, true).and_then(|rules| rules.create()?.restrict_self());
    match rules.map(|status| status.ruleset) {
        Ok(RulesetStatus::FullyEnforced) => IsolationLayerStatus::Active,
        Ok(RulesetStatus::PartiallyEnforced) => IsolationLayerStatus::Partial,
        Ok(RulesetStatus::NotEnforced) | Err(_) => IsolationLayerStatus::Missing,
    }
}
