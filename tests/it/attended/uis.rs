//! UIs: what they draw, what they may say, and that a session outlives one that breaks.

use rustix::process::Signal;

use super::home;
use crate::support::{Home, OpenAi, Person, Reply};

const LINES: &str = "[plugin.ui-lines]\nui = { confirm = true }\n";
const ASK: &str = "[[rule]]\ntool = \"clock.*\"\ndecision = \"ask\"\n";

/// A manifest of the guest that does what a line says, as a UI.
const PLAYER: &str = r#"
instance = "session"
roles = ["provider", "listener", "guide", "ui"]
[[request.schedule]]
why = "tests"
[[request.listen]]
kind = "http"
why = "tests"
[[request.ui]]
confirm = true
why = "tests"
"#;

const PLAYS: &str = "[plugin.player]\nlisten = [\"http://127.0.0.1:0/ui\"]\n";

fn player(ui: &str) -> Home {
    let policy = format!("{PLAYS}ui = {ui}\nlimits = {{ time = \"1s\" }}\n{ASK}");
    Home::new().guest("player", PLAYER).plugins(&["clock"]).policy(policy)
}

const PLAYER_CHAT: [&str; 5] = ["chat", "--model", "offline", "--ui", "player"];

#[test]
fn lines_from_a_pipe_are_answered_by_a_ui_that_draws() {
    let home = home(&["ui-lines", "clock"], LINES);
    let chat = ["chat", "--model", "offline", "--ui", "ui-lines"];
    let ran = home.run_with_input(&chat, "what time is it\nwhat time is it\n").ended(0);
    assert_eq!(ran.stdout.matches("UTC.").count(), 2, "{}", ran.stdout);
    ran.answers(&["clock.get_time: completed"]);
}

#[test]
fn lines_from_a_pipe_are_no_approvals() {
    let home = home(&["ui-lines", "clock"], &format!("{LINES}{ASK}"));
    let chat = ["chat", "--model", "offline", "--ui", "ui-lines"];
    let ran = home.run_with_input(&chat, "what time is it\ny\n").ended(0);
    ran.answers(&["no user is connected"]).hides(&["UTC."]);
}

#[test]
fn a_person_answers_questions_through_a_ui_that_draws() {
    let home = home(&["ui-lines", "clock"], &format!("{LINES}{ASK}"));
    let mut person = Person::start(&home, &["chat", "--model", "offline", "--ui", "ui-lines"]);
    person.sees("to leave");
    person.types("what time is it\r");
    person.sees("clock.get_time {}: allow? [y/n]");
    person.sees("Asked because of: rule at policy.toml:3.");
    person.types("perhaps\r");
    person.sees("Please answer");
    person.types("y\r");
    person.sees("clock.get_time: completed");
    person.sees("UTC.");
    person.types("what time is it\r");
    person.sees_count("allow? [y/n]", 2);
    person.types("n\r");
    person.sees("clock.get_time: denied");
    person.sends(Signal::INT);
    assert_eq!(person.ends(), 0);
}

#[test]
fn a_ui_that_is_not_granted_is_told_with_what_would_grant_it() {
    let chat = |name| ["chat", "--model", "offline", "--ui", name];
    let bare = home(&["ui-lines", "ui-html", "clock"], "");
    bare.run(&chat("ui-lines")).ended(3).remarks(&["policy grant ui-lines --capability ui"]);
    bare.run(&chat("clock")).ended(3).remarks(&["clock is not a ui"]);
    bare.run(&chat("ui-line")).ended(3).remarks(&["did you mean ui-line"]);
    let half = home(&["ui-html"], "[plugin.ui-html]\nui = { confirm = true }\n");
    half.run(&chat("ui-html"))
        .ended(3)
        .remarks(&["serve its page", "policy grant ui-html --grant listen="]);
    let rule = "[[rule]]\ntool = \"ui-lines.role:ui\"\ndecision = \"deny\"\n";
    let denied = home(&["ui-lines"], &format!("{LINES}{rule}"));
    denied.run(&chat("ui-lines")).ended(3).remarks(&["policy.toml:3"]);
}

#[test]
fn only_what_was_asked_is_confirmed_and_only_with_the_grant() {
    for (ui, said) in [("{ confirm = true }", "no such question"), ("true", "not granted")] {
        let home = player(ui);
        let ran = home.run_with_input(&PLAYER_CHAT, "approve 1\napprove 7\n").ended(0);
        assert_eq!(ran.stdout.matches(said).count(), 2, "{ui}: {ran:#?}");
    }
}

#[test]
fn only_a_ui_that_answers_learns_what_plugins_may_do() {
    for (ui, is_told) in [("{ confirm = true }", true), ("true", false)] {
        let ran = player(ui).run_with_input(&PLAYER_CHAT, "submit hello\n").ended(0);
        let ran = ran.answers(&["Other", "offline", "clock.get_time"]);
        for words in ["permissions", "digest", "at_ms"] {
            assert_eq!(ran.stdout.contains(words), is_told, "{words}, {ui}: {ran:#?}");
        }
    }
}

#[test]
fn h11_what_a_ui_draws_is_shown_and_not_obeyed() {
    let model = OpenAi::start(vec![Reply::Text("a\u{1b}[2Jb \u{7}\u{202e}c")]);
    let home = home(&["ui-lines"], LINES).env("OPENAI_BASE_URL", model.base_url());
    let home = home.env("OPENAI_API_KEY", "k");
    let chat = ["chat", "--model", "m", "--ui", "ui-lines"];
    let ran = home.run_with_input(&chat, "hello\n").ended(0);
    ran.hides(&["\u{1b}[2J", "\u{7}", "\u{202e}"]);
}

#[test]
fn a_session_goes_on_without_a_ui_that_breaks_and_nobody_approves() {
    for (line, why) in [("break", "trapped"), ("loop", "time limit")] {
        let home = player("{ confirm = true }");
        let mut person = Person::start(&home, &PLAYER_CHAT);
        person.sees("ReadyForInput");
        person.types("submit what time is it\r");
        person.sees("ToolCallRequested");
        person.types(&format!("{line}\r"));
        person.sees("player stopped showing this session");
        person.sees(why);
        person.sees("the session continues without it");
        person.sees("no user is connected");
        person.sends(Signal::INT);
        assert_eq!(person.ends(), 9);
    }
}

#[test]
fn h67_a_ui_that_is_granted_no_more_is_told_no_more() {
    let role = "[[rule]]\ntool = \"player.role:ui\"\ndecision = \"deny\"\n";
    for (now, why) in [
        (PLAYS.to_owned(), "does not grant \"ui\""),
        (format!("{PLAYS}ui = true\n{role}"), "rule at policy.toml"),
    ] {
        let home = player("true");
        let mut person = Person::start(&home, &PLAYER_CHAT);
        person.sees("ReadyForInput");
        let home = home.policy(now);
        person.types("status hello\r");
        person.sees("player stopped showing this session");
        person.sees(why);
        person.sends(Signal::INT);
        assert_eq!(person.ends(), 9);
        home.run(&["audit", "show"]).answers(&["player.role:ui", "denied"]);
    }
}

#[test]
fn a_flood_of_commands_ends_and_the_session_answers() {
    let home = player("{ confirm = true }");
    let ran = home.run_with_input(&PLAYER_CHAT, "flood\nsubmit hello\n").ended(0);
    ran.answers(&["taken, "]);
}
