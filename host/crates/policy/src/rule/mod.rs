//! Rules: which calls, and which accesses of running calls, are allowed, asked about or denied.

mod example;

use std::str::FromStr;

use sallyport_contract::{Decision, PluginName, ToolId, text::escape_line};
use url::Url;

use crate::{
    capability::{PAGE_RULE_KEY, UrlPattern},
    condition::{Condition, ConditionFacts, EvaluationError},
    document::TomlItem,
    message::RuleMessage,
    net::{NetPattern, pattern::RequestTarget},
    question::CallFacts,
    source::{HintedError, SourceError, SourceLocation, quoted},
    tier::PolicyTier,
    tool_pattern::ToolPattern,
};

use self::example::RuleExample;
pub use self::example::RuleExampleResult;

/// The decisions and their words.
pub(crate) const DECISIONS: [(&str, Decision); 3] =
    [("allow", Decision::Allow), ("ask", Decision::Ask), ("deny", Decision::Deny)];

/// Fewest digits of a digest in a rule. A shorter prefix could be matched by a component that is
/// built for the purpose.
const DIGEST_DIGITS_MIN: usize = 12;

/// Digits of a full digest.
const DIGEST_DIGITS_MAX: usize = 64;

/// One `[[rule]]` of a policy.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PolicyRule {
    pub(crate) tools: ToolPattern,
    /// The requests of a running call that it is about; `None` for a rule that is not about
    /// requests.
    pub(crate) net: Option<NetPattern>,
    /// The pages, opened by a running call, that it is about.
    pub(crate) page: Option<UrlPattern>,
    pub(crate) digest: Option<DigestPrefix>,
    pub(crate) when: Option<Condition>,
    pub(crate) decision: Decision,
    message: Option<RuleMessage>,
    pub(crate) examples: Vec<RuleExample>,
    pub(crate) place: SourceLocation,
    /// The tools that it is not about, although they match.
    pub(crate) except: Vec<ToolPattern>,
    /// The group whose members it is about; `None` for all users.
    pub(crate) group: Option<String>,
}

/// The first digits of a component's digest, or all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DigestPrefix(String);

/// A rule that matched a call or an access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleMatch {
    /// The place of the rule.
    pub place: SourceLocation,
    /// Its decision.
    pub decision: Decision,
    /// Whether it counts. A rule that allows does not count if its condition cannot be evaluated.
    pub is_counted: bool,
    /// A note on its condition: why it could not be evaluated, or that it depends on the call.
    pub note: Option<String>,
}

/// Why a text is not a digest.
#[derive(Debug, thiserror::Error)]
#[error("{} is not a digest", quoted(text))]
pub(crate) struct DigestPrefixError {
    text: String,
}

impl HintedError for DigestPrefixError {
    fn hint(&self) -> Option<String> {
        Some(format!(
            "write its first digits, at least {DIGEST_DIGITS_MIN} of 0-9 and a-f, or all \
             {DIGEST_DIGITS_MAX}"
        ))
    }
}

impl FromStr for DigestPrefix {
    type Err = DigestPrefixError;

    fn from_str(text: &str) -> Result<Self, DigestPrefixError> {
        let hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let fits = (DIGEST_DIGITS_MIN..=DIGEST_DIGITS_MAX).contains(&text.len());
        match fits && text.bytes().all(hex) {
            true => Ok(Self(text.to_owned())),
            false => Err(DigestPrefixError { text: text.to_owned() }),
        }
    }
}

impl DigestPrefix {
    fn matches_digest(&self, digest: &str) -> bool {
        digest.starts_with(&self.0)
    }

    /// Whether this digest matches every component of `other`.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        self.matches_digest(&other.0)
    }
}

/// Whether the condition of a rule holds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ConditionResult {
    Holds,
    Fails,
    Unknown(EvaluationError),
}

impl PolicyRule {
    pub(crate) fn from_toml(item: TomlItem<'_>, tier: PolicyTier) -> Result<Self, SourceError> {
        let place = item.place();
        let mut rule = item.read_section(|section| {
            Ok(Self {
                tools: section.read_required("tool", TomlItem::read_parsed)?,
                net: section.read_optional("net", TomlItem::read_parsed)?,
                page: section.read_optional(PAGE_RULE_KEY, TomlItem::read_parsed)?,
                digest: section.read_optional("digest", TomlItem::read_parsed)?,
                when: section.read_optional("when", Condition::from_toml)?,
                decision: section.read_required("decision", |item| read_decision(item, tier))?,
                message: section.read_optional("message", RuleMessage::from_toml)?,
                examples: section.read_list("match", RuleExample::from_toml)?,
                place,
                except: Vec::new(),
                group: None,
            })
        })?;
        if rule.net.is_some() && rule.page.is_some() {
            let error = rule.place.clone().into_error(format!(
                "a rule cannot be about \"net\" and \"{PAGE_RULE_KEY}\" at once"
            ));
            return Err(error.with_hint("write two rules"));
        }
        if rule.decision > Decision::Allow {
            rule.tools = rule.tools.ignoring_case();
        }
        rule.check_examples()?;
        Ok(rule)
    }

    /// The rule that denies the members of a group every tool that its list does not have.
    pub(crate) fn deny_all_but(
        tools: Vec<ToolPattern>,
        group: &str,
        place: SourceLocation,
    ) -> Self {
        Self {
            tools: ToolPattern::everything(),
            net: None,
            page: None,
            digest: None,
            when: None,
            decision: Decision::Deny,
            message: None,
            examples: Vec::new(),
            place,
            except: tools,
            group: Some(group.to_owned()),
        }
    }

    /// The rule for the members of a group.
    pub(crate) fn of_group(self, group: &str) -> Self {
        Self { group: Some(group.to_owned()), ..self }
    }

    /// Whether the rule is about calling a tool of this component.
    pub(crate) fn is_about_call(&self, tool: &ToolId, digest: &str) -> bool {
        self.net.is_none() && self.page.is_none() && self.is_about(tool, digest)
    }

    /// Whether the rule is about a request of the tool. A rule that stops requests matches as
    /// generously as an entry that denies; a rule that allows matches as narrowly as an entry that
    /// allows.
    pub(crate) fn is_about_access(
        &self,
        tool: &ToolId,
        digest: &str,
        to: &RequestTarget<'_>,
    ) -> bool {
        let matches = |pattern: &NetPattern| match self.decision {
            Decision::Allow => pattern.matches(to),
            Decision::Ask | Decision::Deny => pattern.matches_leniently(to),
        };
        self.net.as_ref().is_some_and(matches) && self.is_about(tool, digest)
    }

    /// Whether the rule is about a page that the tool opens, matched as for requests.
    pub(crate) fn is_about_page(&self, tool: &ToolId, digest: &str, url: &Url) -> bool {
        let matches = |pattern: &UrlPattern| match self.decision {
            Decision::Allow => pattern.matches(url),
            Decision::Ask | Decision::Deny => pattern.matches_leniently(url),
        };
        self.page.as_ref().is_some_and(matches) && self.is_about(tool, digest)
    }

    fn is_about(&self, tool: &ToolId, digest: &str) -> bool {
        self.tools.matches(tool)
            && !self.except.iter().any(|pattern| pattern.matches(tool))
            && self.digest.as_ref().is_none_or(|own| own.matches_digest(digest))
    }

    /// Whether the rule is about every call of every tool of a plugin.
    pub(crate) fn is_about_every_call_of(&self, plugin: &PluginName) -> bool {
        let narrows = self.net.is_some()
            || self.page.is_some()
            || self.digest.is_some()
            || self.when.is_some();
        !narrows && self.tools.matches_whole_plugin(plugin)
    }

    /// Whether the rule's condition holds; a rule without a condition always fits.
    pub(crate) fn evaluate_condition(&self, facts: &ConditionFacts<'_>) -> ConditionResult {
        match self.when.as_ref().map_or(Ok(true), |when| when.evaluate(facts)) {
            Ok(true) => ConditionResult::Holds,
            Ok(false) => ConditionResult::Fails,
            Err(failure) => ConditionResult::Unknown(failure),
        }
    }

    /// Whether the rule counts. If its condition cannot be evaluated, it counts only if it does not
    /// allow.
    pub(crate) fn is_counted(&self, fit: &ConditionResult) -> bool {
        match fit {
            ConditionResult::Holds => true,
            ConditionResult::Fails => false,
            ConditionResult::Unknown(_) => self.decision != Decision::Allow,
        }
    }

    /// The rule's verdict on a call that it is about; `None` if its condition does not hold.
    pub(crate) fn match_call(&self, facts: &ConditionFacts<'_>) -> Option<(&Self, RuleMatch)> {
        let fit = self.evaluate_condition(facts);
        let counted = self.is_counted(&fit);
        let note = match fit {
            ConditionResult::Holds => None,
            ConditionResult::Fails => return None,
            ConditionResult::Unknown(failure) => {
                Some(format!("its condition cannot be evaluated: {failure}"))
            }
        };
        Some((self, self.build_match(counted, note)))
    }

    pub(crate) fn build_match(&self, counted: bool, note: Option<String>) -> RuleMatch {
        RuleMatch { place: self.place.clone(), decision: self.decision, is_counted: counted, note }
    }

    /// The rule's message, if it has one, and its place.
    pub(crate) fn reason_text(&self, of: Option<&CallFacts<'_>>) -> String {
        let rule = self.label();
        match (&self.message, of) {
            (Some(message), Some(of)) => format!("{} ({rule})", message.fill(of)),
            (Some(message), None) => format!("{message} ({rule})"),
            (None, _) => rule,
        }
    }

    /// What it is, with its place.
    fn label(&self) -> String {
        let place = &self.place;
        match &self.group {
            None => format!("rule at {place}"),
            Some(group) if self.except.is_empty() => {
                format!("rule of the group {} at {place}", escape_line(group))
            }
            Some(group) => {
                format!("it is not among the tools of the group {}, at {place}", escape_line(group))
            }
        }
    }
}

fn read_decision(item: TomlItem<'_>, tier: PolicyTier) -> Result<Decision, SourceError> {
    let place = item.place();
    let decision = item.read_choice(&DECISIONS)?;
    if (tier, decision) == (PolicyTier::Project, Decision::Allow) {
        let error = place.into_error("a rule of a project's policy cannot allow");
        return Err(error.with_hint("a project can only ask or deny: move it to your own policy"));
    }
    Ok(decision)
}
