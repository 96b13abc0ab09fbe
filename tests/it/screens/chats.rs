//! What is typed into a chat, and what comes of it.

use super::{
    INTERRUPT, PROMPT, Scenario, Stage,
    Step::{Sees, SeesLast, Types},
    check,
};
use crate::support::{Home, Reply};

const CHAT: &[&str] = &["chat", "--model", "m"];

const CHATS: &[Scenario] = &[Scenario {
    name: "saving_nothing",
    before: "a file was written",
    args: CHAT,
    steps: &[SeesLast(PROMPT), Types("/save\r"), Sees("Nothing to save"), SeesLast(PROMPT)],
    code: None,
}];

#[test]
fn chats_fit_each_terminal() {
    let stage = || Stage::with_model(Home::new().plugins(&["clock"]), vec![Reply::Text("hi")]);
    CHATS.iter().for_each(|scenario| check(scenario, stage));
}

#[test]
fn what_was_typed_ahead_was_lost() {
    let stalls = || {
        let script = vec![Reply::Stalls("Let me think about it")];
        Stage::with_model(Home::new().plugins(&["clock"]), script)
    };
    for scenario in [
        Scenario {
            name: "typed_ahead",
            before: "not shown",
            args: CHAT,
            steps: &[
                SeesLast(PROMPT),
                Types("a riddle\r"),
                Sees("think about it"),
                Types("first\rsecond"),
                Sees("queued: first"),
                SeesLast("> second"),
            ],
            code: None,
        },
        Scenario {
            name: "typed_ahead_and_stopped",
            before: "dropped",
            args: CHAT,
            steps: &[
                SeesLast(PROMPT),
                Types("a riddle\r"),
                Sees("think about it"),
                Types("first\rsecond"),
                SeesLast("> second"),
                Types(INTERRUPT),
                Sees("cancelled"),
                SeesLast("  second"),
            ],
            code: None,
        },
    ] {
        check(&scenario, stalls);
    }
}

#[test]
fn joiners_were_shown_as_codes() {
    let text = "می‌خواهم · क्‍ष · 👨‍👩‍👧 · done";
    let scenario = Scenario {
        name: "joiners_in_an_answer",
        before: "\\u{200d} and \\u{200c} in Persian, Hindi and families of emoji",
        args: CHAT,
        steps: &[SeesLast(PROMPT), Types("go\r"), Sees("done"), SeesLast(PROMPT)],
        code: None,
    };
    check(&scenario, || {
        Stage::with_model(Home::new().plugins(&["clock"]), vec![Reply::Text(text)])
    });
}
