//! Refusals of capabilities, each with the policy text that would lift it.
//!
//! No text lifts the refusal of a capability that the manifest does not request, or that a policy
//! denies.

use sallyport_contract::{Decision, Denial, text::escape_line};
use url::Url;

use super::{
    Capability, CapabilityRequest, Held, ListenGrant, ListenKind, Wish,
    held::danger,
    open_url::{OpenUrlEntry, UrlPattern},
    packages::{PackageEntry, PackagePattern},
    scratch::ScratchEntry,
    switch::{Setting, Switch},
    table::Capabilities,
};
use crate::{
    fix::{Ground, TableText},
    folder::are_nested,
    grant::Grant,
    net::{grant::sentence, pattern::UrlError},
    source::Place,
    verdict::page_line,
};

/// The reason of a refusal, and the text that would lift it.
type WhyAndFix = (String, Option<String>);

/// Returns the refusal of an action that requires a capability. `what` is the action, such as `set
/// a timer`.
pub(crate) fn denial(
    ground: &Ground,
    grant: &Grant,
    requests: &[CapabilityRequest],
    capability: Capability,
    what: &str,
) -> Denial {
    let of_capability = requests.iter().filter(|r| r.wish.capability() == capability);
    let wishes: Vec<&Wish> = of_capability.map(|request| &request.wish).collect();
    let denied = ground.table().capabilities.denied_at(capability);
    let (why, fix) = match (wishes.as_slice(), denied) {
        ([], _) => (not_requested(capability), None),
        (_, Some(place)) => (taken_away(capability) + &place.to_string(), None),
        (wishes, None) => missing(ground, grant, wishes, capability),
    };
    refusal(ground, what, why, fix)
}

fn refusal(ground: &Ground, what: &str, why: String, fix: Option<String>) -> Denial {
    let what = sentence(&ground.table().plugin, what);
    Denial { what, why, fix, nobody_to_ask: false }
}

/// The text before the name of a package in its refusal.
pub(crate) const PACKAGE: &str = "fetch the package ";

const WATCHES: &str = "its policy lets it watch, but not answer questions";

const ONLY_WATCHES: &str = "its manifest does not request to answer questions";

/// Returns the capability that a refusal was about, given its reason.
pub(crate) fn of_reason(why: &str) -> Option<Capability> {
    let is_about = |of: &Capability| {
        [not_requested(*of), not_granted(*of)].iter().any(|known| known == why)
            || why.starts_with(&taken_away(*of))
    };
    let confirms = [WATCHES, ONLY_WATCHES].contains(&why).then_some(Capability::Ui);
    confirms.or_else(|| Capability::ALL.into_iter().find(is_about))
}

fn taken_away(capability: Capability) -> String {
    format!("the policy takes \"{capability}\" away at ")
}

fn not_requested(capability: Capability) -> String {
    format!("its manifest does not request \"{capability}\"")
}

fn not_granted(capability: Capability) -> String {
    format!("its policy does not grant \"{capability}\"")
}

/// The refusal of a capability that is requested and that no file denies.
fn missing(ground: &Ground, grant: &Grant, wishes: &[&Wish], of: Capability) -> WhyAndFix {
    let held = grant.held();
    let is_harmless = !grant.can_change_or_leak() && danger(of, false).is_none();
    let text = |change: &dyn Fn(&mut Capabilities)| changed(ground, is_harmless, change);
    match of {
        Capability::Ui if held.ui.is_some() => confirming(ground, held, wishes),
        // Nothing remains to be granted, or only the refusal of a page knows which one to grant.
        Capability::State
        | Capability::Schedule
        | Capability::Notify
        | Capability::Progress
        | Capability::OpenUrl
        | Capability::Process
            if held.holds(of) =>
        {
            ("its policy grants no such thing".to_owned(), None)
        }
        Capability::State
        | Capability::Schedule
        | Capability::Notify
        | Capability::Progress
        | Capability::Ui
        | Capability::Process => (not_granted(of), text(&|table| table.switch_on(of))),
        Capability::OpenUrl => {
            (not_granted(of), text(&|table| table.open_url = vec![OpenUrlEntry::asking(nowhere())]))
        }
        // Only the refusal of a package knows which one to grant.
        Capability::Packages => (not_granted(of), None),
        Capability::Scratch => {
            let new = new_scratches(ground, wishes.iter().copied());
            let fix = text(&|table| table.scratch.extend(new.clone()));
            (not_granted(of), fix.filter(|_| !new.is_empty()))
        }
        Capability::Listen => {
            let new = new_listens(held, wishes.iter().copied());
            let fix = text(&|table| table.listen.extend(new.clone()));
            (not_granted(of), fix.filter(|_| !new.is_empty()))
        }
    }
}

/// Returns the text of the user's table with a change, if the change causes no conflict in the
/// combined table.
fn changed(
    ground: &Ground,
    is_harmless: bool,
    change: &dyn Fn(&mut Capabilities),
) -> Option<String> {
    let mut joined = ground.table().capabilities.clone();
    change(&mut joined);
    joined.check(&ground.table().fs).ok()?;
    let mut table = TableText::new(ground);
    change(&mut table.capabilities);
    if !table.capabilities.is_bounded() {
        return None;
    }
    Some(if is_harmless { table.harmless() } else { table.with_rule() })
}

/// The refusal of an answer to a question by a plugin that may only watch.
fn confirming(ground: &Ground, held: &Held, wishes: &[&Wish]) -> WhyAndFix {
    let is_held = held.ui.is_some_and(|ui| ui.confirm);
    match wishes.contains(&&Wish::Ui { confirm: true }) {
        false => (ONLY_WATCHES.to_owned(), None),
        true if is_held => ("its policy grants no such thing".to_owned(), None),
        true => (WATCHES.to_owned(), flagged(ground, Capability::Ui, Setting::Confirm)),
    }
}

/// Returns the refusal of a program that the kernel cannot sandbox.
pub(crate) fn of_unwalled(ground: &Ground, held: &Held, what: &str) -> Denial {
    let (why, fix) = match held.process {
        None => (not_granted(Capability::Process), None),
        Some(_) => {
            let why = "the kernel cannot wall it in, and its policy does not let it run without";
            (why.to_owned(), flagged(ground, Capability::Process, Setting::Unwalled))
        }
    };
    refusal(ground, what, why, fix)
}

/// Returns the text that grants a capability with a flag, unless a file states the flag already.
fn flagged(ground: &Ground, of: Capability, flag: Setting) -> Option<String> {
    let is_refused = ground.table().capabilities.switches.get(&of)?.place_of(flag).is_some();
    let set = |table: &mut Capabilities| table.switch_on_with(of, flag);
    if is_refused { None } else { changed(ground, false, &set) }
}

/// Returns the refusal of a package.
pub(super) fn of_package(
    ground: &Ground,
    is_requested: bool,
    package: &str,
    wanted: Option<PackagePattern>,
) -> Denial {
    let table = &ground.table().capabilities;
    let of = Capability::Packages;
    let (why, fix) = match (wanted, table.denied_at(of)) {
        (None, _) => ("it is not the name and version of a package".to_owned(), None),
        (Some(_), _) if !is_requested => (not_requested(of), None),
        (Some(_), Some(place)) => (taken_away(of) + &place.to_string(), None),
        (Some(pattern), None) => {
            let why = match table.packages.is_empty() {
                true => not_granted(of),
                false => "no grant covers it".to_owned(),
            };
            (why, packages_text(ground, &pattern))
        }
    };
    let what = PACKAGE.to_owned() + &escape_line(package);
    refusal(ground, &what, why, fix)
}

/// Returns the text that grants one more package.
fn packages_text(ground: &Ground, pattern: &PackagePattern) -> Option<String> {
    let entry = PackageEntry { pattern: pattern.clone(), place: nowhere() };
    changed(ground, false, &|table| table.packages.push(entry.clone()))
}

/// Returns the refusal of a page.
pub(super) fn of_page(ground: &Ground, url: &Url, fault: Option<UrlError>) -> Denial {
    let (why, fix) = match fault {
        Some(fault) => (fault.to_string(), None),
        None => ("no grant covers it".to_owned(), page_text(ground, url)),
    };
    refusal(ground, &page_line(url), why, fix)
}

/// Returns the text that allows one more page.
fn page_text(ground: &Ground, url: &Url) -> Option<String> {
    let pattern = UrlPattern::exact(url)?;
    let add = |table: &mut Capabilities| match table.open_url.first_mut() {
        Some(entry) => entry.allow.push(pattern.clone()),
        None => table.open_url.push(OpenUrlEntry {
            allow: vec![pattern.clone()],
            decision: Decision::Ask,
            place: nowhere(),
        }),
    };
    // No rule is needed: the plugin could open pages before, and the questions stay the same.
    changed(ground, true, &add)
}

/// The requested scratches that no file grants, each with a free mount.
pub(crate) fn new_scratches<'w>(
    ground: &Ground,
    wishes: impl Iterator<Item = &'w Wish>,
) -> Vec<ScratchEntry> {
    let table = ground.table();
    let folders = table.fs.iter().map(|entry| entry.mount.guest.clone());
    let scratches = table.capabilities.scratch.iter().map(|entry| entry.mount.clone());
    let mut taken: Vec<String> = folders.chain(scratches).collect();
    let mut names: Vec<&str> = table.capabilities.scratch.iter().map(|e| e.name.as_str()).collect();
    let mut new = Vec::new();
    for name in wishes.filter_map(Wish::scratch) {
        if names.contains(&name) {
            continue;
        }
        let mounts = [format!("/{name}"), format!("/scratch-{name}")];
        let is_free =
            |mount: &String| taken.iter().all(|other| !are_nested(other.as_ref(), mount.as_ref()));
        if let Some(mount) = mounts.into_iter().find(is_free) {
            names.push(name);
            taken.push(mount.clone());
            let (name, place) = (name.to_owned(), nowhere());
            new.push(ScratchEntry { name, mount, quota_bytes: None, place });
        }
    }
    new
}

/// A loopback address for each kind that is requested and not held.
pub(crate) fn new_listens<'w>(
    held: &Held,
    wishes: impl Iterator<Item = &'w Wish>,
) -> Vec<ListenGrant> {
    let mut kinds: Vec<ListenKind> = held.listen.iter().map(|entry| entry.kind).collect();
    let mut new = Vec::new();
    for kind in wishes.filter_map(Wish::listen) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
            new.push(ListenGrant::usual(kind, nowhere()));
        }
    }
    new
}

/// The place of a proposed entry.
fn nowhere() -> Place {
    Place { file: String::new(), line: 0, column: 0 }
}

impl Capabilities {
    fn switch_on(&mut self, of: Capability) {
        let switch = self.switches.remove(&of).unwrap_or_else(Switch::none);
        self.switches.insert(of, switch.granted_at(nowhere()));
    }

    fn switch_on_with(&mut self, of: Capability, flag: Setting) {
        let switch = self.switches.remove(&of).unwrap_or_else(Switch::none);
        self.switches.insert(of, switch.granted_at(nowhere()).with_flag(flag, nowhere()));
    }
}
