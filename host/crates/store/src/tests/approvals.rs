//! An approval holds for what was approved, and for nothing else.

use super::*;
use crate::{Approval, StoreError};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;
const NOW_MS: u64 = 1000 * DAY_MS;

fn approval() -> Approval {
    Approval {
        session_id: "s-1".to_owned(),
        plugin: "mail".to_owned(),
        digest: "16ee56a487a0".to_owned(),
        tool: "send_email".to_owned(),
        subject: "PUT https://mail.example/send".to_owned(),
        rule: "policy.toml:12 ask".to_owned(),
        at_ms: NOW_MS,
    }
}

/// The key's texts, to change one at a time.
fn texts(approval: &mut Approval) -> [&mut String; 6] {
    let Approval { session_id, plugin, digest, tool, subject, rule, .. } = approval;
    [session_id, plugin, digest, tool, subject, rule]
}

#[test]
fn h60_any_difference_is_another_question() {
    let fixture = Fixture::new();
    let approvals = fixture.store.approvals();
    approvals.remember(&approval()).unwrap();
    assert!(approvals.find(&approval()).unwrap());
    let changes: [fn(&mut String); 8] = [
        |text| text.push(' '),
        |text| text.push('\0'),
        |text| *text = text.to_uppercase(),
        |text| text.clear(),
        |text| text.insert(0, '%'),
        |text| text.truncate(text.len() - 1),
        |text| text.push('\u{200b}'),
        |text| *text = text.replace(['s', 'm', '1'], "_"),
    ];
    for field in 0..texts(&mut approval()).len() {
        for (number, change) in changes.iter().enumerate() {
            let mut other = approval();
            change(texts(&mut other)[field]);
            if other != approval() {
                assert!(!approvals.find(&other).unwrap(), "change {number} of text {field}");
            }
        }
    }
}

/// Texts that run into each other are not the same texts.
#[test]
fn h60_the_parts_of_a_key_stay_apart() {
    let fixture = Fixture::new();
    let approvals = fixture.store.approvals();
    let with = |tool: &str, subject: &str| Approval {
        tool: tool.to_owned(),
        subject: subject.to_owned(),
        ..approval()
    };
    approvals.remember(&with("ab", "c")).unwrap();
    for (tool, subject) in [("a", "bc"), ("abc", ""), ("", "abc"), ("c", "ab"), ("ab\0c", "")] {
        assert!(!approvals.find(&with(tool, subject)).unwrap(), "{tool:?} {subject:?}");
    }
    approvals.remember(&with("nul\0a", "'; DROP TABLE approval; --")).unwrap();
    assert!(approvals.find(&with("nul\0a", "'; DROP TABLE approval; --")).unwrap());
    assert!(!approvals.find(&with("nul\0b", "'; DROP TABLE approval; --")).unwrap());
}

#[test]
fn an_approval_holds_for_thirty_days_and_not_before_it_was_given() {
    let fixture = Fixture::new();
    let approvals = fixture.store.approvals();
    approvals.remember(&approval()).unwrap();
    let at = |at_ms| approvals.find(&Approval { at_ms, ..approval() }).unwrap();
    for (at_ms, holds) in [
        (0, false),
        (NOW_MS - 1, false),
        (NOW_MS, true),
        (NOW_MS + 30 * DAY_MS, true),
        (NOW_MS + 30 * DAY_MS + 1, false),
        (u64::MAX, false),
    ] {
        assert_eq!(at(at_ms), holds, "{at_ms}");
    }
    let later = NOW_MS + 20 * DAY_MS;
    approvals.remember(&Approval { at_ms: later, ..approval() }).unwrap();
    assert!(at(later + 30 * DAY_MS), "given once more");
}

#[test]
fn old_approvals_and_those_of_a_session_can_be_removed() {
    let fixture = Fixture::new();
    let approvals = fixture.store.approvals();
    let of = |session: &str, days: u64| Approval {
        session_id: session.to_owned(),
        subject: format!("{days}"),
        at_ms: NOW_MS + days * DAY_MS,
        ..approval()
    };
    for (session, days) in [("s-1", 0), ("s-1", 10), ("s-2", 20), ("s-2", 30)] {
        approvals.remember(&of(session, days)).unwrap();
    }
    let now = |days: u64| NOW_MS + days * DAY_MS;
    assert_eq!(approvals.prune(now(30)).unwrap(), 0);
    assert_eq!(approvals.prune(now(31)).unwrap(), 1);
    assert_eq!(approvals.forget("s").unwrap(), 0);
    assert_eq!(approvals.forget("s-2").unwrap(), 2);
    assert!(!approvals.find(&of("s-2", 20)).unwrap());
    assert!(approvals.find(&of("s-1", 10)).unwrap());
    // The next approval takes the old ones with it.
    approvals.remember(&of("s-3", 41)).unwrap();
    assert_eq!(approvals.forget("s-1").unwrap(), 0);
}

#[test]
fn approvals_outlive_the_process_and_have_a_length() {
    let fixture = Fixture::new();
    fixture.store.approvals().remember(&approval()).unwrap();
    let other = Store::open(fixture.path()).unwrap();
    assert!(other.approvals().find(&approval()).unwrap());
    let long = Approval { subject: "x".repeat(64 * 1024 + 1), ..approval() };
    let error = other.approvals().remember(&long).unwrap_err();
    assert!(matches!(error, StoreError::TooLong { what: "a subject", .. }), "{error}");
    assert!(!other.approvals().find(&long).unwrap());
}
