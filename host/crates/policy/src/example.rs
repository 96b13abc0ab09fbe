//! Examples of a rule: what it gives for some arguments, said beside it.
//!
//! They are the rule's own tests. A file whose examples do not come out is not loaded, so that a
//! slip in a condition is found by whoever writes it and not by whoever is let through.

use sallyport_contract::{CallContext, Decision, PluginName};
use serde_json::Value;

use crate::{
    condition::Facts,
    document::Item,
    grant::Grant,
    question::Situation,
    rule::{DECISIONS, Fit, Rule},
    source::{Place, SourceError},
};

/// Whose grant an example of a rule about several plugins has. It holds nothing, so it is anybody's.
fn any_plugin() -> PluginName {
    "any".parse().expect("it is a plugin's name")
}

/// The key of an example that is not an argument.
const DECISION: &str = "decision";

/// Arguments, and what the rule alone is to say about a call with them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Example {
    arguments: Value,
    expected: Decision,
    place: Place,
}

/// How an example of a rule came out.
#[derive(Debug, Clone, PartialEq)]
pub struct ExampleResult {
    /// Where the example stands.
    pub place: Place,
    /// Where its rule stands.
    pub rule: Place,
    /// The arguments.
    pub arguments: Value,
    /// What the example says.
    pub expected: Decision,
    /// What the rule says.
    pub got: Decision,
    /// Why the rule's condition could not be evaluated, where it could not.
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
    /// Refuses a rule whose examples do not come out.
    pub(crate) fn check_examples(&self) -> Result<(), SourceError> {
        match self.examples().find(|result| result.expected != result.got) {
            None => Ok(()),
            Some(wrong) => {
                let (expected, got) = (wrong.expected.word(), wrong.got.word());
                let mut message = format!("the example says {expected}, but the rule gives {got}");
                if let Some(failure) = &wrong.failure {
                    message.push_str(&format!(": its condition cannot be evaluated, as {failure}"));
                }
                Err(wrong.place.error(message))
            }
        }
    }

    /// How its examples come out. An example is a call of a tool that the rule is about, or a
    /// request of such a call, without a context, of a plugin that holds nothing.
    pub(crate) fn examples(&self) -> impl Iterator<Item = ExampleResult> {
        self.examples.iter().map(|example| self.try_example(example))
    }

    fn try_example(&self, example: &Example) -> ExampleResult {
        let context = CallContext::default();
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

    /// What a call gets that the rule alone does not speak about.
    fn otherwise(&self) -> Decision {
        match self.decision {
            Decision::Allow => Decision::Ask,
            Decision::Ask | Decision::Deny => Decision::Allow,
        }
    }
}
