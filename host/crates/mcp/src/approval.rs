//! Approvals: the gate's question as a form that the client shows, and the form as an answer.
//!
//! The form shows everything that the yes would cover. Only the accepted form with one of the
//! offered choices approves; a form that is declined, dismissed or filled in otherwise does not.

use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, EnumSchema,
    PrimitiveSchemaDefinition,
};
use sallyport_contract::{
    ApprovalAnswer, ApprovalRequest, ApprovalSubject, BodyEncoding, GrantQuestion, RequestPreview,
    text,
};
use serde_json::Value;

/// The field of the form.
const CHOICE_FIELD: &str = "approve";

/// Longest question, in bytes. Nobody reads a longer one, and a yes to a part is not a yes to all.
const QUESTION_BYTES_MAX: usize = 64 << 10;

/// Digits of a digest that are shown.
const DIGEST_CHARS: usize = 12;

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
    let message = question_text(request);
    if message.len() > QUESTION_BYTES_MAX {
        return None;
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
    let chosen = form.content.as_ref().and_then(|content| content.get(CHOICE_FIELD));
    let chosen = chosen.and_then(Value::as_str);
    let choice = choices(request).into_iter().find(|(value, _, _)| chosen == Some(*value));
    choice.map_or(refused, |(_, _, answer)| answer)
}

/// Everything that the user needs to decide.
fn question_text(request: &ApprovalRequest) -> String {
    let call = &request.call;
    let title = match &request.subject {
        ApprovalSubject::Call => format!("Allow {} to run?", call.tool),
        ApprovalSubject::Access { what } => {
            format!("Allow {} this: {}?", call.tool.plugin, text::escape_line(what))
        }
        ApprovalSubject::Grant(question) => {
            format!("Grant what is missing? {}", text::escape_line(&question.what))
        }
    };
    let digest: String = request.plugin_digest.chars().take(DIGEST_CHARS).collect();
    let version = text::escape_line(&request.plugin_version);
    let plugin = format!("{} {version}, digest {digest}", call.tool.plugin);
    let mut lines = vec![title, String::new(), format!("plugin: {plugin}")];
    if request.subject != ApprovalSubject::Call {
        lines.push(format!("tool: {}", call.tool));
    }
    lines.extend(request.request.iter().flat_map(|shown| request_lines(shown)));
    let parts = request.grant_question().map(GrantQuestion::labeled_parts).unwrap_or_default();
    lines.extend(parts.iter().map(|(name, part)| format!("{name}: {}", text::escape_line(part))));
    lines.extend(argument_lines(&call.arguments));
    lines.extend(request.capabilities.iter().map(|one| format!("can: {}", text::escape_line(one))));
    lines.push(format!("asked because: {}", text::escape_line(&request.reason)));
    if let Some(rule) = &request.rule {
        lines.push("\"always\" adds to your policy:".to_owned());
        lines.extend(marked_lines(rule));
    }
    lines.join("\n")
}

/// One line for each argument.
fn argument_lines(arguments: &str) -> Vec<String> {
    let line = |name: &str, value: &str| format!("argument: {name}{}", text::escape_line(value));
    match serde_json::from_str(arguments) {
        Ok(Value::Object(map)) => map
            .iter()
            .map(|(name, value)| {
                line(&format!("{} = ", text::escape_line(name)), &value.to_string())
            })
            .collect(),
        _ => vec![line("", arguments)],
    }
}

/// The whole outgoing request.
fn request_lines(request: &RequestPreview) -> Vec<String> {
    let mut lines = vec![format!("request: {}", text::escape_line(&request.summary_line()))];
    if !request.query.is_empty() {
        lines.push(format!("query: {}", text::escape_line(&request.query)));
    }
    let header = |(name, value): &(String, String)| {
        format!("header: {}: {}", text::escape_line(name), text::escape_line(value))
    };
    lines.extend(request.headers.iter().map(header));
    if let Some(body) = &request.body {
        let kind = match body.encoding {
            BodyEncoding::Text => "",
            BodyEncoding::Hex => ", in hexadecimal",
        };
        lines.push(format!("body, {} bytes{kind}:", body.length_bytes));
        lines.extend(marked_lines(&body.content));
    }
    lines
}

/// Text of several lines. The bar in front of each prevents it from imitating a line of the form.
fn marked_lines(untrusted: &str) -> impl Iterator<Item = String> {
    untrusted.split('\n').map(|line| format!("| {}", text::escape_line(line)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sallyport_contract::{BodyPreview, RequestedCall, ToolCallContext};
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
    fn what_cannot_be_shown_whole_is_not_asked() {
        let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(QUESTION_BYTES_MAX));
        assert_eq!(question_form(&request(None, &long)), None);
    }
}
