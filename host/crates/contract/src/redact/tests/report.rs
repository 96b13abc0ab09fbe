//! A report: no field of any ending and no effect lets a secret through.

use std::time::Duration;

use serde_json::json;

use super::redactor;
use crate::{
    ApprovalObstacle, BudgetMeasure, BudgetPeriod, CallFailure, CallReport, ContentPart, Denial,
    DenialReason, DenialSubject, Effect, FailureKind, FixGrant, FixRule, GrantedScope, LogLevel,
    Outcome, PluginName, PolicyFix, PolicyPlace, RequestedScope, ResourceContents, ResourceData,
    SpentBudget, ToolOutput, UserAnswer, UserBudget,
};

const TOKEN: &str = "s3cr3t-Tok3n_9";

fn leak() -> String {
    format!("leak {TOKEN}")
}

fn denial() -> Denial {
    Denial { nobody_to_ask: true, ..Denial::new(leak(), leak()).with_fix(Some(fix())) }
}

fn fix() -> PolicyFix {
    let grant = FixGrant { key: "net".to_owned(), entry: leak(), flags: vec![leak()] };
    let rule = FixRule { tool: "*".to_owned(), net: Some(leak()), page: Some(leak()) };
    PolicyFix {
        plugin: "mail".parse().unwrap(),
        grants: vec![grant],
        rule: Some(rule),
        is_all_requested: false,
        toml: leak(),
    }
}

/// One refusal for each subject and each reason that holds text.
fn typed_denials() -> Vec<Denial> {
    let plugin = || "mail".parse::<PluginName>().unwrap();
    let place = || PolicyPlace { file: leak(), line: 1 };
    let subjects = [
        DenialSubject::Call { tool: "mail.send".parse().unwrap() },
        DenialSubject::Request { plugin: plugin(), method: leak(), url: leak() },
        DenialSubject::Path { plugin: plugin(), path: leak(), write: true },
        DenialSubject::Variable { plugin: plugin(), name: leak() },
        DenialSubject::Secret { plugin: plugin(), name: leak() },
        DenialSubject::Capability {
            plugin: plugin(),
            capability: leak(),
            action: leak(),
            item: Some(leak()),
        },
    ];
    let cause = ApprovalObstacle::NotShown { error: leak() };
    let reasons = [
        DenialReason::NotRequested { capability: Some(leak()) },
        DenialReason::RequestedLess(RequestedScope::RootPath(leak())),
        DenialReason::NotGranted { capability: Some(leak()) },
        DenialReason::GrantedLess(GrantedScope::RootPath(place())),
        DenialReason::GrantedLess(GrantedScope::Reading(place())),
        DenialReason::DeniedByEntry { pattern: Some(leak()), place: place() },
        DenialReason::CapabilityDenied { capability: leak(), place: place() },
        DenialReason::Rule { place: place(), text: leak(), group: Some(leak()) },
        DenialReason::NoRule { text: leak() },
        DenialReason::BudgetSpent(spent_budget()),
        DenialReason::BudgetUnreadable,
        DenialReason::NotApproved { cause, reason: Box::new(leak().into()) },
        DenialReason::RefusedByUser { answer: Some(leak()) },
        DenialReason::CarriesSecret { name: leak(), to: Some(leak()) },
    ];
    let of_subjects = subjects.into_iter().map(|subject| Denial::new(subject, leak()));
    let of_reasons = reasons.into_iter().map(|reason| Denial::new(leak(), reason));
    of_subjects.chain(of_reasons).collect()
}

fn spent_budget() -> SpentBudget {
    let (measure, period) = (BudgetMeasure::Calls, BudgetPeriod::Day);
    SpentBudget { budget: UserBudget { group: leak(), measure, period, limit: 1 }, renews_ms: 1 }
}

fn embedded(data: ResourceData) -> ContentPart {
    ContentPart::Embedded(ResourceContents { uri: leak(), media_type: Some(leak()), data })
}

fn outcomes() -> Vec<Outcome> {
    let content = vec![
        ContentPart::Text { text: leak() },
        ContentPart::Image { media_type: leak(), data: leak().into_bytes() },
        ContentPart::Audio { media_type: leak(), data: leak().into_bytes() },
        ContentPart::Resource { uri: leak(), media_type: Some(leak()), title: Some(leak()) },
        embedded(ResourceData::Text(leak())),
        embedded(ResourceData::Binary(leak().into_bytes())),
    ];
    let data = json!({ "a": [leak()] });
    let failure = || {
        CallFailure::new(FailureKind::Failed, leak())
            .with_detail(leak())
            .with_errors(vec![leak(), leak()])
            .with_panic(Some(leak()))
    };
    vec![
        Outcome::Completed(ToolOutput { data, content, speech: Some(leak()) }),
        Outcome::Failed(failure()),
        Outcome::InvalidArguments(failure()),
        Outcome::Denied(denial()),
        Outcome::TimedOut { limit: Duration::from_secs(1) },
        Outcome::Cancelled,
    ]
}

fn effects() -> Vec<Effect> {
    let effects = [
        Effect::Logged { level: LogLevel::Info, text: leak() },
        Effect::Requested { what: leak(), status: None, sent_bytes: 0, received_bytes: 0 },
        Effect::Changed { path: leak() },
        Effect::SecretUsed { name: leak(), to: Some(leak()) },
        Effect::Used { capability: leak(), what: leak() },
        Effect::Asked { what: leak(), answer: leak() },
        Effect::GrantAnswered {
            what: leak(),
            answer: UserAnswer::Once,
            grants: vec![FixGrant { key: "net".to_owned(), entry: leak(), flags: vec![leak()] }],
        },
        Effect::Refused(denial()),
    ];
    effects.into_iter().chain(typed_denials().into_iter().map(Effect::Refused)).collect()
}

/// The bytes of pictures are printed as numbers, so they are checked separately.
fn binary_parts(report: &CallReport) -> Vec<&[u8]> {
    let Outcome::Completed(output) = &report.outcome else { return Vec::new() };
    let parts = output.content.iter().filter_map(|part| match part {
        ContentPart::Image { data, .. } | ContentPart::Audio { data, .. } => Some(data.as_slice()),
        ContentPart::Embedded(ResourceContents { data: ResourceData::Binary(data), .. }) => {
            Some(data.as_slice())
        }
        ContentPart::Text { .. } | ContentPart::Resource { .. } | ContentPart::Embedded(_) => None,
    });
    parts.collect()
}

#[test]
fn no_field_lets_a_secret_through() {
    let redactor = redactor(&[("a", TOKEN)]);
    for outcome in outcomes() {
        let mut report = CallReport { effects: effects(), ..CallReport::from(outcome) };
        let before = format!("{report:?}");
        redactor.redact_report(&mut report);
        let after = format!("{report:?}");
        assert!(!after.contains(TOKEN), "{after}");
        let texts = before.matches(TOKEN).count();
        assert_eq!(after.matches("leak [secret a]").count(), texts, "{after}");
        assert!(binary_parts(&report).iter().all(|data| *data == b"leak [secret a]"));
    }
}

#[test]
fn without_a_secret_a_report_stays_as_it_is() {
    let other = redactor(&[("a", "something else")]);
    for outcome in outcomes() {
        let before = CallReport { effects: effects(), ..CallReport::from(outcome) };
        let mut after = before.clone();
        other.redact_report(&mut after);
        assert_eq!(after, before);
        crate::Redactor::empty().redact_report(&mut after);
        assert_eq!(after, before);
    }
}
