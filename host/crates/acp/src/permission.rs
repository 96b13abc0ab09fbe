//! The gate's questions as permission requests of the protocol.
//!
//! The client shows the whole question as the content of the call. Only a choice that was offered
//! approves. A client that answers anything else, or nothing, has not approved.

use std::sync::Arc;

use sallyport_contract::{ApprovalAnswer, ApprovalRequest, FormQuestion, GrantAnswer, GrantScope};
use sallyport_runtime::question_text::{question_text, question_with_folder};
use sallyport_session::FrontEndCommand;
use serde_json::{Map, Value, json};

use crate::{
    form_permission::{ChosenValue, FieldChoices, filled_answer, form_to_fill},
    output::ClientOutput,
    rpc::TRACE_PARENT,
    session::AcpSession,
    updates::{fenced, raw_input, text_content},
};

/// The method that asks.
const METHOD: &str = "session/request_permission";

/// A choice that the client offers.
struct OfferedChoice {
    id: &'static str,
    name: &'static str,
    /// The protocol's word. It knows one "always", and we mean two things by it.
    kind: &'static str,
    answer: ChoiceAnswer,
}

/// What a choice means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChoiceAnswer {
    Allow(GrantScope),
    Refuse,
    RefuseForSession,
}

/// "Always" is offered only if a rule or a grant can be written.
fn offered_choices(request: &ApprovalRequest) -> Vec<OfferedChoice> {
    let choice = |id, name, kind, answer| OfferedChoice { id, name, kind, answer };
    let once = choice("once", "Allow once", "allow_once", ChoiceAnswer::Allow(GrantScope::Once));
    let refuse = choice("no", "Refuse", "reject_once", ChoiceAnswer::Refuse);
    if request.form_question().is_some() {
        return vec![once, refuse];
    }
    let mut choices = vec![
        once,
        choice(
            "session",
            "Allow until this session ends",
            "allow_always",
            ChoiceAnswer::Allow(GrantScope::Session),
        ),
    ];
    if request.rule.is_some() {
        choices.push(choice(
            "always",
            "Always allow: add what is shown to the policy",
            "allow_always",
            ChoiceAnswer::Allow(GrantScope::Always),
        ));
    }
    choices.push(refuse);
    choices.push(choice(
        "no-session",
        "Refuse until this session ends",
        "reject_always",
        ChoiceAnswer::RefuseForSession,
    ));
    choices
}

/// A question of a session.
pub(crate) struct PermissionQuestion {
    pub(crate) session: Arc<AcpSession>,
    pub(crate) output: Arc<ClientOutput>,
    /// Identifies the question in the answer.
    pub(crate) confirmation_id: u64,
    pub(crate) request: ApprovalRequest,
    /// More content for the client: the diff of the file that the call writes.
    pub(crate) diff: Option<Value>,
}

impl PermissionQuestion {
    /// Asks, and passes the answer to the session. Dropping the future withdraws the question.
    pub(crate) async fn ask_client(self) {
        let answer = self.answer_of_client().await;
        let id = self.confirmation_id;
        self.session.order(FrontEndCommand::ProvideConfirmation { id, answer }).await;
    }

    async fn answer_of_client(&self) -> ApprovalAnswer {
        // The protocol has no question for a folder, and the one that the client works in is what
        // its user has in mind.
        let folder = self.request.needs_folder().then(|| self.session.folder());
        let shown = match folder {
            Some(folder) => question_with_folder(self.request.clone(), folder),
            None => self.request.clone(),
        };
        // What cannot be shown whole is not asked.
        let Some(words) = question_text(&shown) else { return ApprovalAnswer::Nobody };
        if let Some(form) = form_to_fill(&self.request) {
            return self.fill_in(form, &words).await;
        }
        let options = offered_choices(&self.request);
        let options = options.iter().map(
            |choice| json!({ "optionId": choice.id, "name": choice.name, "kind": choice.kind }),
        );
        let params = self.request_params(&words, options.collect());
        let Ok(response) = self.output.ask(METHOD, &params).await else {
            return ApprovalAnswer::Nobody;
        };
        match chosen_answer(&response, &self.request) {
            ChoiceAnswer::Allow(scope) => allowing_answer(scope, folder),
            ChoiceAnswer::Refuse => ApprovalAnswer::No { reason: None },
            ChoiceAnswer::RefuseForSession => {
                self.session.refuse_from_now_on(&self.request);
                ApprovalAnswer::No { reason: None }
            }
        }
    }

    /// Asks field by field. Without a field that can be asked, there is nothing to agree to.
    async fn fill_in(&self, form: &FormQuestion, words: &str) -> ApprovalAnswer {
        let fields = FieldChoices::of_form(form).filter(|fields| !fields.is_empty());
        let Some(fields) = fields else { return ApprovalAnswer::Nobody };
        let mut values = Map::new();
        for field in fields {
            let words = format!("{}\n\n{words}", field.title());
            let params = self.request_params(&words, field.options());
            let Ok(response) = self.output.ask(METHOD, &params).await else {
                return ApprovalAnswer::Nobody;
            };
            match field.chosen(&response) {
                ChosenValue::Value(value) => drop(values.insert(field.name().to_owned(), value)),
                ChosenValue::LeftOut => {}
                ChosenValue::Refused => return ApprovalAnswer::No { reason: None },
            }
        }
        filled_answer(values)
    }

    fn request_params(&self, words: &str, options: Vec<Value>) -> Value {
        let call = &self.request.call;
        let mut content = vec![text_content(&fenced(words))];
        content.extend(self.diff.clone());
        let mut params = json!({
            "sessionId": self.session.id(),
            "toolCall": {
                "toolCallId": call.context.call_id,
                "title": words.lines().next().unwrap_or_default(),
                "status": "pending",
                "content": content,
                "rawInput": raw_input(&call.arguments),
            },
            "options": options,
        });
        if let Some(caller) = self.session.caller() {
            params["_meta"] = json!({ TRACE_PARENT: caller.to_string() });
        }
        params
    }
}

/// Reads the client's answer.
fn chosen_answer(response: &Value, request: &ApprovalRequest) -> ChoiceAnswer {
    let outcome = &response["outcome"];
    let chosen = outcome["optionId"].as_str().filter(|_| outcome["outcome"] == "selected");
    let choice = offered_choices(request).into_iter().find(|choice| chosen == Some(choice.id));
    choice.map_or(ChoiceAnswer::Refuse, |choice| choice.answer)
}

fn allowing_answer(scope: GrantScope, folder: Option<&str>) -> ApprovalAnswer {
    match (folder, scope) {
        (Some(folder), scope) => {
            let folder = Some(folder.to_owned());
            ApprovalAnswer::Grant(GrantAnswer { scope, choice: 0, folder })
        }
        (None, GrantScope::Once) => ApprovalAnswer::Once,
        (None, GrantScope::Session) => ApprovalAnswer::Session,
        (None, GrantScope::Always) => ApprovalAnswer::Always,
    }
}

#[cfg(test)]
mod tests {
    use sallyport_contract::{ApprovalSubject, RequestedCall, ToolCallContext};

    use super::*;

    fn request(rule: Option<&str>) -> ApprovalRequest {
        ApprovalRequest {
            call: RequestedCall {
                context: ToolCallContext::default(),
                tool: "mail.send".parse().unwrap(),
                arguments: "{}".to_owned(),
            },
            subject: ApprovalSubject::Call,
            request: None,
            plugin_version: "1.2.0".to_owned(),
            plugin_digest: "0123456789abcdef".to_owned(),
            reason: "no rule for it".to_owned(),
            rule: rule.map(str::to_owned),
            capabilities: Vec::new(),
        }
    }

    #[test]
    fn only_an_offered_choice_approves() {
        let selected = |id: &str| json!({ "outcome": { "outcome": "selected", "optionId": id } });
        let rows = [
            (true, selected("once"), ChoiceAnswer::Allow(GrantScope::Once)),
            (true, selected("session"), ChoiceAnswer::Allow(GrantScope::Session)),
            (true, selected("always"), ChoiceAnswer::Allow(GrantScope::Always)),
            (false, selected("always"), ChoiceAnswer::Refuse),
            (true, selected("no"), ChoiceAnswer::Refuse),
            (true, selected("no-session"), ChoiceAnswer::RefuseForSession),
            (true, selected("allow_once"), ChoiceAnswer::Refuse),
            (true, selected(""), ChoiceAnswer::Refuse),
            (true, json!({ "outcome": { "outcome": "cancelled" } }), ChoiceAnswer::Refuse),
            (
                true,
                json!({ "outcome": { "outcome": "cancelled", "optionId": "once" } }),
                ChoiceAnswer::Refuse,
            ),
            (true, json!({ "outcome": { "optionId": "once" } }), ChoiceAnswer::Refuse),
            (true, json!({ "optionId": "once" }), ChoiceAnswer::Refuse),
            (true, json!({ "outcome": "selected" }), ChoiceAnswer::Refuse),
            (true, Value::Null, ChoiceAnswer::Refuse),
        ];
        for (has_rule, response, want) in rows {
            let request = request(has_rule.then_some("[[rule]]"));
            assert_eq!(chosen_answer(&response, &request), want, "{response} {has_rule}");
        }
    }

    #[test]
    fn a_yes_to_a_folder_names_the_one_that_was_shown() {
        let answer = allowing_answer(GrantScope::Always, Some("/p"));
        let folder = Some("/p".to_owned());
        let want = GrantAnswer { scope: GrantScope::Always, choice: 0, folder };
        assert_eq!(answer, ApprovalAnswer::Grant(want));
        assert_eq!(allowing_answer(GrantScope::Session, None), ApprovalAnswer::Session);
    }
}
