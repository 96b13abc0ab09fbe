//! Estimates, and how they learn from reports.

use std::sync::Arc;

use sallyport_model::{FileAttachment, OpaqueMessage, UserInputMessage};
use serde_json::json;

use super::*;

#[test]
fn every_kind_of_content_counts() {
    let file = |media_type: &str, bytes: usize| {
        let (name, media_type) = ("f".to_owned(), media_type.to_owned());
        let file = FileAttachment { name, media_type, data: Arc::from(vec![b'x'; bytes]) };
        ChatMessage::User(UserInputMessage {
            text: String::new(),
            attachments: vec![file],
            ..UserInputMessage::default()
        })
    };
    let opaque = |bytes: usize| {
        let body = json!("x".repeat(bytes - 2));
        let opaque = Some(OpaqueMessage { origin: "o".into(), body });
        ChatMessage::Assistant(AssistantMessage { opaque, ..AssistantMessage::default() })
    };
    let rows = [
        (message("u", 160), 44),
        (message("u", 161), 45),
        (ChatMessage::user(""), 4),
        (file("text/plain", 3_999), 1_004),
        (file("image/png", 1_000), 304),
        (file("image/png", 10_000_000), 1_604),
        (file("audio/wav", 1_000), 154),
        (file("application/pdf", 1_000), 4_004),
        (opaque(4_000), 1_004),
    ];
    for (message, tokens) in rows {
        assert_eq!(
            TokenMeter::new().estimate_tokens(std::slice::from_ref(&message)),
            tokens,
            "{message:?}"
        );
    }
}

/// Gives a meter requests of these numbers of messages with the provider's report for each, and
/// returns what a thousand tokens amount to then.
#[track_caller]
fn check(reports: &[(usize, u64)], expected: u64) {
    let mut meter = TokenMeter::new();
    let messages: Vec<ChatMessage> = (0..1000).map(|_| message("u", 160)).collect();
    for (count, reported) in reports {
        let estimated = meter.estimate_tokens(&messages[..*count]);
        meter.learn_from_report(estimated, *reported);
    }
    let thousand = message("u", 3_984);
    assert_eq!(meter.estimate_tokens(&[thousand]), expected);
}

#[test]
fn reports_correct_the_estimate() {
    check(&[], 1000);
    // The tokens around the messages, ten thousand here, correct nothing.
    check(&[(1, 10_000)], 1000);
    check(&[(1, 10_044), (101, 14_444)], 1000);
    check(&[(1, 10_044), (101, 16_644)], 1500);
    check(&[(101, 16_644), (1, 10_044)], 1500);
    // Too little between two reports.
    check(&[(1, 10_044), (2, 11_044)], 1000);
    // Two reports with little between them, and then enough.
    check(&[(1, 10_044), (2, 10_110), (101, 16_644)], 1500);
}

#[test]
fn impossible_reports_do_little() {
    check(&[(1, 44), (101, 54)], 500);
    check(&[(1, 44), (101, 0)], 1000);
    check(&[(1, 0), (101, u64::MAX)], 4000);
    check(&[(1, 5_000), (101, 44)], 1000);
    check(&[(1, u64::MAX), (101, 0), (1, u64::MAX), (101, u64::MAX)], 1000);
}

#[test]
fn what_wavers_stays_at_the_upper_step() {
    // The second report is 9.1 eighths, so ten; the third nine and a little less.
    check(&[(1, 0), (101, 5_005), (201, 9_900)], 1250);
    check(&[(1, 0), (101, 5_005), (201, 9_000)], 1000);
}
