//! Examples of a rule: sample arguments with the expected decision.
//!
//! They are the rule's own tests. A file with a failing example is not loaded, so that the author
//! finds a mistake in a condition before it lets a call through.

use sallyport_contract::{Decision, PluginName, ToolCallContext};
use serde_json::Value;

use crate::{
    condition::Facts,
    document::Item,
    grant::Grant,
    question::Situation,
    rule::{DECISIONS, Fit, Rule},
    source::{Place, SourceError},
};

/// The plugin of an example whose rule is about several plugins. Any name works: the grant of an
/// example is empty.
fn any_plugin() -> PluginName {
    "any".parse().expect("it is a plugin's name")
}

/// The key of an example that is not an argument.
const DECISION: &str = "decision";

/// Arguments, and the expected decision of the rule alone about a call with them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Example {
    arguments: Value,
    expected: Decision,
    place: Place,
}

/// The result of an example.
#[derive(Debug, Clone, PartialEq)]
pub struct ExampleResult {
    /// The place of the example.
    pub place: Place,
    /// The place of its rule.
    pub rule: Place,
    /// The arguments.
    pub arguments: Value,
    /// The expected decision.
    pub expected: Decision,
    /// The actual decision.
    pub got: Decision,
    /// Why the rule's condition could not be evaluated, if so.
    pub failure: Option<String>,
}

impl Example {
    pub(crate) fn read(item: Item<'_>) -> Result<Self, SourceError> {
        let place = item.place();
        item.section(|section| {
            let expected = section.required(DECISION, |item| item.choice(&DECISIONS))?;
            let arguments = section.rest().into_iter();
            let arguments = arguments.map(|(name, item)| Ok((name, item.json()?)));
            let arguments = arguments.collect::<Result<_, SourceError>>()?;
            Ok(Self { arguments: Value::Object(arguments), expected, place })
        })
    }
}

impl Rule {
    /// Refuses a rule with a failing example.
    pub(crate) fn check_examples(&self) -> Result<(), SourceError> {
        match self.examples().find(|result| result.expected != result.got) {
            None => Ok(()),
            Some(wrong) => {
                let (expected, got) = (wrong.expected.as_str(), wrong.got.as_str());
                let mut message = format!("the example says {expected}, but the rule gives {got}");
                if let Some(failure) = &wrong.failure {
                    message.push_str(&format!(": its condition cannot be evaluated, as {failure}"));
                }
                Err(wrong.place.error(message))
            }
        }
    }

    /// The results of the rule's examples.
    ///
    /// An example is a call of a tool that the rule is about, or a request of such a call. It has
    /// no context, and its plugin holds nothing.
    pub(crate) fn examples(&self) -> impl Iterator<Item = ExampleResult> {
        self.examples.iter().map(|example| self.try_example(example))
    }

    fn try_example(&self, example: &Example) -> ExampleResult {
        let context = ToolCallContext::default();
        let tool = self.tools.to_string();
        let arguments = &example.arguments;
        let situation = Situation { tool: &tool, arguments, context: &context };
        let grant = Grant::none(self.tools.plugin().unwrap_or_else(any_plugin));
        let fit = self.fit(&Facts::new(situation, &grant));
        ExampleResult {
            place: example.place.clone(),
            rule: self.place.clone(),
            arguments: arguments.clone(),
            expected: example.expected,
            got: if self.counts(&fit) { self.decision } else { self.otherwise() },
            failure: match fit {
                Fit::Unknown(failure) => Some(failure.to_string()),
                Fit::Holds | Fit::Fails => None,
            },
        }
    }

    /// The decision for a call that the rule does not match.
    fn otherwise(&self) -> Decision {
        match self.decision {
            Decision::Allow => Decision::Ask,
            Decision::Ask | Decision::Deny => Decision::Allow,
        }
    }
}
