//! Why a policy decides as it does, for the author of the policy.
//!
//! An explanation follows one situation through the files: every rule and entry about it, the one
//! that won, and what to add if an addition would change the result. It decides nothing itself: its
//! decision is the one that a real call gets.

use std::path::Path;

use sallyport_contract::{Decision, Denial, PolicyFix, text::escape_line};
use url::Url;

use crate::{
    capability::{Capability, PAGE_CAPABILITY},
    folder::{FsAccess, FsEntry, normalize_path},
    grant::Grant,
    net::{parse_request, pattern::RequestTarget},
    policy::Policy,
    question::{PolicyQuestion, ROLE_PREFIX},
    rule::{PolicyRule, RuleMatch},
    source::SourceLocation,
    verdict::PolicyVerdict,
};

/// The explanation of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionExplanation {
    /// The decision.
    pub decision: Decision,
    /// The grounds for it, in one sentence.
    pub reason: String,
    /// Every rule and entry about the situation, in the order of the files.
    pub steps: Vec<ExplanationStep>,
    /// The change to the policy that would allow it, if an addition can.
    pub fix: Option<Box<PolicyFix>>,
}

/// A rule or an entry about a situation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplanationStep {
    /// The place of the rule or entry.
    pub place: SourceLocation,
    /// Its content, in one line.
    pub text: String,
    /// Whether it decided.
    pub is_decisive: bool,
}

impl Policy {
    /// Explains the decision about a call, or about a run in a role.
    pub fn explain_call(
        &self,
        question: &PolicyQuestion<'_>,
        grant: &Grant,
    ) -> DecisionExplanation {
        let is_asked_for = !question.tool.tool.as_str().starts_with(ROLE_PREFIX);
        let verdict = match is_asked_for {
            true => self.decide_call(question, grant),
            false => self.decide_role(question, grant),
        };
        let mut steps = self.matched_rule_steps(&verdict);
        if is_asked_for && verdict.rule.is_none() {
            // Each of these entries alone causes the question.
            steps.extend(danger_steps(grant));
        }
        DecisionExplanation::from_verdict(&verdict, question, steps)
    }

    /// Explains the decision about a request of a running call, given as text.
    ///
    /// The text takes the same path as a real request, up to name resolution, so an invalid URL is
    /// not repaired here either.
    pub fn explain_net(
        &self,
        question: &PolicyQuestion<'_>,
        grant: &Grant,
        method: &str,
        url: &str,
    ) -> DecisionExplanation {
        let (method, url) = match parse_request(method, url) {
            Ok(request) => request,
            Err(error) => return DecisionExplanation::from_denial(error.into_denial(), Vec::new()),
        };
        let (method, url) = (method.as_str(), &url);
        let permit = match grant.check_request(method, url) {
            Ok(permit) => permit,
            Err(denial) => {
                return DecisionExplanation::from_denial(
                    denial,
                    net_steps(grant, method, url, None),
                );
            }
        };
        let verdict = self.decide_access(question, grant, method, url, &permit);
        let decided = verdict.rule.is_none().then(|| permit.place());
        let mut steps = net_steps(grant, method, url, decided);
        steps.extend(self.matched_rule_steps(&verdict));
        DecisionExplanation::from_verdict(&verdict, question, steps)
    }

    /// Explains the decision about a page that a running call opens in the browser.
    pub fn explain_page(
        &self,
        question: &PolicyQuestion<'_>,
        grant: &Grant,
        url: &Url,
    ) -> DecisionExplanation {
        let of = PAGE_CAPABILITY;
        let entry = match grant.find_page_entry(url) {
            Ok(entry) => entry,
            Err(denial) => {
                let steps = capability_steps(grant, of, None);
                return DecisionExplanation::from_denial(denial, steps);
            }
        };
        let verdict = self.decide_page(question, grant, url);
        let decided = verdict.rule.is_none().then_some(&entry.place);
        let mut steps = capability_steps(grant, of, decided);
        steps.extend(self.matched_rule_steps(&verdict));
        DecisionExplanation::from_verdict(&verdict, question, steps)
    }

    /// Explains whether a plugin holds a capability.
    pub fn explain_capability(&self, grant: &Grant, capability: Capability) -> DecisionExplanation {
        let table = &grant.table().capabilities;
        let entries = table.entries_with_text(capability);
        let deciding = table.denied_at(capability).or_else(|| Some(entries.first()?.0));
        let holds = grant.has_capability(capability);
        let steps =
            capability_steps(grant, capability, deciding.filter(|_| holds || entries.is_empty()));
        match deciding.filter(|_| holds) {
            Some(place) => {
                let reason = format!("the entry at {place} grants it");
                DecisionExplanation { decision: Decision::Allow, reason, steps, fix: None }
            }
            None => DecisionExplanation::from_denial(
                grant.deny_capability(capability, capability.as_str()),
                steps,
            ),
        }
    }

    /// Explains the decision about an access to a file, by its guest or host path.
    pub fn explain_path(&self, grant: &Grant, path: &str, wanted: FsAccess) -> DecisionExplanation {
        let plain = normalize_path(&format!("/{}", path.trim_start_matches('/'))).ok();
        let mut entries = grant.table().fs.iter();
        let around =
            entries.find_map(|entry| Some((entry, path_below_entry(entry, plain.as_deref()?)?)));
        let Some((entry, below)) = around else {
            return DecisionExplanation::from_denial(grant.deny_path(path, wanted), Vec::new());
        };
        let mut mounts = grant.fs().iter().filter(|mount| mount.guest == entry.mount.guest);
        let is_open =
            mounts.any(|m| m.access >= wanted && m.deny.find_denying_pattern(below).is_none());
        let denying = find_denying_entry(grant, entry, below);
        // Otherwise the manifest is the cause: it requests too little.
        let decides = is_open || entry.mount.access < wanted;
        let steps = fs_steps(grant, entry, denying, denying.or(decides.then_some(entry)));
        if is_open {
            let reason = format!("the entry at {} grants it", entry.place);
            return DecisionExplanation { decision: Decision::Allow, reason, steps, fix: None };
        }
        let guest = Path::new(&entry.mount.guest).join(below);
        DecisionExplanation::from_denial(grant.deny_path(&guest.to_string_lossy(), wanted), steps)
    }

    /// The rules behind a verdict.
    fn matched_rule_steps(&self, verdict: &PolicyVerdict) -> Vec<ExplanationStep> {
        let step = |matched: &RuleMatch| {
            let rule = self.all_rules().find(|rule| rule.place == matched.place)?;
            let note = matched.note.as_ref().map(|note| format!("; {note}")).unwrap_or_default();
            Some(ExplanationStep {
                place: matched.place.clone(),
                text: format!("{}{note}", rule.one_line_text()),
                is_decisive: verdict.rule.as_ref() == Some(&matched.place),
            })
        };
        verdict.matched.iter().filter_map(step).collect()
    }
}

impl DecisionExplanation {
    fn from_verdict(
        verdict: &PolicyVerdict,
        question: &PolicyQuestion<'_>,
        steps: Vec<ExplanationStep>,
    ) -> Self {
        let remedy = verdict
            .allowing_rule(question.tool, None)
            .filter(|_| verdict.decision > Decision::Allow);
        Self {
            decision: verdict.decision,
            reason: verdict.reason.clone(),
            steps,
            fix: remedy.map(|rule| Box::new(rule.to_fix(question.tool))),
        }
    }

    fn from_denial(denial: Denial, steps: Vec<ExplanationStep>) -> Self {
        Self { decision: Decision::Deny, reason: denial.reason.to_string(), steps, fix: denial.fix }
    }
}

impl PolicyRule {
    /// The rule in one line: `rule deny mail.send_email when size(args.to) > 50`.
    fn one_line_text(&self) -> String {
        let whose =
            self.group.as_ref().map(|group| format!(" of the group {}", escape_line(group)));
        let whose = whose.unwrap_or_default();
        if !self.except.is_empty() {
            let tools: Vec<String> = self.except.iter().map(ToString::to_string).collect();
            return format!("the tools{whose}: {}", tools.join(", "));
        }
        let net = self.net.as_ref().map(|net| format!(" for {net}"));
        let pages = self.page.as_ref().map(|pages| format!(" for opening {pages}"));
        let about = net.or(pages).unwrap_or_default();
        let when =
            self.when.as_ref().map(|when| format!(" when {}", escape_line(&when.to_string())));
        let (decision, tools) = (self.decision.as_str(), &self.tools);
        format!("rule{whose} {decision} {tools}{about}{}", when.unwrap_or_default())
    }
}

/// The entries that cause a question before a tool is called.
fn danger_steps(grant: &Grant) -> Vec<ExplanationStep> {
    let table = grant.table();
    let step = |place: &SourceLocation, text| ExplanationStep {
        place: place.clone(),
        text,
        is_decisive: true,
    };
    let net = table.net.allows.iter().filter(|allow| grant.net().can_use_entry(allow));
    let net = net.map(|allow| step(&allow.place, format!("net entry {allow}")));
    let writable = |entry: &&FsEntry| {
        let mut mounts = grant.fs().iter();
        mounts.any(|m| m.guest == entry.mount.guest && m.access == FsAccess::ReadWrite)
    };
    let fs = table.fs.iter().filter(writable);
    let fs = fs.map(|entry| step(&entry.place, format!("fs entry {entry}")));
    let secrets = grant.secrets().iter();
    let secrets = secrets.map(|entry| step(&entry.place, format!("secrets entry {entry}")));
    let capability_entries = grant.effective_capabilities().danger_phrases();
    let capability_entries =
        capability_entries.flat_map(|(of, _)| capability_steps(grant, of, None));
    let capability_entries =
        capability_entries.map(|entry| ExplanationStep { is_decisive: true, ..entry });
    net.chain(fs).chain(secrets).chain(capability_entries).collect()
}

/// The entries about a capability, including the one that takes it away, which then wins.
fn capability_steps(
    grant: &Grant,
    capability: Capability,
    decided: Option<&SourceLocation>,
) -> Vec<ExplanationStep> {
    let table = &grant.table().capabilities;
    let denied = table.denied_at(capability);
    let entries = table.entries_with_text(capability).into_iter();
    let entries = entries.chain(denied.map(|place| (place, "false".to_owned())));
    let step = |(place, text): (&SourceLocation, String)| ExplanationStep {
        place: place.clone(),
        text: format!("{capability} entry {text}"),
        is_decisive: denied.or(decided) == Some(place),
    };
    entries.map(step).collect()
}

/// The entries of a `net` list about a request. An entry that denies wins over all others.
fn net_steps(
    grant: &Grant,
    method: &str,
    url: &Url,
    decided: Option<&SourceLocation>,
) -> Vec<ExplanationStep> {
    let Ok(target) = RequestTarget::new(method, url) else {
        return Vec::new();
    };
    let net = &grant.table().net;
    let allows = net.allows.iter().filter(|allow| allow.pattern.matches(&target));
    let allows = allows.map(|allow| ExplanationStep {
        place: allow.place.clone(),
        text: format!("net entry {allow}"),
        is_decisive: decided == Some(&allow.place),
    });
    let denies = net.denies.iter().filter(|deny| deny.pattern.matches_leniently(&target));
    let denies = denies.enumerate().map(|(index, deny)| ExplanationStep {
        place: deny.place.clone(),
        text: format!("net entry {deny}"),
        is_decisive: index == 0,
    });
    allows.chain(denies).collect()
}

/// The entry that contains a file, and the one that denies it.
fn fs_steps(
    grant: &Grant,
    around: &FsEntry,
    denying: Option<&FsEntry>,
    decided: Option<&FsEntry>,
) -> Vec<ExplanationStep> {
    let entries = grant.table().fs.iter();
    let about = entries.filter(|entry| *entry == around || Some(*entry) == denying);
    let step = |entry: &FsEntry| ExplanationStep {
        place: entry.place.clone(),
        text: format!("fs entry {entry}"),
        is_decisive: Some(entry) == decided,
    };
    about.map(step).collect()
}

/// The rest of a path below an entry's folder.
fn path_below_entry<'p>(entry: &FsEntry, path: &'p Path) -> Option<&'p Path> {
    let guest = path.strip_prefix(&entry.mount.guest);
    guest.or_else(|_| path.strip_prefix(&entry.mount.host)).ok()
}

/// The entry that denies a file of an entry: that entry, or another one whose folder contains the
/// file.
fn find_denying_entry<'g>(grant: &'g Grant, entry: &FsEntry, below: &Path) -> Option<&'g FsEntry> {
    let file = entry.mount.host.join(below);
    grant.table().fs.iter().find(|other| {
        let below = file.strip_prefix(&other.mount.host);
        below.is_ok_and(|below| other.mount.deny.find_denying_pattern(below).is_some())
    })
}
