//! Commands that answer and end.

use std::{fs, rc::Rc};

use serde_json::json;

use super::{
    Scenario, Stage,
    Step::{Sees, Types},
    check,
};
use crate::support::{Home, Reply, warden::requests};

const POLICY: &str = r#"
[plugin.clock]
env = ["TZ"]

[plugin.files]
fs = [{ path = "~/notes", mount = "/notes", access = "read-write" }]

[[rule]]
tool = "*.remove"
decision = "deny"
"#;

/// Without a change to what is written down: the home is used by all of them.
const READING: &[Scenario] = &[
    Scenario {
        name: "a_model_name_that_means_nothing",
        before: "the conversation went to OpenAI's public address",
        args: &["chat", "--model", "fkae"],
        steps: &[],
        code: Some(3),
    },
    Scenario {
        name: "a_model_name_of_another_provider",
        before: "the conversation went to OpenAI's public address",
        args: &["run", "--model", "claude-sonnet-4-5", "hi"],
        steps: &[],
        code: Some(3),
    },
    Scenario {
        name: "a_missing_key",
        before: "nothing before the connection, then a refusal of the server",
        args: &["run", "--model", "openai/gpt-5", "hi"],
        steps: &[],
        code: Some(4),
    },
    Scenario {
        name: "a_grant_to_an_unknown_plugin",
        before: "written without a word",
        args: &["policy", "grant", "wether", "--requested"],
        steps: &[],
        code: Some(2),
    },
    Scenario {
        name: "a_rule_for_an_unknown_tool",
        before: "written without a word",
        args: &["policy", "grant", "weather", "--allow", "get_wether"],
        steps: &[],
        code: Some(2),
    },
    Scenario {
        name: "a_grant_that_is_not_requested",
        before: "written without a word",
        args: &["policy", "grant", "clock", "--net", "GET https://example.com/"],
        steps: &[],
        code: Some(2),
    },
    Scenario {
        name: "a_grant_of_a_private_address",
        before: "written without a word, and without effect",
        args: &["policy", "grant", "hostile", "--net", "GET http://10.0.0.1/"],
        steps: &[],
        code: Some(2),
    },
    Scenario {
        name: "a_file_without_its_mount",
        before: "the entry had no mount, and the next error blamed the author",
        args: &["policy", "grant", "system-info", "--read", "/etc/os-release"],
        steps: &[Sees("Write this?"), Types("n\r")],
        code: Some(0),
    },
    Scenario {
        name: "all_that_is_requested",
        before: "every file was listed with the reasons of all files",
        args: &["policy", "grant", "system-info", "--requested"],
        steps: &[Sees("Write this?"), Types("n\r")],
        code: Some(0),
    },
    Scenario {
        name: "a_rule_over_all_plugins",
        before: "no rule could span plugins",
        args: &["policy", "explain", "files.remove"],
        steps: &[],
        code: Some(0),
    },
    Scenario {
        name: "a_call_that_lacks_a_grant_is_explained",
        before: "allow, for a call that was refused a moment later",
        args: &["policy", "explain", "weather.get_weather"],
        steps: &[],
        code: Some(0),
    },
    Scenario {
        name: "policy",
        before: "there was no table of what anything may do",
        args: &["policy"],
        steps: &[],
        code: Some(0),
    },
    Scenario {
        name: "plugin_list",
        before: "cut in the middle of words at 80 columns",
        args: &["plugin", "list"],
        steps: &[],
        code: Some(0),
    },
    Scenario {
        name: "plugin_show",
        before: "nothing said that the plugin lacks a grant",
        args: &["plugin", "show", "weather"],
        steps: &[],
        code: Some(0),
    },
    Scenario {
        name: "tool_list",
        before: "cut in the middle of words at 80 columns",
        args: &["tool", "list"],
        steps: &[],
        code: Some(0),
    },
    Scenario {
        name: "model_list",
        before: "offline, twice",
        args: &["model", "list"],
        steps: &[],
        code: Some(0),
    },
    Scenario {
        name: "doctor",
        before: "a line for every check, and the trouble among them",
        args: &["doctor"],
        steps: &[],
        code: Some(0),
    },
    Scenario {
        name: "a_word_of_another_program",
        before: "a tip to try \"secret\"",
        args: &["server"],
        steps: &[],
        code: Some(2),
    },
    Scenario {
        name: "the_first_word_of_many",
        before: "unrecognized subcommand",
        args: &["ls"],
        steps: &[],
        code: Some(2),
    },
];

fn home() -> Home {
    let home = Home::new()
        .plugins(&["clock", "files", "open-website", "system-info", "weather"])
        .guest("hostile", &requests(&["GET http://10.0.0.1/"]))
        .policy(POLICY);
    fs::create_dir_all(home.user_path("notes")).unwrap();
    // Plugins that are being compiled look different.
    home.run(&["policy"]).ended(0);
    home
}

#[test]
fn commands_fit_each_terminal() {
    let stage = Stage::new(home());
    READING.iter().for_each(|scenario| check(scenario, || Rc::clone(&stage)));
}

#[test]
fn an_audit_fits_each_terminal() {
    let stage = Stage::new(home());
    stage.home.run(&["call", "files.write", WRITE]).ended(6);
    stage.home.run(&["call", "files.remove", r#"{"path":"/notes/a.md"}"#]).ended(3);
    let scenario = Scenario {
        name: "audit_show",
        before: "lines of JSON",
        args: &["audit", "show"],
        steps: &[],
        code: Some(0),
    };
    check(&scenario, || Rc::clone(&stage));
}

/// A home with two sessions and a timer, which the plugins of a session set.
fn used() -> Rc<Stage> {
    let script = vec![
        Reply::Text("It is 14:20."),
        Reply::call("a", "reminder__create", &json!({ "text": "water the plants", "when": AT })),
        Reply::Text("I will remind you."),
    ];
    let stage = Stage::with_model(Home::new().plugins(&["clock"]), script);
    let ask = |text| stage.home.run(&["run", "--model", "m", text]).ended(0);
    ask("what time is it in Tokyo, and is that the day after the one that it is here?");
    ask("remind me of the plants");
    stage
}

/// A time that stays as far away as it is shown, in years.
const AT: &str = "2999-01-01 12:00";

#[test]
fn lists_of_what_is_kept_fit_each_terminal() {
    let stage = used();
    for scenario in [
        Scenario {
            name: "session_list",
            before: "titles in a narrow column",
            args: &["session", "list"],
            steps: &[],
            code: Some(0),
        },
        Scenario {
            name: "timer_list",
            before: "the same",
            args: &["timer", "list"],
            steps: &[],
            code: Some(0),
        },
    ] {
        check(&scenario, || Rc::clone(&stage));
    }
}

#[test]
fn a_duration_was_refused() {
    let policy = "[plugin.timer]\nstate = true\nschedule = true\nnotify = true\n\
                  [[rule]]\ntool = \"timer.*\"\ndecision = \"allow\"\n";
    let scenario = Scenario {
        name: "a_timer_with_a_duration",
        before: "`duration` was refused, and only `duration_seconds` taken",
        args: &["call", "timer.set_timer", r#"{"duration":300}"#],
        steps: &[],
        code: Some(0),
    };
    check(&scenario, || Stage::new(Home::new().plugins(&["timer"]).policy(policy)));
}

const TIME_ZONE: &str = r#"{"code":"from zoneinfo import ZoneInfo; ZoneInfo('Europe/Berlin')"}"#;

#[test]
fn time_zones_of_python_had_no_data_and_no_explanation() {
    let policy = "[plugin.python]\nscratch = [{ name = \"sandbox\", mount = \"/sandbox\" }]\n\n\
                  [[rule]]\ntool = \"python.*\"\ndecision = \"allow\"\n";
    let scenario = Scenario {
        name: "time_zones_without_data",
        before: "no data, although \"the standard library is there\"",
        args: &["call", "python.execute", TIME_ZONE],
        steps: &[],
        code: Some(0),
    };
    check(&scenario, || Stage::new(Home::new().plugins(&["python"]).policy(policy)));
}

#[test]
fn learning_right_after_a_refusal_said_that_nothing_was_refused() {
    let scenario = Scenario {
        name: "learn_names_the_folder",
        before: "files was refused nothing",
        args: &["policy", "learn", "files", "--", "call", "files.write", WRITE],
        steps: &[],
        code: Some(3),
    };
    check(&scenario, || Stage::new(Home::new().plugins(&["files"])));
}

const WRITE: &str = r#"{"path":"/notes/a.md","text":"hi"}"#;

#[test]
fn a_broken_plugin_took_two_lines_at_every_start() {
    let scenario = Scenario {
        name: "a_broken_plugin",
        before: "two lines of warning for each broken plugin before the one error",
        args: &["tool", "list"],
        steps: &[],
        code: Some(0),
    };
    let manifest = "name = \"broken\"\nversion = \"1.0.0\"\ndescription = \"x\"\n";
    let home = Home::new().plugins(&["clock"]).component("broken", manifest, b"no component");
    let stage = Stage::new(home);
    check(&scenario, || Rc::clone(&stage));
}
