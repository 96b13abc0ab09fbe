//! Commands of the user between turns.

use sallyport_model::{FileAttachment, UserInputMessage};

use super::{
    model::{Line, broken, calls, refused, says, script},
    *,
};

#[tokio::test]
async fn undo_takes_the_last_turn_back_one_after_another() {
    let lines = vec![says("one"), calls(&[("a", "t__echo", "")]), says("two"), says("three")];
    let mut talk = Talk::new(script(lines));
    talk.turn("1").await;
    talk.turn("2").await;
    talk.send(FrontEndCommand::Undo).await;
    talk.until_line("undone 2").await;
    talk.turn("3").await;
    check_shown(&talk, &["user 1", "assistant one", "user 3"]);
    for expected in ["undone 3", "undone 1", "notice nothing has been said yet"] {
        talk.send(FrontEndCommand::Undo).await;
        talk.until_line(expected).await;
    }
}

#[tokio::test]
async fn retry_asks_the_last_input_again_whatever_became_of_it() {
    let rows: [Vec<Line>; 5] = [
        vec![says("bad")],
        vec![says("")],
        vec![Line::Fails(broken("x"))],
        vec![Line::Fails(refused(400))],
        vec![calls(&[("a", "t__echo", "")]), Line::Fails(broken("x"))],
    ];
    for mut lines in rows {
        lines.insert(0, says("one"));
        lines.push(says("good"));
        let mut talk = Talk::new(script(lines));
        talk.turn("1").await;
        talk.turn("2").await;
        talk.send(FrontEndCommand::Retry).await;
        let events = lines_of(&mut talk).await;
        assert_eq!(events, ["undone 2", "turn 2 2", "message good", "end answered good"]);
        check_shown(&talk, &["user 1", "assistant one", "user 2"]);
        let written = talk.written();
        assert_eq!(written[written.len() - 4..written.len() - 2], ["undone", "user 2"]);
        // Otherwise a host that dies between the two would lose the input.
        let batches = talk.records.batches.lock().unwrap();
        assert!(batches.iter().any(|batch| record_lines(batch) == ["undone", "user 2"]));
    }
    let mut talk = Talk::new(script(Vec::new()));
    talk.send(FrontEndCommand::Retry).await;
    talk.until_line("notice nothing has been said yet").await;
}

async fn lines_of(talk: &mut Talk) -> Vec<String> {
    let mut events = talk.until_end().await;
    events.retain(|event| !matches!(event, SessionEvent::State { .. }));
    lines(&events)
}

#[tokio::test]
async fn another_model_goes_on_with_the_conversation() {
    let mut talk = Talk::new(script(vec![says("one")]));
    talk.turn("1").await;
    let requests = Arc::clone(&talk.requests);
    let other = Model::new(|_| says("other"), requests, Arc::clone(&talk.probe)).named("other");
    talk.handle.use_model(Arc::new(other)).await.unwrap();
    talk.until_line("model other").await;
    talk.turn("2").await;
    check_shown(&talk, &["user 1", "assistant one", "user 2"]);
    let written = talk.written();
    assert_eq!(written[5..7], ["model other", "user 2"]);
    assert_eq!(crate::restore_session(talk.records.all()).model.as_deref(), Some("other"));
}

#[tokio::test]
async fn what_starts_something_new_waits_for_the_present_turn() {
    let lines = vec![says("one"), Line::Hangs, says("again"), says("good")];
    let mut talk = Talk::new(script(lines));
    talk.turn("1").await;
    talk.submit("2").await;
    talk.until_line("text hm").await;
    for command in [
        FrontEndCommand::Pin,
        FrontEndCommand::Undo,
        FrontEndCommand::Retry,
        FrontEndCommand::Cancel,
    ] {
        talk.send(command).await;
    }
    assert_eq!(lines_of(&mut talk).await, ["end cancelled"]);
    let expected =
        ["pinned 2", "undone 2", "undone 1", "turn 1 1", "message again", "end answered again"];
    assert_eq!(lines_of(&mut talk).await, expected);
}

#[tokio::test]
async fn files_come_with_the_words() {
    let file = |bytes: usize| FileAttachment {
        name: "cat.png".into(),
        media_type: "image/png".into(),
        data: vec![0; bytes].into(),
    };
    let mut talk = Talk::new(script(vec![says("a cat"), says("two cats")]));
    let rows = [
        (
            UserInputMessage {
                text: "look".into(),
                attachments: vec![file(10)],
                ..UserInputMessage::default()
            },
            "end answered a cat",
        ),
        (
            UserInputMessage {
                text: String::new(),
                attachments: vec![file(10)],
                ..UserInputMessage::default()
            },
            "end answered two cats",
        ),
        (UserInputMessage::default(), "end refused the input is empty"),
        (
            UserInputMessage {
                text: "look".into(),
                attachments: vec![file(1); 65],
                ..UserInputMessage::default()
            },
            "end refused 65 files are attached, at most 64 are accepted",
        ),
        (
            UserInputMessage {
                text: "look".into(),
                attachments: vec![file(32 * 1024 * 1024 + 1)],
                ..UserInputMessage::default()
            },
            "end refused the attached files have 33554433 bytes, at most 33554432 are accepted",
        ),
    ];
    for (input, end) in rows {
        talk.send(FrontEndCommand::SubmitInput { input }).await;
        assert_eq!(lines(&talk.until_end().await).pop().unwrap(), end);
    }
    let shown = talk.requests.lock().unwrap();
    let files = shown.last().unwrap().iter().filter_map(|message| match message {
        ChatMessage::User(said) => Some(said.attachments.len()),
        _ => None,
    });
    assert_eq!(files.collect::<Vec<_>>(), [1, 1]);
}

#[tokio::test]
async fn what_the_model_should_know_leads_the_conversation() {
    let options = SessionOptions {
        system_prompt: Some("be brief".into()),
        memories: vec!["lives in Rome".into(), "has a cat".into()],
        ..options()
    };
    let mut talk = Talk::with(options, script(vec![says("hi")]));
    talk.turn("hello").await;
    let system = "system be brief\n\nWhat you know from earlier conversations:\n\
        - lives in Rome\n- has a cat";
    check_shown(&talk, &[system, "user hello"]);
}
