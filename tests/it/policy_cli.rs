//! The operator's commands about the policy: what it says, why, and how it is changed.

use std::{fs, io::Write};

use serde_json::json;

use crate::support::{Home, Ran, Terminal};

const COMMENTED: &str = "\
# ours, since last spring
[plugin.weather]
net = [
  \"GET https://geocoding-api.open-meteo.com/v1/search\", # finds places
]
env = [\"TZ\"] # where we are

[[rule]]
tool = \"weather.*\"
when = \"args.location == 'Atlantis'\"
decision = \"deny\"
message = \"it sank\"
match = [
  { location = \"Atlantis\", decision = \"deny\" },
  { location = \"Paris\", decision = \"allow\" },
]
";

const SEARCH: &str = "GET https://geocoding-api.open-meteo.com/v1/search";
const FORECAST: &str = "GET https://api.open-meteo.com/v1/forecast";

fn home() -> Home {
    Home::new().plugins(&["weather"]).policy(COMMENTED)
}

fn policy(home: &Home) -> String {
    fs::read_to_string(home.path("policy.toml")).unwrap()
}

#[track_caller]
fn explained(home: &Home, args: &[&str], texts: &[&str]) -> Ran {
    home.run(&[&["policy", "explain"], args].concat()).ended(0).answers(texts)
}

#[test]
fn a_decision_is_explained_with_every_rule_and_entry() {
    let home = home();
    let call = "weather.get_weather";
    let atlantis = r#"{"location":"Atlantis"}"#;
    let rows: [(&[&str], &[&str]); 12] = [
        (&[call, atlantis], &["deny", "it sank", "→ policy.toml:8", "when args.location"]),
        (
            &[call, r#"{"location":"Paris"}"#],
            &[
                "get_weather: ask",
                "→ policy.toml:4",
                "To allow it",
                "tool = \"weather.get_weather\"",
            ],
        ),
        (&["weather", "--net", SEARCH], &["allow", "→ policy.toml:4  net entry \"GET"]),
        (
            &["weather", "--net", FORECAST],
            &["deny", "in place of the same table", "https://api.open-meteo.com/v1/forecast"],
        ),
        (&[call, "--net", "POST https://evil.example/"], &["deny", "does not request"]),
        (&["weather", "--read", "/etc/passwd"], &["deny", "does not request"]),
        (&["weather", "--write", "/tmp/x"], &["deny", "does not request"]),
        (&["weather", "--net", "DELETE https://api.open-meteo.com/v1/forecast"], &["deny"]),
        (&["weather", "--open-url", "https://a.example/"], &["deny", "does not request"]),
        (&["weather", "--capability", "notify"], &["deny", "does not request"]),
        (&["weather.role:timer", r#"{"location":"Paris"}"#], &["allow", "the timer is its own"]),
        (&["weather.role:http", atlantis], &["deny", "it sank", "→ policy.toml:8"]),
    ];
    for (args, texts) in rows {
        explained(&home, args, texts);
    }
    let json = explained(&home, &[call, atlantis, "--output", "json"], &[]).json();
    assert_eq!(json[0]["decision"], "deny", "{json}");
    assert_eq!(
        (&json[0]["steps"][0]["line"], &json[0]["fix"]),
        (&json!(8), &json!(null)),
        "{json}"
    );
}

#[test]
fn a_question_that_makes_no_sense_is_refused() {
    let home = home();
    for (args, words) in [
        (&["nothing.at_all", "{}"][..], "there is no plugin"),
        (&["weather.get_wether", "{}"], "there is weather.get_weather"),
        (&["weather"], "only tools are called"),
        (&["weather.get_weather", "[]"], "not a JSON object"),
        (&["weather", "--net", "api.open-meteo.com"], "is no request"),
        (&["weather", "--read", "/a", "--write", "/b"], "cannot be used with"),
        (&["weather", "--open-url", "a.example"], "invalid value"),
        (&["weather", "--capability", "fly"], "write one of state"),
    ] {
        home.run(&[&["policy", "explain"], args].concat()).ended(2).remarks(&[words]);
    }
    let unfit = ["policy", "explain", "weather.get_weather", r#"{"location":7}"#];
    home.run(&unfit).ended(0).remarks(&["arguments do not fit"]);
}

#[test]
fn examples_are_run_and_counted() {
    let home = home();
    let lines = ["policy.toml:14: expected deny, got deny", "All 2 examples come out."];
    home.run(&["policy", "test"]).ended(0).answers(&lines);
    let json = home.run(&["policy", "test", "--output", "json"]).ended(0).json();
    assert_eq!(json[1]["arguments"], json!({ "location": "Paris" }), "{json}");
    Home::new().run(&["policy", "test"]).ended(0).answers(&["No rule has an example"]);
    let wrong =
        COMMENTED.replace("\"Paris\", decision = \"allow\"", "\"Paris\", decision = \"deny\"");
    let ran = Home::new().policy(wrong).run(&["policy", "test"]).ended(3);
    ran.remarks(&["policy.toml:15:", "the example says deny, but the rule gives allow"]);
}

#[test]
fn what_has_no_effect_is_remarked_and_is_no_mistake() {
    let text = format!("{COMMENTED}[plugin.wether]\nenv = [\"TZ\"]\n");
    let home = home().policy(text);
    let ran = home.run(&["policy", "check"]).ended(0);
    ran.answers(&["is sound"]).remarks(&["policy.toml:18", "did you mean weather?"]);
    let json = home.run(&["policy", "check", "--output", "json"]).ended(0).json();
    assert_eq!(json["plugins"][1]["tools"][0]["decision"], "ask", "{json}");
    assert_eq!(json["remarks"][0]["line"], 18, "{json}");
    assert_eq!(json["files"][1]["tier"], "user", "{json}");
    let home = Home::new().file("other.toml", "[plugin.weather\n");
    let other = home.path("other.toml");
    let ran = home.run(&["policy", "check", "--policy", other.to_str().unwrap()]).ended(3);
    ran.remarks(&["other.toml:1:"]);
}

#[test]
fn a_grant_is_shown_written_and_recorded_and_a_revocation_restores_the_file() {
    let home = home();
    let rows = [
        (&["--net", FORECAST][..], &["--net", FORECAST][..], "api.open-meteo.com/v1/forecast"),
        (&["--net", FORECAST, "--ask"], &["--net", FORECAST], "decision = \"ask\""),
        (
            &["--net", "GET http://10.1.2.3/**", "--to-private", "10.0.0.0/8"],
            &["--net", "GET http://10.1.2.3/**"],
            "range = \"10.0.0.0/8\"",
        ),
        (
            &["--net", "GET http://127.0.0.1:8080/", "--to-private"],
            &["--net", "GET http://127.0.0.1:8080/"],
            "to-private = true",
        ),
        (&["--read", "/srv/notes", "--mount", "/n"], &["--path", "/n"], "mount = \"/n\""),
        (
            &["--write", "/srv/notes", "--deny", "**/.git/**", "--quota", "10MiB"],
            &["--path", "/srv/notes"],
            "deny = [\"**/.git/**\"]",
        ),
        (&["--env", "LANG"], &["--env", "LANG"], "LANG"),
        (&["--limit", "time=5s"], &["--limit", "time"], "time = \"5s\""),
        (&["--allow", "*"], &["--rule", "*", "--decision", "allow"], "decision = \"allow\""),
    ];
    for (grant, revoke, text) in rows {
        let grant = [&["policy", "grant", "weather", "--yes"], grant].concat();
        let ran = home.run(&grant).ended(0).answers(&["+ ", text, "Written"]);
        assert!(!ran.stdout.contains("- #"), "{ran:#?}");
        let written = policy(&home);
        assert!(written.contains(text) && written.contains("# finds places"), "{written}");
        home.run(&grant).ended(0).answers(&["says so already"]);
        let revoke = [&["policy", "revoke", "weather", "--yes"], revoke].concat();
        home.run(&revoke).ended(0).answers(&["- ", "Written"]);
        assert_eq!(policy(&home), COMMENTED, "{grant:?}");
    }
    let shown = home.run(&["audit", "show", "--kind", "policy"]).ended(0);
    shown.answers(&["grants GET https://api.open-meteo.com", "revokes the limit time", "revokes"]);
    home.run(&["audit", "verify"]).ended(0).answers(&["18 records"]);
}

#[test]
fn a_rule_can_be_bound_to_the_component_that_is_installed() {
    let home = home();
    let digest = home.run(&["plugin", "show", "weather", "--output", "json"]).ended(0).json();
    let grant = ["policy", "grant", "weather", "--allow", "get_weather", "--digest", "--yes"];
    home.run(&grant).ended(0).answers(&[digest["digest"].as_str().unwrap()]);
    let none = ["policy", "grant", "wether", "--allow", "*", "--digest", "--yes"];
    home.run(&none).ended(2).remarks(&["there is no plugin"]);
}

#[test]
fn nothing_is_written_that_was_not_agreed_to_or_is_not_sound() {
    let secret = &["--secret", "token", "--to", "https://a.example", "--header", "Authorization"];
    for (args, code, words) in [
        (&["--env", "LANG"][..], 6, "nobody is there to ask"),
        (&["--net", "GET api.example", "--yes"], 2, "begins with neither"),
        (&["--net", "GET https://**", "--yes"], 2, ""),
        (&["--limit", "time", "--yes"], 2, "write KEY=VALUE"),
        (&["--limit", "tim=1s", "--yes"], 2, "tim"),
        (&["--read", "~/.ssh", "--yes"], 3, "policy.toml"),
        (&[secret.as_slice(), &["--yes"]].concat(), 3, "token"),
        (&["--secret", "token", "--yes"], 2, "--to"),
        (&["--env", "A", "--net", "GET https://a.example/"], 2, "cannot be used with"),
        (&["--env", "A", "--mount", "/x"], 2, "--mount"),
        (&["--yes"], 2, "required"),
    ] {
        let home = home();
        home.run(&[&["policy", "grant", "weather"], args].concat()).ended(code).remarks(&[words]);
        assert_eq!(policy(&home), COMMENTED, "{args:?}");
    }
    let home = home();
    for (args, words) in [
        (&["--net", FORECAST][..], "there is \"GET https://geocoding"),
        (&["--env", "TZZ"], "there is \"TZ\""),
        (&["--rule", "get_weather"], "weather.*"),
    ] {
        let args = [&["policy", "revoke", "weather", "--yes"], args].concat();
        home.run(&args).ended(2).remarks(&["there is no"]).remarks(&[words]);
    }
    let project = home.user_file(".sallyport/policy.toml", "[plugin.weather]\nenv = [\"TZ\"]\n");
    let grant = ["policy", "grant", "weather", "--env", "LANG", "--yes"];
    project.run(&grant).ended(3).remarks(&[".sallyport/policy.toml:2:"]);
    assert_eq!(policy(&project), COMMENTED, "it would not stand beside the project's policy");
    let broken = Home::new().policy("[plugin.weather\n");
    let ran = broken.run(&["policy", "grant", "weather", "--env", "TZ", "--yes"]).ended(3);
    ran.remarks(&["policy.toml:1:"]);
}

#[test]
fn a_person_at_a_terminal_is_asked() {
    for (answer, is_written) in [("y", true), ("", false), ("no", false)] {
        let home = home();
        let mut terminal = Terminal::start(&home, &["policy", "revoke", "weather", "--all"]);
        let shown = terminal.read_to("[n]o: ");
        assert!(shown.contains("- [plugin.weather]"), "{shown}");
        writeln!(terminal.outer, "{answer}").unwrap();
        terminal.read_to(if is_written { "Written" } else { "Nothing was changed" });
        assert!(terminal.child.wait().unwrap().success());
        assert_eq!(!policy(&home).contains("[plugin.weather]"), is_written);
    }
}
