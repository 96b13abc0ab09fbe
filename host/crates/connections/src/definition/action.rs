//! One action of a definition, compiled.

use sallyport_contract::ToolName;
use sallyport_policy::{ActionRuleKind, ActionRuleText, ActionRules, ArgumentNames, SourceError};
use serde_json::Value;

use super::{
    Action, OutputGuidance, RequestTemplate,
    file::{ActionSection, NamedEntries, RuleSection},
    place::DefinitionSource,
    variables::VariableReader,
};

impl Action {
    pub(super) fn read(
        source: &DefinitionSource<'_>,
        action: &str,
        section: ActionSection,
        variables: &mut VariableReader<'_>,
    ) -> Result<Self, SourceError> {
        let keys = ["actions", action];
        let name: ToolName = action.parse().map_err(|error| source.hinted(&keys, &error))?;
        let parameters = section.parameters;
        if !parameters.is_object() {
            let error = source.error(&["actions", action, "parameters"], "this is not a schema");
            return Err(error.with_hint("write the JSON Schema of an object"));
        }
        for (key, text) in [
            ("description", Some(&section.description)),
            ("usage_context", section.usage_context.as_ref()),
        ] {
            variables.refuse(&["actions", action, key], text.map_or("", String::as_str))?;
        }
        let names = ArgumentNames::from_schema(&parameters);
        let rules = read_rules(source, action, section.rules.limits, ActionRuleKind::Limit)?;
        let confirmations = section.rules.confirmations;
        let more = read_rules(source, action, confirmations, ActionRuleKind::Confirmation)?;
        let rules = ActionRules::compile(&names, [rules, more].concat())?;
        let request = section.request.map(|request| {
            let keys = ["actions", action, "request"];
            RequestTemplate::read(request, &keys, &parameters, source, variables)
        });
        let request = request.transpose()?;
        Ok(Self {
            name,
            description: section.description,
            usage_context: section.usage_context,
            parameters: with_object_type(parameters),
            names,
            rules,
            guidance: OutputGuidance {
                success_message: section.output_guidance.success_message,
                common_errors: section.output_guidance.common_errors,
            },
            request,
        })
    }

    /// What a model is told about the action.
    pub fn text_for_model(&self) -> String {
        match &self.usage_context {
            Some(usage) => format!("{}\n{usage}", self.description),
            None => self.description.clone(),
        }
    }
}

/// Adds the type "object" to a schema without a type.
fn with_object_type(mut parameters: Value) -> Value {
    if let Value::Object(keys) = &mut parameters {
        keys.entry("type").or_insert_with(|| "object".into());
    }
    parameters
}

fn read_rules(
    source: &DefinitionSource<'_>,
    action: &str,
    rules: NamedEntries<RuleSection>,
    kind: ActionRuleKind,
) -> Result<Vec<ActionRuleText>, SourceError> {
    let (group, word) = match kind {
        ActionRuleKind::Limit => ("limits", "block"),
        ActionRuleKind::Confirmation => ("confirmations", "confirm"),
    };
    let read = |(name, rule): (String, RuleSection)| {
        let keys = |key| source.place(&["actions", action, "rules", group, &name, key]);
        if rule.action != word {
            let error = keys("action").into_error(format!("the action of {group} is \"{word}\""));
            return Err(error.with_hint(format!("write \"action\": \"{word}\"")));
        }
        let condition = (rule.condition, keys("condition"));
        let message = (rule.message, keys("message"));
        Ok(ActionRuleText { kind, name, condition, message })
    };
    rules.0.into_iter().map(read).collect()
}
