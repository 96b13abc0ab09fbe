//! Limits of a call: each guest takes too much of one thing, is stopped by the limit of that thing,
//! and the next call finds everything as it was.

use std::{fs, sync::Arc, time::Duration};

use sallyport_contract::{CallReport, Outcome};
use serde_json::{Value, json};

use crate::support::{
    Home, Tools,
    home::amount,
    registry::{data, log, told},
};

/// What the manifest of the hostile guest has to request, since the guest imports it.
pub(crate) const NET: &str =
    "[[request.net]]\nallow = \"GET https://hostile.example/\"\nwhy = \"tests\"\n";

/// The hostile guest under limits of the test.
fn tools(limits: &str) -> Tools {
    Tools::of(&home(limits))
}

fn home(limits: &str) -> Home {
    let policy = format!("[plugin.hostile]\nlimits = {{ {limits} }}\n");
    Home::new().guest("hostile", NET).policy(policy)
}

fn none() -> Value {
    json!({})
}

/// The same plugin answers again, from a fresh instance.
#[track_caller]
fn check_alive(tools: &Tools) {
    assert_eq!(data(&tools.call("hostile.echo", &json!({ "text": "here" }))), "here");
    assert_eq!(data(&tools.call("hostile.counts", &none())), 1);
}

/// A call fails with these words, and the plugin lives on.
#[track_caller]
fn check(tools: &Tools, tool: &str, arguments: &Value, words: &str) -> CallReport {
    let report = tools.call(tool, arguments);
    let text = told(&report);
    assert!(text.contains(words), "{tool}: {words:?} is not in {text:?}: {report:?}");
    check_alive(tools);
    report
}

#[test]
fn h01_an_endless_loop_is_stopped_by_its_time() {
    let tools = tools("time = \"300ms\"");
    let report = check(&tools, "hostile.loops_forever", &none(), "timed-out: stopped after 300ms");
    assert_eq!(report.outcome, Outcome::TimedOut { limit: Duration::from_millis(300) });
}

#[test]
fn h03_h04_h05_whatever_a_guest_does_with_its_time_it_is_stopped() {
    let tools = tools("time = \"300ms\"");
    for tool in ["sleeps_an_hour", "spins_on_zero_timers", "copies_memory"] {
        check(&tools, &format!("hostile.{tool}"), &none(), "timed-out: stopped after 300ms");
    }
}

#[test]
fn h01_the_program_ends_with_the_call() {
    let (told, code) = home("time = \"300ms\"").call("hostile.loops_forever", &none());
    assert_eq!((&told["outcome"], code), (&json!("timed-out"), 7), "{told}");
}

#[test]
fn h06_twenty_spinning_guests_leave_room_for_an_honest_call() {
    let tools = tools("time = \"3s\", concurrent-calls = 64");
    let spinning: Vec<_> = (0..20).map(|_| tools.begin("hostile.loops_forever", &none())).collect();
    let honest = tools.begin("hostile.echo", &json!({ "text": "here" }));
    tools.wait(async move {
        let spinning: Vec<_> = spinning.into_iter().map(tokio::spawn).collect();
        tokio::time::sleep(Duration::from_millis(200)).await;
        let report = honest.await;
        assert_eq!(data(&report), "here");
        let running = spinning.iter().filter(|task| !task.is_finished()).count();
        assert_eq!(running, 20, "the honest call came to its end only after the others");
        for task in spinning {
            assert_eq!(task.await.unwrap().outcome.as_str(), "timed-out");
        }
    });
}

#[test]
fn h08_memory_beyond_the_limit_is_refused() {
    let tools = tools("memory = \"64MiB\"");
    let report = check(
        &tools,
        "hostile.eats_memory",
        &none(),
        "its limit of 64MiB of memory (limits.memory)",
    );
    assert!(report.memory_bytes_peak <= 64 << 20, "{}", report.memory_bytes_peak);
    assert!(report.memory_bytes_peak > 32 << 20, "{}", report.memory_bytes_peak);
    assert_eq!(data(&tools.call("hostile.grows_memory", &amount(32))), true);
    assert_eq!(data(&tools.call("hostile.grows_memory", &amount(64))), false);
}

#[test]
fn h11_output_beyond_the_limit_is_refused() {
    let tools = tools("output = \"64KiB\", memory = \"1GiB\"");
    assert_eq!(
        data(&tools.call("hostile.huge_output", &amount(1000))).as_str().unwrap().len(),
        1000
    );
    let rows = [
        ("hostile.huge_output", 100_000, "its limit is 65536"),
        ("hostile.huge_output", 200 << 20, "limit"),
        ("hostile.many_content_parts", 5_000, "its limit is 65536"),
        ("hostile.many_content_parts", 2_000_000, "limit"),
        ("hostile.deep_json", 1000, "broken result"),
    ];
    for (tool, n, words) in rows {
        check(&tools, tool, &amount(n), words);
    }
}

#[test]
fn h12_h16_endless_lines_are_cut_with_a_mark() {
    let tools = tools("log = \"10KiB\"");
    for tool in ["endless_stdout", "endless_stderr", "endless_log"] {
        let report = tools.call(&format!("hostile.{tool}"), &amount(50_000));
        assert_eq!(data(&report), 50_000, "{tool}");
        let lines = log(&report);
        assert_eq!(lines[1], "line 1 of a guest that does not stop", "{tool}");
        assert!(lines.last().unwrap().contains("the log limit (limits.log) is reached"), "{tool}");
        let bytes: usize = lines.iter().map(|line| line.len()).sum();
        assert!(bytes < 11 << 10, "{tool}: {bytes}");
    }
    let lines = tools.call("hostile.many_line_breaks", &amount(20 << 20));
    assert!(log(&lines).len() < 1000);
    let long = tools.call("hostile.long_log_line", &amount(1 << 20));
    assert!(log(&long).iter().map(|line| line.len()).sum::<usize>() < 11 << 10);
    check(&tools, "hostile.long_log_line", &amount(100 << 20), "limit");
}

#[test]
fn h13_too_many_random_bytes_are_refused() {
    let tools = tools("time = \"10s\"");
    assert_eq!(data(&tools.call("hostile.random_bytes", &amount(1000))), 1000);
    for n in [100 << 20, 1 << 40, u64::MAX >> 1] {
        check(&tools, "hostile.random_bytes", &amount(n), "limit");
    }
}

#[test]
fn h14_a_million_handles_are_refused() {
    let tools = tools("time = \"20s\"");
    for tool in ["hostile.leaks_pollables", "hostile.leaks_headers"] {
        assert_eq!(data(&tools.call(tool, &amount(100))), 100);
        check(&tools, tool, &amount(1_000_000), "limit");
    }
}

#[test]
fn h15_headers_without_end_are_refused() {
    let tools = tools("time = \"20s\"");
    check(&tools, "hostile.many_headers", &amount(100_000), "limit");
    assert_eq!(data(&tools.call("hostile.huge_header", &amount(50_000))), 50_000);
    for n in [100_000, 1 << 20, 10 << 20] {
        check(&tools, "hostile.huge_header", &amount(n), "");
        assert_ne!(tools.call("hostile.huge_header", &amount(n)).outcome.as_str(), "completed");
    }
}

#[test]
fn h17_deep_recursion_is_a_stack_overflow_and_nothing_more() {
    let tools = tools("time = \"20s\"");
    for tool in ["hostile.recurses", "hostile.recurses_into_the_host"] {
        check(&tools, tool, &none(), "stack");
    }
}

#[test]
fn h19_a_trap_or_a_panic_is_an_outcome() {
    let tools = tools("time = \"20s\"");
    check(&tools, "hostile.traps", &none(), "failed: the plugin trapped");
    let report = check(&tools, "hostile.panics", &none(), "failed: the plugin panicked");
    assert!(log(&report).iter().any(|line| line.contains("the ship is sinking")), "{report:?}");
    let Outcome::Failed(failure) = &report.outcome else { panic!("{report:?}") };
    let panic = failure.panic.as_deref().unwrap();
    assert!(panic.starts_with("at ") && panic.contains("machine.rs:"), "{panic}");
    assert!(panic.ends_with(": the ship is sinking"), "{panic}");
    let to_model = report.outcome.to_model_value().to_string();
    assert!(!to_model.contains("ship") && !to_model.contains("machine.rs"), "{to_model}");
}

#[test]
fn a_panic_is_shown_to_the_person_at_once_and_an_exit_without_a_made_up_code() {
    let home = home("time = \"20s\"");
    home.run(&["call", "hostile.panics", "{}"]).ended(7).remarks(&[
        "the plugin panicked at",
        "machine.rs:",
        "the ship is sinking",
    ]);
    let exits = home.run(&["call", "hostile.exits", r#"{"n":3}"#]).ended(7);
    exits.remarks(&["ended itself and reported a failure"]).hides(&["code 1"]);
}

#[test]
fn h19_nothing_of_a_call_is_seen_by_the_next() {
    let tools = tools("time = \"20s\"");
    for _ in 0..5 {
        assert_eq!(data(&tools.call("hostile.counts", &none())), 1);
    }
}

#[test]
fn h20_a_cancelled_call_ends_and_frees_its_place() {
    let tools = tools("time = \"60s\", concurrent-calls = 1");
    for tool in ["hostile.loops_forever", "hostile.sleeps_an_hour", "hostile.spins_on_zero_timers"]
    {
        for _ in 0..20 {
            let call = tools.begin(tool, &none());
            let wait = async { tokio::time::timeout(Duration::from_millis(15), call).await };
            assert!(tools.wait(wait).is_err(), "{tool} came to an end");
        }
        check_alive(&tools);
    }
}

#[test]
fn h21_more_calls_than_places_wait_for_one() {
    let tools = Arc::new(tools("time = \"10s\", concurrent-calls = 2"));
    let calls: Vec<_> =
        (0..50).map(|n| tools.begin("hostile.echo", &json!({ "text": n.to_string() }))).collect();
    let reports = tools.wait(async {
        let tasks: Vec<_> = calls.into_iter().map(tokio::spawn).collect();
        let mut reports = Vec::new();
        for task in tasks {
            reports.push(task.await.unwrap());
        }
        reports
    });
    let told: Vec<&str> = reports.iter().map(|report| data(report).as_str().unwrap()).collect();
    let want: Vec<String> = (0..50).map(|n| n.to_string()).collect();
    assert_eq!(told, want);
}

#[test]
fn h21_a_rate_is_kept() {
    let tools = tools("calls-per-minute = 3");
    for _ in 0..3 {
        data(&tools.call("hostile.counts", &none()));
    }
    let report = tools.call("hostile.counts", &none());
    assert!(told(&report).contains("3 times a minute"), "{report:?}");
}

/// A rate over all plugins counts every call of a tool, whoever's it is.
#[test]
fn h21_a_rate_over_all_plugins_is_kept() {
    let home = Home::new().plugins(&["clock", "system-info"]);
    let home = home.policy("[limits]\ncalls-per-minute = 3\ntime = \"20s\"\n");
    let tools = Tools::of(&home);
    for tool in ["clock.get_time", "system-info.get_system_info", "clock.get_time"] {
        let report = tools.call(tool, &json!({}));
        assert!(!told(&report).contains("per minute"), "{report:?}");
    }
    for tool in ["clock.get_time", "system-info.get_system_info"] {
        let report = tools.call(tool, &json!({}));
        assert!(
            told(&report).contains("the limit for all plugins is reached: 3 calls"),
            "{report:?}"
        );
    }
    // The policy of the moment counts.
    fs::write(home.path("policy.toml"), "[limits]\ncalls-per-minute = 4\n").unwrap();
    std::thread::sleep(Duration::from_millis(20));
    let report = tools.call("clock.get_time", &json!({}));
    assert!(!told(&report).contains("per minute"), "{report:?}");
}

#[test]
fn h24_a_guest_that_exits_has_failed() {
    let tools = tools("time = \"20s\"");
    for code in [0, 1] {
        check(&tools, "hostile.exits", &amount(code), "the plugin ended itself");
    }
}

#[test]
fn h51_what_a_terminal_would_obey_is_shown() {
    let home = home("time = \"20s\"");
    for flags in [&["call"][..], &["-v", "call"]] {
        for tool in ["hostile.terminal_escapes", "hostile.terminal_escapes_in_an_error"] {
            let ran =
                home.run(&[flags, &[tool]].concat()).hides(&["\x1b", "\x07", "\u{9b}", "\u{202e}"]);
            assert!(
                format!("{}{}", ran.stdout, ran.stderr).contains("u{1b}[31mred")
                    || ran.stdout.contains("u001b[31mred"),
                "{ran:?}"
            );
        }
    }
}

#[test]
fn h62_a_reference_is_shown_and_never_fetched() {
    let home = home("time = \"20s\"");
    home.run(&["call", "hostile.links_to_a_file"])
        .ended(0)
        .remarks(&["file:///etc/passwd"])
        .hides(&["root:"]);
}
