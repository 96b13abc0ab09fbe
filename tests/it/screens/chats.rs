//! What is typed into a chat, and what comes of it.

use sallyport_contract::LOCAL_USER;
use sallyport_store::HostStore;
use serde_json::json;

use super::{
    INTERRUPT, PROMPT, Scenario, Stage,
    Step::{Sees, SeesLast, Types},
    check,
};
use crate::support::{Home, Person, Reply, patience::wait};

const CHAT: &[&str] = &["chat", "--model", "m"];

const CHATS: &[Scenario] = &[
    Scenario {
        name: "saving_nothing",
        before: "a file was written",
        args: CHAT,
        steps: &[SeesLast(PROMPT), Types("/save\r"), Sees("Nothing to save"), SeesLast(PROMPT)],
        code: None,
    },
    Scenario {
        name: "help_as_a_word",
        before: "the model was asked, which costs money",
        args: CHAT,
        steps: &[SeesLast(PROMPT), Types("help\r"), Sees("take back"), SeesLast(PROMPT)],
        code: None,
    },
    Scenario {
        name: "exit_as_a_word",
        before: "the model was asked, which costs money",
        args: CHAT,
        steps: &[SeesLast(PROMPT), Types("exit\r")],
        code: Some(0),
    },
    Scenario {
        name: "a_command_of_another_program",
        before: "an unknown command",
        args: CHAT,
        steps: &[SeesLast(PROMPT), Types("/permissions\r"), Sees("/grants"), SeesLast(PROMPT)],
        code: None,
    },
    Scenario {
        name: "ctrl_c_once",
        before: "the program ended at once",
        args: CHAT,
        steps: &[SeesLast(PROMPT), Types(INTERRUPT), Sees("again to leave"), SeesLast(PROMPT)],
        code: None,
    },
];

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
fn a_call_that_was_cancelled_at_its_question_had_taken_no_time() {
    let stage = || {
        let call = Reply::call("a", "clock__get_time", &json!({}));
        let home = Home::new().plugins(&["clock"]).policy(ASK_FOR_EACH);
        let stage = Stage::with_model(home, vec![call]);
        let mut person = Person::start(&stage.home, CHAT);
        for step in [SeesLast(PROMPT), Types("go\r"), Sees("[?] more"), Types(INTERRUPT)] {
            step.go(&mut person);
        }
        for step in [Sees("cancelled"), SeesLast(PROMPT), Types("exit\r")] {
            step.go(&mut person);
        }
        assert_eq!(person.ends(), 0);
        stage
    };
    let scenario = Scenario {
        name: "a_call_cancelled_at_its_question",
        before: "cancelled in 0 ms, 0.0 MiB, without the question",
        args: &["audit", "show"],
        steps: &[],
        code: Some(0),
    };
    check(&scenario, stage);
}

const ASK_FOR_EACH: &str = "[[rule]]\ntool = \"clock.*\"\ndecision = \"ask\"\n";

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

#[test]
fn a_session_that_was_removed_meanwhile_was_offered_on_leaving() {
    let leaves = |is_removed: bool| {
        let script = vec![Reply::Text("hello there")];
        let stage = Stage::with_model(Home::new().plugins(&["clock"]), script);
        let mut person = Person::start_sized(&stage.home, CHAT, 24, 80);
        let steps = [SeesLast(PROMPT), Types("go\r"), Sees("hello there"), SeesLast(PROMPT)];
        steps.iter().for_each(|step| step.go(&mut person));
        let sessions = stage.home.run(&["session", "list", "--output", "json"]).ended(0).json();
        let id = sessions[0]["id"].as_str().unwrap();
        if is_removed {
            let store = HostStore::open(&stage.home.path("state")).unwrap();
            wait(store.sessions.remove(LOCAL_USER, id)).unwrap();
        }
        Types("exit\r").go(&mut person);
        assert_eq!(person.ends(), 0, "{}", person.screen());
        person.screen().contains("Resume with")
    };
    assert_eq!([leaves(false), leaves(true)], [true, false]);
}
