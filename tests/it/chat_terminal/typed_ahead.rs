//! What is typed while an answer arrives: it is seen, queued, taken back and kept.

use super::{END, INTERRUPT, PROMPT, chat, home};
use crate::support::{OpenAi, Reply};

/// The key that takes back the last queued message.
const UP: &str = "\u{1b}[A";

/// The last text that the user said in a request.
fn last_said(model: &OpenAi) -> String {
    let bodies = model.bodies();
    let messages = bodies.last().unwrap()["messages"].as_array().unwrap().clone();
    let mut said = messages.iter().rev().filter(|message| message["role"] == "user");
    said.next().unwrap()["content"].as_str().unwrap().to_owned()
}

#[test]
fn a_line_is_seen_while_an_answer_arrives_and_is_the_next_line() {
    let model = OpenAi::start(vec![Reply::Status(503), Reply::Text("Here I am.")]);
    let home = home(&model);
    let mut person = chat(&home);
    person.types("go\r");
    person.sees("retrying in ");
    person.types("latter\u{1b}[D\u{1b}[D\u{1b}[D\u{7f}");
    person.sees("> later");
    person.sees("Here I am.");
    person.sees_last("openai/m> later");
    assert_eq!(model.bodies().len(), 2);
    person.types("\r");
    model.is_asked(3);
    assert_eq!(last_said(&model), "later");
}

#[test]
fn queued_lines_are_sent_one_after_another() {
    let script = vec![
        Reply::Status(503),
        Reply::Text("First."),
        Reply::Text("Second."),
        Reply::Text("Third."),
    ];
    let model = OpenAi::start(script);
    let home = home(&model);
    let mut person = chat(&home);
    person.types("go\r");
    person.sees("retrying in ");
    person.types("two\rthree\\\rlines\r/session\rhalf");
    person.sees("> half");
    person.sees("First.");
    person.sees("Second.");
    person.sees("Third.");
    person.sees("Resume with: ");
    person.sees_last("openai/m> half");
    let screen = person.screen();
    assert!(screen.contains("openai/m> two\n") && screen.contains("openai/m> three\n  lines\n"));
    assert!(!screen.contains("queued"), "{screen}");
    assert_eq!(last_said(&model), "three\nlines");
}

#[test]
fn a_queued_line_can_be_taken_back() {
    let model = OpenAi::start(vec![Reply::Stalls("It is ")]);
    let home = home(&model);
    let mut person = chat(&home);
    person.types("go\r");
    person.sees("answering");
    person.types("never sent\r");
    person.sees("queued: never sent");
    person.types(UP);
    person.sees("\n> never sent");
    person.types(INTERRUPT);
    person.sees_last("openai/m> never sent");
    assert_eq!(model.bodies().len(), 1);
}

#[test]
fn ctrl_c_stops_the_answer_and_keeps_what_was_typed() {
    let model = OpenAi::start(vec![Reply::Stalls("It is "), Reply::Text("Better now.")]);
    let home = home(&model);
    let mut person = chat(&home);
    person.types("go\r");
    person.sees("answering");
    person.types("one\rtwo");
    person.sees("queued: one");
    person.sees("> two");
    person.types(INTERRUPT);
    person.sees("cancelled");
    person.sees("openai/m> one\n  two");
    assert_eq!(model.bodies().len(), 1);
    person.types("\r");
    person.sees("Better now.");
    person.sees_last(PROMPT);
    assert_eq!(last_said(&model), "one\ntwo");
}

/// Many press Ctrl-C until something happens.
#[test]
fn a_second_ctrl_c_dropped_what_was_typed_ahead() {
    let model = OpenAi::start(vec![Reply::Stalls("It is "), Reply::Text("Better now.")]);
    let home = home(&model);
    let mut person = chat(&home);
    person.types("go\r");
    person.sees("answering");
    person.types("one\rtwo");
    person.sees("> two");
    person.types(INTERRUPT);
    person.sees("openai/m> one\n  two");
    person.types(INTERRUPT);
    person.sees_last(PROMPT);
    person.types(UP);
    person.sees("openai/m> one\n  two");
    person.types("\r");
    person.sees("Better now.");
    assert_eq!(last_said(&model), "one\ntwo");
}

#[test]
fn the_end_of_the_input_leaves_after_what_is_queued() {
    let model = OpenAi::start(vec![Reply::Status(503), Reply::Text("Done.")]);
    let home = home(&model);
    let mut person = chat(&home);
    person.types("go\r");
    person.sees("retrying in ");
    person.types("again\r");
    person.types(END);
    assert_eq!(person.ends(), 0);
    assert!(person.has_usual_modes());
    assert_eq!(last_said(&model), "again");
}

#[test]
fn narrow_and_wide_screens_show_the_end_of_a_long_line() {
    for (rows, columns) in [(15, 40), (24, 80), (40, 120)] {
        let model = OpenAi::start(vec![Reply::Stalls("It is ")]);
        let home = home(&model);
        let mut person = chat(&home);
        person.resizes(rows, columns);
        person.types("go\r");
        person.sees("answering");
        person.types(&"word ".repeat(30));
        person.types("end");
        person.sees_last_with("word end");
        let screen = person.screen();
        let typed: Vec<_> = screen.lines().filter(|line| line.starts_with("> …")).collect();
        assert_eq!(typed.len(), 1, "{screen}");
        assert!(typed[0].chars().count() < usize::from(columns), "{screen}");
        person.types(INTERRUPT);
        person.sees("cancelled");
        person.sees("openai/m> word");
    }
}
