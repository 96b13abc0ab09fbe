//! Events, commands and snapshots as JSON: what is written can be read again.

use std::time::Duration;

use sallyport_contract::{
    ApprovalSubject, CallFailure, CallReport, Denial, DenialReason, DenialSubject, Effect,
    FailureKind, FixRule, LogLevel, Outcome, PolicyFix, ToolOutput, services,
};
use sallyport_model::{ModelError, TokenCost, TokenUsage};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    model::{calls, says, script},
    *,
};
use crate::{
    BudgetLimit, CallPosition, InputError, SessionActivity, SessionNotice, ToolRef, TurnUsage,
    restore_session,
};

fn denial() -> Denial {
    let request = DenialSubject::Request {
        plugin: "t".parse().unwrap(),
        method: "GET".into(),
        url: "https://a.example/".into(),
    };
    let reason = DenialReason::NotGranted { capability: None };
    Denial::new(request, reason).with_fix(Some(fix("[plugin.t]")))
}

fn report(outcome: Outcome) -> CallReport {
    let effects = vec![
        Effect::Logged { level: LogLevel::Warn, text: "careful".into() },
        Effect::Requested {
            what: "GET https://a.example/".into(),
            status: Some(200),
            sent_bytes: 0,
            received_bytes: 7,
        },
        Effect::SecretUsed { name: "key".into(), to: None },
        Effect::Refused(denial()),
    ];
    CallReport { outcome, effects, elapsed: Duration::from_millis(12), memory_bytes_peak: 65_536 }
}

fn finished(outcome: Outcome) -> SessionEvent {
    let tool = ToolRef::Known("t.asks".parse().unwrap());
    SessionEvent::CallFinished { call_id: "a".into(), tool, report: report(outcome) }
}

fn ended(reason: TurnEnd) -> SessionEvent {
    let tokens = TokenUsage { input_tokens: 3, output_tokens: 2, ..TokenUsage::default() };
    let cost = Some(TokenCost { micro_usd: 5 });
    let elapsed = Duration::from_millis(1_500);
    let usage = TurnUsage { answers: 1, calls: 0, tokens, cost, elapsed };
    SessionEvent::TurnEnded { reason, usage }
}

/// Checks that a value is written in this form, as far as `want` names it, and is read again.
fn check<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T, want: &Value) {
    let written = serde_json::to_value(value).unwrap();
    for (key, wanted) in want.as_object().unwrap() {
        assert_eq!(written[key], *wanted, "{key} of {written}");
    }
    assert_eq!(serde_json::from_value::<T>(written.clone()).unwrap(), *value, "{written}");
}

#[test]
fn every_event_is_read_as_it_was_written() {
    let retry =
        ReplyDelta::Retry { attempt: 2, wait: Duration::from_millis(250), reason: "busy".into() };
    let notice = services::PluginNotice {
        plugin: "timer".parse().unwrap(),
        session_id: "s".into(),
        text: "tea".into(),
        speech: None,
        audience: services::NoticeAudience::User,
        late: true,
    };
    let asked = SessionEvent::ApprovalNeeded {
        confirmation_id: 1,
        position: CallPosition { index: 1, count: 2 },
        request: approvals::request(),
    };
    let rows = [
        (
            SessionEvent::State { state: SessionActivity::WaitingForApproval },
            json!({ "type": "state", "state": "waiting-for-approval" }),
        ),
        (
            SessionEvent::InputAccepted { turn: 1, text: "hi".into(), origin: None },
            json!({ "type": "turn-started", "turn": 1, "text": "hi" }),
        ),
        (SessionEvent::Delta(ReplyDelta::text("a")), json!({ "type": "text-delta", "text": "a" })),
        (
            SessionEvent::Delta(ReplyDelta::reasoning("a")),
            json!({ "type": "reasoning-delta", "text": "a" }),
        ),
        (SessionEvent::Delta(retry), json!({ "type": "retry", "wait_ms": 250 })),
        (
            SessionEvent::MessageComplete { text: "hi".into(), usage: None },
            json!({ "type": "message", "text": "hi" }),
        ),
        (asked, json!({ "type": "approval-needed", "index": 1, "count": 2, "tool": "t.asks" })),
        (SessionEvent::Noticed { notice }, json!({ "type": "notified", "plugin": "timer" })),
        (
            SessionEvent::Notice(SessionNotice::AnswerCut),
            json!({ "type": "notice", "kind": "answer-cut" }),
        ),
        (
            SessionEvent::Notice(SessionNotice::JournalFailed {
                error: JournalError { message: "full".into() },
            }),
            json!({ "kind": "journal-failed", "error": { "message": "full" } }),
        ),
    ];
    for (event, want) in rows {
        check(&event, &want);
    }
}

#[test]
fn every_end_is_read_as_it_was_written() {
    let limited = ModelError::RateLimited {
        provider: "p".into(),
        message: "slow down".into(),
        retry_after: Some(Duration::from_secs(3)),
    };
    let failed = CallFailure::new(FailureKind::Trapped, "it broke").with_detail("at /x");
    let completed = ToolOutput { data: json!({ "n": u64::MAX }), ..ToolOutput::default() };
    let rows = [
        (
            finished(Outcome::Completed(completed)),
            json!({ "type": "call-finished", "tool": "t.asks", "outcome": "completed",
                    "data": { "n": u64::MAX }, "elapsed_ms": 12 }),
        ),
        (
            finished(Outcome::Failed(failed)),
            json!({ "outcome": "failed", "kind": "trapped", "message": "it broke" }),
        ),
        (
            finished(Outcome::Denied(denial())),
            json!({ "outcome": "denied", "subject": { "request": { "plugin": "t", "method": "GET",
                    "url": "https://a.example/" } } }),
        ),
        (
            finished(Outcome::TimedOut { limit: Duration::from_secs(1) }),
            json!({ "outcome": "timed-out", "limit_ms": 1_000 }),
        ),
        (finished(Outcome::Cancelled), json!({ "outcome": "cancelled" })),
        (
            ended(TurnEnd::Answered { text: "hi".into() }),
            json!({ "type": "turn-ended", "end": "answered", "text": "hi" }),
        ),
        (
            ended(TurnEnd::ModelFailed(limited)),
            json!({ "end": "model-failed", "kind": "rate-limited", "retry_after_ms": 3_000 }),
        ),
        (
            ended(TurnEnd::InputRefused(InputError::TooLong { bytes: 9, bytes_max: 8 })),
            json!({ "end": "input-refused", "kind": "too-long", "bytes": 9 }),
        ),
        (
            ended(TurnEnd::BudgetReached {
                limit: BudgetLimit::Time { time_max: Duration::from_secs(9) },
            }),
            json!({ "end": "budget-reached", "limit": { "kind": "time", "time_max_ms": 9_000 } }),
        ),
    ];
    for (event, want) in rows {
        check(&event, &want);
    }
}

#[test]
fn every_command_is_read_as_it_was_written() {
    let no = ApprovalAnswer::No { reason: Some("not now".into()) };
    let rows = [
        (
            FrontEndCommand::SubmitInput { input: "hi".into() },
            json!({ "type": "submit-input", "input": { "text": "hi" } }),
        ),
        (
            FrontEndCommand::ProvideConfirmation { id: 7, answer: no },
            json!({ "type": "provide-confirmation", "id": 7, "answer": "no", "reason": "not now" }),
        ),
        (
            FrontEndCommand::ProvideConfirmation { id: 7, answer: ApprovalAnswer::Session },
            json!({ "answer": "session" }),
        ),
        (
            FrontEndCommand::EditArguments { id: 7, arguments: "{}".into() },
            json!({ "type": "edit-arguments", "arguments": "{}" }),
        ),
        (FrontEndCommand::Cancel, json!({ "type": "cancel" })),
        (FrontEndCommand::Close, json!({ "type": "close" })),
    ];
    for (command, want) in rows {
        check(&command, &want);
    }
}

#[test]
fn a_tool_is_read_by_its_name() {
    let rows = [
        (ToolRef::Known("t.asks".parse().unwrap()), "t.asks"),
        (ToolRef::Own("search_tools".into()), "search_tools"),
        (ToolRef::Unknown("made up".into()), "made up"),
    ];
    for (tool, name) in rows {
        assert_eq!(serde_json::to_value(&tool).unwrap(), name);
        assert_eq!(serde_json::from_value::<ToolRef>(json!(name)).unwrap(), tool);
    }
}

#[tokio::test]
async fn a_snapshot_shows_the_records_and_the_open_question_during_a_turn() {
    let mut talk = Talk::new(script(vec![calls(&[("a", "t__asks", "")]), says("done")]));
    talk.submit("hello").await;
    talk.until_line("question 1 t.asks").await;
    let snapshot = talk.handle.snapshot().await.unwrap();
    assert_eq!(snapshot.activity, SessionActivity::WaitingForApproval);
    let [question] = &snapshot.questions[..] else { panic!("{snapshot:?}") };
    assert_eq!(question.confirmation_id, 1);
    assert_eq!(question.request.subject, ApprovalSubject::Call);
    assert!(matches!(&snapshot.records[..], [.., JournalRecord::Answer { .. }]), "{snapshot:?}");
    check(&snapshot, &json!({ "activity": "waiting-for-approval" }));

    talk.answer(1, ApprovalAnswer::Once).await;
    talk.until_end().await;
    let after = talk.handle.snapshot().await.unwrap();
    assert_eq!(after.questions, []);
    assert_eq!(after.records, talk.records.all());
    assert_eq!(restore_session(after.records).turn_count(), 1);
}

#[tokio::test]
async fn a_snapshot_holds_what_could_not_be_stored() {
    let mut talk = Talk::new(script(vec![says("one")]));
    talk.records.is_failing.store(true, Ordering::SeqCst);
    talk.submit("hello").await;
    talk.until_end().await;
    let snapshot = talk.handle.snapshot().await.unwrap();
    assert!(talk.records.all().is_empty());
    assert_eq!(restore_session(snapshot.records).turn_count(), 1);
}

/// A fix with this policy text.
fn fix(toml: &str) -> PolicyFix {
    let rule = FixRule { tool: "*".to_owned(), net: None, page: None };
    PolicyFix::from_rule("t".parse().unwrap(), rule, toml)
}
