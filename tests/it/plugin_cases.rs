//! `plugin test`: cases run in the real sandbox, with their own clock, servers, files and grants.

use std::fs;

use serde_json::{Value, json};

use crate::support::{
    Home,
    home::{plugin_component, repository},
};

/// A home of an author whose folder `p` has a plugin of the repository, and these cases.
fn author(plugin: &str, cases: &str) -> Home {
    let manifest = repository().join(format!("plugins-wasm/{plugin}/plugin.toml"));
    Home::new()
        .user_file("p/plugin.toml", fs::read(manifest).unwrap())
        .user_file(&format!("p/{plugin}.wasm"), plugin_component(plugin))
        .user_file("p/cases.json", cases)
}

fn file_of(case: Value) -> String {
    json!({ "cases": [case] }).to_string()
}

/// Runs one case and checks whether it passes, and what is printed.
#[track_caller]
fn check(plugin: &str, case: Value, passes: bool, answers: &[&str]) {
    let home = author(plugin, &file_of(case));
    let summary = if passes { "1 passed, 0 failed" } else { "0 passed, 1 failed" };
    home.run(&["plugin", "test", "p"])
        .ended(i32::from(!passes))
        .answers(&[summary])
        .answers(answers);
}

#[test]
fn the_clock_of_a_case_stands_where_the_case_says() {
    let case = |time: &str| {
        json!({
            "name": "it is told", "tool": "get_time", "arguments": { "timezone": "Asia/Tokyo" },
            "now": "2026-11-22T01:15:30Z",
            "expect": { "data": {
                "time": time, "timezone": "Asia/Tokyo", "weekday": "Sunday", "utc_offset": "+09:00",
            } },
        })
    };
    check("clock", case("2026-11-22T10:15:30+09:00"), true, &["ok    it is told"]);
    let lines =
        ["FAIL  it is told", "-     \"time\": \"noon\"", "+     \"time\": \"2026-11-22T10:15:30"];
    check("clock", case("noon"), false, &lines);
    let variable = |zone: &str, grant: Value| {
        json!({
            "name": "own zone", "tool": "get_time", "environment": { "TZ": "Europe/Berlin" },
            "grant": grant, "now": "2026-11-22T01:15:30Z",
            "expect": { "data": {
                "time": if zone == "UTC" { "2026-11-22T01:15:30+00:00" } else { "2026-11-22T02:15:30+01:00" },
                "timezone": zone, "weekday": "Sunday",
                "utc_offset": if zone == "UTC" { "+00:00" } else { "+01:00" },
            } },
        })
    };
    check("clock", variable("Europe/Berlin", json!({ "env": ["TZ"] })), true, &[]);
    check("clock", variable("UTC", json!({})), true, &[]);
}

const PARIS: &str = "GET https://geocoding-api.open-meteo.com/v1/search";

/// A case that asks for the weather with this grant, and these answers of servers.
fn weather(grant: Value, http: Value, expect: Value, effects: Value) -> Value {
    json!({
        "name": "weather", "tool": "get_weather", "arguments": { "location": "Paris" },
        "grant": grant, "http": http, "expect": expect, "effects": effects,
    })
}

#[test]
fn servers_answer_from_the_case_and_nothing_leaves_the_machine() {
    let granted = json!({ "net": ["GET https://geocoding-api.open-meteo.com/**"] });
    let nothing = json!([{ "kind": "requested", "not": true }]);
    let denied = weather(json!({}), json!([]), json!({ "denied": "net" }), nothing.clone());
    check("weather", denied, true, &[]);
    let failed = json!({ "error": { "kind": ["unavailable", "failed", "not-found"] } });
    let unscripted = weather(granted.clone(), json!([]), failed.clone(), json!([]));
    check("weather", unscripted, false, &["request not in the script: GET https://geocoding-api"]);
    let never = json!([{ "request": "GET https://never.example/" }]);
    let unused = weather(json!({}), never, json!({ "denied": "net" }), json!([]));
    check("weather", unused, false, &["request never requested: GET https://never.example/"]);
    let wanted = json!([{ "kind": "requested", "what": PARIS, "status": 500 }]);
    let missing = weather(json!({}), json!([]), json!({ "denied": "net" }), wanted);
    check("weather", missing, false, &["effect missing: {\"kind\":\"requested\""]);
    let forbidden = json!([{ "kind": "refused", "capability": "net", "not": true }]);
    let happened = weather(json!({}), json!([]), json!({ "denied": "net" }), forbidden);
    check("weather", happened, false, &["effect must not happen: "]);
}

#[test]
fn files_of_a_case_are_its_own() {
    let case = |text: &str, after: Value| {
        json!({
            "name": "a note is written", "tool": "write",
            "arguments": { "path": "/notes/a.md", "text": text },
            "files": { "notes/b.md": "kept" },
            "grant": { "fs": [{ "path": "{folder}/notes", "mount": "/notes", "access": "read-write" }] },
            "expect": { "succeeds": true },
            "files_after": after,
        })
    };
    check("files", case("new", json!({ "notes/a.md": "new", "notes/b.md": "kept" })), true, &[]);
    let other = ["file notes/a.md:", "- old", "+ new"];
    check("files", case("new", json!({ "notes/a.md": "old" })), false, &other);
    check("files", case("new", json!({ "notes/c.md": null })), true, &[]);
    check("files", case("new", json!({ "notes/b.md": null })), false, &["- (no file)", "+ kept"]);
}

#[test]
fn an_update_writes_the_results_and_nothing_else() {
    let cases = r#"{
  "cases": [
    {
      "name": "odd   spacing", "tool": "get_time",   "now": "2026-11-22T01:15:30Z",
      "arguments": { "timezone": "nowhere at all" },
      "expect": {"data": 1}
    }
  ]
}"#;
    let home = author("clock", cases);
    let read = || fs::read_to_string(home.user_path("p/cases.json")).unwrap();
    home.run(&["plugin", "test", "p"]).ended(1).remarks(&["--update"]);
    assert_eq!(read(), cases);
    home.run(&["plugin", "test", "p", "--update"]).ended(0).remarks(&["Wrote the results of 1"]);
    let (before, _) = cases.split_once("{\"data\": 1}").unwrap();
    assert!(read().starts_with(before), "{}", read());
    assert!(read().contains("\"error\""), "{}", read());
    home.run(&["plugin", "test", "p"]).ended(0).answers(&["1 passed, 0 failed"]);
    let report = home.run(&["plugin", "test", "p", "--output", "json"]).ended(0).json();
    assert_eq!(report["cases"][0]["passed"], true);
}

#[test]
fn a_mistake_in_the_cases_is_shown_where_it_is() {
    let check = |cases: &str, remarks: &[&str]| {
        author("clock", cases).run(&["plugin", "test", "p"]).ended(2).remarks(remarks);
    };
    check("{\"cases\": [\n  {\"nmae\": \"x\"}\n]}", &["cases.json:2:", "unknown field `nmae`"]);
    check("{\"cases\": []}", &["there is no case"]);
    check("{", &["cases.json:1:", "EOF"]);
    check("{\"cases\": [{\"name\": \"x\", \"tool\": \"t\"}]}", &["missing field `expect`"]);
    let home = author("clock", "{}");
    fs::remove_file(home.user_path("p/cases.json")).unwrap();
    home.run(&["plugin", "test", "p"]).ended(2).remarks(&["cannot read", "cases.json"]);
    fs::remove_file(home.user_path("p/clock.wasm")).unwrap();
    home.run(&["plugin", "test", "p"]).ended(9).remarks(&["build the plugin first"]);
    home.run(&["plugin", "test", "nowhere"]).remarks(&["nowhere"]);
}

#[test]
fn a_case_that_cannot_run_fails_and_the_others_go_on() {
    let case = |name: &str, more: Value| {
        let mut case = json!({
            "name": name, "tool": "get_time", "arguments": { "timezone": "UTC" },
            "expect": { "succeeds": true },
        });
        case.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        case
    };
    let cases = json!({ "cases": [
        case("bad grant", json!({ "grant": { "nett": [] } })),
        case("bad file", json!({ "files": { "../x": "" } })),
        case("bad first call", json!({ "before": [{ "tool": "get_time", "arguments": { "timezone": 1 } }] })),
        case("good", json!({})),
    ] });
    author("clock", &cases.to_string()).run(&["plugin", "test", "p"]).ended(1).answers(&[
        "FAIL  bad grant",
        "nett",
        "FAIL  bad file",
        "not below the folder",
        "FAIL  bad first call",
        "call 1 of \"before\"",
        "ok    good",
        "4 cases: 1 passed, 3 failed",
    ]);
}
