//! Commands that answer and end.

use std::{fs, rc::Rc};

use super::{
    Scenario, Stage,
    Step::{Sees, Types},
    check,
};
use crate::support::{Home, warden::requests};

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
    let write = r#"{"path":"/notes/a.md","text":"hi"}"#;
    stage.home.run(&["call", "files.write", write, "--yes"]);
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
