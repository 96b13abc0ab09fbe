//! Typing: words, lines, names, Ctrl-C and the ways out.

use rustix::process::Signal;
use serde_json::json;

use super::{END, INTERRUPT, PROMPT, chat, chat_with, home, told};
use crate::support::{Home, OpenAi, Person, Reply, transcript};

#[test]
fn a_line_is_answered_and_the_way_back_is_told() {
    let model = OpenAi::start(vec![Reply::Text("All *is* well.")]);
    let home = home(&model);
    let mut person = chat(&home);
    person.types("how are you?\r");
    person.sees("All is well.");
    person.sees_last(PROMPT);
    person.types(END);
    assert_eq!(person.ends(), 0);
    assert!(person.has_usual_modes());
    insta::assert_snapshot!(told(&person), @"
    openai/m> how are you?
    All is well.
    openai/m>
    Resume with: sallyport chat --session ID
    ");
}

#[test]
fn nothing_is_told_where_nothing_was_said_or_kept() {
    let model = OpenAi::start(vec![Reply::Text("All is well.")]);
    let home = home(&model);
    for (flags, line) in [(&[][..], ""), (&["--ephemeral"], "hello")] {
        let mut person = chat_with(&home, flags);
        person.types(&format!("{line}\r"));
        if !line.is_empty() {
            person.sees("All is well.");
        }
        person.sees_last(PROMPT);
        person.types("/quit\r");
        assert_eq!(person.ends(), 0);
        assert!(!person.screen().contains("Resume with"), "{}", person.screen());
    }
}

#[test]
fn tab_completes_commands_and_several_lines_are_one_message() {
    let model = OpenAi::start(vec![Reply::Text("Yes.")]);
    let home = home(&model);
    let mut person = chat(&home);
    person.types("/qu\t");
    person.sees_last("openai/m> /quit");
    person.types(INTERRUPT);
    person.sees_last(PROMPT);
    person.types("one\\\rtwo\r");
    person.sees("Yes.");
    person.sees_last(PROMPT);
    assert_eq!(model.bodies()[0]["messages"][0]["content"], "one\ntwo");
}

#[test]
fn ctrl_c_clears_the_line_then_leaves() {
    let model = OpenAi::start(vec![Reply::Text("Yes.")]);
    let home = home(&model);
    let mut person = chat(&home);
    person.types("never sent");
    person.sees_last("openai/m> never sent");
    person.types(INTERRUPT);
    person.sees_last(PROMPT);
    person.types(INTERRUPT);
    person.sees("Press Ctrl-C again to leave.");
    person.sees_last(PROMPT);
    person.types(INTERRUPT);
    assert_eq!(person.ends(), 0);
    assert!(person.has_usual_modes());
    assert!(model.bodies().is_empty());
}

#[test]
fn a_bare_exit_went_to_the_model() {
    for line in ["exit", "quit"] {
        let model = OpenAi::start(vec![Reply::Text("Goodbye!")]);
        let home = home(&model);
        let mut person = chat(&home);
        person.types("help\r");
        person.sees("leave (also Ctrl-D)");
        person.sees_last(PROMPT);
        person.types(&format!("{line}\r"));
        assert_eq!(person.ends(), 0);
        assert!(model.bodies().is_empty());
    }
}

#[test]
fn ctrl_c_ends_what_the_model_is_doing() {
    let rows = [(Reply::Silence, "thinking"), (Reply::Stalls("It is "), "answering")];
    for (reply, status) in rows {
        let model = OpenAi::start(vec![reply, Reply::Text("Better now.")]);
        let home = home(&model);
        let mut person = chat(&home);
        person.types("go\r");
        person.sees(status);
        model.is_asked(1);
        person.types(INTERRUPT);
        person.sees("cancelled");
        person.sees_last(PROMPT);
        person.types("again\r");
        person.sees("Better now.");
        person.sees_last(PROMPT);
        assert!(!person.screen().contains(status), "{}", person.screen());
    }
}

#[test]
fn ctrl_c_ends_a_tool_that_hangs_and_its_call_is_recorded_as_cancelled() {
    let hang = Reply::call("a", "hostile__sleeps_an_hour", &json!({}));
    let model = OpenAi::start(vec![hang, Reply::Text("Better now.")]);
    let home = home(&model);
    let mut person = chat(&home);
    person.types("go\r");
    person.sees("hostile.sleeps_an_hour ·");
    person.types(INTERRUPT);
    person.sees_last(PROMPT);
    person.types("again\r");
    person.sees("Better now.");
    person.sees_last(PROMPT);
    insta::assert_snapshot!(told(&person), @"
    openai/m> go
    ✗ hostile.sleeps_an_hour · cancelled
    cancelled
    openai/m> again
    Better now.
    openai/m>
    ");
    let bodies = model.bodies();
    transcript::check(&bodies);
    assert_eq!(transcript::result(&bodies, "a")["outcome"], "cancelled");
}

#[test]
fn a_polite_kill_leaves_the_terminal_as_it_was() {
    for signal in [Signal::TERM, Signal::HUP] {
        for line in ["", "half a li", "go\r"] {
            let model = OpenAi::start(vec![Reply::Silence]);
            let home = home(&model);
            let mut person = chat(&home);
            assert!(!person.has_usual_modes());
            person.types(line);
            person.sees(if line.ends_with('\r') { "thinking" } else { line });
            person.sends(signal);
            assert_eq!(person.ends(), 0, "{signal:?} {line:?}");
            assert!(person.has_usual_modes(), "{signal:?} {line:?}");
        }
    }
}

#[test]
fn a_terminal_that_obeys_nothing_is_talked_to_line_by_line() {
    let model = OpenAi::start(vec![Reply::Text("All is well.")]);
    let home = home(&model).env("TERM", "dumb");
    let mut person = Person::start(&home, &["chat", "--model", "m"]);
    person.sees_last(">");
    person.types("hello\n");
    person.sees("All is well.");
    person.types("/quit\n");
    assert_eq!(person.ends(), 0);
}

#[test]
fn colours_are_left_out_where_nobody_wants_them() {
    type Row = (fn(Home) -> Home, bool);
    let rows: [Row; 2] = [(|home| home, true), (|home| home.env("NO_COLOR", "1"), false)];
    for (setting, has_colours) in rows {
        let model = OpenAi::start(vec![Reply::Text("# Title\n\n**bold** and `code`\n")]);
        let home = setting(home(&model));
        let mut person = chat(&home);
        person.types("go\r");
        person.sees("bold and code");
        person.sees_last(PROMPT);
        let codes = person.codes();
        let coloured =
            ["\u{1b}[1m", "\u{1b}[36m", "\u{1b}[2m"].iter().any(|code| codes.contains(code));
        assert_eq!(coloured, has_colours, "{codes:?}");
    }
}
