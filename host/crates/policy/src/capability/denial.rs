//! Refusals of capabilities, each with the change to the policy that would lift it.
//!
//! No change lifts the refusal of a capability that the manifest does not request, or that a policy
//! denies.

use sallyport_contract::{Denial, DenialReason, DenialSubject, PluginName, PolicyFix};

use super::{
    Capability, RequestedCapability, kind::CapabilityEntry, settings::CapabilitySettings,
    table::CapabilityTable,
};
use crate::{
    addition::GrantAddition, denial::ReasonAndFix, fix::PluginTableText, grant::Grant,
    policy_context::PolicyContext, request::requests_for, source::SourceLocation,
};

impl Grant {
    /// Returns the refusal of an action that requires a capability; for a granted UI, of answering
    /// a question. `action` is a verb phrase, such as `set a timer`.
    pub fn deny_capability(&self, capability: Capability, action: &str) -> Denial {
        let requests = requests_for(&self.manifest_requests().capabilities, capability);
        let denied = self.table().capabilities.denied_at(capability);
        let (reason, fix) = match (requests.as_slice(), denied) {
            ([], _) => (not_requested(capability), None),
            (_, Some(place)) => (denied_by(capability, place), None),
            (requests, None) => self.explain_missing_capability(capability, requests),
        };
        let subject = action_subject(self.plugin(), capability, action);
        self.compare_fix(Denial::new(subject, reason).with_fix(fix))
    }

    /// The refusal of a capability that is requested and that no file denies.
    fn explain_missing_capability(
        &self,
        of: Capability,
        requests: &[&RequestedCapability],
    ) -> ReasonAndFix {
        let (kind, context) = (of.kind(), self.policy_context());
        let held = self.effective_capabilities().find_held(of);
        if let Some((reason, flag)) = held.and_then(|held| kind.refusal_when_held(held, requests)) {
            return (reason, flag.and_then(|flag| fix_with_flag(context, of, flag)));
        }
        let is_harmless = !self.can_change_or_leak() && kind.danger().is_none();
        let table = context.effective_table();
        let new = kind.missing_entries(&table.capabilities, &table.fs, requests);
        let add = |table: &mut CapabilityTable| table.entries_mut(of).extend(new.clone());
        let additions = of.additions_for(&new).into_iter().map(GrantAddition::Capability);
        let fix = changed_table_fix(context, is_harmless, additions.collect(), &add);
        (not_granted(of), fix.filter(|_| !new.is_empty()))
    }
}

/// The subject of a refused action.
pub(super) fn action_subject(
    plugin: &PluginName,
    capability: Capability,
    action: &str,
) -> DenialSubject {
    DenialSubject::Capability {
        plugin: plugin.clone(),
        capability: capability.as_str().to_owned(),
        action: action.to_owned(),
        item: None,
    }
}

/// The reason of a refusal by an entry that denies the capability.
pub(super) fn denied_by(capability: Capability, place: &SourceLocation) -> DenialReason {
    let capability = capability.as_str().to_owned();
    DenialReason::CapabilityDenied { capability, place: place.into() }
}

/// The reason of a refusal of a capability that the manifest does not request.
pub(super) fn not_requested(capability: Capability) -> DenialReason {
    DenialReason::NotRequested { capability: Some(capability.as_str().to_owned()) }
}

/// The reason of a refusal of a capability that the policy does not grant.
pub(super) fn not_granted(capability: Capability) -> DenialReason {
    DenialReason::NotGranted { capability: Some(capability.as_str().to_owned()) }
}

/// Returns the fix that makes the additions. `change` makes them in the user's table, and there is
/// no fix if it causes a conflict in the combined table.
pub(super) fn changed_table_fix(
    policy_context: &PolicyContext,
    is_harmless: bool,
    additions: Vec<GrantAddition>,
    change: &dyn Fn(&mut CapabilityTable),
) -> Option<PolicyFix> {
    let mut joined = policy_context.effective_table().capabilities.clone();
    change(&mut joined);
    joined.check_conflicts(&policy_context.effective_table().fs).ok()?;
    let mut table = PluginTableText::new(policy_context);
    change(&mut table.capabilities);
    if !table.capabilities.is_within_limits() {
        return None;
    }
    table.additions = additions;
    Some(table.into_fix(!is_harmless))
}

/// Returns the fix that grants a capability with a flag, unless a file states the flag already.
pub(super) fn fix_with_flag(
    policy_context: &PolicyContext,
    of: Capability,
    flag: &'static str,
) -> Option<PolicyFix> {
    let table = &policy_context.effective_table().capabilities;
    if CapabilitySettings::of(table.grants(of))?.setting_place(flag).is_some() {
        return None;
    }
    let set = |table: &mut CapabilityTable| {
        let unset = CapabilitySettings::new(of.kind().settings());
        let settings = CapabilitySettings::of(table.grants(of)).unwrap_or(&unset);
        let place = SourceLocation::unwritten();
        let entry = CapabilityEntry::proposed(settings.with_flag(flag, place));
        *table.entries_mut(of) = vec![entry];
    };
    let additions = vec![GrantAddition::capability_setting(of, flag, "true")];
    changed_table_fix(policy_context, false, additions, &set)
}
