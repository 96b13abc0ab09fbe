//! A definition's own words about results and failures.

use sallyport_connections::{Action, Definition, definition::FailureFacts};
use sallyport_contract::{
    AdmittedCall, CallFailure, CallReport, ContentPart, Effect, FailureKind, Outcome,
};
use sallyport_policy::fill_success_message;

use crate::connections::connect_advice;

/// Adds the definition's own words: a message about a success, and a message in place of a failure's
/// own, which stays visible to the user.
pub(super) fn with_guidance(
    definition: &Definition,
    action: &Action,
    call: &AdmittedCall,
    mut report: CallReport,
    facts: Option<&FailureFacts>,
) -> CallReport {
    let own_message = facts.and_then(|facts| action.guidance.message_about(facts));
    match &mut report.outcome {
        Outcome::Completed(output) => {
            let message = action.guidance.success_message.as_deref().and_then(|message| {
                fill_success_message(message, &action.names, call.arguments(), &output.data)
            });
            output.content.extend(message.map(|text| ContentPart::Text { text }));
        }
        Outcome::Failed(failure) | Outcome::InvalidArguments(failure) => {
            if let Some(own_message) = own_message {
                replace_message(failure, own_message);
            }
            if failure.kind == FailureKind::AuthRequired && definition.needs_connection() {
                add_mending_advice(failure, definition, call.context().user());
            }
        }
        Outcome::Denied(_) | Outcome::TimedOut { .. } | Outcome::Cancelled => {}
    }
    report
}

fn replace_message(failure: &mut CallFailure, own_message: &str) {
    let raw = std::mem::replace(&mut failure.message, own_message.to_owned());
    failure.detail = Some(match failure.detail.take() {
        Some(detail) => format!("{raw}; {detail}"),
        None => raw,
    });
}

/// Adds how the account is connected, which a definition's own message cannot know.
fn add_mending_advice(failure: &mut CallFailure, definition: &Definition, user: &str) {
    let command = connect_advice(&definition.name, user);
    if !failure.message.contains(&command) {
        let message = failure.message.trim_end_matches('.');
        failure.message = format!("{message}. To fix: {command}");
    }
}

/// What is known of a component's failure: its kind, and the status of its last request.
pub(super) fn failure_facts(report: &CallReport) -> Option<FailureFacts> {
    let (Outcome::Failed(failure) | Outcome::InvalidArguments(failure)) = &report.outcome else {
        return None;
    };
    let status = report.effects.iter().rev().find_map(|effect| match effect {
        Effect::Requested { status, .. } => *status,
        _ => None,
    });
    Some(FailureFacts {
        status: status.filter(|status| *status >= 400),
        ..FailureFacts::from_kind(failure.kind)
    })
}
