//! Network requests: entries with exact paths, or with a wildcard if there are too many to review.

use std::collections::{BTreeMap, BTreeSet};

use sallyport_contract::{Decision, Denial};
use serde_json::{Map, Value};

use super::{AdditionResult, PluginRefusals, RefusedAccess, add_or_leave_open};
use crate::{
    Grant, Manifest, NetPattern,
    addition::{GrantAddition, NetAddition, NetReachText},
    net::{is_public_address, pattern::exact_pattern, request_text::request_subject},
};

/// Most paths below one parent that are listed; beyond that, they become `parent/*`.
const PATHS_MAX: usize = 8;

/// Most requests of a manifest that are compared to find the narrowest. No author writes so many
/// about one folder, and the time is quadratic in their number.
const PARTS_MAX: usize = 64;

/// Returns the entries that allow the refused requests.
pub(super) fn net_additions(
    refusals: &PluginRefusals,
    manifest: &Manifest,
    settings: &Map<String, Value>,
    grant: &Grant,
    unresolved: &mut Vec<String>,
) -> Vec<GrantAddition> {
    let mut exact = Vec::new();
    for refused_access in refusals.refused_accesses() {
        add_or_leave_open(exact_net_pattern(refused_access, grant), &mut exact, unresolved);
    }
    let settings = manifest.settings.with_defaults(settings);
    let requests = manifest.request.net.iter();
    let requests: Vec<_> = requests.filter_map(|r| r.allow.fill_settings(&settings).ok()).collect();
    merge_methods(&merge_siblings(&exact, &requests))
}

/// The pattern that matches this request only, if the policy does not allow it yet.
fn exact_net_pattern(refused_access: &RefusedAccess, grant: &Grant) -> AdditionResult<NetPattern> {
    let RefusedAccess::Net { method, url, to_private } = refused_access else { return Ok(None) };
    let refusal = |reason: &str| Denial::new(request_subject(grant.plugin(), method, url), reason);
    match grant.net().check_request(method, url) {
        Err(denial) if denial.fix.is_none() => return Err(denial),
        Err(_) => {}
        Ok(permit) if permit.decision() != Decision::Allow => {
            return Err(refusal(&format!("the entry at {} asks a person", permit.place())));
        }
        Ok(permit) if to_private.is_none_or(|addr| permit.allows_address(addr)) => return Ok(None),
        Ok(_) => {}
    }
    let pattern = exact_pattern(method, url);
    let pattern = pattern.ok_or_else(|| refusal("no pattern can name it and nothing else"))?;
    let own = pattern.host().determined_ranges().unwrap_or_default();
    match to_private.filter(|addr| !is_public_address(addr.to_canonical())) {
        // The owner of a host name chooses its address, so only the operator can decide.
        Some(addr) if !own.iter().any(|range| range.contains(&addr.to_canonical())) => {
            Err(grant.deny_address(method, url, addr))
        }
        Some(_) | None => Ok(Some(pattern)),
    }
}

/// Merges too many sibling paths into their parent, as far as the manifest requests that.
fn merge_siblings(exact: &[NetPattern], requests: &[NetPattern]) -> Vec<NetPattern> {
    let mut families: BTreeMap<String, BTreeMap<String, &NetPattern>> = BTreeMap::new();
    for pattern in exact {
        let text = pattern.to_string();
        // The text before the last slash includes the method and the origin.
        let parent = text.rsplit_once('/').map_or(text.as_str(), |(parent, _)| parent);
        families.entry(parent.to_owned()).or_default().insert(text, pattern);
    }
    let entries = families.into_iter().flat_map(|(parent, family)| {
        let family: Vec<_> = family.into_values().collect();
        match family.len() > PATHS_MAX {
            true => narrow_to_requests(&parent, &family, requests),
            false => family.into_iter().cloned().collect(),
        }
    });
    entries.collect()
}

/// The parts of `parent/*` that the manifest requests, narrower ones preferred, which together
/// cover the whole family. If they cannot be determined, the family itself.
fn narrow_to_requests(
    parent: &str,
    family: &[&NetPattern],
    requests: &[NetPattern],
) -> Vec<NetPattern> {
    let wide = format!("{parent}/*").parse::<NetPattern>().ok();
    let parts = wide.iter().flat_map(|wide| requests.iter().filter_map(|r| wide.intersect_with(r)));
    let parts: Vec<_> = parts.take(PARTS_MAX + 1).collect();
    if parts.is_empty() || parts.len() > PARTS_MAX {
        return family.iter().copied().cloned().collect();
    }
    let width = |part: &NetPattern| parts.iter().filter(|other| part.covers(other)).count();
    let mut by_width: Vec<_> = parts.iter().collect();
    by_width.sort_by_key(|part| width(part));
    let mut kept: Vec<NetPattern> = Vec::new();
    for part in by_width {
        let is_missing = |pattern: &&NetPattern| !kept.iter().any(|other| other.covers(pattern));
        if family.iter().copied().filter(is_missing).any(|pattern| part.covers(pattern)) {
            kept.retain(|other| !part.covers(other));
            kept.push(part.clone());
        }
    }
    kept
}

/// Merges the methods of equal URLs.
fn merge_methods(patterns: &[NetPattern]) -> Vec<GrantAddition> {
    let mut places: BTreeMap<String, (BTreeSet<String>, NetReachText)> = BTreeMap::new();
    for pattern in patterns {
        let text = pattern.to_string();
        let (method, place) = text.split_once(' ').unwrap_or_default();
        let reach = NetAddition::for_request(pattern).reach;
        let (methods, _) = places.entry(place.to_owned()).or_insert((BTreeSet::new(), reach));
        methods.insert(method.to_owned());
    }
    let addition = |(place, (methods, reach)): (String, (BTreeSet<String>, _))| {
        let methods: Vec<_> = methods.into_iter().collect();
        let pattern = format!("{} {place}", methods.join(","));
        GrantAddition::Net(NetAddition { pattern, decision: None, reach })
    };
    places.into_iter().map(addition).collect()
}
