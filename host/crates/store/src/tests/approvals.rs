//! An approval holds for what was approved, and for nothing else.

use super::*;
use crate::{SessionApproval, StoreError};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;
const NOW_MS: u64 = 1000 * DAY_MS;

fn approval() -> SessionApproval {
    SessionApproval {
        user: USER.to_owned(),
        session_id: "s-1".to_owned(),
        plugin: "mail".to_owned(),
        digest: "16ee56a487a0".to_owned(),
        tool: "send_email".to_owned(),
        subject: "PUT https://mail.example/send".to_owned(),
        rule: "policy.toml:12 ask".to_owned(),
        at_ms: NOW_MS,
    }
}

/// The approval that databases of earlier forms have in tests.
pub(super) fn approval_of_earlier_forms(user: &str) -> SessionApproval {
    let [session_id, plugin, digest, tool, subject, rule] =
        ["s-1", "p", "d", "t", "s", "r"].map(str::to_owned);
    let user = user.to_owned();
    SessionApproval { user, session_id, plugin, digest, tool, subject, rule, at_ms: 1000 }
}

/// The key's texts, to change one at a time.
fn texts(approval: &mut SessionApproval) -> [&mut String; 7] {
    let SessionApproval { user, session_id, plugin, digest, tool, subject, rule, .. } = approval;
    [user, session_id, plugin, digest, tool, subject, rule]
}

#[test]
fn h60_any_difference_is_another_question() {
    let fixture = Fixture::new();
    let approvals = &fixture.store.approvals;
    approvals.store_approval(&approval()).wait().unwrap();
    assert!(approvals.is_approved(&approval()).wait().unwrap());
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
                assert!(
                    !approvals.is_approved(&other).wait().unwrap(),
                    "change {number} of text {field}"
                );
            }
        }
    }
}

/// Texts that run into each other are not the same texts.
#[test]
fn h60_the_parts_of_a_key_stay_apart() {
    let fixture = Fixture::new();
    let approvals = &fixture.store.approvals;
    let with = |tool: &str, subject: &str| SessionApproval {
        tool: tool.to_owned(),
        subject: subject.to_owned(),
        ..approval()
    };
    approvals.store_approval(&with("ab", "c")).wait().unwrap();
    for (tool, subject) in [("a", "bc"), ("abc", ""), ("", "abc"), ("c", "ab"), ("ab\0c", "")] {
        assert!(
            !approvals.is_approved(&with(tool, subject)).wait().unwrap(),
            "{tool:?} {subject:?}"
        );
    }
    approvals.store_approval(&with("nul\0a", "'; DROP TABLE approval; --")).wait().unwrap();
    assert!(approvals.is_approved(&with("nul\0a", "'; DROP TABLE approval; --")).wait().unwrap());
    assert!(!approvals.is_approved(&with("nul\0b", "'; DROP TABLE approval; --")).wait().unwrap());
}

#[test]
fn an_approval_holds_for_thirty_days_and_not_before_it_was_given() {
    let fixture = Fixture::new();
    let approvals = &fixture.store.approvals;
    approvals.store_approval(&approval()).wait().unwrap();
    let at =
        |at_ms| approvals.is_approved(&SessionApproval { at_ms, ..approval() }).wait().unwrap();
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
    approvals.store_approval(&SessionApproval { at_ms: later, ..approval() }).wait().unwrap();
    assert!(at(later + 30 * DAY_MS), "given once more");
}

#[test]
fn old_approvals_and_those_of_a_session_can_be_removed() {
    let fixture = Fixture::new();
    let approvals = &fixture.store.approvals;
    let of = |session: &str, days: u64| SessionApproval {
        user: USER.to_owned(),
        session_id: session.to_owned(),
        subject: format!("{days}"),
        at_ms: NOW_MS + days * DAY_MS,
        ..approval()
    };
    for (session, days) in [("s-1", 0), ("s-1", 10), ("s-2", 20), ("s-2", 30)] {
        approvals.store_approval(&of(session, days)).wait().unwrap();
    }
    let now = |days: u64| NOW_MS + days * DAY_MS;
    assert_eq!(approvals.prune(now(30)).wait().unwrap(), 0);
    assert_eq!(approvals.prune(now(31)).wait().unwrap(), 1);
    assert_eq!(approvals.forget_session("s").wait().unwrap(), 0);
    assert_eq!(approvals.forget_session("s-2").wait().unwrap(), 2);
    assert!(!approvals.is_approved(&of("s-2", 20)).wait().unwrap());
    assert!(approvals.is_approved(&of("s-1", 10)).wait().unwrap());
    // The next approval takes the old ones with it.
    approvals.store_approval(&of("s-3", 41)).wait().unwrap();
    assert_eq!(approvals.forget_session("s-1").wait().unwrap(), 0);
}

#[test]
fn approvals_outlive_the_process_and_have_a_length() {
    let fixture = Fixture::new();
    fixture.store.approvals.store_approval(&approval()).wait().unwrap();
    let other = fixture.reopen();
    assert!(other.approvals.is_approved(&approval()).wait().unwrap());
    let long = SessionApproval { subject: "x".repeat(64 * 1024 + 1), ..approval() };
    let error = other.approvals.store_approval(&long).wait().unwrap_err();
    assert!(matches!(error, StoreError::TooLong { what: "a subject", .. }), "{error}");
    assert!(!other.approvals.is_approved(&long).wait().unwrap());
}
