//! Refusals of capabilities, each with the policy text that would lift it.
//!
//! No text lifts the refusal of a capability that the manifest does not request, or that a policy
//! denies.

use sallyport_contract::{Decision, Denial, text::escape_line};
use url::Url;

use super::{
    Capability, CapabilityRequest, EffectiveCapabilities, ListenGrant, ListenKind,
    RequestedCapability,
    effective::capability_danger,
    open_url::{OpenUrlEntry, UrlPattern},
    packages::{PackageEntry, PackagePattern},
    scratch::ScratchEntry,
    settings::{CapabilitySettingKey, CapabilitySettings},
    table::CapabilityTable,
};
use crate::{
    fix::{PluginTableText, PolicyContext},
    folder::are_nested,
    grant::Grant,
    net::{grant::refusal_sentence, pattern::RequestUrlError},
    source::SourceLocation,
    verdict::page_line,
};

/// The reason of a refusal, and the text that would lift it.
type WhyAndFix = (String, Option<String>);

/// Returns the refusal of an action that requires a capability. `what` is the action, such as `set
/// a timer`.
pub(crate) fn capability_denial(
    policy_context: &PolicyContext,
    grant: &Grant,
    requests: &[CapabilityRequest],
    capability: Capability,
    what: &str,
) -> Denial {
    let of_capability = requests.iter().filter(|r| r.requested.capability() == capability);
    let wanted_capabilities: Vec<&RequestedCapability> =
        of_capability.map(|request| &request.requested).collect();
    let denied = policy_context.effective_table().capabilities.denied_at(capability);
    let (why, fix) = match (wanted_capabilities.as_slice(), denied) {
        ([], _) => (not_requested_reason(capability), None),
        (_, Some(place)) => (denied_reason_prefix(capability) + &place.to_string(), None),
        (wanted_capabilities, None) => {
            explain_missing_grant(policy_context, grant, wanted_capabilities, capability)
        }
    };
    build_denial(policy_context, what, why, fix)
}

fn build_denial(
    policy_context: &PolicyContext,
    what: &str,
    why: String,
    fix: Option<String>,
) -> Denial {
    let what = refusal_sentence(&policy_context.effective_table().plugin, what);
    Denial { what, why, fix, nobody_to_ask: false }
}

/// The text before the name of a package in its refusal.
pub(crate) const PACKAGE_ACTION_PREFIX: &str = "fetch the package ";

const CONFIRM_NOT_GRANTED: &str = "its policy lets it watch, but not answer questions";

const CONFIRM_NOT_REQUESTED: &str = "its manifest does not request to answer questions";

/// Returns the capability that a refusal was about, given its reason.
pub(crate) fn capability_from_reason(why: &str) -> Option<Capability> {
    let is_about = |of: &Capability| {
        [not_requested_reason(*of), not_granted_reason(*of)].iter().any(|known| known == why)
            || why.starts_with(&denied_reason_prefix(*of))
    };
    let confirms =
        [CONFIRM_NOT_GRANTED, CONFIRM_NOT_REQUESTED].contains(&why).then_some(Capability::Ui);
    confirms.or_else(|| Capability::ALL.into_iter().find(is_about))
}

fn denied_reason_prefix(capability: Capability) -> String {
    format!("the policy takes \"{capability}\" away at ")
}

fn not_requested_reason(capability: Capability) -> String {
    format!("its manifest does not request \"{capability}\"")
}

fn not_granted_reason(capability: Capability) -> String {
    format!("its policy does not grant \"{capability}\"")
}

/// The refusal of a capability that is requested and that no file denies.
fn explain_missing_grant(
    policy_context: &PolicyContext,
    grant: &Grant,
    wanted_capabilities: &[&RequestedCapability],
    of: Capability,
) -> WhyAndFix {
    let effective = grant.effective_capabilities();
    let is_harmless = !grant.can_change_or_leak() && capability_danger(of, false).is_none();
    let text = |change: &dyn Fn(&mut CapabilityTable)| {
        changed_table_text(policy_context, is_harmless, change)
    };
    match of {
        Capability::Ui if effective.ui.is_some() => {
            explain_missing_confirm(policy_context, effective, wanted_capabilities)
        }
        // Nothing remains to be granted, or only the refusal of a page knows which one to grant.
        Capability::State
        | Capability::Schedule
        | Capability::Notify
        | Capability::Progress
        | Capability::OpenUrl
        | Capability::Process
            if effective.has_capability(of) =>
        {
            ("its policy grants no such thing".to_owned(), None)
        }
        Capability::State
        | Capability::Schedule
        | Capability::Notify
        | Capability::Progress
        | Capability::Ui
        | Capability::Process => {
            (not_granted_reason(of), text(&|table| table.grant_capability(of)))
        }
        Capability::OpenUrl => (
            not_granted_reason(of),
            text(&|table| {
                table.open_url = vec![OpenUrlEntry::ask_for_any_page(placeholder_location())]
            }),
        ),
        // Only the refusal of a package knows which one to grant.
        Capability::Packages => (not_granted_reason(of), None),
        Capability::Scratch => {
            let new = missing_scratch_entries(policy_context, wanted_capabilities.iter().copied());
            let fix = text(&|table| table.scratch.extend(new.clone()));
            (not_granted_reason(of), fix.filter(|_| !new.is_empty()))
        }
        Capability::Listen => {
            let new = missing_listen_grants(effective, wanted_capabilities.iter().copied());
            let fix = text(&|table| table.listen.extend(new.clone()));
            (not_granted_reason(of), fix.filter(|_| !new.is_empty()))
        }
    }
}

/// Returns the text of the user's table with a change, if the change causes no conflict in the
/// combined table.
fn changed_table_text(
    policy_context: &PolicyContext,
    is_harmless: bool,
    change: &dyn Fn(&mut CapabilityTable),
) -> Option<String> {
    let mut joined = policy_context.effective_table().capabilities.clone();
    change(&mut joined);
    joined.check_conflicts(&policy_context.effective_table().fs).ok()?;
    let mut table = PluginTableText::new(policy_context);
    change(&mut table.capabilities);
    if !table.capabilities.is_within_limits() {
        return None;
    }
    Some(if is_harmless { table.text_without_rule() } else { table.text_with_rule() })
}

/// The refusal of an answer to a question by a plugin that may only watch.
fn explain_missing_confirm(
    policy_context: &PolicyContext,
    effective: &EffectiveCapabilities,
    wanted_capabilities: &[&RequestedCapability],
) -> WhyAndFix {
    let is_held = effective.ui.is_some_and(|ui| ui.confirm);
    match wanted_capabilities.contains(&&RequestedCapability::Ui { confirm: true }) {
        false => (CONFIRM_NOT_REQUESTED.to_owned(), None),
        true if is_held => ("its policy grants no such thing".to_owned(), None),
        true => (
            CONFIRM_NOT_GRANTED.to_owned(),
            text_with_flag(policy_context, Capability::Ui, CapabilitySettingKey::Confirm),
        ),
    }
}

/// Returns the refusal of a program that the kernel cannot sandbox.
pub(crate) fn unsandboxed_denial(
    policy_context: &PolicyContext,
    effective: &EffectiveCapabilities,
    what: &str,
) -> Denial {
    let (why, fix) = match effective.process {
        None => (not_granted_reason(Capability::Process), None),
        Some(_) => {
            let why = "the kernel cannot wall it in, and its policy does not let it run without";
            (
                why.to_owned(),
                text_with_flag(
                    policy_context,
                    Capability::Process,
                    CapabilitySettingKey::Unsandboxed,
                ),
            )
        }
    };
    build_denial(policy_context, what, why, fix)
}

/// Returns the text that grants a capability with a flag, unless a file states the flag already.
fn text_with_flag(
    policy_context: &PolicyContext,
    of: Capability,
    flag: CapabilitySettingKey,
) -> Option<String> {
    let is_refused = policy_context
        .effective_table()
        .capabilities
        .settings
        .get(&of)?
        .setting_place(flag)
        .is_some();
    let set = |table: &mut CapabilityTable| table.grant_capability_with_flag(of, flag);
    if is_refused { None } else { changed_table_text(policy_context, false, &set) }
}

/// Returns the refusal of a package.
pub(super) fn package_denial(
    policy_context: &PolicyContext,
    is_requested: bool,
    package: &str,
    wanted: Option<PackagePattern>,
) -> Denial {
    let table = &policy_context.effective_table().capabilities;
    let of = Capability::Packages;
    let (why, fix) = match (wanted, table.denied_at(of)) {
        (None, _) => ("it is not the name and version of a package".to_owned(), None),
        (Some(_), _) if !is_requested => (not_requested_reason(of), None),
        (Some(_), Some(place)) => (denied_reason_prefix(of) + &place.to_string(), None),
        (Some(pattern), None) => {
            let why = match table.packages.is_empty() {
                true => not_granted_reason(of),
                false => "no grant covers it".to_owned(),
            };
            (why, text_with_package(policy_context, &pattern))
        }
    };
    let what = PACKAGE_ACTION_PREFIX.to_owned() + &escape_line(package);
    build_denial(policy_context, &what, why, fix)
}

/// Returns the text that grants one more package.
fn text_with_package(policy_context: &PolicyContext, pattern: &PackagePattern) -> Option<String> {
    let entry = PackageEntry { pattern: pattern.clone(), place: placeholder_location() };
    changed_table_text(policy_context, false, &|table| table.packages.push(entry.clone()))
}

/// Returns the refusal of a page.
pub(super) fn page_denial(
    policy_context: &PolicyContext,
    url: &Url,
    fault: Option<RequestUrlError>,
) -> Denial {
    let (why, fix) = match fault {
        Some(fault) => (fault.to_string(), None),
        None => ("no grant covers it".to_owned(), text_with_page(policy_context, url)),
    };
    build_denial(policy_context, &page_line(url), why, fix)
}

/// Returns the text that allows one more page.
fn text_with_page(policy_context: &PolicyContext, url: &Url) -> Option<String> {
    let pattern = UrlPattern::from_exact_url(url)?;
    let add = |table: &mut CapabilityTable| match table.open_url.first_mut() {
        Some(entry) => entry.allow.push(pattern.clone()),
        None => table.open_url.push(OpenUrlEntry {
            allow: vec![pattern.clone()],
            decision: Decision::Ask,
            place: placeholder_location(),
        }),
    };
    // No rule is needed: the plugin could open pages before, and the questions stay the same.
    changed_table_text(policy_context, true, &add)
}

/// The requested scratches that no file grants, each with a free mount.
pub(crate) fn missing_scratch_entries<'w>(
    policy_context: &PolicyContext,
    wanted_capabilities: impl Iterator<Item = &'w RequestedCapability>,
) -> Vec<ScratchEntry> {
    let table = policy_context.effective_table();
    let folders = table.fs.iter().map(|entry| entry.mount.guest.clone());
    let scratches = table.capabilities.scratch.iter().map(|entry| entry.mount.clone());
    let mut taken: Vec<String> = folders.chain(scratches).collect();
    let mut names: Vec<&str> = table.capabilities.scratch.iter().map(|e| e.name.as_str()).collect();
    let mut new = Vec::new();
    for name in wanted_capabilities.filter_map(RequestedCapability::scratch_name) {
        if names.contains(&name) {
            continue;
        }
        let mounts = [format!("/{name}"), format!("/scratch-{name}")];
        let is_free =
            |mount: &String| taken.iter().all(|other| !are_nested(other.as_ref(), mount.as_ref()));
        if let Some(mount) = mounts.into_iter().find(is_free) {
            names.push(name);
            taken.push(mount.clone());
            let (name, place) = (name.to_owned(), placeholder_location());
            new.push(ScratchEntry { name, mount, quota_bytes: None, place });
        }
    }
    new
}

/// A loopback address for each kind that is requested and not held.
pub(crate) fn missing_listen_grants<'w>(
    effective: &EffectiveCapabilities,
    wanted_capabilities: impl Iterator<Item = &'w RequestedCapability>,
) -> Vec<ListenGrant> {
    let mut kinds: Vec<ListenKind> = effective.listen.iter().map(|entry| entry.kind).collect();
    let mut new = Vec::new();
    for kind in wanted_capabilities.filter_map(RequestedCapability::listen_kind) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
            new.push(ListenGrant::default_for_kind(kind, placeholder_location()));
        }
    }
    new
}

/// The place of a proposed entry.
fn placeholder_location() -> SourceLocation {
    SourceLocation { file: String::new(), line: 0, column: 0 }
}

impl CapabilityTable {
    fn grant_capability(&mut self, of: Capability) {
        let capability_settings =
            self.settings.remove(&of).unwrap_or_else(CapabilitySettings::empty);
        self.settings.insert(of, capability_settings.with_grant(placeholder_location()));
    }

    fn grant_capability_with_flag(&mut self, of: Capability, flag: CapabilitySettingKey) {
        let capability_settings =
            self.settings.remove(&of).unwrap_or_else(CapabilitySettings::empty);
        self.settings.insert(
            of,
            capability_settings
                .with_grant(placeholder_location())
                .with_flag(flag, placeholder_location()),
        );
    }
}
