//! Landlock: denies opening, creating, renaming and executing files, making TCP connections,
//! binding TCP ports, and signalling other processes.

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetError,
    RulesetStatus, Scope,
};

use super::IsolationLayerStatus;

/// The newest ABI known here. An older kernel enforces the part that it supports.
const NEWEST_ABI: ABI = ABI::V7;

/// Denies everything that Landlock can deny to this thread and to threads that it starts.
pub(super) fn apply_landlock() -> IsolationLayerStatus {
    match restrict_thread() {
        Ok(RulesetStatus::FullyEnforced) => IsolationLayerStatus::Active,
        Ok(RulesetStatus::PartiallyEnforced) => IsolationLayerStatus::Partial,
        Ok(RulesetStatus::NotEnforced) | Err(_) => IsolationLayerStatus::Missing,
    }
}

/// Restricts this thread with a rule set that handles every kind of access and allows none.
fn restrict_thread() -> Result<RulesetStatus, RulesetError> {
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST_ABI))?
        .handle_access(AccessNet::from_all(NEWEST_ABI))?
        .scope(Scope::from_all(NEWEST_ABI))?;
    Ok(rules.create()?.restrict_self()?.ruleset)
}
