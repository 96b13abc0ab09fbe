//! Tests of the printed lines, and of the lines that the user types.

use sallyport_sdk::{
    prelude::json,
    testing::{self, Power},
    ui::{CallResult, Command},
};

use super::*;

fn request(confirmation_id: u64) -> Event {
    testing::question(confirmation_id);
    let arguments = json!({ "n": confirmation_id });
    Event::ToolCallRequested(CallRequest::new(confirmation_id, "lamp.on", arguments))
}

fn confirm(confirmation_id: u64, approved: bool) -> Command {
    Command::Confirm { confirmation_id: confirmation_id.to_string(), approved }
}

/// Handles events and returns the printed lines.
fn printed(lines: &mut Lines, events: impl IntoIterator<Item = Event>) -> Vec<String> {
    events.into_iter().for_each(|event| lines.on_event(event));
    testing::printed().into_iter().map(|(text, _)| text).collect()
}

fn line(text: &str) -> Event {
    Event::Line(text.to_owned())
}

#[test]
fn messages_are_shown_unless_they_stand_there_already() {
    let mut lines = Lines::default();
    let from = |author, origin: Option<&str>| {
        let origin = origin.map(str::to_owned);
        Event::NewMessage(Message { origin, ..Message::new(author, "Hi\nyou") })
    };
    for (event, want) in [
        (from(Author::User, None), None),
        (from(Author::User, Some("webhook")), Some("webhook: Hi\n    you")),
        (from(Author::Assistant, None), Some("Hi\nyou")),
        (from(Author::Notice, None), Some("* Hi\n    you")),
    ] {
        assert_eq!(printed(&mut lines, [event]), Vec::from_iter(want));
    }
}

#[test]
fn lines_are_input_until_there_is_a_question() {
    testing::grant([Power::Ui]);
    let mut lines = Lines::default();
    let shown = printed(&mut lines, [line(" Light on? "), line(""), request(7)]);
    assert_eq!(shown, [r#"lamp.on {"n":7}: allow? [y/n]"#]);
    let shown = printed(&mut lines, [line("why?"), line("y"), line("thanks")]);
    assert_eq!(shown, ["Please answer [y/n]."]);
    let submit = |text: &str| Command::SubmitInput(text.to_owned());
    assert_eq!(testing::commands(), [submit("Light on?"), confirm(7, true), submit("thanks")]);
}

#[test]
fn questions_are_asked_one_after_the_other() {
    testing::grant([Power::Ui]);
    let mut lines = Lines::default();
    assert_eq!(printed(&mut lines, [request(1), request(2), request(3)]).len(), 1);
    let closed = |id: u64| Event::ConfirmationClosed(id.to_string());
    assert_eq!(printed(&mut lines, [closed(2)]), [] as [&str; 0]);
    assert_eq!(printed(&mut lines, [line("n")]), [r#"lamp.on {"n":3}: allow? [y/n]"#]);
    assert_eq!(printed(&mut lines, [closed(1), line("Yes"), closed(3)]), [] as [&str; 0]);
    assert_eq!(testing::commands(), [confirm(1, false), confirm(3, true)]);
}

#[test]
fn a_warning_stands_above_its_question() {
    let mut lines = Lines::default();
    let mut request = CallRequest::new(1, "files.remove", json!({}));
    request.security_warning = Some("It can change files.".to_owned());
    lines.on_event(Event::ToolCallRequested(request));
    let printed = testing::printed();
    assert_eq!(printed[0], ("It can change files.".to_owned(), Style::Warning));
    assert_eq!(printed[1].1, Style::Strong);
}

#[test]
fn what_is_not_taken_is_told() {
    let mut lines = Lines::default();
    let shown = printed(&mut lines, [line("Hello"), line("/cancel")]);
    assert_eq!(shown, ["this plugin may not do that", "this plugin may not do that"]);
    testing::grant([Power::Ui]);
    assert_eq!(printed(&mut lines, [line("/cancel")]), [] as [&str; 0]);
    assert_eq!(testing::commands(), [Command::Cancel]);
}

#[test]
fn an_answer_on_its_way_is_seen_below() {
    let mut lines = Lines::default();
    let status = |lines: &mut Lines, event| {
        lines.on_event(event);
        testing::status()
    };
    let delta = |text: &str| Event::Delta(text.to_owned());
    assert_eq!(status(&mut lines, delta("Good ")).as_deref(), Some("Good "));
    assert_eq!(status(&mut lines, delta("mor\nning")).as_deref(), Some("ning"));
    assert_eq!(status(&mut lines, delta("\n")).as_deref(), Some("ning"));
    let long = status(&mut lines, delta(&"ä".repeat(9_999))).unwrap();
    assert_eq!(long.chars().count(), DRAFT_CHARS_MAX);
    assert!(lines.draft.len() <= DRAFT_CHARS_MAX * 4);
    let whole = Event::NewMessage(Message::new(Author::Assistant, "x"));
    assert_eq!(status(&mut lines, whole), None);
    let thinking = Event::StateChanged(Activity::Thinking);
    assert_eq!(status(&mut lines, thinking).as_deref(), Some("thinking"));
    assert_eq!(status(&mut lines, Event::ReadyForInput), None);
}

#[test]
fn results_are_told_in_a_line() {
    let mut lines = Lines::default();
    let finished = |outcome: &str| {
        let (tool, data) = ("lamp.on".to_owned(), json!("no lamp"));
        Event::ToolCallFinished(CallResult {
            call_id: "call-1".to_owned(),
            tool,
            outcome: outcome.to_owned(),
            data,
        })
    };
    lines.on_event(finished("completed"));
    lines.on_event(finished("failed"));
    let printed = testing::printed();
    assert_eq!(printed[0], ("lamp.on: completed".to_owned(), Style::Faint));
    assert_eq!(printed[1], ("lamp.on: failed: \"no lamp\"".to_owned(), Style::Failure));
}

#[test]
fn no_flood_of_questions_fills_the_memory() {
    let mut lines = Lines::default();
    (0..1_000).for_each(|id| lines.on_event(request(id)));
    assert_eq!(lines.questions.len(), QUESTIONS_MAX);
}
