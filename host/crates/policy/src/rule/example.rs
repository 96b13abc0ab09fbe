//! Examples of a rule: sample arguments with the expected decision.
//!
//! They are the rule's own tests. A file with a failing example is not loaded, so that the author
//! finds a mistake in a condition before it lets a call through.

use sallyport_contract::{Decision, PluginName, ToolCallContext};
use serde_json::Value;

use super::{ConditionResult, DECISIONS, PolicyRule};
use crate::{
    condition::ConditionFacts,
    document::TomlItem,
    grant::Grant,
    question::CallFacts,
    source::{SourceError, SourceLocation},
};

/// The plugin of an example whose rule is about several plugins. Any name works: the grant of an
/// example is empty.
fn placeholder_plugin() -> PluginName {
    "any".parse().expect("it is a plugin's name")
}

/// The key of an example that is not an argument.
const DECISION: &str = "decision";

/// Arguments, and the expected decision of the rule alone about a call with them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RuleExample {
    arguments: Value,
    expected: Decision,
    place: SourceLocation,
}

/// The result of an example.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleExampleResult {
    /// The place of the example.
    pub place: SourceLocation,
    /// The place of its rule.
    pub rule: SourceLocation,
    /// The arguments.
    pub arguments: Value,
    /// The expected decision.
    pub expected: Decision,
    /// The actual decision.
    pub actual: Decision,
    /// Why the rule's condition could not be evaluated, if so.
    pub failure: Option<String>,
}

impl RuleExample {
    pub(crate) fn from_toml(item: TomlItem<'_>) -> Result<Self, SourceError> {
        let place = item.place();
        item.read_section(|section| {
            let expected = section.read_required(DECISION, |item| item.read_choice(&DECISIONS))?;
            let arguments = section.take_rest().into_iter();
            let arguments = arguments.map(|(name, item)| Ok((name, item.read_json()?)));
            let arguments = arguments.collect::<Result<_, SourceError>>()?;
            Ok(Self { arguments: Value::Object(arguments), expected, place })
        })
    }
}

impl PolicyRule {
    /// Refuses a rule with a failing example.
    pub(crate) fn check_examples(&self) -> Result<(), SourceError> {
        match self.example_results().find(|result| result.expected != result.actual) {
            None => Ok(()),
            Some(wrong) => {
                let (expected, got) = (wrong.expected.as_str(), wrong.actual.as_str());
                let mut message = format!("the example says {expected}, but the rule gives {got}");
                if let Some(failure) = &wrong.failure {
                    message.push_str(&format!(": its condition cannot be evaluated, as {failure}"));
                }
                Err(wrong.place.into_error(message))
            }
        }
    }

    /// The results of the rule's examples.
    ///
    /// An example is a call of a tool that the rule is about, or a request of such a call. It has
    /// no context, and its plugin holds nothing.
    pub(crate) fn example_results(&self) -> impl Iterator<Item = RuleExampleResult> {
        self.examples.iter().map(|example| self.run_example(example))
    }

    fn run_example(&self, example: &RuleExample) -> RuleExampleResult {
        let context = ToolCallContext::default();
        let tool = self.tools.to_string();
        let arguments = &example.arguments;
        let call_facts = CallFacts { tool: &tool, arguments, context: &context };
        let grant = Grant::empty(self.tools.single_plugin().unwrap_or_else(placeholder_plugin));
        let fit = self.evaluate_condition(&ConditionFacts::new(call_facts, &grant));
        RuleExampleResult {
            place: example.place.clone(),
            rule: self.place.clone(),
            arguments: arguments.clone(),
            expected: example.expected,
            actual: if self.is_counted(&fit) { self.decision } else { self.default_decision() },
            failure: match fit {
                ConditionResult::Unknown(failure) => Some(failure.to_string()),
                ConditionResult::Holds | ConditionResult::Fails => None,
            },
        }
    }

    /// The decision for a call that the rule does not match.
    fn default_decision(&self) -> Decision {
        match self.decision {
            Decision::Allow => Decision::Ask,
            Decision::Ask | Decision::Deny => Decision::Allow,
        }
    }
}
