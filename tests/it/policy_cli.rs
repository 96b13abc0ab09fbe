//! The operator's commands about the policy: what it says, why, and how it is changed.

use std::{
    fs,
    io::Write,
    os::unix::fs::{PermissionsExt, symlink},
};

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

/// A link without a target counted as a missing file, so the rules at the target vanished silently.
#[test]
fn a_file_that_is_a_link_without_a_target_counted_as_missing() {
    for file in ["policy.toml", "sallyport.toml", "sallyport.lock"] {
        let home = Home::new().plugins(&["clock"]);
        symlink("/nope/x", home.path(file)).unwrap();
        let ran = home.run(&["call", "clock.get_time", "{}"]).ended(3);
        ran.remarks(&[file, "it is a symbolic link whose target does not exist"]);
    }
}

#[test]
fn a_decision_is_explained_with_every_rule_and_entry() {
    let home = home();
    let call = "weather.get_weather";
    let atlantis = r#"{"location":"Atlantis"}"#;
    let rows: [(&[&str], &[&str]); 15] = [
        (&[call, atlantis], &["deny", "it sank", "→ policy.toml:8", "when args.location"]),
        (
            &[call, r#"{"location":"Paris"}"#],
            &[
                "get_weather: ask",
                "→ policy.toml:4",
                "To allow it: sallyport policy grant weather --allow get_weather",
            ],
        ),
        (&["weather", "--net", SEARCH], &["allow", "→ policy.toml:4  net entry \"GET"]),
        (&["weather", "--net", FORECAST], &["deny", "policy grant weather --requested"]),
        (&[call, "--net", "POST https://evil.example/"], &["deny", "does not request"]),
        (&["weather", "--read", "/etc/passwd"], &["deny", "does not request"]),
        (&["weather", "--write", "/tmp/x"], &["deny", "does not request"]),
        (&["weather", "--net", "DELETE https://api.open-meteo.com/v1/forecast"], &["deny"]),
        (&["weather", "--net", "GET https://2130706433/"], &["deny", "not in plain form"]),
        (&["weather", "--net", &format!("{SEARCH}\\x")], &["deny", "holds a backslash"]),
        (&["weather", "--net", &format!("{SEARCH} ")], &["deny", "is not a URL"]),
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
        (&["weather", "--net", "api.open-meteo.com"], "is not a request"),
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
        (&["--grant", "env=LANG"], &["--env", "LANG"], "LANG"),
        (&["--grant", "state.quota=4MiB"], &["--capability", "state"], "{ quota = \"4MiB\" }"),
        (&["--grant", "packages=six"], &["--package", "six"], "packages = [\"six\"]"),
        (&["--grant", "packages=six"], &["--grant", "packages=six"], "packages = [\"six\"]"),
        (&["--env", "LANG"], &["--grant", "env=LANG"], "LANG"),
        (&["--limit", "time=5s"], &["--grant", "limits.time=5s"], "time = \"5s\""),
        (&["--capability", "state"], &["--grant", "state=true"], "state = true"),
        (
            &["--grant", "fs={ path = \"/srv/notes\", mount = \"/n\", access = \"read\" }"],
            &["--grant", "fs=/n"],
            "mount = \"/n\"",
        ),
        (
            &["--allow", "get_weather", "--rule-net", FORECAST],
            &["--rule", "get_weather", "--rule-net", FORECAST],
            "net = \"GET https://api.open-meteo.com/v1/forecast\"",
        ),
        (&["--page", "https://a.io/**"], &["--page", "https://a.io/**"], "https://a.io/**"),
        (
            &["--scratch", "s", "--mount", "/s", "--quota", "1MiB"],
            &["--scratch", "s"],
            "scratch = [{ name = \"s\", mount = \"/s\", quota = \"1MiB\" }]",
        ),
        (
            &["--listen", "http://0.0.0.0:8077/", "--public"],
            &["--listen", "http://0.0.0.0:8077/"],
            "{ at = \"http://0.0.0.0:8077/\", public = true }",
        ),
        (&["--limit", "time=5s"], &["--limit", "time"], "time = \"5s\""),
        (&["--allow", "*"], &["--rule", "*", "--decision", "allow"], "decision = \"allow\""),
    ];
    for (grant, revoke, text) in rows {
        // Most of it the plugin does not request.
        let grant = [&["policy", "grant", "weather", "--yes", "--force"], grant].concat();
        let ran = home.run(&grant).ended(0).answers(&["+ ", text, "Saved"]);
        assert!(!ran.stdout.contains("- #"), "{ran:#?}");
        let written = policy(&home);
        assert!(written.contains(text) && written.contains("# finds places"), "{written}");
        home.run(&grant).ended(0).answers(&["says so already"]);
        let revoke = [&["policy", "revoke", "weather", "--yes"], revoke].concat();
        home.run(&revoke).ended(0).answers(&["- ", "Saved"]);
        assert_eq!(policy(&home), COMMENTED, "{grant:?}");
    }
    let shown = home.run(&["audit", "show", "--kind", "policy"]).ended(0);
    shown.answers(&["grants GET https://api.open-meteo.com", "revokes the limit time", "revokes"]);
    home.run(&["audit", "verify"]).ended(0).answers(&["42 records"]);
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
        (&["--env", "LANG", "--force"][..], 6, "no terminal is attached"),
        (&["--net", "GET api.example", "--yes"], 2, "begins with neither"),
        (&["--net", "GET https://**", "--yes"], 2, ""),
        (&["--limit", "time", "--yes"], 2, "write KEY=VALUE"),
        (&["--limit", "tim=1s", "--yes"], 2, "tim"),
        (&["--read", "~/.ssh", "--yes", "--force"], 3, "policy.toml"),
        (&[secret.as_slice(), &["--yes", "--force"]].concat(), 3, "token"),
        (&["--secret", "token", "--yes"], 2, "--to"),
        (&["--read", "/a", "--write", "/b", "--mount", "/x", "--yes"], 2, "--mount belongs to one"),
        (&[secret.as_slice(), &["--secret", "b", "--yes"]].concat(), 2, "--to belongs to one"),
        (&["--grant", "fs={ path = \"/a\" }", "--yes"], 2, "is not a grant"),
        (
            &["--grant", "fs={ path = \"/a\", access = \"read-only\" }", "--yes"],
            2,
            "is not a grant",
        ),
        (
            &["--net", "GET http://10.1.2.3/", "--to-private", "--to-private", "10.0.0.0/8"],
            2,
            "with a range and without one",
        ),
        (
            &["--grant", "net={ allow = \"GET https://a.io/\", x = 1 }", "--yes"],
            2,
            "is not a grant",
        ),
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
    let grant = ["policy", "grant", "weather", "--env", "LANG", "--yes", "--force"];
    project.run(&grant).ended(3).remarks(&[".sallyport/policy.toml:2:"]);
    assert_eq!(policy(&project), COMMENTED, "it would not stand beside the project's policy");
    let broken = Home::new().policy("[plugin.weather\n");
    let ran = broken.run(&["policy", "grant", "weather", "--env", "TZ", "--yes"]).ended(3);
    ran.remarks(&["policy.toml:1:"]);
}

#[test]
fn a_grant_that_could_not_have_the_effect_that_is_meant_is_refused() {
    let home = Home::new().plugins(&["weather", "system-info", "files"]).policy("# mine\n");
    let rows: [(&[&str], &[&str]); 12] = [
        (&["wether", "--env", "TZ"], &["there is no plugin", "did you mean weather?"]),
        (&["nothing", "--limit", "time=5s"], &["there is no plugin"]),
        (&["weather", "--allow", "get_wether"], &["has no tool get_wether", "get_weather?"]),
        (&["weather", "--allow", "set_*"], &["no tool that is installed matches weather.set_*"]),
        (&["*", "--allow", "*nonsense*"], &["no tool that is installed matches *.*nonsense*"]),
        (&["weather", "--net", "GET https://a.example/"], &["does not request", "--force"]),
        (&["weather", "--read", "/srv/notes"], &["does not request"]),
        (&["weather", "--env", "HOME"], &["grants the variable HOME", "does not request"]),
        (&["weather", "--capability", "notify"], &["does not request"]),
        (&["system-info", "--write", "/etc/os-release"], &["only read access", "--read"]),
        (
            &["system-info", "--read", "/etc/os-release", "--mount", "/o"],
            &["looks for /etc/os-release, but would see it as /o", "leave out --mount"],
        ),
        (&["weather*", "--env", "TZ"], &["only calls, and limits for all plugins"]),
    ];
    for (args, words) in rows {
        let args = [&["policy", "grant", "--yes"], args].concat();
        home.run(&args).ended(2).remarks(words);
        assert_eq!(policy(&home), "# mine\n", "{args:?}");
    }
    let private = ["--net", "GET http://127.0.0.1:9/**"];
    let guest = Home::new()
        .guest("hostile", "[[request.net]]\nallow = 'GET http://127.0.0.1:9/**'\nwhy = 'w'\n");
    let grant = [&["policy", "grant", "--yes", "hostile"][..], &private].concat();
    guest.run(&grant).ended(2).remarks(&["has a private address", "add --to-private"]);
    guest.run(&[&grant[..], &["--to-private"]].concat()).ended(0);
    // A file that is requested by its path is seen under it, and the plugin works.
    let read = ["policy", "grant", "system-info", "--read", "/etc/os-release", "--yes"];
    home.run(&read).ended(0).answers(&["mount = \"/etc/os-release\""]);
    home.run(&["call", "system-info.get_system_info"]).ended(0);
    let force = ["policy", "grant", "nothing", "--env", "TZ", "--yes", "--force"];
    home.run(&force).ended(0).answers(&["[plugin.nothing]"]);
}

#[test]
fn what_a_plugin_lacks_is_told_before_it_is_refused() {
    let home = Home::new().plugins(&["weather"]).policy("");
    let call = ["policy", "explain", "weather.get_weather", r#"{"location":"Paris"}"#];
    let lacks = "not granted: GET https://geocoding-api.open-meteo.com/v1/search\n";
    let remedy = "To grant it: sallyport policy grant weather --requested\n";
    let ran = home.run(&call).ended(0);
    ran.answers(&["get_weather: allow", "not granted all that it requests", lacks, remedy]);
    home.run(&["policy", "check"]).ended(0).answers(&[lacks, remedy]);
    let show = home.run(&["plugin", "show", "weather"]).ended(0);
    show.answers(&["Requested and not", lacks, remedy]);
    // Both requests are missing, so the command for one of them would not do.
    let doctor = home.run(&["doctor"]);
    doctor.answers(&["is not granted: GET https://geocoding", "policy grant weather --requested"]);
    for command in [&call[..], &["plugin", "show", "weather"]] {
        let json = home.run(&[command, &["--output", "json"]].concat()).ended(0).json();
        let told = if json.is_array() { &json[0]["ungranted"] } else { &json["ungranted"] };
        assert_eq!(told[0]["request"], SEARCH, "{json}");
        assert_eq!(told[0]["needed"], true, "{json}");
    }
    for pattern in [SEARCH, FORECAST] {
        home.run(&["policy", "grant", "weather", "--yes", "--net", pattern]).ended(0);
    }
    home.run(&call).ended(0).hides(&["lacks", "not granted all"]);
    home.run(&["plugin", "show", "weather"]).ended(0).hides(&["lacks"]);
}

/// Which folder is meant only the operator knows, and a plugin that was refused one was refused
/// something.
#[test]
fn a_folder_that_only_you_know_is_not_called_nothing() {
    let home = Home::new().plugins(&["files"]).policy("");
    let write = r#"{"path":"/notes/a.txt","text":"x","mode":"append"}"#;
    let rule = "[[rule]]\ntool = \"files.*\"\ndecision = \"allow\"\n";
    let home = home.policy(rule);
    let learn = ["policy", "learn", "files", "--yes", "--", "call", "files.write", write];
    let ran = home.run(&learn).ended(3).hides(&["refused nothing"]);
    ran.remarks(&["sallyport policy grant files --write FOLDER", "/notes/a.txt"]);
}

#[test]
fn rules_and_limits_over_all_plugins_are_granted_explained_and_revoked() {
    let rule = "[[rule]]\ntool = \"*.*remove*\"\ndecision = \"deny\"\nmessage = \"by hand\"\n";
    let home = Home::new().plugins(&["clock", "files"]).policy(rule);
    let call = ["call", "files.remove", r#"{"path":"/notes/a.txt"}"#];
    home.run(&call).ended(3).remarks(&["by hand (rule at policy.toml:1)"]);
    let shown = ["→ policy.toml:1", "rule deny *.*remove*"];
    explained(&home, &["files.remove", r#"{"path":"/a"}"#], &shown);
    home.run(&["policy", "revoke", "*", "--rule", "*remove*", "--yes"]).ended(0);
    assert_eq!(policy(&home), "");
    // What allows calls of any plugin is the user's right, and told.
    let wide = "also for plugins that you add later";
    home.run(&["policy", "grant", "*", "--allow", "*", "--yes"]).ended(0).remarks(&[wide]);
    assert!(policy(&home).contains("tool = \"*\""), "{}", policy(&home));
    home.run(&["policy", "check"]).ended(0).remarks(&[wide]);
    home.run(&["doctor"]).answers(&[wide]);
    home.run(&["policy", "revoke", "*", "--rule", "*", "--yes"]).ended(0);
    let limit = ["policy", "grant", "*", "--limit", "calls-per-minute=2", "--yes"];
    home.run(&limit).ended(0).answers(&["[limits]"]);
    home.run(&["policy", "check"]).ended(0).answers(&["may be called 2 times a minute"]);
    home.run(&["policy", "revoke", "*", "--limit", "calls-per-minute", "--yes"]).ended(0);
    assert_eq!(policy(&home).trim(), "");
    // A limit that is written as any grant is the same limit.
    let limit = ["*", "--grant", "limits.calls-per-minute=2", "--yes"];
    home.run(&[&["policy", "grant"], &limit[..]].concat()).ended(0).answers(&["[limits]"]);
    home.run(&[&["policy", "revoke"], &limit[..]].concat()).ended(0);
    assert_eq!(policy(&home).trim(), "");
    home.run(&["policy", "revoke", "*", "--all", "--yes"]).ended(2).remarks(&["several plugins"]);
}

#[test]
fn the_rules_that_stay_are_named() {
    let home = home();
    let revoke = ["policy", "revoke", "weather", "--all", "--yes"];
    let hint = "sallyport policy revoke weather --rule \"*\"";
    let edit = "edit the files at the lines that are named";
    let deny = "says deny to every call of weather.*";
    let ran = home.run(&revoke).ended(0);
    ran.remarks(&["These rules stay", "policy.toml:", deny, hint]).hides(&[edit]);
    assert!(policy(&home).contains("it sank"), "{}", policy(&home));
    let home = home.policy("[plugin.weather]\nenv = [\"TZ\"]\n");
    home.run(&revoke).ended(0).hides(&["These rules stay", hint]);
    // The command that was named removed none of these.
    let several = "sallyport policy revoke \"wea*\" --rule \"*\"";
    let rules = "[plugin.weather]\nenv = ['TZ']\n[[rule]]\ntool = 'wea*.*'\ndecision = 'deny'\n";
    let net = format!("[[rule]]\ntool = 'weather.*'\nnet = '{SEARCH}'\ndecision = 'deny'\n");
    let home = home.policy(format!("{rules}{net}"));
    let ran = home.run(&revoke).ended(0);
    ran.remarks(&["These rules stay", several, "to remove the others", edit]).hides(&[hint]);
    home.run(&["policy", "revoke", "wea*", "--rule", "*", "--yes"]).ended(0);
    assert_eq!(policy(&home).trim(), net.trim());
}

/// What the walls keep from a program only the program knows; the advice is the host's.
#[test]
fn a_script_that_is_kept_from_a_file_is_denied_with_the_text_for_a_folder() {
    let definition = r#"{"name":"tool","description":"Does it.","parameters":{}}"#;
    let program =
        "#!/bin/sh\ncat \"$(dirname \"$0\")/../../policy.toml\" >/dev/null && echo '{}'\n";
    let rule = "[[rule]]\ntool = \"tool.*\"\ndecision = \"allow\"\n";
    let home = Home::new()
        .file("plugins/tool/definition.json", definition)
        .file("plugins/tool/run.sh", program)
        .policy(format!("[plugin.tool]\nprocess = true\n\n{rule}"));
    let file = home.path("plugins/tool/run.sh");
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    let ran = home.run(&["call", "tool.tool"]).ended(3);
    ran.remarks(&["its policy grants no folder", "policy grant tool --read FOLDER"]);
    let ran = home.run(&["call", "tool.tool", "--emit-needed-grants"]).ended(3);
    ran.answers(&["path = \"/path/to/folder\"", "process = true"]);
}

#[test]
fn a_person_at_a_terminal_is_asked() {
    for (answer, is_written) in [("y", true), ("", false), ("no", false)] {
        let home = home();
        let mut terminal = Terminal::start(&home, &["policy", "revoke", "weather", "--all"]);
        let shown = terminal.read_to("[n]o: ");
        assert!(shown.contains("- [plugin.weather]"), "{shown}");
        writeln!(terminal.outer, "{answer}").unwrap();
        terminal.read_to(if is_written { "Saved" } else { "Nothing was changed" });
        assert!(terminal.ends().success());
        assert_eq!(!policy(&home).contains("[plugin.weather]"), is_written);
    }
}

/// One command grants all that a manifest asks for, and never more.
#[test]
fn all_that_a_plugin_requests_is_granted_by_one_command() {
    let home = Home::new().plugins(&["weather", "files"]).policy("# mine\n");
    let requested = ["policy", "grant", "weather", "--requested"];
    home.run(&requested).ended(6).remarks(&["pass --yes"]).answers(&[SEARCH, FORECAST]);
    assert_eq!(policy(&home), "# mine\n");
    // The command is the one that a refusal names.
    let refused = home.run(&["call", "weather.get_weather", r#"{"location":"Paris"}"#]).ended(3);
    refused.remarks(&["to allow it: sallyport policy grant weather --requested --allow '*'"]);
    let all = [&requested[..], &["--allow", "*", "--yes"]].concat();
    let shown = home.run(&all).ended(0).answers(&[SEARCH, FORECAST, "decision = \"allow\""]);
    shown.remarks(&["weather requests GET https://geocoding-api.open-meteo.com/v1/search: "]);
    home.run(&requested).ended(0).remarks(&["is granted all that it requests"]);
    let json = home.run(&["plugin", "show", "weather", "--output", "json"]).ended(0).json();
    assert_eq!(json["ungranted"], json!([]), "{json}");
    // A folder that only the operator can choose is named, and nothing is written for it.
    let before = policy(&home);
    let ran = home.run(&["policy", "grant", "files", "--requested", "--yes"]).ended(0);
    ran.remarks(&["only you can choose", "sallyport policy grant files --write FOLDER"]);
    assert_eq!(policy(&home), before);
    let several = ["policy", "grant", "w*", "--requested", "--yes"];
    home.run(&several).ended(2).remarks(&["only calls, and limits for all plugins"]);
}

#[test]
fn several_kinds_are_granted_at_once_and_a_mistake_in_one_writes_none() {
    let home = home();
    let some = ["policy", "grant", "weather", "--yes", "--net", FORECAST, "--allow", "get_weather"];
    home.run(&[&some[..], &["--env", "HOME"]].concat()).ended(2).remarks(&["the variable HOME"]);
    assert_eq!(policy(&home), COMMENTED);
    home.run(&[&some[..], &["--limit", "time=5s"]].concat()).ended(0);
    let written = policy(&home);
    for text in [FORECAST, "time = \"5s\"", "tool = \"weather.get_weather\""] {
        assert!(written.contains(text), "{written}");
    }
    let shown = home.run(&["audit", "show", "--kind", "policy"]).ended(0);
    shown.answers(&["the limit time = 5s, calls of weather.get_weather"]);
}

#[test]
fn a_folder_for_reading_is_widened_and_a_setting_is_taken_back() {
    let table =
        "[plugin.files]\nfs = [{ path = \"/srv/n\", mount = \"/n\", access = \"read\" }] # n\n";
    let home = Home::new().plugins(&["files"]).policy(table);
    let grant = ["policy", "grant", "files", "--yes", "--write", "/srv/n", "--mount", "/n"];
    // The wider entry alone would let the plugin write what is to be left out.
    let denying = [&grant[..], &["--deny", "**/.env"]].concat();
    home.run(&denying).ended(2).remarks(&["has no such deny", "revoke --path /srv/n first"]);
    assert_eq!(policy(&home), table);
    home.run(&grant).ended(0);
    assert_eq!(policy(&home), table.replace("\"read\"", "\"read-write\""));
    let quota = ["--yes", "--force", "--grant", "state.quota=1MiB"];
    home.run(&[&["policy", "grant", "files"], &quota[..]].concat()).ended(0);
    home.run(&["policy", "revoke", "files", "--yes", "--grant", "state.quota=1MiB"]).ended(0);
    assert!(policy(&home).contains("state = true"), "{}", policy(&home));
    // Without its list, the table would allow every page.
    let page = ["policy", "grant", "files", "--yes", "--force", "--page", "https://a.io/**"];
    home.run(&page).ended(0);
    let list = ["policy", "revoke", "files", "--yes", "--grant", "open-url.allow=https://a.io/**"];
    home.run(&list).ended(2).remarks(&["\"allow\" is not a setting", "write open-url=VALUE"]);
    assert!(policy(&home).contains("allow = [\"https://a.io/**\"]"), "{}", policy(&home));
}
