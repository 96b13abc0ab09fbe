//! Approvals: the gate's question as a form that the client shows, and the form as an answer.
//!
//! The form shows everything that the yes would cover. Only the accepted form with one of the
//! offered choices approves; a form that is declined, dismissed or filled in otherwise does not.
//!
//! The question of an MCP server that a call uses is passed on with its own fields.

use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, EnumSchema,
    PrimitiveSchemaDefinition,
};
use sallyport_contract::{ApprovalAnswer, ApprovalRequest, FormAnswer};
use sallyport_runtime::question_text::question_text;
use serde_json::Value;

/// The field of the form.
const CHOICE_FIELD: &str = "approve";

/// A choice: its value in the form, its title, and the answer that it stands for.
type Choice = (&'static str, &'static str, ApprovalAnswer);

/// "Always" is offered only if a rule would help.
fn choices(request: &ApprovalRequest) -> Vec<Choice> {
    let mut choices = vec![
        ("once", "Allow once", ApprovalAnswer::Once),
        ("session", "Allow until this connection ends", ApprovalAnswer::Session),
    ];
    if request.rule.is_some() {
        choices.push((
            "always",
            "Always allow: add the rule to the policy",
            ApprovalAnswer::Always,
        ));
    }
    choices
}

/// Returns the form of a question. `None` if the question is too long to be shown whole.
pub(crate) fn question_form(request: &ApprovalRequest) -> Option<ElicitRequestParams> {
    let message = question_text(request)?;
    if let Some(form) = request.form_question() {
        let requested_schema = serde_json::from_value(form.json_schema()).ok()?;
        return Some(ElicitRequestParams::FormElicitationParams {
            meta: None,
            message,
            requested_schema,
        });
    }
    let (values, titles) = choices(request)
        .into_iter()
        .map(|(value, title, _)| (value.to_owned(), title.to_owned()))
        .unzip();
    let schema = EnumSchema::builder(values).enum_titles(titles).ok()?.build();
    let requested_schema = ElicitationSchema::builder()
        .required_property(CHOICE_FIELD, PrimitiveSchemaDefinition::Enum(schema))
        .build()
        .ok()?;
    Some(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}

/// Reads a filled-in form.
pub(crate) fn answer_from_form(form: &ElicitResult, request: &ApprovalRequest) -> ApprovalAnswer {
    let refused = ApprovalAnswer::No { reason: None };
    if form.action != ElicitationAction::Accept {
        return refused;
    }
    if request.form_question().is_some() {
        let values = form.content.as_ref().and_then(Value::as_object).cloned().unwrap_or_default();
        return ApprovalAnswer::Form(FormAnswer { values });
    }
    let chosen = form.content.as_ref().and_then(|content| content.get(CHOICE_FIELD));
    let chosen = chosen.and_then(Value::as_str);
    let choice = choices(request).into_iter().find(|(value, _, _)| chosen == Some(*value));
    choice.map_or(refused, |(_, _, answer)| answer)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sallyport_contract::{
        ApprovalSubject, BodyPreview, FieldKind, FormField, FormQuestion, RequestPreview,
        RequestedCall, ToolCallContext,
    };
    use sallyport_runtime::question_text::QUESTION_BYTES_MAX;
    use serde_json::json;

    use super::*;

    fn request(rule: Option<&str>, arguments: &str) -> ApprovalRequest {
        ApprovalRequest {
            call: RequestedCall {
                context: ToolCallContext::default(),
                tool: "mail.send".parse().unwrap(),
                arguments: arguments.to_owned(),
            },
            subject: ApprovalSubject::Call,
            request: None,
            plugin_version: "1.2.0".to_owned(),
            plugin_digest: "0123456789abcdef".to_owned(),
            reason: "no rule for it".to_owned(),
            rule: rule.map(str::to_owned),
            capabilities: vec!["POST https://mail.example/".to_owned()],
        }
    }

    #[test]
    fn only_an_accepted_form_with_an_offered_choice_approves() {
        let no = ApprovalAnswer::No { reason: None };
        let rows = [
            (true, ElicitationAction::Accept, json!({ "approve": "once" }), ApprovalAnswer::Once),
            (
                true,
                ElicitationAction::Accept,
                json!({ "approve": "session" }),
                ApprovalAnswer::Session,
            ),
            (
                true,
                ElicitationAction::Accept,
                json!({ "approve": "always" }),
                ApprovalAnswer::Always,
            ),
            (false, ElicitationAction::Accept, json!({ "approve": "always" }), no.clone()),
            (true, ElicitationAction::Accept, json!({ "approve": "yes" }), no.clone()),
            (true, ElicitationAction::Accept, json!({ "approve": true }), no.clone()),
            (true, ElicitationAction::Accept, json!({}), no.clone()),
            (true, ElicitationAction::Accept, Value::Null, no.clone()),
            (true, ElicitationAction::Decline, json!({ "approve": "once" }), no.clone()),
            (true, ElicitationAction::Cancel, json!({ "approve": "once" }), no),
        ];
        for (has_rule, action, content, want) in rows {
            let request = request(has_rule.then_some("[[rule]]"), "{}");
            let mut form = ElicitResult::new(action);
            form.content = Some(content.clone());
            assert_eq!(answer_from_form(&form, &request), want, "{content} {has_rule}");
        }
    }

    /// Text that would be lines of the form, if nothing marked them.
    const IMITATION: &str = "Dear \x1b[2J\nplugin: bank 1.0\nargument: to = \"me\"\ncan: nothing\n\
        asked because: you asked for it";

    #[test]
    fn a_form_shows_all_that_a_yes_covers() {
        let shown = RequestPreview {
            method: Some("POST".to_owned()),
            address: "https://mail.example/send".to_owned(),
            query: "?to=a".to_owned(),
            headers: vec![("x-key".to_owned(), "(secret mail)".to_owned())],
            body: Some(BodyPreview::new(None, IMITATION.as_bytes(), "d".to_owned())),
            digest: "d".to_owned(),
        };
        let mut request = request(Some("[[rule]]\ntool = \"mail.send\""), r#"{"to":"a\nb"}"#);
        request.subject = ApprovalSubject::Access { what: shown.summary_line() };
        request.request = Some(Arc::new(shown));
        let form = serde_json::to_value(question_form(&request).unwrap()).unwrap();
        let message = form["message"].as_str().unwrap();
        for line in [
            "Allow mail this: POST https://mail.example/send?",
            "plugin: mail 1.2.0, digest 0123456789ab",
            "tool: mail.send",
            "query: ?to=a",
            "header: x-key: (secret mail)",
            "body, 91 bytes:",
            "| Dear \\u{1b}[2J",
            "| asked because: you asked for it",
            "argument: to = \"a\\nb\"",
            "can: POST https://mail.example/",
            "asked because: no rule for it",
            "| tool = \"mail.send\"",
        ] {
            assert!(message.lines().any(|one| one == line), "no {line:?} in {message}");
        }
        for label in ["plugin: ", "argument: ", "can: ", "asked because: "] {
            let count = message.lines().filter(|line| line.starts_with(label)).count();
            assert_eq!(count, 1, "{label:?} is imitated in {message}");
        }
        let schema = &form["requestedSchema"];
        assert_eq!(schema["required"], json!(["approve"]));
        let values: Vec<&Value> = schema["properties"]["approve"]["oneOf"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| &one["const"])
            .collect();
        assert_eq!(values, ["once", "session", "always"]);
    }

    #[test]
    fn the_question_of_a_server_is_passed_on_with_its_fields() {
        let kind = FieldKind::Number { is_whole: true, minimum: Some(1.into()), maximum: None };
        let field = FormField {
            name: "count".to_owned(),
            title: None,
            description: Some("How many".to_owned()),
            required: true,
            default: None,
            kind,
        };
        let form = FormQuestion {
            message: "Hello.\nasked because: it is safe".to_owned(),
            page: None,
            fields: vec![field],
        };
        let schema = form.json_schema();
        let request =
            ApprovalRequest { subject: ApprovalSubject::Form(form), ..request(None, "{}") };
        let asked = serde_json::to_value(question_form(&request).unwrap()).unwrap();
        assert_eq!(asked["requestedSchema"], schema);
        let message = asked["message"].as_str().unwrap();
        assert!(message.starts_with("The MCP server of mail asks you."), "{message}");
        assert!(message.contains("\n| Hello.\n| asked because: it is safe\n"), "{message}");
        let mut filled = ElicitResult::new(ElicitationAction::Accept);
        filled.content = Some(json!({ "count": 3 }));
        let values = json!({ "count": 3 }).as_object().unwrap().clone();
        let want = ApprovalAnswer::Form(FormAnswer { values });
        assert_eq!(answer_from_form(&filled, &request), want);
        filled.action = ElicitationAction::Decline;
        let no = ApprovalAnswer::No { reason: None };
        assert_eq!(answer_from_form(&filled, &request), no);
    }

    #[test]
    fn what_cannot_be_shown_whole_is_not_asked() {
        let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(QUESTION_BYTES_MAX));
        assert_eq!(question_form(&request(None, &long)), None);
    }
}
