//! Landlock: no file can be opened, made, renamed or run, no TCP connection made or taken, no
//! process of others signalled.

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetError,
    RulesetStatus, Scope,
};

use super::Wall;

/// The newest version whose rules are known here. An older kernel keeps those that it knows.
const NEWEST: ABI = ABI::V7;

/// Takes everything that Landlock can take from this thread and those that it starts.
pub(super) fn raise() -> Wall {
    match restrict() {
        Ok(RulesetStatus::FullyEnforced) => Wall::Up,
        Ok(RulesetStatus::PartiallyEnforced) => Wall::Partly,
        Ok(RulesetStatus::NotEnforced) | Err(_) => Wall::Missing,
    }
}

/// A set of rules that names every kind of access and allows none.
fn restrict() -> Result<RulesetStatus, RulesetError> {
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?;
    Ok(rules.create()?.restrict_self()?.ruleset)
}
