//! What was said before a stop: it is kept, and the model is told.

use std::fs;

use super::{END, INTERRUPT, PROMPT, chat, chat_with, home};
use crate::support::{OpenAi, Reply, transcript};

/// What the model reads of an answer that was stopped.
const STOPPED: &str = "It is \n[stopped by the user]";

#[track_caller]
fn check_told(model: &OpenAi) {
    let bodies = model.bodies();
    transcript::check(&bodies);
    let messages = bodies.last().unwrap()["messages"].as_array().unwrap();
    let answer = messages.iter().find(|message| message["role"] == "assistant").unwrap();
    assert_eq!(answer["content"], STOPPED);
}

#[test]
fn an_answer_that_was_stopped_is_kept_in_the_session_and_its_exports() {
    let model = OpenAi::start(vec![Reply::Stalls("It is "), Reply::Text("Better now.")]);
    let home = home(&model);
    let mut person = chat(&home);
    person.types("go\r");
    person.sees("answering");
    person.sees("It is");
    person.types(INTERRUPT);
    person.sees("cancelled");
    person.sees_last(PROMPT);
    person.types("again\r");
    person.sees("Better now.");
    person.sees_last(PROMPT);
    check_told(&model);
    person.types("/save told.md\r");
    person.sees("written to ");
    person.sees_last(PROMPT);
    let exported = fs::read_to_string(home.folder.path().join("told.md")).unwrap();
    assert!(exported.contains("It is") && exported.contains("stopped by the user"), "{exported}");
    person.types(END);
    assert_eq!(person.ends(), 0);

    let mut person = chat_with(&home, &["--continue"]);
    person.sees("[stopped by the user]");
    person.types("and now?\r");
    person.sees_last(PROMPT);
    model.is_asked(3);
    check_told(&model);
}
