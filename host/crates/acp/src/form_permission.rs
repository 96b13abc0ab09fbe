//! The question of an MCP server as permission requests of the protocol, which knows only choices.
//!
//! A form whose fields can be chosen is asked field by field. One that needs a text or a number
//! cannot be asked here; a field of that kind that may be left out is.

use sallyport_contract::{
    ApprovalAnswer, ApprovalRequest, FieldKind, FormAnswer, FormField, FormQuestion, text,
};
use serde_json::{Map, Value, json};

/// Most values of a field that a client shows as buttons.
const CHOICES_MAX: usize = 12;

/// Longest name of a choice, in characters.
const NAME_CHARS_MAX: usize = 80;

/// The id of the choice that refuses.
const REFUSE_ID: &str = "no";

/// The id of the choice that leaves a field out.
const SKIP_ID: &str = "skip";

/// One field as a list of choices.
pub(crate) struct FieldChoices<'a> {
    field: &'a FormField,
    choices: Vec<FieldChoice>,
}

/// A choice: its id, its name, and the value that it stands for, if any.
struct FieldChoice {
    id: String,
    name: String,
    value: Option<Value>,
}

/// What a client chose for a field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ChosenValue {
    Value(Value),
    LeftOut,
    Refused,
}

impl<'a> FieldChoices<'a> {
    /// The fields that are asked. `None` if a required one cannot be.
    pub(crate) fn of_form(form: &'a FormQuestion) -> Option<Vec<Self>> {
        let mut asked = Vec::new();
        for field in &form.fields {
            match field_choices(field) {
                Some(choices) => asked.push(Self { field, choices }),
                None if field.required && field.default.is_none() => return None,
                None => {}
            }
        }
        Some(asked)
    }

    /// What is asked, on one line.
    pub(crate) fn title(&self) -> String {
        text::escape_line(&self.field.summary())
    }

    /// The name of the field.
    pub(crate) fn name(&self) -> &str {
        &self.field.name
    }

    /// The options of the permission request.
    pub(crate) fn options(&self) -> Vec<Value> {
        let allow = |choice: &FieldChoice| json!({ "optionId": choice.id, "name": choice.name, "kind": "allow_once" });
        let refuse = json!({ "optionId": REFUSE_ID, "name": "Refuse", "kind": "reject_once" });
        self.choices.iter().map(allow).chain([refuse]).collect()
    }

    /// Reads the client's answer. Anything that was not offered refuses.
    pub(crate) fn chosen(&self, response: &Value) -> ChosenValue {
        let outcome = &response["outcome"];
        let id = outcome["optionId"].as_str().filter(|_| outcome["outcome"] == "selected");
        let choice = self.choices.iter().find(|choice| id == Some(choice.id.as_str()));
        choice.map_or(ChosenValue::Refused, |choice| {
            choice.value.clone().map_or(ChosenValue::LeftOut, ChosenValue::Value)
        })
    }
}

/// The answer with these values.
pub(crate) fn filled_answer(values: Map<String, Value>) -> ApprovalAnswer {
    ApprovalAnswer::Form(FormAnswer { values })
}

/// Whether a question is asked as a form here.
pub(crate) fn form_to_fill(request: &ApprovalRequest) -> Option<&FormQuestion> {
    request.form_question().filter(|form| form.needs_values())
}

fn field_choices(field: &FormField) -> Option<Vec<FieldChoice>> {
    let mut choices = match &field.kind {
        FieldKind::YesNo => vec![
            FieldChoice { id: "v0".to_owned(), name: "Yes".to_owned(), value: Some(true.into()) },
            FieldChoice { id: "v1".to_owned(), name: "No".to_owned(), value: Some(false.into()) },
        ],
        FieldKind::Choice { options } if options.len() <= CHOICES_MAX => options
            .iter()
            .enumerate()
            .map(|(index, option)| FieldChoice {
                id: format!("v{index}"),
                name: text::escape_excerpt(
                    option.title.as_ref().unwrap_or(&option.value),
                    NAME_CHARS_MAX,
                ),
                value: Some(option.value.as_str().into()),
            })
            .collect(),
        FieldKind::Choice { .. }
        | FieldKind::Choices { .. }
        | FieldKind::Text { .. }
        | FieldKind::Number { .. } => return None,
    };
    if !field.required {
        let (id, name) = (SKIP_ID.to_owned(), "Leave it out".to_owned());
        choices.push(FieldChoice { id, name, value: None });
    }
    Some(choices)
}

#[cfg(test)]
mod tests {
    use sallyport_contract::FieldOption;

    use super::*;

    fn field(name: &str, kind: FieldKind, required: bool) -> FormField {
        let (title, description, default) = (None, None, None);
        FormField { name: name.to_owned(), title, description, required, default, kind }
    }

    fn text_kind() -> FieldKind {
        FieldKind::Text { min_chars: None, max_chars: None, format: None }
    }

    #[test]
    fn only_an_offered_choice_is_a_value() {
        let option = |value: &str| FieldOption { value: value.to_owned(), title: None };
        let kind = FieldKind::Choice { options: vec![option("red"), option("blue")] };
        let fields = vec![
            field("colour", kind, false),
            field("sure", FieldKind::YesNo, true),
            field("note", text_kind(), false),
        ];
        let form = FormQuestion { message: String::new(), page: None, fields };
        let asked = FieldChoices::of_form(&form).unwrap();
        assert_eq!(asked.len(), 2, "a text that may be left out is");
        let selected = |id: &str| json!({ "outcome": { "outcome": "selected", "optionId": id } });
        let rows = [
            (0, selected("v1"), ChosenValue::Value(json!("blue"))),
            (0, selected("skip"), ChosenValue::LeftOut),
            (0, selected("v2"), ChosenValue::Refused),
            (0, selected("red"), ChosenValue::Refused),
            (0, selected("no"), ChosenValue::Refused),
            (0, json!({ "outcome": { "outcome": "cancelled" } }), ChosenValue::Refused),
            (0, Value::Null, ChosenValue::Refused),
            (1, selected("v0"), ChosenValue::Value(json!(true))),
            (1, selected("skip"), ChosenValue::Refused),
        ];
        for (index, response, want) in rows {
            assert_eq!(asked[index].chosen(&response), want, "{index} {response}");
        }
    }

    #[test]
    fn a_form_that_needs_a_text_is_not_asked() {
        let form = |required| {
            let fields = vec![field("note", text_kind(), required)];
            FormQuestion { message: String::new(), page: None, fields }
        };
        assert!(FieldChoices::of_form(&form(true)).is_none());
        assert!(FieldChoices::of_form(&form(false)).unwrap().is_empty());
    }
}
