//! Takes a question of an MCP server to the user of the call that it belongs to.
//!
//! The server's words are shown as its claim, without secrets. The values of the answer are checked
//! against the fields, and none of them may have a secret that the policy names, because the user
//! may not know that it is one. Nobody to ask, and no answer in time, are no yes.

use sallyport_contract::{
    AdmittedCall, ApprovalAnswer, ApprovalRequest, ApprovalSubject, FormQuestion, Redactor, text,
};
use sallyport_sandbox::HostCallAuthorizer;
use serde_json::{Map, Value};

use super::{
    authorizer::{PluginAuthorizer, requested_call},
    form_values::check_form_values,
};

/// How the question of a server ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum FormOutcome {
    /// The user agreed, with these values.
    Accepted(Map<String, Value>),
    /// The user refused.
    Declined,
    /// Nobody could answer, or nobody did in time.
    Unanswered,
    /// The question was not asked, or its answer was not sent, because of a secret.
    HasSecret,
}

impl PluginAuthorizer {
    /// Asks the user of a call what its server wants to know.
    pub(crate) async fn ask_for_server(
        &self,
        call: &AdmittedCall,
        question: FormQuestion,
    ) -> FormOutcome {
        let redactor = self.redactor();
        let question = without_secrets(question, &redactor);
        if has_secret(&question, &redactor) {
            return FormOutcome::HasSecret;
        }
        let grant = self.current_grant();
        let info = self.plugin_info();
        let request = ApprovalRequest {
            call: requested_call(call),
            subject: ApprovalSubject::Form(question.clone()),
            request: None,
            plugin_version: info.manifest.version.clone(),
            plugin_digest: info.digest.clone(),
            reason: format!(
                "the MCP server of {} asks during the call; it reads what you answer",
                info.manifest.name
            ),
            rule: None,
            capabilities: grant.permission_lines(),
        };
        let answer = self.gate().approver.ask_within(request, grant.limits().approval_time).await;
        let values = match answer {
            Some(ApprovalAnswer::Once) => Map::new(),
            Some(ApprovalAnswer::Form(answer)) => answer.values,
            Some(ApprovalAnswer::Nobody) | None => return FormOutcome::Unanswered,
            Some(
                ApprovalAnswer::Session
                | ApprovalAnswer::Always
                | ApprovalAnswer::Grant(_)
                | ApprovalAnswer::No { .. },
            ) => return FormOutcome::Declined,
        };
        self.accept_values(&question, values)
    }

    fn accept_values(&self, question: &FormQuestion, values: Map<String, Value>) -> FormOutcome {
        if check_form_values(question, &values).is_err() {
            return FormOutcome::Declined;
        }
        let values = question.with_defaults(values);
        if has_secret(&values, &self.redactor()) {
            return FormOutcome::HasSecret;
        }
        if let Some(page) = &question.page
            && let Some(browser) = &self.gate().services.url_opener
        {
            browser.open_page(page);
        }
        FormOutcome::Accepted(values)
    }
}

/// The question with its texts redacted, and with what cannot be seen spelt out.
fn without_secrets(mut question: FormQuestion, redactor: &Redactor) -> FormQuestion {
    let clean = |text: &mut String| *text = text::escape_multiline(&redactor.redact_text(text));
    clean(&mut question.message);
    for field in &mut question.fields {
        field.title.as_mut().into_iter().for_each(clean);
        field.description.as_mut().into_iter().for_each(clean);
    }
    question
}

fn has_secret(value: &impl serde::Serialize, redactor: &Redactor) -> bool {
    let json = serde_json::to_vec(value).unwrap_or_default();
    redactor.find_secret(&json).is_some()
}
