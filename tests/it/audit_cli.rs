//! The record of decisions and calls: read, checked, shortened, and what happens when it is changed
//! or cannot be written.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{
    limits::NET,
    support::{
        Browser, Home, Response, Server,
        home::finish,
        patience::until_so,
        warden::{entry, requests},
    },
};

/// A home with a record of three calls: one completed, one failed, one that nobody agreed to.
fn home() -> Home {
    let home = Home::new().plugins(&["clock"]).guest("hostile", NET);
    home.run(&["call", "clock.get_time", r#"{"timezone":"UTC"}"#]).ended(0);
    home.run(&["call", "hostile.terminal_escapes_in_an_error"]).ended(7);
    let rule = "[[rule]]\ntool = \"hostile.*\"\ndecision = \"deny\"\nmessage = \"never\"\n";
    let home = home.policy(rule);
    home.run(&["call", "hostile.echo", r#"{"text":"a private text"}"#]).ended(3);
    home
}

fn records(home: &Home, flags: &[&str]) -> Vec<Value> {
    let json: &[&str] = if flags.contains(&"--output") { &[] } else { &["--output", "json"] };
    let ran = home.run(&[&["audit", "show"], flags, json].concat()).ended(0);
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The files of the state, with their contents.
fn files(home: &Home) -> Vec<(PathBuf, Vec<u8>)> {
    let paths = fs::read_dir(home.path("state")).unwrap().map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.is_file())
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect()
}

/// Replaces a text by one of the same length, as somebody with an editor would.
fn tamper(home: &Home, from: &str, to: &str) {
    let mut found = 0;
    for (path, mut bytes) in files(home) {
        for at in 0..bytes.len().saturating_sub(from.len()) {
            if bytes[at..].starts_with(from.as_bytes()) {
                bytes[at..at + from.len()].copy_from_slice(to.as_bytes());
                found += 1;
            }
        }
        fs::write(path, bytes).unwrap();
    }
    assert!(found > 0, "{from:?} is in no file");
}

#[test]
fn records_are_found_by_what_they_are_about() {
    let home = home();
    let rows: [(&[&str], usize); 19] = [
        (&[], 5),
        (&["--plugin", "clock"], 2),
        (&["--tool", "echo"], 1),
        (&["--outcome", "failed"], 1),
        (&["--outcome", "denied"], 1),
        (&["--decision", "deny"], 1),
        (&["--decision", "allow"], 2),
        (&["--kind", "call"], 2),
        (&["--kind", "policy"], 0),
        (&["--since", "1h"], 5),
        (&["--until", "1h"], 0),
        (&["--since", "2026-01-31"], 5),
        (&["--until", "2026-01-31"], 0),
        (&["--denied"], 1),
        (&["--denied", "--plugin", "clock"], 0),
        (&["--user", "nobody"], 0),
        (&["--output", "jsonl"], 5),
        (&["--plugin", "clock", "--kind", "call", "-n", "7"], 1),
        (&["--session", "another"], 0),
    ];
    for (flags, count) in rows {
        assert_eq!(records(&home, flags).len(), count, "{flags:?}");
    }
    let none = home.run(&["audit", "show", "-n", "0"]).ended(2);
    none.remarks(&["write a whole number from 1"]);
    // A word that names nothing is no selection that finds nothing.
    for flag in ["--outcome", "--decision", "--kind"] {
        let told = home.run(&["audit", "show", flag, "complete"]).ended(2);
        told.remarks(&["\"complete\" is not the", "write one of"]);
    }
    let newest = records(&home, &["-n", "1"]);
    assert_eq!((&newest[0]["record"]["tool"], newest.len()), (&json!("echo"), 1));
    let record = &newest[0]["record"];
    let user = record["user"].as_str().unwrap_or(record["who"]["name"].as_str().unwrap());
    assert_eq!(records(&home, &["--user", user]).len(), 5);
    let session = newest[0]["record"]["session"].as_str().unwrap();
    assert_eq!(records(&home, &["--session", session]).len(), 1);
    for (flags, words) in [
        (&["--kind", "cal"][..], "decision, call, policy"),
        (&["--decision", "maybe"], "allow, ask, deny"),
        (&["--since", "yesterday"], "2026-01-31T12:00:00Z"),
    ] {
        home.run(&[&["audit", "show"], flags].concat()).ended(2).remarks(&[words]);
    }
    let shown = home.run(&["audit", "show"]).ended(0).hides(&["a private text"]);
    let lines: Vec<&str> = shown.stdout.lines().collect();
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(words(lines[0]), "record time kind about result details");
    assert!(words(lines[2]).contains("call clock.get_time completed in"), "{lines:#?}");
    assert!(words(lines[5]).contains("decision hostile.echo deny denied"), "{lines:#?}");
    assert!(lines[5].contains("never"), "{lines:#?}");
}

#[test]
fn a_report_is_one_page_and_replaces_nothing_unless_told() {
    let home = home();
    let file = home.path("report.html");
    let path = file.to_str().unwrap();
    home.run(&["audit", "report", "--html", path]).ended(0).answers(&["Wrote 5 records"]);
    let page = fs::read_to_string(&file).unwrap();
    for words in ["is intact", "clock.get_time", "hostile.echo", "rule at policy.toml:1", "never"] {
        assert!(page.contains(words), "no {words:?} in {page}");
    }
    for no in ["a private text", "<script", "http://", "https://", "\u{1b}", "\u{9b}", "\u{202e}"] {
        assert!(!page.contains(no), "{no:?} in {page}");
    }
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);

    home.run(&["audit", "report", "--html", path]).ended(1).remarks(&["exists", "--force"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), page);
    let denied = ["audit", "report", "--denied", "--force", "--html", path];
    home.run(&denied).ended(0).answers(&["Wrote 1 record to"]);
    assert!(fs::read_to_string(&file).unwrap().contains("1 record, <bdi>denied</bdi>."));
    let folder = home.path("plugins");
    let folder = ["audit", "report", "--force", "--html", folder.to_str().unwrap()];
    home.run(&folder).ended(1).remarks(&["is not a regular file"]);
    let nowhere = home.path("missing/report.html");
    let nowhere = ["audit", "report", "--html", nowhere.to_str().unwrap()];
    home.run(&nowhere).ended(1).remarks(&["cannot write", "choose a folder"]);
    home.run(&["audit", "report"]).ended(2).remarks(&["--html"]);

    tamper(&home, "\"completed\"", "\"cancelled\"");
    home.run(&["audit", "report", "--force", "--html", path]).ended(1).remarks(&["not intact"]);
    assert!(fs::read_to_string(&file).unwrap().contains("The audit is not intact."));
}

#[test]
fn a_report_fits_wide_and_narrow_windows() {
    let Some(browser) = Browser::start() else { return };
    let home = home();
    let file = home.path("report.html");
    let path = file.to_str().unwrap();
    home.run(&["audit", "report", "--html", path]).ended(0);
    browser.open(&format!("file://{path}"));
    for (width, is_narrow) in [(1200, false), (520, true)] {
        browser.resizes(width, 900);
        browser.sees("#denials", "hostile.echo");
        browser.sees("#chain", "The audit is intact.");
        let narrow = browser.script("return matchMedia('(max-width: 52rem)').matches");
        assert_eq!(narrow, json!(is_narrow), "{width}");
        let fits =
            "let page = document.documentElement; return page.scrollWidth <= page.clientWidth";
        assert_eq!(browser.script(fits), json!(true), "{width}");
        let loaded = "return performance.getEntriesByType('resource').length";
        assert_eq!(browser.script(loaded), json!(0), "nothing is loaded");
        assert_eq!(browser.script("return document.scripts.length"), json!(0));
    }
}

#[test]
fn h50_foreign_words_in_a_record_are_neither_obeyed_nor_taken_for_a_record() {
    let home = home();
    for format in ["text", "json"] {
        let ran = home.run(&["audit", "show", "--output", format]).ended(0);
        ran.hides(&["\u{1b}", "\u{9b}", "\u{7}", "\u{202e}", "\r"]);
    }
    let lines = home.run(&["audit", "show"]).stdout;
    assert_eq!(lines.lines().filter(|line| line.starts_with('#')).count(), 5, "{lines}");
    assert_eq!(home.run(&["audit", "show", "--output", "json"]).stdout.lines().count(), 5);
}

#[test]
fn h50_a_record_that_was_changed_is_found() {
    let home = home();
    let whole = home.run(&["audit", "verify", "--output", "json"]).ended(0).json();
    assert_eq!((&whole["whole"], &whole["records"]), (&json!(true), &json!(5)), "{whole}");
    let head = whole["head"].as_str().unwrap();
    home.run(&["audit", "verify", "--head", head])
        .ended(0)
        .answers(&["is intact: 5 records", head]);
    tamper(&home, "\"completed\"", "\"cancelled\"");
    home.run(&["audit", "verify"]).ended(1).remarks(&["error:"]).answers(&["is not intact"]);
    let broken = home.run(&["audit", "verify", "--output", "json"]).ended(1).json();
    assert!(broken["problems"][0]["what"].is_string(), "{broken}");
}

#[test]
fn h50_records_that_were_cut_off_are_missed() {
    let home = home();
    let kept = files(&home);
    home.run(&["call", "clock.get_time", r#"{"timezone":"UTC"}"#]).ended(0);
    let later = home.run(&["audit", "verify", "--output", "json"]).ended(0).json();
    let head = later["head"].as_str().unwrap();
    files(&home).iter().for_each(|(path, _)| fs::write(path, "").unwrap());
    kept.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
    home.run(&["audit", "verify", "--head", head]).ended(1).answers(&["is not intact"]);
}

#[test]
fn the_doctor_looks_at_the_record_and_the_secrets() {
    let home = Home::new().plugins(&["clock"]);
    home.run(&["doctor", "-v"]).ended(0).answers(&["there is no record yet"]);
    assert!(!home.path("state").exists());
    home.run(&["call", "clock.get_time", r#"{"timezone":"UTC"}"#]).ended(0);
    let home = home.policy("[secret.token]\nenv = \"TOKEN\"\n");
    home.run(&["doctor", "-v"]).ended(0).answers(&[
        "2 records, intact",
        "token cannot be read",
        "(user)",
    ]);
    tamper(&home, "\"completed\"", "\"cancelled\"");
    home.run(&["doctor"]).answers(&["it is not intact", "`sallyport audit verify` tells where"]);
    let home = Home::new().file("state", "in the way");
    home.run(&["doctor"]).ended(1).answers(&["audit", "failed"]);
    let home = Home::new();
    symlink("/nope/x", home.path("state")).unwrap();
    home.run(&["doctor"]).ended(1).answers(&["audit", "failed", "it is a link"]);
}

#[test]
fn old_records_are_removed_when_somebody_agrees() {
    let home = home();
    let prune = ["audit", "prune", "--before", "2999-01-01T00:00:00Z"];
    home.run(&prune).ended(6).remarks(&["--yes"]);
    assert_eq!(records(&home, &[]).len(), 5);
    home.run(&[&prune[..], &["--yes"]].concat()).ended(0).answers(&["Removed 5 records"]);
    assert_eq!(records(&home, &["--kind", "call"]).len(), 0);
    home.run(&["audit", "verify"]).ended(0).answers(&["is intact"]);
    home.run(&["call", "clock.get_time", r#"{"timezone":"UTC"}"#]).ended(0);
    home.run(&["audit", "verify"]).ended(0).answers(&["is intact"]);
}

#[test]
fn without_a_record_there_is_no_call() {
    let home = Home::new().plugins(&["clock"]).file("state", "in the way");
    let ran = home.run(&["call", "clock.get_time", r#"{"timezone":"UTC"}"#]);
    assert_ne!(ran.code, 0, "{ran:#?}");
    ran.hides(&["panicked", "\"timezone\""]).remarks(&["state"]);
    let server = Server::saying("hello");
    let home = reaching(&server);
    home.run(&["policy", "check"]).ended(0);
    fs::create_dir_all(home.path("state/store.sqlite3")).unwrap();
    let ran = home.run(&["call", "hostile.fetches", &to(&server)]);
    assert_ne!(ran.code, 0, "{ran:#?}");
    assert_eq!(server.seen().len(), 0, "{ran:#?}");
}

/// A home in which the hostile guest may reach a server without being asked about.
fn reaching(server: &Server) -> Home {
    let rule = "[[rule]]\ntool = \"hostile.*\"\ndecision = \"allow\"\n";
    Home::new()
        .guest("hostile", &requests(&[&format!("GET,HEAD,POST {}/**", server.url())]))
        .policy(format!("[plugin.hostile]\nnet = [{}]\n{rule}", entry(server, "")))
}

fn to(server: &Server) -> String {
    json!({ "authority": server.authority() }).to_string()
}

#[test]
fn h67_a_policy_that_changes_while_a_call_runs_holds_for_its_next_request() {
    const PARIS: &str = r#"{"results": [{"name": "Paris", "latitude": 48.8, "longitude": 2.3}]}"#;
    let home = Home::new().plugins(&["weather"]);
    let policy = home.path("policy.toml");
    let service = Server::start(move |request| {
        fs::write(&policy, "").unwrap();
        Response::ok(if request.target.starts_with("/v1/search") { PARIS } else { "{}" })
    });
    let url = service.url();
    let rule = "[[rule]]\ntool = \"weather.*\"\ndecision = \"allow\"\n";
    let home = home
        .config(format!(
            "[settings.weather]\ngeocoding_url = \"{url}\"\nforecast_url = \"{url}\"\n"
        ))
        .policy(format!(
            "[plugin.weather]\nnet = [{{ allow = \"GET {url}/**\", to-private = true }}]\n{rule}"
        ));
    let ran = home.run(&["call", "weather.get_weather", r#"{"location":"Paris"}"#]).ended(3);
    ran.remarks(&["/v1/forecast", "the policy has changed"]);
    assert_eq!(service.seen().len(), 1);
    home.run(&["audit", "show"]).answers(&["/v1/search → 200", "refused: weather may not GET"]);
}

#[test]
fn h68_a_call_that_is_stopped_from_outside_leaves_its_record() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let server = Server::start(|_| Response::Silence);
        let home = reaching(&server);
        let arguments = to(&server);
        let args = ["-v", "call", "hostile.fetches", arguments.as_str()];
        let mut child = home.start(&args);
        until_so("a request", || {
            assert_eq!(child.try_wait().unwrap(), None);
            !server.seen().is_empty()
        });
        kill_process(Pid::from_child(&child), signal).unwrap();
        finish(child, &args).ended(130);
        let ended = records(&home, &["--kind", "call"]);
        assert_eq!(ended[0]["record"]["outcome"], "cancelled", "{ended:?}");
        assert_eq!(ended[0]["record"]["effects"][0]["did"], "requested", "{ended:?}");
        home.run(&["audit", "verify"]).ended(0);
    }
}

/// The plain chat ended without closing the host, so nothing said that records may be missing.
#[test]
fn a_chat_whose_session_cannot_start_reports_missing_records() {
    let home = Home::new().plugins(&["clock"]);
    home.run(&["call", "clock.get_time"]).ended(0);
    fs::set_permissions(home.path("state/audit.key"), Permissions::from_mode(0o644)).unwrap();
    let ran = home.run(&["chat", "--provider", "plugin:clock"]).ended(10);
    ran.remarks(&["the last records of the audit may be missing", "clock is not a provider"]);
}
