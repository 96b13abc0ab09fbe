//! Plugins in place of a model: chosen by name, let through by the gate, stopped where they go too
//! far.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    roles::{GRANTS, ROLES},
    support::{
        Home, Person, Ran,
        events::{events, of_kind},
        home::{guest, manifest},
    },
};

const PLAYER: [&str; 3] = ["run", "--provider", "plugin:player"];

/// A home with the plugin that plays every role; `more` are further lines of its policy.
fn home(more: &str) -> Home {
    let manifest = manifest("player", ROLES);
    let home = Home::new().component("player", &manifest, &guest("player"));
    home.policy(format!("{GRANTS}\n{more}"))
}

fn ask(home: &Home, flags: &[&str]) -> Ran {
    home.run(&[&PLAYER[..], flags].concat())
}

#[test]
fn a_plugin_answers_in_place_of_a_model() {
    let home = home("");
    ask(&home, &["say hello there"]).ended(0).answers(&["hello there"]).hides(&["offline"]);
    let told = ask(&home, &["-m", "small", "--system", "Be brief.", "tell all"]).ended(0);
    told.answers(&["system Be brief.", "user tell all 0 ", "Some(\"small\") None None"]);
    let model = ["run", "-m", "plugin:player/large", "tell"];
    home.run(&model).ended(0).answers(&["Some(\"large\")"]);
    let named = home.config(
        "default_model = 'bird'\n[model.bird]\nprovider = 'plugin:player'\nmodel = 'm'\n\
         temperature = 0.25\nmax_output_tokens = 9",
    );
    named.run(&["run", "tell"]).ended(0).answers(&["Some(\"m\") Some(0.25) Some(9)"]);
    let list = named.run(&["model", "list"]).ended(0);
    list.answers(&["bird", "plugin:player m", "(used: default_model"]);
    let config = named.run(&["config", "show"]).ended(0);
    config.answers(&["in-use.plugin", "player"]);
}

#[test]
fn a_session_tells_its_plugins_and_the_audit_whose_it_is() {
    let home = home("");
    ask(&home, &["who"]).ended(0).answers(&["local Some(\""]);
    let shown = home.run(&["audit", "show", "--output", "json"]).ended(0).stdout;
    let records = shown.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let records = records.map(|line| line["record"].clone());
    let of_calls: Vec<Value> = records.filter(|record| record["kind"] == "call").collect();
    assert!(!of_calls.is_empty());
    for record in of_calls {
        assert_eq!(record["user"], "local", "{record}");
        assert_eq!(record["conversation"], record["session"], "{record}");
    }
}

#[test]
fn words_are_told_while_they_come_unless_somebody_wants_them_whole() {
    let home = home("");
    let told = ["--output", "jsonl", "stream one two three"];
    let deltas = |ran: &Ran| -> Vec<Value> {
        let all = events(ran);
        of_kind(&all, "text-delta").into_iter().map(|delta| delta["text"].clone()).collect()
    };
    let streamed = ask(&home, &told).ended(0);
    assert_eq!(deltas(&streamed), [json!("one "), json!("two "), json!("three")]);
    let whole = ask(&home, &[&["--no-stream"], &told[..]].concat()).ended(0);
    assert!(deltas(&whole).is_empty());
    whole.answers(&["one two three"]);
}

#[test]
fn every_failure_has_its_code_and_its_words() {
    let quick = "limits = { time = \"300ms\", output = \"64KiB\" }";
    for (more, told, code, words) in [
        ("", "credentials no key", 4, "refused the credentials: no key"),
        ("", "refused no", 1, "plugin:player refused the request: no"),
        ("", "unreachable no line", 5, "cannot reach plugin:player: no line"),
        ("", "busy later", 1, "plugin:player is limiting requests: later"),
        ("", "trap", 1, "plugin:player gave no answer"),
        ("", "call_often 300", 1, "wants 300 calls"),
        ("", "call_with 1500000", 1, "limits.output"),
        ("", "opaque {", 1, "its own form of the answer"),
        (quick, "loop", 1, "it did not answer within 300ms (limits.time)"),
    ] {
        // An attempt that is worth it is made again, but not for longer than this.
        let home = home(more).config("[model.p]\nprovider = 'plugin:player'\ntime_max = '900ms'");
        home.run(&["run", "-m", "p", told]).ended(code).remarks(&[words]);
    }
    let home = home("").config("[model.p]\nprovider = 'plugin:player'\ntime_max = '200ms'");
    home.run(&["run", "-m", "p", "loop"]).ended(1).remarks(&["within 200ms (time_max"]);
}

#[test]
fn h52_calls_of_a_plugin_are_believed_no_more_than_those_of_a_model() {
    let ran = ask(&home(""), &["--output", "jsonl", "call_twice"]).ended(0);
    let all = events(&ran);
    let ended = of_kind(&all, "call-finished");
    let outcomes: Vec<_> = ended.iter().map(|call| call["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["failed", "failed"]);
    assert_ne!(ended[0]["call_id"], ended[1]["call_id"], "ids that stand twice are told apart");
    ran.answers(&["there is no"]);
}

#[test]
fn the_gate_decides_about_a_plugin_as_about_any_call() {
    let rule = |decision: &str| {
        format!("[[rule]]\ntool = \"player.role:provider\"\ndecision = \"{decision}\"\n")
    };
    let denied = ask(&home(&rule("deny")), &["say hi"]).ended(3);
    denied.remarks(&["plugin:player cannot answer"]).hides(&["hi\n"]);
    ask(&home(&rule("ask")), &["say hi"]).ended(6).remarks(&["no user is connected"]);
    let home = home(&rule("allow"));
    ask(&home, &["-v", "say hi"]).ended(0).remarks(&["→ player.role:provider", "← player.role"]);
    let shown = home.run(&["audit", "show", "--plugin", "player", "--output", "json"]).ended(0);
    let records: Vec<Value> =
        shown.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let words = |key: &str| -> Vec<&Value> {
        records.iter().map(|record| &record["record"][key]).collect()
    };
    assert_eq!(words("kind"), ["decision", "call"]);
    assert_eq!(words("tool"), ["role:provider", "role:provider"]);
    let session = home.run(&["session", "list", "--output", "json"]).ended(0).json();
    assert_eq!(words("session")[1], &session[0]["id"], "the run belongs to its session");
}

#[test]
fn what_is_no_provider_is_told_before_anything_is_asked() {
    let home = home("").plugins(&["clock"]);
    for (provider, code, words) in [
        ("plugin:clock", 3, "clock is not a provider: its roles are tools"),
        ("plugin:plaver", 3, "did you mean player?"),
        ("plugin:../x", 3, "is not the name of a plugin"),
        ("plugin:", 3, "is not the name of a plugin"),
        ("plug", 3, "there is no provider \"plug\""),
    ] {
        home.run(&["run", "--provider", provider, "hi"]).ended(code).remarks(&[words]);
    }
    for (line, words) in [
        ("key = 'k'", "3:7: \"key\" says nothing to a plugin"),
        ("base_url = 'http://x'", "says nothing to a plugin"),
        ("reasoning = 'low'", "[settings.player]"),
    ] {
        let home = Home::new().config(format!("[model.p]\nprovider = 'plugin:player'\n{line}"));
        home.run(&["run", "hi"]).ended(3).remarks(&[words]);
    }
}

#[test]
fn a_plugins_own_form_of_an_answer_comes_back_to_it_alone() {
    let form = r#"{"b":1.50,"a":[]}"#;
    let (own, none) = (format!("assistant kept  {form}"), "assistant kept  - |".to_owned());
    for (flags, comes, not) in [(&[][..], &own, &none), (&["-m", "other"], &none, &own)] {
        let home = home("");
        ask(&home, &[&format!("opaque {form}")]).ended(0);
        let again = ask(&home, &[flags, &["--continue", "tell"]].concat()).ended(0);
        again.answers(&[comes]).hides(&[not]);
    }
}

#[test]
fn a_conversation_can_go_over_to_a_plugin() {
    let home = home("");
    let mut person = Person::start(&home, &["chat", "-m", "offline"]);
    person.sees_last("offline>");
    person.types("/model\r");
    person.sees("plugin:player");
    person.types("/model plugin:pla\t");
    person.sees_last("offline> /model plugin:player");
    person.types("\r");
    person.sees("Now talking to plugin:player.");
    person.sees_last("plugin:player>");
    person.types("say good evening\r");
    person.sees("\ngood evening");
    person.sees_last("plugin:player>");
    person.types("/new\r");
    person.sees("New session.");
    person.sees_last("plugin:player>");
    person.types("say hello again\r");
    person.sees("\nhello again");
    person.sees_last("plugin:player>");
    person.types("/model plugin:nobody\r");
    person.sees("there is no plugin");
    person.sees_last("plugin:player>");
    person.types("/quit\r");
    assert_eq!(person.ends(), 0);
    let audit = home.run(&["audit", "show", "--plugin", "player", "--output", "json"]).ended(0);
    let sessions: BTreeSet<String> = audit
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["record"]["session"].to_string())
        .collect();
    assert_eq!(sessions.len(), 2, "each run belongs to its session");
}

#[test]
fn a_check_says_whether_a_plugin_can_stand_for_a_model() {
    let home = home("").plugins(&["clock"]);
    let check = |name: &str| home.run(&["model", "check", name]);
    check("plugin:player").ended(1).answers(&[
        "plugin",
        "player is a provider",
        "failed",
        "trapped",
    ]);
    check("plugin:clock").ended(3).answers(&["failed", "clock is not a provider"]);
    let doctor = home.config("[model.p]\nprovider = 'plugin:clock'").run(&["doctor"]);
    doctor.ended(1).answers(&["clock is not a provider"]);
}
