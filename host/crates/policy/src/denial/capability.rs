//! Refusals of capabilities, each with the change to the policy that would lift it.
//!
//! No change lifts the refusal of a capability that the manifest does not request, or that a policy
//! denies.

use sallyport_contract::{Decision, Denial, DenialReason, GrantedScope, PolicyFix};
use url::Url;

use super::ReasonAndFix;
use crate::{
    addition::GrantAddition,
    capability::{
        Capability, CapabilityAddition, CapabilityContext, CapabilityEntry, CapabilityHolder,
        CapabilitySettings, CapabilityTable, PageEntry, RequestedCapability, UNSANDBOXED,
        action_subject, denied_by, find_page_entry, not_granted, not_requested,
    },
    grant::Grant,
    policy_context::PolicyContext,
    request::requests_for,
    source::SourceLocation,
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
        let fix = context.changed_table_fix(is_harmless, of.additions_for(&new), &add);
        (not_granted(of), fix.filter(|_| !new.is_empty()))
    }

    /// The addition that grants an item of a refused action; `None` if it is granted by now.
    ///
    /// # Errors
    ///
    /// The refusal that leaves it to the operator.
    pub(crate) fn item_addition(
        &self,
        of: Capability,
        item: &str,
    ) -> Result<Option<GrantAddition>, Denial> {
        let deny = |of: Capability, action: &str| self.deny_capability(of, action);
        let missing = of.kind().missing_item(&self.capability_holder(&deny), item)?;
        Ok(missing.map(|item| GrantAddition::capability_item(of, &item)))
    }

    /// Whether what is granted covers an item of an action.
    pub(crate) fn covers_item(&self, of: Capability, item: &str) -> bool {
        let deny = |of: Capability, action: &str| self.deny_capability(of, action);
        of.kind().covers_item(&self.capability_holder(&deny), item)
    }

    fn capability_holder<'g, 'd>(
        &'g self,
        deny: &'d dyn Fn(Capability, &str) -> Denial,
    ) -> CapabilityHolder<'g, 'd> {
        let capabilities = self.effective_capabilities();
        CapabilityHolder { plugin: self.plugin(), capabilities, deny }
    }

    /// Checks whether a page may be opened, and whether the user is asked about it.
    ///
    /// # Errors
    ///
    /// The page is not granted. The refusal states why, and how to lift it.
    pub fn check_page(&self, url: &Url) -> Result<Decision, Denial> {
        self.find_page_entry(url).map(|entry| entry.decision)
    }

    /// The entry that allows a page to be opened.
    pub(crate) fn find_page_entry(&self, url: &Url) -> Result<&PageEntry, Denial> {
        let deny = |of: Capability, action: &str| self.deny_capability(of, action);
        find_page_entry(&self.capability_holder(&deny), url)
    }

    /// Returns the refusal of a native program that the kernel cannot sandbox. `action` is a verb
    /// phrase, such as `run`.
    pub fn deny_unsandboxed(&self, action: &str) -> Denial {
        let (of, context) = (Capability::Process, self.policy_context());
        let (reason, fix) = match self.process() {
            None => (not_granted(of), None),
            Some(_) => (
                DenialReason::GrantedLess(GrantedScope::Sandboxed),
                fix_with_flag(context, of, UNSANDBOXED),
            ),
        };
        let subject = action_subject(self.plugin(), of, action);
        self.compare_fix(Denial::new(subject, reason).with_fix(fix))
    }
}

/// Returns the fix that grants a capability with a flag, unless a file states the flag already.
fn fix_with_flag(
    policy_context: &PolicyContext,
    of: Capability,
    flag: &'static str,
) -> Option<PolicyFix> {
    let table = policy_context.capabilities();
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
    let additions = vec![CapabilityAddition::setting(of, flag, "true")];
    policy_context.changed_table_fix(false, additions, &set)
}
