//! Agreeing at a terminal: what is shown, what each answer lets through, and how long it holds.

use std::{fs, io::Write};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{
    Home, OpenAi, Reply, Server, Terminal,
    warden::{entry, requests},
};

const POLICY: &str = "\
# mine
[plugin.hostile]
net = [\"GET https://hostile.example/\"] # far away
";

const CALL: [&str; 3] = ["call", "hostile.echo", r#"{"text":"hi there"}"#];

/// The end of what is asked when "always" would help, and when it would not.
const PROMPT: &str = "[a]lways / [n]o / no, REASON: ";
const SHORT_PROMPT: &str = "[s]ession / [n]o / no, REASON: ";

fn home() -> Home {
    Home::new().guest("hostile", &requests(&["GET https://hostile.example/"])).policy(POLICY)
}

fn policy(home: &Home) -> String {
    fs::read_to_string(home.path("policy.toml")).unwrap()
}

/// Runs a command at a terminal and answers each question; returns its exit code and what was
/// shown.
#[track_caller]
fn answered(home: &Home, args: &[&str], answers: &[(&str, &str)], end: &str) -> (i32, String) {
    let mut terminal = Terminal::start(home, args);
    let mut shown = String::new();
    for (prompt, answer) in answers {
        shown.push_str(&terminal.read_to(prompt));
        writeln!(terminal.outer, "{answer}").unwrap();
    }
    shown.push_str(&terminal.read_to(end));
    (terminal.ends().code().unwrap(), shown)
}

/// Makes another component of the one that is installed: it does the same and has another digest.
fn replace_component(home: &Home) {
    let path = home.path("plugins/hostile/hostile.wasm");
    // An empty custom section named "x".
    let changed = [fs::read(&path).unwrap(), vec![0, 2, 1, b'x']].concat();
    fs::write(path, changed).unwrap();
}

#[test]
fn only_a_clear_yes_lets_a_call_run() {
    let rows = [
        ("y", 0, "hi there\""),
        ("session", 0, "hi there\""),
        ("", 3, "the user said no"),
        ("n", 3, "the user said no"),
        ("yess", 3, "the user said no"),
        ("no, not on a sunday", 3, "the user said no: not on a sunday"),
    ];
    for (answer, code, end) in rows {
        let home = home();
        let (ended, shown) = answered(&home, &CALL, &[(PROMPT, answer)], end);
        assert_eq!(ended, code, "{answer:?}: {shown}");
        assert_eq!(policy(&home), POLICY, "{answer:?}");
        home.run(&CALL).ended(6).remarks(&["no user is connected"]);
    }
}

#[test]
fn the_question_names_all_that_is_agreed_to() {
    let (_, shown) = answered(&home(), &CALL, &[(PROMPT, "n")], "said no");
    for text in [
        "hostile.echo asks to run",
        "hostile 1.0.0, digest ",
        "text = \"hi there\"",
        "can        GET https://hostile.example/",
        "asked by   no rule for it",
        "always would write into your policy:",
        "tool = \"hostile.echo\"",
    ] {
        assert!(shown.contains(text), "no {text:?} in {shown}");
    }
}

#[test]
fn always_writes_the_rule_and_is_not_asked_again() {
    let home = home();
    let (code, shown) = answered(&home, &CALL, &[(PROMPT, "always")], "hi there\"");
    assert_eq!(code, 0, "{shown}");
    let written = policy(&home);
    assert!(written.starts_with(POLICY), "{written}");
    for line in ["tool = \"hostile.echo\"", "digest = \"", "decision = \"allow\""] {
        assert!(written.contains(line) && shown.contains(line), "{written}");
    }
    home.run(&CALL).ended(0).answers(&["hi there"]);
    home.run(&["call", "hostile.counts"]).ended(6).remarks(&["no user is connected"]);
    home.run(&["audit", "show"]).ended(0).answers(&["the user agreed always"]);
}

#[test]
fn h60_what_was_agreed_to_for_one_component_holds_for_no_other() {
    let home = home();
    assert_eq!(answered(&home, &CALL, &[(PROMPT, "a")], "hi there\"").0, 0);
    replace_component(&home);
    home.run(&["plugin", "accept", "hostile"]).ended(0);
    home.run(&CALL).ended(6).remarks(&["no user is connected"]);
    let (code, shown) = answered(&home, &CALL, &[(PROMPT, "a")], "hi there\"");
    assert_eq!((code, policy(&home).matches("[[rule]]").count()), (0, 2), "{shown}");
    home.run(&CALL).ended(0);
}

#[test]
fn an_answer_holds_once_or_for_the_session() {
    let echo = |id| Reply::call(id, "hostile__echo", &json!({ "text": "hi" }));
    let script = || vec![echo("a"), echo("b"), Reply::Text("All done.")];
    let rows: [(&[(&str, &str)], &str); 3] = [
        (&[(PROMPT, "y"), (PROMPT, "y")], "once"),
        (&[(PROMPT, "s")], "for this session"),
        (&[(PROMPT, "a")], "always"),
    ];
    for (answers, how) in rows {
        let model = OpenAi::start(script());
        let home = home().env("OPENAI_BASE_URL", model.base_url());
        let (code, shown) = answered(&home, &["run", "--model", "m", "go"], answers, "All done.");
        assert_eq!((code, shown.matches("asks to run").count()), (0, answers.len()), "{shown}");
        let calls = ["audit", "show", "--kind", "call", "--outcome", "completed"];
        let json = [&calls[..], &["--output", "json"]].concat();
        assert_eq!(home.run(&json).ended(0).stdout.lines().count(), 2);
        home.run(&calls).answers(&[how]);
        home.run(&["run", "--model", "m", "go"]).hides(&["panicked"]);
    }
}

#[test]
fn a_rule_that_asks_is_softened_by_no_answer() {
    let rule = "[[rule]]\ntool = \"hostile.*\"\ndecision = \"ask\"\n";
    let home = home().policy(format!("{POLICY}{rule}"));
    let (code, shown) = answered(&home, &CALL, &[(SHORT_PROMPT, "always")], "the user said no");
    assert_eq!(code, 3, "{shown}");
    assert!(!shown.contains("[a]lways"), "{shown}");
    assert_eq!(answered(&home, &CALL, &[(SHORT_PROMPT, "y")], "hi there\"").0, 0);
    assert_eq!(policy(&home), format!("{POLICY}{rule}"));
}

/// The tools of the calls that the audit has, each with its outcome.
fn outcomes(home: &Home) -> Vec<(String, String)> {
    let args = ["audit", "show", "--kind", "call", "--output", "json"];
    let shown = home.run(&args).ended(0).stdout;
    let entries = shown.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let word = |entry: &Value, field| entry["record"][field].as_str().unwrap().to_owned();
    let mut outcomes: Vec<_> =
        entries.map(|entry| (word(&entry, "tool"), word(&entry, "outcome"))).collect();
    outcomes.sort();
    outcomes
}

/// The policy from before the question had decided.
#[test]
fn a_call_ran_that_a_rule_denied_while_its_question_was_open() {
    // A rule that asks is content with the answer just now.
    for (decision, code, end) in [("deny", 3, "not now"), ("ask", 0, "hi there\"")] {
        let home = home();
        let mut terminal = Terminal::start(&home, &CALL);
        terminal.read_to(PROMPT);
        let rule = format!(
            "[[rule]]\ntool = \"hostile.echo\"\ndecision = \"{decision}\"\nmessage = \"not now\"\n"
        );
        fs::write(home.path("policy.toml"), format!("{POLICY}{rule}")).unwrap();
        writeln!(terminal.outer, "y").unwrap();
        let shown = terminal.read_to(end);
        assert_eq!(terminal.ends().code(), Some(code), "{shown}");
        let args = ["audit", "show", "--kind", "decision", "--decision", "deny"];
        let denied = home.run(&args).ended(0).stdout;
        assert_eq!(denied.contains("not now"), decision == "deny", "{denied}");
        assert_eq!(outcomes(&home).is_empty(), decision == "deny");
    }
}

/// It had been admitted before the rule.
#[test]
fn a_call_ran_that_a_rule_denied_while_another_one_was_asked_about() {
    let calls = vec![
        ("a", "hostile__echo", json!({ "text": "hi" }).to_string()),
        ("b", "hostile__counts", "{}".to_owned()),
    ];
    let model = OpenAi::start(vec![Reply::Calls(calls), Reply::Text("All done.")]);
    let rule = |decision: &str| {
        let rule = format!("[[rule]]\ntool = \"hostile.echo\"\ndecision = \"{decision}\"\n");
        format!("{POLICY}{rule}message = \"not now\"\n")
    };
    let home = home().policy(rule("allow")).env("OPENAI_BASE_URL", model.base_url());
    let mut terminal = Terminal::start(&home, &["run", "--model", "m", "go"]);
    terminal.read_to(PROMPT);
    fs::write(home.path("policy.toml"), rule("deny")).unwrap();
    writeln!(terminal.outer, "y").unwrap();
    let shown = terminal.read_to("All done.");
    terminal.ends();
    let want = [("counts", "completed"), ("echo", "denied")];
    let want = want.map(|(tool, outcome)| (tool.to_owned(), outcome.to_owned()));
    assert_eq!(outcomes(&home), want, "{shown}");
    assert!(model.bodies()[1].to_string().contains("not now"), "the model reads why");
}

#[test]
fn a_request_of_a_running_call_is_agreed_to_on_its_own() {
    let server = Server::saying("hello");
    let entry = entry(&server, ", decision = \"ask\"");
    let rule = "[[rule]]\ntool = \"hostile.*\"\ndecision = \"allow\"\n";
    let home = Home::new()
        .guest("hostile", &requests(&[&format!("GET,HEAD,POST {}/**", server.url())]))
        .policy(format!("[plugin.hostile]\nnet = [{entry}]\n{rule}"));
    let arguments = json!({ "authority": server.authority(), "path": "/x?key=hush" });
    let call = ["call", "hostile.fetches", &arguments.to_string()];
    home.run(&call).ended(6);
    let refused = answered(&home, &call, &[(PROMPT, "n, never")], "the user said no: never");
    assert_eq!((refused.0, server.seen().len()), (3, 0), "{}", refused.1);
    assert!(refused.1.contains(&format!("hostile wants GET {}/x", server.url())), "{}", refused.1);
    // Whoever agrees has seen what leaves, though no record keeps it.
    assert!(refused.1.contains("query      ?key=hush"), "{}", refused.1);
    let (code, shown) = answered(&home, &call, &[(PROMPT, "always")], "hello");
    assert_eq!((code, server.seen().len()), (0, 1), "{shown}");
    assert!(!policy(&home).contains("hush"), "{}", policy(&home));
    home.run(&call).ended(0).answers(&["hello"]);
    home.run(&["audit", "show"]).answers(&["asked about GET http://127.0.0.1", "always"]);
}

#[test]
fn what_a_request_sends_is_shown_before_somebody_agrees_to_it() {
    const CUT_PROMPT: &str = "not everything is shown: ";
    let server = Server::saying("hello");
    let entry = entry(&server, ", decision = \"ask\"");
    let rule = "[[rule]]\ntool = \"hostile.*\"\ndecision = \"allow\"\n";
    let home = Home::new()
        .guest("hostile", &requests(&[&format!("GET,HEAD,POST {}/**", server.url())]))
        .policy(format!("[plugin.hostile]\nnet = [{entry}]\n{rule}"));
    let call = |query: &str, body: &str| {
        let headers = json!([["x-own", "of the plugin"], ["content-type", "text/plain"]]);
        let at = json!({ "authority": server.authority(), "path": format!("/x{query}") });
        // Most of it is written when the request is under way, and the guest has to go on until
        // then.
        let (first, rest) = body.split_at(body.len() / 2);
        let pieces: Vec<&str> = rest.split_inclusive('\n').collect();
        let mut arguments =
            json!({ "method": "POST", "headers": headers, "body": first, "pieces": pieces });
        arguments.as_object_mut().unwrap().extend(at.as_object().unwrap().clone());
        arguments.to_string()
    };
    let no = [(PROMPT, "n")];
    let small = call("", "the body");
    let (code, shown) = answered(&home, &["call", "hostile.fetches", &small], &no, "said no");
    assert_eq!((code, server.seen().len()), (3, 0), "{shown}");
    for part in ["POST http", "x-own: of the plugin", "text/plain, 8 bytes, blake3", "│ the body"]
    {
        assert!(shown.contains(part), "{part:?} is not in {shown}");
    }
    // A yes to what was cut shows the rest, and only the next one is an answer.
    let body = format!("{}the end", "a line\n".repeat(500));
    let long = call(&format!("?q={}behind", "x".repeat(9_000)), &body);
    let call = ["call", "hostile.fetches", &long];
    let (code, shown) = answered(&home, &call, &[(CUT_PROMPT, "y"), (PROMPT, "y")], "hello");
    assert_eq!((code, server.seen().len()), (0, 1), "{shown}");
    assert_eq!(server.seen()[0].body, body, "what was shown is what is sent");
    let (brief, whole) = shown.split_once(CUT_PROMPT).unwrap();
    for part in [
        "characters are not shown",
        "behind",
        "lines are not shown",
        "│ the end",
        "BLAKE3 of everything",
    ] {
        assert!(brief.contains(part), "{part:?} is not in {brief}");
    }
    assert_eq!(whole.matches("│ a line").count(), 500);
    assert!(whole.contains(&"x".repeat(9_000)));
    // Who has not seen it cannot have agreed to it.
    let refused =
        answered(&home, &call, &[(CUT_PROMPT, "n, too long")], "the user said no: too long");
    assert_eq!((refused.0, server.seen().len()), (3, 1), "{}", refused.1);
}

#[test]
fn what_would_be_needed_is_printed_as_a_policy() {
    let home = home();
    let call = [&CALL[..], &["--emit-needed-grants"]].concat();
    let text = home.run(&call).ended(6).stdout;
    let home = home.policy(format!("{POLICY}{text}"));
    home.run(&call).ended(0).answers(&["hi there"]);
}

/// Stops a call while its question is open, and returns what the audit says of it. The question was
/// listed until it expired, because the program ended before it was withdrawn.
fn stopped(home: &Home, args: &[&str]) -> String {
    let mut terminal = Terminal::start(home, args);
    terminal.read_to("[n]o");
    terminal.send(Signal::TERM);
    assert_eq!(terminal.ends().code(), Some(130));
    let open = home.run(&["approval", "list", "--output", "json"]).ended(0).json();
    assert_eq!(open["questions"], json!([]), "the question is withdrawn");
    home.run(&["audit", "verify"]).ended(0);
    let shown = home.run(&["audit", "show"]).ended(0).stdout;
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    shown.lines().skip(1).map(|line| words(line) + "\n").collect()
}

#[test]
fn a_call_that_is_cancelled_while_its_question_is_open_leaves_the_question_on_record() {
    let shown = stopped(&home(), &CALL);
    let lines: Vec<&str> = shown.lines().collect();
    let question = "decision hostile.echo ask cancelled cancelled while waiting for an approval";
    assert!(lines[0].contains(question), "{shown}");
    assert_eq!(lines.len(), 1, "{shown}");
}

#[test]
fn a_request_that_is_cancelled_while_its_question_is_open_leaves_the_question_on_record() {
    let server = Server::saying("hello");
    let rule = "[[rule]]\ntool = \"hostile.*\"\ndecision = \"allow\"\n";
    let asked = entry(&server, ", decision = \"ask\"");
    let home = Home::new()
        .guest("hostile", &requests(&[&format!("GET,HEAD,POST {}/**", server.url())]))
        .policy(format!("[plugin.hostile]\nnet = [{asked}]\n{rule}"));
    let arguments = json!({ "authority": server.authority() }).to_string();
    let shown = stopped(&home, &["call", "hostile.fetches", &arguments]);
    assert!(shown.contains("call hostile.fetches cancelled in "), "{shown}");
    assert!(!shown.contains("cancelled in 0 ms") && !shown.contains("MiB"), "{shown}");
    let question = format!("asked about GET {}/: the call was cancelled before", server.url());
    assert!(shown.contains(&question), "{question} in {shown}");
    assert_eq!(server.seen().len(), 0);
}
