//! A report: no field of any ending and no effect lets a secret through.

use std::time::Duration;

use serde_json::json;

use super::redactor;
use crate::{
    CallFailure, CallReport, ContentPart, Denial, Effect, FailureKind, LogLevel, Outcome,
    ToolOutput,
};

const TOKEN: &str = "s3cr3t-Tok3n_9";

fn leak() -> String {
    format!("leak {TOKEN}")
}

fn denial() -> Denial {
    Denial { what: leak(), why: leak(), fix: Some(leak()), nobody_to_ask: true }
}

fn outcomes() -> Vec<Outcome> {
    let content = vec![
        ContentPart::Text { text: leak() },
        ContentPart::Image { media_type: leak(), data: leak().into_bytes() },
        ContentPart::Audio { media_type: leak(), data: leak().into_bytes() },
        ContentPart::Resource { uri: leak(), media_type: Some(leak()), title: Some(leak()) },
    ];
    let data = json!({ "a": [leak()] });
    let failure = || {
        CallFailure::new(FailureKind::Failed, leak()).with_detail(leak()).with_panic(Some(leak()))
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
    vec![
        Effect::Logged { level: LogLevel::Info, text: leak() },
        Effect::Requested { what: leak(), status: None, sent_bytes: 0, received_bytes: 0 },
        Effect::Changed { path: leak() },
        Effect::SecretUsed { name: leak(), to: Some(leak()) },
        Effect::Used { capability: leak(), what: leak() },
        Effect::Asked { what: leak(), answer: leak() },
        Effect::Refused(denial()),
    ]
}

/// The bytes of pictures are printed as numbers, so they are checked separately.
fn binary_parts(report: &CallReport) -> Vec<&[u8]> {
    let Outcome::Completed(output) = &report.outcome else { return Vec::new() };
    let parts = output.content.iter().filter_map(|part| match part {
        ContentPart::Image { data, .. } | ContentPart::Audio { data, .. } => Some(data.as_slice()),
        ContentPart::Text { .. } | ContentPart::Resource { .. } => None,
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
