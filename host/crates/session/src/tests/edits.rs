//! Arguments that the user edits, and the position of a question among several.

use super::{
    model::{calls, says, script},
    *,
};
use crate::CallPosition;

fn edit(id: u64, arguments: &str) -> FrontEndCommand {
    FrontEndCommand::EditArguments { id, arguments: arguments.into() }
}

#[tokio::test]
async fn edited_arguments_are_checked_and_asked_about_anew() {
    let wanted = [("a", "t__asks", r#"{"to":"all"}"#), ("b", "t__echo", "2")];
    let mut talk = Talk::new(script(vec![calls(&wanted), says("done")]));
    talk.submit("hello").await;
    talk.until_line("question 1 t.asks").await;
    talk.send(edit(1, r#"{"to":"me"}"#)).await;
    let mut asked = talk.until(|event| line(event) == "question 2 t.asks").await;
    let Some(SessionEvent::ApprovalNeeded { request, .. }) = asked.pop() else { panic!() };
    assert_eq!(request.call.arguments, r#"{"to":"me"}"#);
    let order: Vec<String> = lines(&asked);
    assert_eq!(order[..3], ["closed 1", "state Executing", r#"edited a {"to":"me"}"#]);
    assert_eq!(talk.probe.runs.load(Ordering::SeqCst), 0);
    talk.answer(1, ApprovalAnswer::Once).await;
    talk.until_line("notice question 1 is not open, the answer changes nothing").await;
    talk.answer(2, ApprovalAnswer::Once).await;
    let events = lines(&talk.until_end().await).join("\n");
    assert!(events.contains(r#"finished a t.asks completed {"to":"me"}"#), "{events}");
    let result = r#"{"arguments":{"to":"me"},"note":"the user changed the arguments of this call before it was decided","result":{"to":"me"}}"#;
    check_shown(
        &talk,
        &[
            "user hello",
            r#"assistant [a t__asks {"to":"all"}][b t__echo 2] (opaque)"#,
            &format!("tool a t__asks {result}"),
            "tool b t__echo 2",
        ],
    );
    let edited = talk.records.all().into_iter().filter_map(|record| match record {
        JournalRecord::Result { edited, .. } => Some(edited),
        _ => None,
    });
    assert_eq!(edited.collect::<Vec<_>>(), [Some(r#"{"to":"me"}"#.to_owned()), None]);
}

/// The user's arguments never take the room of the result, so that is kept whole or shown whole.
#[tokio::test]
async fn long_edited_arguments_leave_the_result_in_view() {
    let mut talk = Talk::new(script(vec![calls(&[("a", "t__asks", "1")]), says("done")]));
    talk.submit("hello").await;
    talk.until_line("question 1 t.asks").await;
    let long = format!(r#"{{"lines":"{}"}}"#, "x".repeat(900));
    talk.send(edit(1, &long)).await;
    talk.until_line("question 2 t.asks").await;
    talk.answer(2, ApprovalAnswer::Once).await;
    talk.until_end().await;
    let shown = talk.shown().pop().unwrap();
    assert!(shown.contains(&format!(r#""arguments":{long}"#)), "{shown}");
    let ending: crate::call_ending::CallEnding = sallyport_contract::Outcome::Cancelled.into();
    let huge = format!(r#"{{"body":"{}"}}"#, "\"".repeat(200 * 1024));
    let text = ending.result_text(Some(&huge));
    assert!(text.len() < 10 * 1024, "{}", text.len());
    assert!(text.contains("cancelled by the user"), "{text}");
}

#[tokio::test]
async fn edited_arguments_that_do_not_fit_end_the_call() {
    let mut talk = Talk::new(script(vec![calls(&[("a", "t__asks", "1")]), says("done")]));
    talk.submit("hello").await;
    talk.until_line("question 1 t.asks").await;
    talk.send(edit(1, "{broken")).await;
    talk.until_end().await;
    let shown = talk.shown().pop().unwrap();
    assert!(shown.contains(r#""outcome":"invalid-arguments""#), "{shown}");
    assert!(shown.contains(r#""arguments":"{broken""#), "{shown}");
}

#[tokio::test]
async fn only_an_open_question_before_the_call_can_be_edited() {
    let mut talk = Talk::new(script(vec![calls(&[("a", "t__asks_late", "1")]), says("done")]));
    talk.send(edit(1, "2")).await;
    talk.until_line("notice question 1 is not open, the answer changes nothing").await;
    talk.submit("hello").await;
    talk.until_line("question 1 t.asks_late").await;
    talk.send(edit(1, "2")).await;
    talk.until_line("notice the call of question 1 is already running as approved").await;
    talk.answer(1, ApprovalAnswer::Once).await;
    assert_eq!(lines(&talk.until_end().await).pop().unwrap(), "end answered done");
}

#[tokio::test]
async fn cancelling_after_an_edit_ends_the_call() {
    let mut talk = Talk::new(script(vec![calls(&[("a", "t__asks", "1")]), says("done")]));
    talk.submit("hello").await;
    talk.until_line("question 1 t.asks").await;
    talk.send(edit(1, "2")).await;
    talk.send(FrontEndCommand::Cancel).await;
    let events = lines(&talk.until_end().await).join("\n");
    assert!(events.contains("finished a t.asks cancelled"), "{events}");
}

#[tokio::test]
async fn a_question_says_which_of_the_calls_it_is_about() {
    let wanted = [("a", "t__asks", "1"), ("b", "t__echo", ""), ("c", "t__asks_late", "3")];
    let mut talk = Talk::new(script(vec![calls(&wanted), says("done")]));
    talk.submit("hello").await;
    for (id, index) in [(1, 1), (2, 3)] {
        let is_question =
            |event: &SessionEvent| matches!(event, SessionEvent::ApprovalNeeded { .. });
        let Some(SessionEvent::ApprovalNeeded { position, confirmation_id, .. }) =
            talk.until(is_question).await.pop()
        else {
            panic!()
        };
        assert_eq!((confirmation_id, position), (id, CallPosition { index, count: 3 }));
        talk.answer(id, ApprovalAnswer::Once).await;
    }
    talk.until_end().await;
}
