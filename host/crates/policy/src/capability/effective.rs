//! The capabilities that a plugin holds: those that its manifest requests and its policy grants.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Capability, CapabilityContext, RequestedCapability,
    kind::{CapabilityEntry, GrantedEntries, HeldCapability},
};
use crate::grant_note::GrantNote;

/// The capabilities of one plugin.
#[derive(Debug, Clone)]
pub(crate) struct EffectiveCapabilities {
    held: BTreeMap<Capability, HeldCapability>,
    /// The capabilities that only a project's policy takes away, each with its danger, if any, as a
    /// verb phrase.
    pub(crate) denied_by_project: Vec<(Capability, Option<&'static str>)>,
}

impl EffectiveCapabilities {
    /// Returns the capabilities that are both requested and granted. Notes repeated requests, and
    /// entries that nothing requests.
    pub(crate) fn new(
        context: &Arc<dyn CapabilityContext>,
        all_requests: &[&RequestedCapability],
        notes: &mut Vec<GrantNote>,
    ) -> Self {
        note_repeated_requests(all_requests, notes);
        let table = context.capabilities();
        let mut effective = Self { held: BTreeMap::new(), denied_by_project: Vec::new() };
        for of in Capability::ALL {
            let kind = of.kind();
            let requests = all_requests.iter().copied().filter(|request| request.capability == of);
            let requests: Vec<&RequestedCapability> = requests.collect();
            let (requested, unrequested): (Vec<&CapabilityEntry>, Vec<_>) =
                table.grants(of).partition(|entry| is_requested(of, entry, &requests));
            notes.extend(unrequested.into_iter().map(|entry| {
                let effect = format!("grants {of} = {}", entry.to_toml());
                GrantNote::for_unrequested_entry(&entry.place, effect)
            }));
            let is_denied = table.denied_at(of).is_some();
            if !is_denied {
                let grants: Vec<_> = table.grants(of).collect();
                kind.note_unrequested_parts(&grants, &requests, notes);
            }
            let granted = if is_denied { &[][..] } else { &requested };
            let (requests, entries) = (&requests, granted);
            let held = kind.hold(&GrantedEntries { context, requests, entries });
            effective.held.extend(held.map(|held| (of, held)));
            if table.is_denied_only_by_project(of)
                && let Some(withheld) =
                    kind.hold(&GrantedEntries { context, requests, entries: &requested })
                && !withheld.lines.is_empty()
            {
                effective.denied_by_project.push((of, withheld.danger));
            }
        }
        effective
    }

    /// The plugin's powers, one line each, for the user who decides.
    pub(crate) fn permission_lines(&self) -> impl Iterator<Item = &String> {
        self.held.values().flat_map(|held| &held.lines)
    }

    /// What the plugin holds of a capability, if it does.
    pub(crate) fn find_held(&self, capability: Capability) -> Option<&HeldCapability> {
        self.held.get(&capability).filter(|held| !held.lines.is_empty())
    }

    /// The grant of a capability, which may be empty.
    pub(crate) fn value<T: 'static>(&self, capability: Capability) -> Option<&T> {
        self.held.get(&capability)?.value()
    }

    /// What the capabilities let the plugin change or leak, as verb phrases.
    pub(crate) fn danger_phrases(&self) -> impl Iterator<Item = (Capability, &'static str)> {
        let held = Capability::ALL.into_iter().filter_map(|of| Some((of, self.find_held(of)?)));
        held.filter_map(|(of, held)| Some((of, held.danger?)))
    }
}

/// Whether a request of the manifest is about an entry.
fn is_requested(
    of: Capability,
    entry: &CapabilityEntry,
    requests: &[&RequestedCapability],
) -> bool {
    requests.iter().any(|request| of.kind().is_about(entry, request.detail.as_deref()))
}

fn note_repeated_requests(requests: &[&RequestedCapability], notes: &mut Vec<GrantNote>) {
    for (index, request) in requests.iter().enumerate() {
        if requests[..index].iter().filter(|other| *other == request).count() == 1 {
            notes.push(format!("the manifest requests twice to {request}").into());
        }
    }
}
