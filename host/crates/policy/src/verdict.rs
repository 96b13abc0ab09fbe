//! What a policy says about one thing that a plugin is about to do, and on what grounds.

use sallyport_contract::{Decision, Denial, Subject, ToolId};
use url::Url;

use crate::{
    capability::UrlPattern,
    net::{
        NetPattern,
        grant::{request_line, sentence},
        pattern::Target,
    },
    question::Situation,
    rule::{Rule, RuleText},
    source::Place,
};

/// What the opening of a page begins with where a record names it.
const OPEN: &str = "open";

/// What a policy says about a call, or about an access of a running call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The decision.
    pub decision: Decision,
    /// Why: the rule with its place, or the default and what led to it.
    pub reason: String,
    /// Where the rule stands that decided; `None` when no rule matched.
    pub rule: Option<Place>,
    /// Every rule that spoke about it, in the order of the files.
    pub matched: Vec<Matched>,
    /// What the verdict is about.
    pub subject: Subject,
    /// The refusal of what the plugin is not granted at all; rules have no say then.
    ungranted: Option<Denial>,
}

/// A rule that spoke about a call or an access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matched {
    /// Where it stands.
    pub place: Place,
    /// What it says.
    pub decision: Decision,
    /// Whether that counts. A rule that allows does not when its condition cannot be evaluated.
    pub counted: bool,
    /// What is to be said about its condition: that it could not be evaluated, and why, or that
    /// the arguments will tell.
    pub note: Option<String>,
}

/// A rule that spoke, and how.
pub(crate) type Spoken<'r> = (&'r Rule, Matched);

impl Verdict {
    /// The verdict of all rules that spoke: the strictest that counts decides, and of equally
    /// strict ones the first is named. Where none counts, the default does.
    pub(crate) fn of(
        subject: Subject,
        spoken: Vec<Spoken<'_>>,
        situation: &Situation<'_>,
        default: impl FnOnce() -> (Decision, String),
    ) -> Self {
        let (decision, reason, rule) = match strictest(&spoken) {
            Some((rule, matched)) => {
                let reason = with_note(rule.reason(Some(situation)), matched);
                (rule.decision, reason, Some(rule.place.clone()))
            }
            None => {
                let (decision, reason) = default();
                (decision, with_uncounted(reason, &spoken), None)
            }
        };
        let matched = spoken.into_iter().map(|(_, matched)| matched).collect();
        Self { decision, reason, rule, matched, subject, ungranted: None }
    }

    /// The verdict about what is not granted: no rule makes up for that.
    pub(crate) fn ungranted(subject: Subject, denial: Denial) -> Self {
        Self {
            decision: Decision::Deny,
            reason: denial.why.clone(),
            rule: None,
            matched: Vec::new(),
            subject,
            ungranted: Some(denial),
        }
    }

    /// The verdict that is to be expected, of rules that surely match and rules that may.
    pub(crate) fn expected(
        sure: &[&Rule],
        open: &[&Rule],
        default: impl FnOnce() -> (Decision, String),
    ) -> Self {
        let spoken: Vec<Spoken<'_>> =
            sure.iter().map(|rule| (*rule, rule.matched(true, None))).collect();
        let (decision, reason, rule) = match strictest(&spoken) {
            Some((rule, _)) => (rule.decision, rule.reason(None), Some(rule.place.clone())),
            None => {
                let (decision, reason) = default();
                (decision, reason, None)
            }
        };
        // Without a rule that surely matches, one that may takes the place of the default.
        let changes =
            |may: &&&Rule| may.decision > decision || (rule.is_none() && may.decision < decision);
        let reason = open.iter().filter(changes).fold(reason, |reason, may| {
            format!("{reason}; the rule at {} may {} it", may.place, may.decision.word())
        });
        let note = || Some("its condition depends on the call".to_owned());
        let open = open.iter().map(|rule| rule.matched(false, note()));
        let matched = spoken.into_iter().map(|(_, matched)| matched).chain(open).collect();
        Self { decision, reason, rule, matched, subject: Subject::Call, ungranted: None }
    }

    /// Returns the refusal of what was denied, or of what nobody was there to agree to.
    ///
    /// The fix is a rule that allows it, or the grant where it is that which is missing. There is none
    /// where a rule of the policy decided: it would stay the strictest, and has to be changed itself.
    pub fn denial(&self, tool: &ToolId) -> Denial {
        if let Some(denial) = &self.ungranted {
            return denial.clone();
        }
        let what = match &self.subject {
            Subject::Call => format!("{tool} may not be called"),
            Subject::Access { what } => sentence(&tool.plugin, what),
        };
        Denial {
            what,
            why: self.reason.clone(),
            fix: self.remedy(tool, None).map(|rule| rule.to_string()),
            nobody_to_ask: self.decision == Decision::Ask,
        }
    }

    /// Returns the rule that would have allowed it without asking: what "always" writes, bound to
    /// the component with this digest.
    ///
    /// `None` when a rule of the policy decided, since no other rule can soften it, for what is not
    /// granted, and for an access that no pattern can name exactly.
    pub fn remedy(&self, tool: &ToolId, digest: Option<&str>) -> Option<RuleText> {
        if self.rule.is_some() || self.ungranted.is_some() {
            return None;
        }
        let rule =
            RuleText { digest: digest.map(str::to_owned), ..RuleText::allowing(tool.to_string()) };
        let Subject::Access { what } = &self.subject else { return Some(rule) };
        match what.split_once(' ') {
            Some((OPEN, url)) => {
                let pattern = UrlPattern::exact(&Url::parse(url).ok()?)?;
                Some(RuleText { open_url: Some(pattern.to_string()), ..rule })
            }
            Some(_) | None => Some(RuleText { net: Some(exact_pattern(what)?), ..rule }),
        }
    }
}

fn strictest<'s, 'r>(spoken: &'s [Spoken<'r>]) -> Option<&'s Spoken<'r>> {
    let counted = spoken.iter().filter(|(_, matched)| matched.counted);
    counted.reduce(|a, b| if b.1.decision > a.1.decision { b } else { a })
}

/// The reason of a default, with the rules that would have counted had their conditions held.
fn with_uncounted(reason: String, spoken: &[Spoken<'_>]) -> String {
    spoken.iter().fold(reason, |reason, (rule, matched)| {
        with_note(format!("{reason}; the rule at {} does not count", rule.place), matched)
    })
}

fn with_note(reason: String, matched: &Matched) -> String {
    match &matched.note {
        Some(note) => format!("{reason}; {note}"),
        None => reason,
    }
}

/// Returns the opening of a page as records name it: without what of the address may be secret.
pub(crate) fn page_line(url: &Url) -> String {
    request_line(OPEN, url)
}

/// The pattern of one request and no other, for what a record calls `METHOD URL`.
pub(crate) fn exact_pattern(what: &str) -> Option<String> {
    // A star in a URL is a star; in a pattern it would stand for anything.
    let pattern: NetPattern = what.replace('*', "%2A").parse().ok()?;
    let (method, url) = what.split_once(' ')?;
    let url = Url::parse(url).ok()?;
    let target = Target::new(method, &url).ok()?;
    pattern.matches(&target).then(|| pattern.to_string())
}
