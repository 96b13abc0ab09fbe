//! Rules that the author of a plugin states for its own actions: limits and confirmations.
//!
//! They are conditions of the same language as those of a policy, and are evaluated the same way. They
//! can only tighten: a limit denies a call, a confirmation asks about it, and neither allows one. An
//! author may name parameters directly and count the entries of lists ([`ArgumentNames`]).

use sallyport_contract::Decision;
use serde_json::Value;

pub use crate::argument_names::{ArgumentNames, count_in_result};

use crate::{
    argument_names::{NameMeaning, may_count},
    condition::{Condition, ConditionFacts, EvaluationError},
    grant::Grant,
    message::RuleMessage,
    question::PolicyQuestion,
    source::{SourceError, SourceLocation},
    verdict::PolicyVerdict,
};

/// Most rules of one action: more than a user could ever answer.
const ACTION_RULES_MAX: usize = 100;

/// What a rule of an author does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionRuleKind {
    /// It blocks a call.
    Limit,
    /// It asks the user about a call.
    Confirmation,
}

/// A rule as its author wrote it, with its places in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionRuleText {
    /// What it does.
    pub kind: ActionRuleKind,
    /// Its name.
    pub name: String,
    /// The condition, and its place.
    pub condition: (String, SourceLocation),
    /// The message with `{placeholders}`, and its place.
    pub message: (String, SourceLocation),
}

/// The rules of one action.
#[derive(Debug, Clone, PartialEq)]
pub struct ActionRules {
    rules: Vec<ActionRule>,
    /// The names whose entries the conditions may count, if one does.
    counted: Option<ArgumentNames>,
}

#[derive(Debug, Clone, PartialEq)]
struct ActionRule {
    kind: ActionRuleKind,
    name: String,
    condition: Condition,
    message: RuleMessage,
    place: SourceLocation,
}

/// A rule that applies to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedActionRule {
    /// What the rule does.
    pub kind: ActionRuleKind,
    /// Its name.
    pub name: String,
    /// Its message about this call.
    pub message: String,
    /// The place of its condition.
    pub place: SourceLocation,
}

impl ActionRules {
    /// The rules of an action without any.
    pub fn empty() -> Self {
        Self { rules: Vec::new(), counted: None }
    }

    /// Compiles the rules of an action with these names.
    ///
    /// # Errors
    ///
    /// A condition or message that is not understood, or a name that nothing defines.
    pub fn compile(names: &ArgumentNames, texts: Vec<ActionRuleText>) -> Result<Self, SourceError> {
        if let Some(extra) = texts.get(ACTION_RULES_MAX) {
            let message = format!("an action has more than {ACTION_RULES_MAX} rules");
            return Err(extra.condition.1.clone().into_error(message));
        }
        let counts = texts.iter().any(|text| may_count(&text.condition.0));
        let counted = counts.then(|| names.clone());
        let compiled = texts.into_iter().map(|text| ActionRule::compile(names, text));
        Ok(Self { rules: compiled.collect::<Result<_, _>>()?, counted })
    }

    /// The rules that apply to a call, limits first. A rule about an argument that the call does
    /// not have does not apply. One that cannot be evaluated for another reason does.
    pub fn applied_to(
        &self,
        question: &PolicyQuestion<'_>,
        grant: &Grant,
    ) -> Vec<AppliedActionRule> {
        if self.rules.is_empty() {
            return Vec::new();
        }
        let counted = self.counted.as_ref().map(|names| names.with_counts(question.arguments));
        let arguments = counted.as_ref().unwrap_or(question.arguments);
        let question = PolicyQuestion { arguments, ..*question };
        let tool = question.tool.to_string();
        let facts = ConditionFacts::new(question.call_facts(&tool), grant);
        let mut applied: Vec<_> =
            self.rules.iter().filter_map(|rule| rule.applied_to(&facts)).collect();
        applied.sort_by_key(|rule| rule.kind == ActionRuleKind::Confirmation);
        applied
    }

    /// The messages of all rules as written, for a model that is told about them.
    pub fn messages(&self) -> impl Iterator<Item = (ActionRuleKind, String)> {
        self.rules.iter().map(|rule| (rule.kind, rule.message.to_string()))
    }

    /// Each rule with its condition as written.
    pub fn conditions(&self) -> impl Iterator<Item = (ActionRuleKind, &str, String)> {
        self.rules.iter().map(|rule| (rule.kind, rule.name.as_str(), rule.condition.to_string()))
    }
}

impl ActionRule {
    fn compile(names: &ArgumentNames, text: ActionRuleText) -> Result<Self, SourceError> {
        let ActionRuleText { kind, name, condition: (condition, place), message } = text;
        let condition = Condition::parse_with_names(condition, names)
            .map_err(|error| place.clone().into_hinted_error(&error))?;
        let (message, message_place) = message;
        let message = RuleMessage::parse_with_names(&message, names)
            .map_err(|error| message_place.into_hinted_error(&error))?;
        Ok(Self { kind, name, condition, message, place })
    }

    fn applied_to(&self, facts: &ConditionFacts<'_>) -> Option<AppliedActionRule> {
        let note = match self.condition.evaluate(facts) {
            Ok(true) => String::new(),
            Ok(false) | Err(EvaluationError::Missing { .. }) => return None,
            Err(error) => format!(" (the condition of {} cannot be evaluated: {error})", self.name),
        };
        let message = format!("{}{note}", self.message.fill(facts.call_facts()));
        let (kind, name, place) = (self.kind, self.name.clone(), self.place.clone());
        Some(AppliedActionRule { kind, name, message, place })
    }
}

impl PolicyVerdict {
    /// Returns the verdict with the rules of the plugin's author, which can only tighten it. No rule
    /// of a policy lifts them, so "always" is not offered for them.
    pub fn tightened_by(self, applied: &[AppliedActionRule]) -> Self {
        let of_kind = |kind| applied.iter().filter(move |rule| rule.kind == kind);
        let limit = of_kind(ActionRuleKind::Limit).next();
        let confirmations: Vec<_> = of_kind(ActionRuleKind::Confirmation).collect();
        match (self.decision, limit, confirmations.as_slice()) {
            (Decision::Deny, ..) | (_, None, []) => self,
            (_, Some(limit), _) => {
                let reason = format!("{} (rule at {})", limit.message, limit.place);
                let rule = Some(limit.place.clone());
                Self { decision: Decision::Deny, reason, rule, group: None, ..self }
            }
            (decision, None, [first, ..]) => {
                let messages = confirmations.iter().map(|rule| rule.message.as_str());
                let mut reason = messages.collect::<Vec<_>>().join(" ");
                if decision == Decision::Ask {
                    reason = format!("{reason} ({})", self.reason);
                }
                let rule = Some(first.place.clone());
                Self { decision: Decision::Ask, reason, rule, group: None, ..self }
            }
        }
    }
}

/// Fills a success message: `"Sent to {recipient_count}"`. A name is looked up in the result, then
/// among the arguments. `None` if a name has no value, because a message with a gap would mislead.
pub fn fill_success_message(
    message: &str,
    names: &ArgumentNames,
    arguments: &Value,
    result: &Value,
) -> Option<String> {
    let mut filled = String::new();
    let mut rest = message;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}')?;
        filled.push_str(before);
        filled.push_str(&success_value(name.trim(), names, arguments, result)?);
        rest = after;
    }
    filled.push_str(rest);
    Some(filled)
}

fn success_value(
    name: &str,
    names: &ArgumentNames,
    arguments: &Value,
    result: &Value,
) -> Option<String> {
    let path = || name.split('.');
    let look_up = |root| path().try_fold(root, |value: &Value, key| value.get(key));
    let value = look_up(result).and_then(crate::message::shown_value);
    value
        .or_else(|| count_in_result(name, result).map(|count| count.to_string()))
        .or_else(|| match names.meaning(name).ok()? {
            NameMeaning::Count(path) => {
                Some(NameMeaning::count_entries(&path, arguments).to_string())
            }
            NameMeaning::Argument(_) => None,
        })
        .or_else(|| look_up(arguments).and_then(crate::message::shown_value))
}
