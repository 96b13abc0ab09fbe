//! Cards: what each key does, and what no key does.

use std::fs;

use serde_json::json;

use super::{INTERRUPT, PROMPT, chat, echoing, told};
use crate::support::{Home, OpenAi, Person, Reply, person::CARD_KEYS, transcript};

/// A home in which every call is asked about.
fn home(model: &OpenAi) -> Home {
    super::home(model).policy("[plugin.hostile]\nnet = [\"GET https://hostile.example/\"]\n")
}

#[test]
fn a_card_says_what_is_asked() {
    let model = OpenAi::start(echoing());
    let home = home(&model);
    let mut person = chat(&home).asked();
    person.types("n");
    person.sees("All done.");
    person.sees_last(PROMPT);
    insta::assert_snapshot!(told(&person), @r#"
    openai/m> go
    approval: hostile.echo asks to run
      plugin    hostile 1.0.0, digest DIGEST
      with      text: "hi"
      can       GET https://hostile.example/
      because   no rule for it, and hostile can reach the network
      always    writes into your policy:
        [[rule]]
        tool = "hostile.echo"
        digest = "DIGEST"
        decision = "allow"
    [y] once · [s] this session · [a] always · [e] edit arguments · [n] no
    [r] no, with a reason · [c] cancel the turn · [?] more
    [n] denied: hostile.echo
    ✗ hostile.echo hi · denied: hostile.echo may not be called: the user said no
    All done.
    openai/m>
    "#);
}

#[test]
fn every_key_does_what_it_says() {
    let rows = [
        ("y", "✓ hostile.echo hi · hi · ", "[y] allowed once: hostile.echo"),
        ("s", "✓ hostile.echo hi · hi · ", "[s] allowed for this session: hostile.echo"),
        ("a", "✓ hostile.echo hi · hi · ", "[a] allowed always: hostile.echo"),
        ("n", "✗ hostile.echo hi · denied: ", "[n] denied: hostile.echo"),
    ];
    for (key, call, words) in rows {
        let model = OpenAi::start(echoing());
        let home = home(&model);
        let mut person = chat(&home).asked();
        person.types(key);
        person.sees("All done.");
        person.sees_last(PROMPT);
        let screen = person.screen();
        assert!(screen.contains(words), "{key}: {screen}");
        assert!(screen.contains(call), "{key}: {screen}");
        let policy = fs::read_to_string(home.path("policy.toml")).unwrap();
        assert_eq!(policy.contains("[[rule]]"), key == "a", "{key}");
        transcript::check(&model.bodies());
    }
}

#[test]
fn enter_and_other_keys_are_no_answer() {
    let model = OpenAi::start(echoing());
    let home = home(&model);
    let mut person = chat(&home).asked();
    for (index, key) in ["\r", "\n", " ", "x", "\t"].into_iter().enumerate() {
        person.types(key);
        person.sees_count(CARD_KEYS, index + 2);
    }
    assert_eq!(model.bodies().len(), 1);
    person.types("?");
    person.sees("page 1 of 1");
    person.types(INTERRUPT);
    person.sees("cancelled");
    person.sees_last(PROMPT);
}

#[test]
fn a_no_can_have_a_reason() {
    let model = OpenAi::start(echoing());
    let home = home(&model);
    let mut person = chat(&home).asked();
    person.types("r");
    person.sees_last("why not>");
    person.types("not on a sunday\r");
    person.sees("All done.");
    person.sees_last(PROMPT);
    let told = transcript::result(&model.bodies(), "a").to_string();
    assert!(told.contains("not on a sunday"), "{told}");
}

/// Removes all lines that are being edited.
fn clear_lines(person: &mut Person) {
    // To the beginning of all lines, and all of it away.
    person.types("\u{1}\u{b}\u{15}");
    person.types("\u{1b}[1;5F\u{15}");
}

#[test]
fn arguments_can_be_edited_and_are_asked_about_again() {
    let model = OpenAi::start(echoing());
    let home = home(&model);
    let mut person = chat(&home).asked();
    person.types("e");
    person.sees("arguments>");
    clear_lines(&mut person);
    person.types("{\"text\": \"edited\"}\r");
    person.sees("arguments changed");
    person.sees_last_with(CARD_KEYS);
    person.types("y");
    person.sees("All done.");
    person.sees_last(PROMPT);
    let told = transcript::result(&model.bodies(), "a").to_string();
    assert!(told.contains("edited"), "{told}");
}

#[test]
fn a_slip_in_edited_arguments_lost_what_was_typed() {
    let model = OpenAi::start(echoing());
    let home = home(&model);
    let mut person = chat(&home).asked();
    person.types("e");
    person.sees("arguments>");
    clear_lines(&mut person);
    for (typed, mistake) in [
        ("{\"text\": \"edited\"", "the arguments are not JSON: EOF"),
        (", \"more\": 1}", "the arguments do not fit hostile.echo"),
    ] {
        person.types(&format!("{typed}\r"));
        person.sees(mistake);
    }
    // What was typed is still there: only the surplus is taken away.
    person.sees_last_with("\"more\": 1}");
    person.types(&"\u{7f}".repeat(", \"more\": 1}".len()));
    person.types("}\r");
    person.sees("arguments changed");
    person.sees_last_with(CARD_KEYS);
    person.types("y");
    person.sees("All done.");
    person.sees_last(PROMPT);
    let told = transcript::result(&model.bodies(), "a").to_string();
    assert!(told.contains("edited"), "{told}");
}

#[test]
fn a_card_can_end_the_turn() {
    for key in ["c", "\u{1b}", INTERRUPT] {
        let model = OpenAi::start(echoing());
        let home = home(&model);
        let mut person = chat(&home).asked();
        person.types(key);
        person.sees("cancelled");
        person.sees_last(PROMPT);
        assert_eq!(model.bodies().len(), 1);
    }
}

#[test]
fn what_is_typed_before_a_card_is_no_answer_to_it() {
    let model = OpenAi::start(echoing());
    let home = home(&model);
    let mut person = chat(&home);
    person.types("go\ryyyy\ryes\r");
    person.sees(CARD_KEYS);
    assert_eq!(model.bodies().len(), 1);
    person.types("n");
    person.sees("the user said no");
    person.sees_last(PROMPT);
}

#[test]
fn several_questions_are_counted() {
    let echo = |id| (id, "hostile__echo", json!({ "text": id }).to_string());
    let script = vec![Reply::Calls(vec![echo("a"), echo("b")]), Reply::Text("All done.")];
    let model = OpenAi::start(script);
    let home = home(&model);
    let mut person = chat(&home).asked();
    person.sees("approval 1 of 2");
    person.types("y");
    person.sees("approval 2 of 2");
    person.sees_count(CARD_KEYS, 2);
    person.types("n");
    person.sees("All done.");
    person.sees_last(PROMPT);
}
