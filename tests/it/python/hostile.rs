//! Code that loops, forks, reaches outside or wants too much: each ends as it should, and the next
//! call works and says when variables were lost.

use serde_json::json;

use super::{host, run};
use crate::support::{
    Tools,
    registry::{data, told},
};

/// Limits that code of a test meets soon.
const LIMITS: &str = r#"limits = { time = "3s", memory = "128MiB" }"#;

/// What became of the variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variables {
    Kept,
    Lost,
}
use Variables::{Kept, Lost};

/// Runs code beside a variable. `want` stands in what the model is told.
#[track_caller]
fn check(tools: &Tools, code: &str, want: &str, variables: Variables) {
    // What an earlier row has filled would be in the way of this one.
    tools.call("python.reset", &json!({}));
    run(tools, "x = 1");
    let report = run(tools, code);
    let told = told(&report);
    assert!(told.contains(want), "{code}: {told}");
    let next = run(tools, "'x' in globals()");
    let next = data(&next);
    assert_eq!(next["result"], json!(variables == Kept), "{code}: {next}");
    assert_eq!(
        next["fresh"] == true,
        variables == Lost,
        "{code}: who has lost them says so: {next}"
    );
}

#[test]
fn h01_h08_code_that_wants_too_much_costs_at_most_its_variables() {
    let tools = host(LIMITS);
    for (code, want, variables) in [
        ("while True: pass", "timed-out", Lost),
        ("import time\ntime.sleep(60)", "timed-out", Lost),
        ("huge = [0] * (10 * 2**30 // 8)", "MemoryError", Kept),
        ("huge = []\nwhile True: huge.append(bytes(2**20))", "MemoryError", Kept),
        ("for _ in range(100): print('x' * 1_000_000)", "left out", Kept),
        ("print('x' * 100_000_000)", "MemoryError", Kept),
        ("'x' * 60_000_000", "cut after 65536 bytes", Kept),
        ("def down(): down()\ndown()", "RecursionError", Kept),
        ("import sys\nsys.exit(3)", "\"ended\":3", Kept),
        ("raise SystemExit", "\"ended\":0", Kept),
        ("raise KeyboardInterrupt", "KeyboardInterrupt", Kept),
        ("1 / 0", "ZeroDivisionError", Kept),
        ("one(", "SyntaxError", Kept),
        ("open('big', 'wb').write(bytes(5 * 2**20))", "OSError", Kept),
    ] {
        check(&tools, code, want, variables);
    }
}

#[test]
fn h34_code_reaches_nothing_outside() {
    let tools = host(LIMITS);
    for (code, want) in [
        ("import os\nos.fork()", "AttributeError"),
        ("import subprocess\nsubprocess.run(['ls'])", "Error"),
        ("import socket\nsocket.create_connection(('127.0.0.1', 1))", "gaierror"),
        ("import socket\nsocket.socket()", "PermissionError"),
        ("import urllib.request\nurllib.request.urlopen('http://127.0.0.1:1')", "Error"),
        ("import threading\nthreading.Thread(target=print).start()", "Error"),
        ("open('/etc/passwd')", "FileNotFoundError"),
        ("open('/sandbox/../etc/passwd')", "Error"),
        ("import os\nos.symlink('/etc/passwd', 'p')\nopen('p')", "Error"),
        ("import os\nlist(os.environ)", "\"result\":[]"),
        ("import os\nos.listdir('/')", "FileNotFoundError"),
    ] {
        check(&tools, code, want, Kept);
    }
}

#[test]
fn h17_recursion_through_c_ends_with_the_call() {
    let tools = host(LIMITS);
    let itself = "class A:\n    def __repr__(self): return repr(self)\nrepr(A())";
    check(&tools, itself, "RecursionError", Kept);
    for code in [
        "x = []\nfor _ in range(100_000): x = [x]\nx == [x]",
        "import json\nx = []\nfor _ in range(100_000): x = [x]\njson.dumps(x)",
    ] {
        let report = run(&tools, code);
        let told = told(&report);
        assert!(told.contains("RecursionError") || told.starts_with("failed"), "{code}: {told}");
        let next = run(&tools, "1 + 1");
        assert_eq!(data(&next)["result"], 2, "{code}: {next:?}");
    }
}

#[test]
fn what_is_printed_without_end_is_cut_and_the_rest_of_the_answer_stands() {
    let tools = host(LIMITS);
    let report = run(&tools, "for n in range(20_000): print(n)\n'end'");
    let data = data(&report);
    assert_eq!(data["result"], "end");
    let stdout = data["stdout"].as_str().unwrap();
    // 64 KiB, and the words about what is left out.
    assert!(stdout.len() < 65 << 10, "{}", stdout.len());
    assert!(stdout.starts_with("0\n1\n") && stdout.ends_with("19999\n"));
}
