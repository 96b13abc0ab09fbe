//! Reminders: tools of the host itself, which stand among those of plugins.

use serde_json::{Value, json};

use crate::support::{
    Home,
    home::{manifest, plugin_component},
};

/// Sets a reminder for tomorrow.
#[track_caller]
fn create(home: &Home, text: &str) -> Value {
    let arguments = json!({ "text": text, "when": "tomorrow at 9" });
    let (told, code) = home.call("reminder.create", &arguments);
    assert_eq!(code, 0, "{told}");
    told["result"].clone()
}

#[track_caller]
fn texts(home: &Home) -> Vec<String> {
    let (told, code) = home.call("reminder.list", &json!({}));
    assert_eq!(code, 0, "{told}");
    let list = told["result"]["reminders"].as_array().unwrap();
    list.iter().map(|one| one["text"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn reminders_outlive_the_program_that_set_them() {
    let home = Home::new();
    let made = create(&home, "call mum");
    assert!(made["when"].as_str().is_some_and(|when| when == "tomorrow at 09:00"), "{made}");
    create(&home, "water the plants");
    assert_eq!(texts(&home), ["call mum", "water the plants"]);
    home.run(&["call", "reminder.cancel", "{\"reminder\":\"plants\"}"]).ended(0);
    let id = made["id"].as_str().unwrap();
    home.run(&["call", "reminder.cancel", &json!({ "reminder": id }).to_string()]).ended(0);
    assert_eq!(texts(&home), Vec::<String>::new());
}

#[test]
fn what_cannot_be_set_is_said() {
    let home = Home::new();
    let rows = [
        (json!({ "text": "x", "when": "whenever" }), "not understood as a time"),
        (json!({ "text": "x", "when": "2001-01-01 10:00" }), "in the past"),
        (json!({ "text": " ", "when": "tomorrow" }), "do not fit"),
        (json!({ "text": "x".repeat(501), "when": "tomorrow" }), "do not fit"),
        (json!({ "text": "x" }), "do not fit"),
    ];
    for (arguments, words) in rows {
        home.run(&["call", "reminder.create", &arguments.to_string()]).ended(2).remarks(&[words]);
    }
    assert_eq!(texts(&home), Vec::<String>::new());
}

#[test]
fn they_pass_the_gate_and_are_written_down() {
    let home = Home::new();
    create(&home, "call mum");
    let audit = home.run(&["audit", "show", "--output", "json"]).ended(0);
    audit.answers(&["\"plugin\":\"reminder\"", "schedule", "set reminder t-1, tomorrow"]);
    let rule =
        "[[rule]]\ntool = \"reminder.create\"\ndecision = \"deny\"\nmessage = \"not here\"\n";
    let home = home.policy(rule);
    let arguments = json!({ "text": "x", "when": "tomorrow" }).to_string();
    home.run(&["call", "reminder.create", &arguments]).ended(3).remarks(&["not here"]);
    assert_eq!(texts(&home), ["call mum"]);
}

#[test]
fn they_stand_among_plugins_and_can_be_switched_off() {
    let home = Home::new().plugins(&["clock"]);
    home.run(&["plugin", "list"]).ended(0).answers(&["reminder", "internal"]);
    home.run(&["tool", "list"]).ended(0).answers(&["reminder.create", "clock.get_time"]);
    let shown = home.run(&["plugin", "show", "reminder"]).ended(0);
    shown.answers(&["internal", "create", "cancel"]).hides(&["digest"]);
    home.run(&["plugin", "list", "--output", "json"]).ended(0).answers(&["\"kind\": \"internal\""]);
    let home = home.config("[internal]\nreminder = false\n");
    home.run(&["tool", "list"]).ended(0).hides(&["reminder"]);
    home.run(&["call", "reminder.list"]).ended(2).remarks(&["there is no plugin \"reminder\""]);
}

#[test]
fn nobody_else_has_their_name() {
    let component = plugin_component("clock");
    let home = Home::new().component("mine", &manifest("reminder", ""), &component);
    let words = "reminder is the name of a built-in plugin";
    home.run(&["plugin", "list"]).ended(0).answers(&["rejected", words, "internal"]);
    assert_eq!(texts(&home), Vec::<String>::new());
    // What they have set goes on while they are switched off.
    let home = home.config("[internal]\nreminder = false\n");
    home.run(&["call", "reminder.get_time"]).ended(9).remarks(&[words]);
}

#[test]
fn a_host_with_nothing_but_them_says_that_there_is_no_plugin() {
    Home::new().run(&["plugin", "list"]).ended(0).remarks(&["No plugins found"]);
}
