//! Landlock: rules that deny access to files, TCP ports and other processes.

pub use landlock::{ABI, RulesetStatus};
use landlock::{
    Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetError, Scope,
};

/// Returns rules that deny every access that the version `newest` knows, unless a later rule allows
/// it. An older kernel enforces the part that it supports, but at least the files and signals of the
/// version `required`. Without `deny_tcp`, all TCP ports remain.
///
/// # Errors
///
/// The kernel does not support the required version.
pub fn deny_all(
    newest: ABI,
    required: Option<ABI>,
    deny_tcp: bool,
) -> Result<Ruleset, RulesetError> {
    let rules = required.map_or_else(|| Ok(Ruleset::default()), |abi| require(abi, true))?;
    let rules = rules.set_compatibility(CompatLevel::BestEffort);
    let rules = rules.handle_access(AccessFs::from_all(newest))?.scope(Scope::from_all(newest))?;
    if deny_tcp { rules.handle_access(AccessNet::from_all(newest)) } else { Ok(rules) }
}

/// Whether the kernel protects the files of this version, and also its signals if `with_signals`.
pub fn is_supported(abi: ABI, with_signals: bool) -> bool {
    require(abi, with_signals).and_then(Ruleset::create).is_ok()
}

/// Returns rules for a version that the kernel must support.
fn require(abi: ABI, with_signals: bool) -> Result<Ruleset, RulesetError> {
    let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let rules = rules.handle_access(AccessFs::from_all(abi))?;
    if with_signals { rules.scope(Scope::from_all(abi)) } else { Ok(rules) }
}
