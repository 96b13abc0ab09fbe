//! The first minutes: nothing is configured, and everything that is tried answers or says what to
//! do.

use std::{fs, path::Path, time::SystemTime};

use serde_json::{Value, json};

use crate::support::Home;

/// The plugins that come with the host.
const PLUGINS: [&str; 4] = ["clock", "files", "system-info", "weather"];

fn home() -> Home {
    Home::new().plugins(&PLUGINS)
}

/// Hours and minutes in Tokyo, which is nine hours ahead of UTC all the year.
fn tokyo_now() -> (u64, u64) {
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let minutes = seconds / 60 + 9 * 60;
    (minutes / 60 % 24, minutes % 60)
}

/// Fails when the text names no time of day in Tokyo between `begin` and now.
#[track_caller]
fn check_tokyo(text: &str, begin: (u64, u64)) {
    let near = [begin, tokyo_now()].map(|(hour, minute)| format!("{hour:02}:{minute:02}"));
    assert!(near.iter().any(|time| text.contains(time.as_str())), "none of {near:?} in {text:?}");
}

#[test]
fn a_question_is_answered_without_a_model() {
    let begin = tokyo_now();
    let ran = home().run(&["run", "what time is it in Tokyo?"]).ended(0);
    check_tokyo(&ran.stdout, begin);
    ran.remarks(&["offline matcher", "--model"]);
    let home = home();
    home.run(&["run", "--max-cost", "1", "what time is it in Tokyo?"]).ended(0);
}

#[test]
fn a_question_may_come_from_standard_input() {
    let begin = tokyo_now();
    let ran = home().run_with_input(&["run"], "what time is it in Tokyo?\n").ended(0);
    check_tokyo(&ran.stdout, begin);
}

#[test]
fn a_chat_takes_piped_lines_and_answers_each() {
    let begin = tokyo_now();
    let input = "/help\n/tools\nwhat time is it in Tokyo?\n/nonsense\nwhat time is it in Tokyo?\n";
    let ran = home().run_with_input(&["chat"], input).ended(0);
    check_tokyo(&ran.stdout, begin);
    assert_eq!(ran.stdout.matches("in Tokyo").count(), 2, "{}", ran.stdout);
    ran.remarks(&["/quit", "clock.get_time", "there is no command /nonsense"]);
}

#[test]
fn what_has_no_scratch_is_told_the_text_that_grants_one() {
    let home = Home::new().plugins(&["sandbox-fs"]);
    let call = ["call", "sandbox-fs.list", "{}"];
    home.run(&call).ended(3).remarks(&["sallyport policy grant sandbox-fs --requested"]);
    let text = "[plugin.sandbox-fs]\nscratch = [{ name = \"sandbox\", mount = \"/sandbox\" }]\n";
    home.policy(text).run(&call).ended(0);
}

#[test]
fn a_tool_is_called_directly() {
    let begin = tokyo_now();
    let ran = home().run(&["call", "clock.get_time", r#"{"timezone":"Asia/Tokyo"}"#]).ended(0);
    check_tokyo(ran.json()["time"].as_str().unwrap(), begin);
    assert_eq!(ran.stderr, "");
}

#[test]
fn plugins_and_tools_are_listed_for_people() {
    let home = home();
    home.run(&["plugin", "list"]).ended(0).answers(&PLUGINS);
    home.run(&["plugin", "show", "weather"]).ended(0).answers(&[
        "weather 0.1.0",
        "ready",
        "get_weather",
        "GET {forecast_url}/v1/forecast",
        "Granted by the policy\n  nothing",
    ]);
    home.run(&["tool", "list"]).ended(0).answers(&[
        "clock.get_time",
        "files.write",
        "system-info.",
    ]);
    home.run(&["tool", "show", "files.remove"]).ended(0).answers(&[
        "destructive",
        "recursive",
        "Arguments",
    ]);
}

#[test]
fn plugins_and_tools_are_listed_for_programs() {
    let home = home();
    let list = home.run(&["plugin", "list", "--output", "json"]).ended(0).json();
    let names: Vec<&Value> =
        list["plugins"].as_array().unwrap().iter().map(|p| &p["name"]).collect();
    assert_eq!(names, ["clock", "files", "reminder", "system-info", "weather"]);
    assert_eq!(list["rejected"], json!([]));
    let mut show = home.run(&["plugin", "show", "clock", "--output", "json"]).ended(0).json();
    // It reads the component for its language, which the list does not.
    assert!(show.as_object_mut().unwrap().remove("language").is_some());
    assert_eq!(show, list["plugins"][0]);
    assert_eq!((&show["state"], &show["granted"]), (&json!("ready"), &json!([])));
    let tool = home.run(&["tool", "show", "clock.get_time", "--output", "json"]).ended(0).json();
    let tools = home.run(&["tool", "list", "--output", "json"]).ended(0).json();
    assert_eq!(tool, tools[0]);
}

/// The definitions are what a model sees, word for word. `BLESS=1` writes the file anew.
#[test]
fn the_definitions_of_the_plugins_are_those_on_record() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/cases/definitions.json");
    let path = Path::new(path);
    let now = home().run(&["tool", "list", "--output", "json"]).ended(0).stdout;
    if std::env::var_os("BLESS").is_some() {
        fs::write(path, &now).unwrap();
    }
    let recorded = fs::read_to_string(path).unwrap_or_default();
    assert_eq!(now, recorded, "run with BLESS=1 if this change is meant");
}

#[test]
fn tools_are_listed_in_the_same_order_every_time() {
    let home = home();
    let list = || home.run(&["tool", "list", "--output", "json"]).ended(0).stdout;
    assert_eq!(list(), list());
}

#[test]
fn the_doctor_finds_everything_in_place() {
    let home = home();
    let verbose = home.run(&["doctor", "-v"]).ended(0);
    verbose.answers(&["clock is ready", "nothing is granted", "→"]);
    let summed_up = home.run(&["doctor"]).ended(0).hides(&["clock is ready"]);
    let areas: Vec<&str> =
        summed_up.stdout.lines().take(5).filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(areas, ["settings", "model", "plugins", "sandbox", "records"], "{summed_up:#?}");
    summed_up.answers(&["weather", "not granted", "--requested"]);
    let checks = home.run(&["doctor", "--output", "json"]).ended(0).json();
    let checks = checks.as_array().unwrap();
    for id in ["configuration", "policy", "model", "plugin-folders", "plugin", "compiler", "cache"]
    {
        assert!(checks.iter().any(|check| check["id"] == id), "no {id} in {checks:?}");
    }
    assert!(checks.iter().all(|check| check["status"] != "failed"), "{checks:?}");
}

#[test]
fn the_policy_is_explained_before_there_is_one() {
    home().run(&["policy", "check"]).ended(0).answers(&[
        "does not exist, so it grants nothing",
        "get_time: allow",
        "nothing granted",
    ]);
}

#[test]
fn completions_are_made_for_every_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let asks = format!("__complete {shell} ");
        Home::new().run(&["completions", shell]).ended(0).answers(&["sallyport", &asks]);
    }
    for shell in ["elvish", "powershell"] {
        Home::new().run(&["completions", shell]).ended(0).answers(&["sallyport", "doctor"]);
    }
}

#[test]
fn without_any_plugin_every_command_says_so() {
    let home = Home::new();
    home.run(&["plugin", "list"]).ended(0).remarks(&["No plugins found", "--plugin-dir"]);
    home.run(&["tool", "list"]).ended(0).answers(&["reminder.list"]);
    home.run(&["doctor"]).ended(0).answers(&["warning", "0 plugins"]);
    home.run(&["run", "what time is it?"]).ended(0).hides(&["panicked"]);
    let bare = home.config("[internal]\nreminder = false\n");
    bare.run(&["tool", "list"]).ended(0).remarks(&["No tools found"]);
}
