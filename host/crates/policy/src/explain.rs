//! Why a policy decides as it does, for the author of the policy.
//!
//! An explanation follows one situation through the files: every rule and entry about it, the one
//! that won, and what to add if an addition would change the result. It decides nothing itself: its
//! decision is the one that a real call gets.

use std::path::Path;

use sallyport_contract::{Decision, Denial, text::escape_line};
use url::Url;

use crate::{
    capability::Capability,
    folder::{Access, FsEntry, plain_path},
    grant::Grant,
    net::{pattern::Target, read_request},
    policy::Policy,
    question::{Question, ROLE_PREFIX},
    rule::Rule,
    source::Place,
    verdict::{Matched, Verdict},
};

/// The explanation of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The decision.
    pub decision: Decision,
    /// The grounds for it, in one sentence.
    pub reason: String,
    /// Every rule and entry about the situation, in the order of the files.
    pub steps: Vec<Step>,
    /// The policy text that would allow it, if an addition can.
    pub fix: Option<String>,
}

/// A rule or an entry about a situation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The place of the rule or entry.
    pub place: Place,
    /// Its content, in one line.
    pub text: String,
    /// Whether it decided.
    pub won: bool,
}

impl Policy {
    /// Explains the decision about a call, or about a run in a role.
    pub fn explain_call(&self, question: &Question<'_>, grant: &Grant) -> Explanation {
        let is_asked_for = !question.tool.tool.as_str().starts_with(ROLE_PREFIX);
        let verdict = match is_asked_for {
            true => self.decide(question, grant),
            false => self.decide_role(question, grant),
        };
        let mut steps = self.spoken(&verdict);
        if is_asked_for && verdict.rule.is_none() {
            // Each of these entries alone causes the question.
            steps.extend(dangers(grant));
        }
        Explanation::of(&verdict, question, steps)
    }

    /// Explains the decision about a request of a running call, given as text.
    ///
    /// The text takes the same path as a real request, up to name resolution, so an invalid URL is
    /// not repaired here either.
    pub fn explain_net(
        &self,
        question: &Question<'_>,
        grant: &Grant,
        method: &str,
        url: &str,
    ) -> Explanation {
        let (method, url) = match read_request(method, url) {
            Ok(request) => request,
            Err(error) => return Explanation::denied(error.denial(), Vec::new()),
        };
        let (method, url) = (method.as_str(), &url);
        let permit = match grant.check_request(method, url) {
            Ok(permit) => permit,
            Err(denial) => return Explanation::denied(denial, net_steps(grant, method, url, None)),
        };
        let verdict = self.decide_access(question, grant, method, url, &permit);
        let decided = verdict.rule.is_none().then(|| permit.place());
        let mut steps = net_steps(grant, method, url, decided);
        steps.extend(self.spoken(&verdict));
        Explanation::of(&verdict, question, steps)
    }

    /// Explains the decision about a page that a running call opens in the browser.
    pub fn explain_open_url(
        &self,
        question: &Question<'_>,
        grant: &Grant,
        url: &Url,
    ) -> Explanation {
        let entry = match grant.page(url) {
            Ok(entry) => entry,
            Err(denial) => {
                return Explanation::denied(denial, entries_of(grant, Capability::OpenUrl, None));
            }
        };
        let verdict = self.decide_open_url(question, grant, url);
        let decided = verdict.rule.is_none().then_some(&entry.place);
        let mut steps = entries_of(grant, Capability::OpenUrl, decided);
        steps.extend(self.spoken(&verdict));
        Explanation::of(&verdict, question, steps)
    }

    /// Explains whether a plugin holds a capability.
    pub fn explain_capability(&self, grant: &Grant, capability: Capability) -> Explanation {
        let table = &grant.table().capabilities;
        let entries = table.entries(capability);
        let won = table.denied_at(capability).or_else(|| Some(entries.first()?.0));
        let holds = grant.holds(capability);
        let steps = entries_of(grant, capability, won.filter(|_| holds || entries.is_empty()));
        match won.filter(|_| holds) {
            Some(place) => {
                let reason = format!("the entry at {place} grants it");
                Explanation { decision: Decision::Allow, reason, steps, fix: None }
            }
            None => Explanation::denied(grant.deny(capability, capability.word()), steps),
        }
    }

    /// Explains the decision about an access to a file, by its guest or host path.
    pub fn explain_path(&self, grant: &Grant, path: &str, wanted: Access) -> Explanation {
        let plain = plain_path(&format!("/{}", path.trim_start_matches('/'))).ok();
        let mut entries = grant.table().fs.iter();
        let around = entries.find_map(|entry| Some((entry, below(entry, plain.as_deref()?)?)));
        let Some((entry, below)) = around else {
            return Explanation::denied(grant.deny_path(path, wanted), Vec::new());
        };
        let mut mounts = grant.fs().iter().filter(|mount| mount.guest == entry.mount.guest);
        let is_open = mounts.any(|m| m.access >= wanted && m.deny.denies(below).is_none());
        let denying = denying(grant, entry, below);
        // Otherwise the manifest is the cause: it requests too little.
        let decides = is_open || entry.mount.access < wanted;
        let steps = fs_steps(grant, entry, denying, denying.or(decides.then_some(entry)));
        if is_open {
            let reason = format!("the entry at {} grants it", entry.place);
            return Explanation { decision: Decision::Allow, reason, steps, fix: None };
        }
        let guest = Path::new(&entry.mount.guest).join(below);
        Explanation::denied(grant.deny_path(&guest.to_string_lossy(), wanted), steps)
    }

    /// The rules behind a verdict.
    fn spoken(&self, verdict: &Verdict) -> Vec<Step> {
        let step = |matched: &Matched| {
            let rule = self.rules().iter().find(|rule| rule.place == matched.place)?;
            let note = matched.note.as_ref().map(|note| format!("; {note}")).unwrap_or_default();
            Some(Step {
                place: matched.place.clone(),
                text: format!("rule {}{note}", rule.in_words()),
                won: verdict.rule.as_ref() == Some(&matched.place),
            })
        };
        verdict.matched.iter().filter_map(step).collect()
    }
}

impl Explanation {
    fn of(verdict: &Verdict, question: &Question<'_>, steps: Vec<Step>) -> Self {
        let remedy =
            verdict.remedy(question.tool, None).filter(|_| verdict.decision > Decision::Allow);
        Self {
            decision: verdict.decision,
            reason: verdict.reason.clone(),
            steps,
            fix: remedy.map(|rule| rule.to_string()),
        }
    }

    fn denied(denial: Denial, steps: Vec<Step>) -> Self {
        Self { decision: Decision::Deny, reason: denial.why, steps, fix: denial.fix }
    }
}

impl Rule {
    /// The rule in one line: `deny mail.send_email when size(args.to) > 50`.
    fn in_words(&self) -> String {
        let net = self.net.as_ref().map(|net| format!(" for {net}"));
        let pages = self.open_url.as_ref().map(|pages| format!(" for opening {pages}"));
        let about = net.or(pages).unwrap_or_default();
        let when =
            self.when.as_ref().map(|when| format!(" when {}", escape_line(&when.to_string())));
        format!("{} {}{about}{}", self.decision.as_str(), self.tools, when.unwrap_or_default())
    }
}

/// The entries that cause a question before a tool is called.
fn dangers(grant: &Grant) -> Vec<Step> {
    let table = grant.table();
    let step = |place: &Place, text| Step { place: place.clone(), text, won: true };
    let net = table.net.allows.iter().filter(|allow| grant.net().makes_use_of(allow));
    let net = net.map(|allow| step(&allow.place, format!("net entry {allow}")));
    let writable = |entry: &&FsEntry| {
        let mut mounts = grant.fs().iter();
        mounts.any(|m| m.guest == entry.mount.guest && m.access == Access::ReadWrite)
    };
    let fs = table.fs.iter().filter(writable);
    let fs = fs.map(|entry| step(&entry.place, format!("fs entry {entry}")));
    let secrets = grant.secrets().iter();
    let secrets = secrets.map(|entry| step(&entry.place, format!("secrets entry {entry}")));
    let held = grant.held().dangers();
    let held = held.flat_map(|(of, _)| entries_of(grant, of, None));
    let held = held.map(|entry| Step { won: true, ..entry });
    net.chain(fs).chain(secrets).chain(held).collect()
}

/// The entries about a capability, including the one that takes it away, which then wins.
fn entries_of(grant: &Grant, capability: Capability, decided: Option<&Place>) -> Vec<Step> {
    let table = &grant.table().capabilities;
    let denied = table.denied_at(capability);
    let entries = table.entries(capability).into_iter();
    let entries = entries.chain(denied.map(|place| (place, "false".to_owned())));
    let step = |(place, text): (&Place, String)| Step {
        place: place.clone(),
        text: format!("{capability} entry {text}"),
        won: denied.or(decided) == Some(place),
    };
    entries.map(step).collect()
}

/// The entries of a `net` list about a request. An entry that denies wins over all others.
fn net_steps(grant: &Grant, method: &str, url: &Url, decided: Option<&Place>) -> Vec<Step> {
    let Ok(target) = Target::new(method, url) else {
        return Vec::new();
    };
    let net = &grant.table().net;
    let allows = net.allows.iter().filter(|allow| allow.pattern.matches(&target));
    let allows = allows.map(|allow| Step {
        place: allow.place.clone(),
        text: format!("net entry {allow}"),
        won: decided == Some(&allow.place),
    });
    let denies = net.denies.iter().filter(|deny| deny.pattern.denies(&target));
    let denies = denies.enumerate().map(|(index, deny)| Step {
        place: deny.place.clone(),
        text: format!("net entry {deny}"),
        won: index == 0,
    });
    allows.chain(denies).collect()
}

/// The entry that contains a file, and the one that denies it.
fn fs_steps(
    grant: &Grant,
    around: &FsEntry,
    denying: Option<&FsEntry>,
    decided: Option<&FsEntry>,
) -> Vec<Step> {
    let entries = grant.table().fs.iter();
    let about = entries.filter(|entry| *entry == around || Some(*entry) == denying);
    let step = |entry: &FsEntry| Step {
        place: entry.place.clone(),
        text: format!("fs entry {entry}"),
        won: Some(entry) == decided,
    };
    about.map(step).collect()
}

/// The rest of a path below an entry's folder.
fn below<'p>(entry: &FsEntry, path: &'p Path) -> Option<&'p Path> {
    let guest = path.strip_prefix(&entry.mount.guest);
    guest.or_else(|_| path.strip_prefix(&entry.mount.host)).ok()
}

/// The entry that denies a file of an entry: that entry, or another one whose folder contains the
/// file.
fn denying<'g>(grant: &'g Grant, entry: &FsEntry, below: &Path) -> Option<&'g FsEntry> {
    let file = entry.mount.host.join(below);
    grant.table().fs.iter().find(|other| {
        let below = file.strip_prefix(&other.mount.host);
        below.is_ok_and(|below| other.mount.deny.denies(below).is_some())
    })
}
