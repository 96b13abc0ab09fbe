//! A policy's verdict on one action of a plugin, with its grounds.

use sallyport_contract::{
    ApprovalSubject, Decision, Denial, DenialReason, DenialSubject, FixRule, PolicyFix, ToolId,
};
use url::Url;

use crate::{
    capability::{OPEN_PAGE_VERB, UrlPattern, page_subject},
    net::{
        pattern::exact_pattern,
        request_text::{request_line, request_subject},
    },
    question::CallFacts,
    rule::{PolicyRule, RuleMatch},
    rule_text::RuleText,
    source::SourceLocation,
};

/// A policy's verdict on a call, or on an access of a running call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyVerdict {
    /// The decision.
    pub decision: Decision,
    /// The reason: the rule with its place, or the default and its cause.
    pub reason: String,
    /// The place of the rule that decided; `None` if no rule decided.
    pub rule: Option<SourceLocation>,
    /// The group of the policy whose rule decided; `None` for a rule about all users.
    pub group: Option<String>,
    /// Every rule that matched, in the order of the files.
    pub matched: Vec<RuleMatch>,
    /// The access that the verdict is about; `None` for a call.
    pub(crate) access: Option<DecidedAccess>,
    /// The refusal of an action that is not granted at all; rules do not apply then.
    pub(crate) ungranted: Option<Denial>,
}

/// An access of a running call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DecidedAccess {
    /// A request with this method.
    Request(String, Url),
    /// A page to open.
    Page(Url),
}

/// A rule that matched, with the details of the match.
pub(crate) type MatchedRule<'r> = (&'r PolicyRule, RuleMatch);

impl PolicyVerdict {
    /// Returns the verdict of the rules that matched: the strictest rule that counts decides, and
    /// the first of several equally strict ones is named. If none counts, the default decides.
    pub(crate) fn from_rules(
        access: Option<DecidedAccess>,
        matched_rules: Vec<MatchedRule<'_>>,
        call_facts: &CallFacts<'_>,
        default: impl FnOnce() -> (Decision, String),
    ) -> Self {
        let (decision, reason, rule) = match strictest_match(&matched_rules) {
            Some((rule, matched)) => {
                let reason = with_note(rule.reason_text(Some(call_facts)), matched);
                (rule.decision, reason, Some(*rule))
            }
            None => {
                let (decision, reason) = default();
                (decision, with_uncounted(reason, &matched_rules), None)
            }
        };
        let group = rule.and_then(|rule| rule.group.clone());
        let rule = rule.map(|rule| rule.place.clone());
        let matched = matched_rules.into_iter().map(|(_, matched)| matched).collect();
        Self { decision, reason, rule, group, matched, access, ungranted: None }
    }

    /// Returns the verdict on an action that is not granted, which no rule can allow.
    pub(crate) fn for_ungranted(access: DecidedAccess, denial: Denial) -> Self {
        Self {
            decision: Decision::Deny,
            reason: denial.reason.to_string(),
            rule: None,
            group: None,
            matched: Vec::new(),
            access: Some(access),
            ungranted: Some(denial),
        }
    }

    /// Returns the expected verdict, from the rules that certainly match and those that may match.
    pub(crate) fn from_possible_rules(
        certain_rules: &[&PolicyRule],
        possible_rules: &[&PolicyRule],
        default: impl FnOnce() -> (Decision, String),
    ) -> Self {
        let matched_rules: Vec<MatchedRule<'_>> =
            certain_rules.iter().map(|rule| (*rule, rule.build_match(true, None))).collect();
        let (decision, reason, rule) = match strictest_match(&matched_rules) {
            Some((rule, _)) => (rule.decision, rule.reason_text(None), Some(rule.place.clone())),
            None => {
                let (decision, reason) = default();
                (decision, reason, None)
            }
        };
        // If no rule certainly matches, one that may match replaces the default.
        let changes = |may: &&&PolicyRule| {
            may.decision > decision || (rule.is_none() && may.decision < decision)
        };
        let reason = possible_rules.iter().filter(changes).fold(reason, |reason, may| {
            format!("{reason}; the rule at {} may {} it", may.place, may.decision.as_str())
        });
        let note = || Some("its condition depends on the call".to_owned());
        let possible_rules = possible_rules.iter().map(|rule| rule.build_match(false, note()));
        let matched =
            matched_rules.into_iter().map(|(_, matched)| matched).chain(possible_rules).collect();
        Self { decision, reason, rule, group: None, matched, access: None, ungranted: None }
    }

    /// Returns the refusal of an action that was denied, or that no user was present to confirm.
    ///
    /// The fix is a rule that allows it, or a grant if the grant is missing. There is no fix if a
    /// rule of the policy decided: that rule would remain the strictest, and has to be changed
    /// itself.
    pub fn to_denial(&self, tool: &ToolId) -> Denial {
        if let Some(denial) = &self.ungranted {
            return denial.clone();
        }
        let subject = match &self.access {
            None => DenialSubject::Call { tool: tool.clone() },
            Some(DecidedAccess::Request(method, url)) => request_subject(&tool.plugin, method, url),
            Some(DecidedAccess::Page(url)) => page_subject(&tool.plugin, url),
        };
        let text = self.reason.clone();
        let reason = match &self.rule {
            Some(place) => {
                DenialReason::Rule { place: place.into(), text, group: self.group.clone() }
            }
            None => DenialReason::NoRule { text },
        };
        let fix = self.allowing_rule(tool, None).map(|rule| rule.to_fix(tool));
        let nobody_to_ask = self.decision == Decision::Ask;
        Denial { nobody_to_ask, ..Denial::new(subject, reason).with_fix(fix) }
    }

    /// The call or access that the verdict is about, for a question to the user.
    pub fn subject(&self) -> ApprovalSubject {
        match &self.access {
            None => ApprovalSubject::Call,
            Some(DecidedAccess::Request(method, url)) => {
                ApprovalSubject::Access { what: request_line(method, url) }
            }
            Some(DecidedAccess::Page(url)) => {
                ApprovalSubject::Access { what: request_line(OPEN_PAGE_VERB, url) }
            }
        }
    }

    /// Returns the rule that would allow the action without asking. This is the rule that the
    /// answer "always" writes, bound to the component with this digest.
    ///
    /// `None` if a rule of the policy decided, since no other rule can weaken it, for an action
    /// that is not granted, and for an access that no pattern can match exactly.
    pub fn allowing_rule(&self, tool: &ToolId, digest: Option<&str>) -> Option<RuleText> {
        if self.rule.is_some() || self.ungranted.is_some() {
            return None;
        }
        let rule =
            RuleText { digest: digest.map(str::to_owned), ..RuleText::new_allow(tool.to_string()) };
        match &self.access {
            None => Some(rule),
            Some(DecidedAccess::Page(url)) => {
                let pattern = UrlPattern::from_exact_url(url)?;
                Some(RuleText { page: Some(pattern.to_string()), ..rule })
            }
            Some(DecidedAccess::Request(method, url)) => {
                Some(RuleText { net: Some(exact_pattern(method, url)?.to_string()), ..rule })
            }
        }
    }
}

impl RuleText {
    /// The fix that adds the rule, which is about one tool.
    pub(crate) fn to_fix(&self, tool: &ToolId) -> PolicyFix {
        let (net, page) = (self.net.clone(), self.page.clone());
        let rule = FixRule { tool: tool.tool.to_string(), net, page };
        PolicyFix::from_rule(tool.plugin.clone(), rule, self.to_string())
    }
}

fn strictest_match<'s, 'r>(matched_rules: &'s [MatchedRule<'r>]) -> Option<&'s MatchedRule<'r>> {
    let counted = matched_rules.iter().filter(|(_, matched)| matched.is_counted);
    counted.reduce(|a, b| if b.1.decision > a.1.decision { b } else { a })
}

/// The reason of a default, with the rules that matched but do not count.
fn with_uncounted(reason: String, matched_rules: &[MatchedRule<'_>]) -> String {
    matched_rules.iter().fold(reason, |reason, (rule, matched)| {
        with_note(format!("{reason}; the rule at {} does not count", rule.place), matched)
    })
}

fn with_note(reason: String, matched: &RuleMatch) -> String {
    match &matched.note {
        Some(note) => format!("{reason}; {note}"),
        None => reason,
    }
}
