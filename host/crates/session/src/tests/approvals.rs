//! Questions to the user.

use sallyport_contract::{
    ApprovalRequest, ApprovalSubject, Consent, RequestedCall, ToolCallContext,
};

use super::{
    approval::{ApprovalSender, PendingApprovals, UnattendedConsent},
    model::{calls, says, script},
    *,
};

fn once() -> ApprovalAnswer {
    ApprovalAnswer::Once
}

fn no(reason: Option<&str>) -> ApprovalAnswer {
    ApprovalAnswer::No { reason: reason.map(str::to_owned) }
}

pub(super) fn request() -> ApprovalRequest {
    let (tool, arguments) = ("t.asks".parse().unwrap(), "{}".into());
    let call = RequestedCall { context: ToolCallContext::default(), tool, arguments };
    let (plugin_version, plugin_digest) = ("1.0".into(), "ab".into());
    ApprovalRequest {
        call,
        subject: ApprovalSubject::Call,
        request: None,
        plugin_version,
        plugin_digest,
        reason: "r".into(),
        rule: None,
        capabilities: Vec::new(),
    }
}

fn one_call(name: &str, arguments: &str) -> Talk {
    Talk::new(script(vec![calls(&[("a", name, arguments)]), says("done")]))
}

#[tokio::test]
async fn the_answer_decides_whether_the_call_is_made() {
    let rows = [
        (once(), "completed {}"),
        (no(None), r#"denied {"error":"denied: no","outcome":"denied"}"#),
        (no(Some("not at night")), r#"denied {"error":"denied: not at night","outcome":"denied"}"#),
        (ApprovalAnswer::Nobody, r#"denied {"error":"denied: nobody to ask","outcome":"denied"}"#),
    ];
    for (answer, outcome) in rows {
        let mut talk = one_call("t__asks", "");
        talk.submit("hello").await;
        let before = talk.until_line("question 1 t.asks").await;
        assert_eq!(before[before.len() - 2], "state WaitingForApproval");
        talk.answer(1, answer).await;
        let after = lines(&talk.until_end().await);
        let expected = ["closed 1", "state Executing", &format!("finished a t.asks {outcome}")];
        assert_eq!(after[..3], expected);
        assert_eq!(after[after.len() - 1], "end answered done");
    }
}

#[tokio::test]
async fn answers_to_questions_that_are_not_open_change_nothing() {
    let not_open =
        |id: u64| format!("notice question {id} is not open, the answer changes nothing");
    let wanted = [("a", "t__asks", "1"), ("b", "t__asks", "2")];
    let mut talk = Talk::new(script(vec![calls(&wanted), says("done")]));
    talk.answer(1, once()).await;
    talk.until_line(&not_open(1)).await;

    talk.submit("hello").await;
    talk.until_line("question 1 t.asks").await;
    talk.answer(7, once()).await;
    talk.until_line(&not_open(7)).await;
    talk.answer(1, no(None)).await;
    talk.until_line("question 2 t.asks").await;
    talk.answer(1, once()).await;
    talk.until_line(&not_open(1)).await;
    talk.answer(2, once()).await;

    let end = lines(&talk.until_end().await).join("\n");
    assert!(end.contains("finished a t.asks denied"), "{end}");
    assert!(end.contains("finished b t.asks completed 2"), "{end}");
}

#[tokio::test]
async fn every_decision_is_made_before_the_first_call_runs() {
    let wanted = [("a", "t__echo", "1"), ("b", "t__asks", "2"), ("c", "t__asks", "3")];
    let mut talk = Talk::new(script(vec![calls(&wanted), says("done")]));
    let runs = |talk: &Talk| talk.probe.runs.load(std::sync::atomic::Ordering::SeqCst);
    talk.submit("hello").await;
    for id in 1..=2 {
        talk.until_line(&format!("question {id} t.asks")).await;
        assert_eq!(runs(&talk), 0);
        talk.answer(id, once()).await;
    }
    talk.until_end().await;
    assert_eq!(runs(&talk), 3);
}

#[tokio::test]
async fn calls_that_run_can_ask_too_several_at_a_time_and_in_any_order() {
    let wanted = [("a", "t__asks_late", "1"), ("b", "t__asks_late", "2")];
    let mut talk = Talk::new(script(vec![calls(&wanted), says("done")]));
    talk.submit("hello").await;
    let asked = talk.until(|event| line(event) == "question 2 t.asks_late").await;
    let second_asker = asked.iter().rev().find_map(|event| match event {
        SessionEvent::ApprovalNeeded { request, .. } => Some(request.call.context.call_id.clone()),
        _ => None,
    });
    talk.answer(2, no(None)).await;
    talk.until_line("closed 2").await;
    talk.answer(1, once()).await;
    let end = lines(&talk.until_end().await).join("\n");
    let denied = format!("finished {} t.asks_late denied", second_asker.unwrap());
    assert!(end.contains(&denied) && end.contains("t.asks_late completed \"asked\""), "{end}");
}

#[tokio::test]
async fn a_question_is_closed_when_its_call_does_not_wait_any_more() {
    let mut talk = one_call("t__asks_late", r#"{"impatient":true}"#);
    talk.submit("hello").await;
    talk.until_line("question 1 t.asks_late").await;
    talk.probe.hangs.notify_one();
    let events = lines(&talk.until_end().await);
    assert_eq!(events[..2], ["closed 1", "state Executing"]);
    assert!(events[2].ends_with("completed \"gave up\""), "{events:?}");
    talk.answer(1, once()).await;
    talk.until_line("notice question 1 is not open, the answer changes nothing").await;
}

#[tokio::test]
async fn a_question_between_turns_is_asked_as_well() {
    let (desk, approvals) = approval::approval_channel();
    let mut talk = idle_session(&desk, approvals);
    let asked = tokio::spawn(async move { desk.ask_user(request()).await });
    talk.until_line("question 1 t.asks").await;
    talk.answer(1, once()).await;
    assert_eq!(within(asked).await.unwrap(), ApprovalAnswer::Once);
    talk.until_line("state Ready").await;
}

fn idle_session(desk: &ApprovalSender, approvals: PendingApprovals) -> Talk {
    let (probe, requests) = (Arc::new(Probe::default()), Arc::default());
    let records = Notes::default();
    let parts = SessionParts {
        model: Arc::new(Model::new(script(Vec::new()), Arc::clone(&requests), Arc::clone(&probe))),
        toolbox: Arc::new(Tools::new(desk.clone(), Arc::clone(&probe))),
        approvals,
        journal: Box::new(records.clone()),
        recall: None,
        past: RestoredSession::default(),
        account: None,
        options: options(),
    };
    let (handle, events) = spawn_session(parts).unwrap();
    Talk { handle, events, requests, records, probe }
}

#[tokio::test]
async fn without_anybody_to_ask_the_answer_is_nobody() {
    assert_eq!(UnattendedConsent.ask_user(request()).await, ApprovalAnswer::Nobody);

    let (desk, approvals) = approval::approval_channel();
    drop(approvals);
    assert_eq!(within(desk.ask_user(request())).await, ApprovalAnswer::Nobody);

    // A session that ends with the question open: closed, without a front end, without handles.
    for ending in 0..3 {
        let (desk, approvals) = approval::approval_channel();
        let mut talk = idle_session(&desk, approvals);
        let open = tokio::spawn(async move { desk.ask_user(request()).await });
        talk.until_line("question 1 t.asks").await;
        match ending {
            0 => talk.send(FrontEndCommand::Close).await,
            1 => drop(talk.events),
            _ => drop(talk.handle),
        }
        assert_eq!(within(open).await.unwrap(), ApprovalAnswer::Nobody);
    }
}
