//! Both sides of each limit: what just fits works, a little more ends in an outcome that names the
//! limit and the key of the policy that sets it.

use std::{fs, time::Duration};

use sallyport_contract::{FailureKind, Outcome};
use serde_json::{Value, json};

use crate::support::{
    Home, Watch,
    home::{self, amount},
    patience::until_so,
    registry::{data, log, told},
    wat::{LOOP, Module, Spec},
    watch,
};

/// The guest under limits of the test.
fn limited(limits: &str) -> Watch {
    Watch::of(&Home::new(), &format!("limits = {{ {limits} }}"))
}

/// A call fails for a limit, in these words, and the next one works.
#[track_caller]
fn check_over(watch: &Watch, tool: &str, arguments: &Value, words: &str) {
    let report = watch.call(tool, arguments);
    let is_limit = matches!(
        &report.outcome,
        Outcome::Failed(failure) if failure.kind == FailureKind::LimitReached
    );
    assert!(is_limit && told(&report).contains(words), "{tool} {arguments}: {words}: {report:?}");
    assert_eq!(data(&watch.call("echo", &json!({ "text": "here" }))), "here");
}

#[test]
fn as_much_as_the_limit_fits_and_no_more() {
    let rows = [
        ("output = 1000", "huge_output", 998, "1001 bytes, its limit is 1000 (limits.output)"),
        ("handles = 100", "leaks_headers", 100, "100 open handles (limits.handles)"),
        ("handles = 300", "leaks_headers", 300, "300 open handles (limits.handles)"),
        (
            "host-call = \"64KiB\", log = \"1MiB\"",
            "long_log_line",
            64 << 10,
            "64KiB in one call between plugin and host (limits.host-call)",
        ),
    ];
    for (limits, tool, fits, words) in rows {
        let watch = limited(limits);
        let report = watch.call(tool, &amount(fits));
        assert_eq!(report.outcome.as_str(), "completed", "{limits} {tool} {fits}: {report:?}");
        check_over(&watch, tool, &amount(fits + 1), words);
    }
}

#[test]
fn the_log_is_cut_where_its_limit_is() {
    let watch = limited("log = 1000");
    let fits = watch.call("long_log_line", &amount(1000));
    assert_eq!(log(&fits)[0].len(), 1000);
    let cut = watch.call("long_log_line", &amount(1001));
    assert!(log(&cut)[0].contains("the log limit (limits.log) is reached"), "{cut:?}");
}

#[test]
fn processor_time_is_limited_apart_from_wall_time() {
    let home = Home::new().user_file("sync/here", "");
    let sync = home.user_path("sync");
    let fs = format!("fs = [{{ path = {sync:?}, mount = \"/sync\", access = \"read\" }}]");
    let watch = Watch::of(&home, &format!("limits = {{ cpu = \"100ms\", time = \"60s\" }}\n{fs}"));
    for tool in ["loops_forever", "spins_on_zero_timers", "copies_memory"] {
        let words = "its limit of 100ms of processor time (limits.cpu) is reached";
        check_over(&watch, tool, &json!({}), words);
    }
    let waits = json!({ "steps": ["wait /sync/go"] });
    let call = watch.spawn("follows_script", &waits);
    // Longer than it may compute.
    std::thread::sleep(Duration::from_millis(300));
    fs::write(sync.join("go"), "").unwrap();
    assert_eq!(watch::told(&watch.wait(call).unwrap()), ["ok"]);
    let watch = limited("cpu = \"60s\", time = \"100ms\"");
    let report = watch.call("loops_forever", &json!({}));
    assert_eq!(report.outcome, Outcome::TimedOut { limit: Duration::from_millis(100) });
}

#[test]
fn h21_a_call_that_waits_too_long_for_a_place_says_for_which() {
    let home = Home::new();
    let table = |calls: u32, time: &str, wait: &str| {
        format!("limits = {{ concurrent-calls = {calls}, time = {time:?}, queue-time = {wait:?} }}")
    };
    let watch = Watch::of(&home, &table(1, "60s", "50ms"));
    let echo = json!({ "text": "here" });
    let mut spins = watch.spawn("loops_forever", &json!({}));
    let words = "is busy: 1 of its calls are running (limits.concurrent-calls), and none ended \
                 within 50ms (limits.queue-time)";
    until_so("a call that finds no place", || {
        // On a slow machine it may be the one that found none, while the other had it.
        if spins.is_finished() {
            spins = watch.spawn("loops_forever", &json!({}));
        }
        told(&watch.call("echo", &echo)).contains(words)
    });
    watch.policy(&home, &table(2, "60s", "50ms"));
    assert_eq!(data(&watch.call("echo", &echo)), "here", "there is one more place since");
    watch.policy(&home, &table(1, "60s", "50ms"));
    assert!(told(&watch.call("echo", &echo)).contains(words));
    spins.abort();
    watch.policy(&home, &table(1, "60s", "60s"));
    assert_eq!(data(&watch.call("echo", &echo)), "here");
    watch.policy(&home, &table(1, "100ms", "60s"));
    let spins = watch.spawn("loops_forever", &json!({}));
    assert_eq!(data(&watch.call("echo", &echo)), "here", "it waits until the other has ended");
    drop(spins);
}

#[test]
fn h22_a_host_that_falls_over_costs_one_call_and_tells_nothing() {
    let home = Home::new().user_file("data/plain.txt", "plain");
    let path = home.user_path("data");
    let table = format!("fs = [{{ path = {path:?}, mount = \"/data\", access = \"read\" }}]");
    let watch = Watch::of(&home, &table);
    let arguments = json!({ "path": "/data/plain.txt" });
    let reads = || assert_eq!(data(&watch.call("reads_path", &arguments)), "plain");
    let questions = watch.watcher.questions(reads);
    assert!(questions > 4, "{questions}");
    // The first three are asked before there is a guest.
    for n in 4..=questions {
        watch.watcher.fall_at(n);
        let report = watch.call("reads_path", &arguments);
        let Outcome::Failed(failure) = &report.outcome else { panic!("{report:?}") };
        assert_eq!(failure.kind, FailureKind::Internal);
        let told = report.outcome.to_model_value().to_string();
        assert!(told.contains("lost inside the host") && !told.contains("hunter2"), "{told}");
        watch.watcher.fall_at(usize::MAX);
        reads();
    }
}

#[test]
fn h17_the_disk_is_reached_from_the_end_of_the_stack() {
    let home = Home::new().user_file("data/plain.txt", "plain");
    let path = home.user_path("data");
    let table = format!("fs = [{{ path = {path:?}, mount = \"/data\", access = \"read\" }}]");
    let watch = Watch::of(&home, &table);
    let report = watch.call("recurses_onto_the_disk", &json!({ "path": "/data/plain.txt" }));
    assert!(told(&report).contains("stack"), "{report:?}");
    assert_eq!(data(&watch.call("reads_path", &json!({ "path": "/data/plain.txt" }))), "plain");
}

/// A component of which one piece runs in a circle.
#[track_caller]
fn check_endless(module: &Module) {
    let home = Home::new();
    let manifest = home::manifest("bad", "");
    let table = "limits = { time = \"200ms\" }";
    let sandbox = watch::sandbox(&home);
    let watch = Watch::component(&sandbox, &home, &manifest, module.component(), table);
    for _ in 0..2 {
        let report = watch.call("act", &json!({}));
        assert_eq!(report.outcome, Outcome::TimedOut { limit: Duration::from_millis(200) });
    }
}

#[test]
fn h02_whatever_piece_of_a_component_runs_in_a_circle_it_is_stopped() {
    let module = || Module::listing(&[Spec::GOOD]);
    check_endless(&Module { call: LOOP.to_owned(), ..module() });
    check_endless(&Module { realloc: LOOP.to_owned(), ..module() });
    let start = format!("(func $begin {LOOP}) (start $begin)");
    check_endless(&Module { fields: start, ..module() });
    let clean_up = format!(
        "(func (export \"cabi_post_sallyport:plugin/tools@0.1.0#call-tool\") (param i32) {LOOP})"
    );
    check_endless(&Module { call: "i32.const 512".to_owned(), fields: clean_up, ..module() });
    check_endless(&Module {
        imports: "(import \"[export]test:mine/things\" \"[resource-new]thing\"
                      (func $new (param i32) (result i32)))
                  (import \"[export]test:mine/things\" \"[resource-drop]thing\"
                      (func $drop (param i32)))"
            .to_owned(),
        wit: "package test:mine; interface things { resource thing; }
              world w { include sallyport:plugin/tool-plugin@0.1.0; export things; }"
            .to_owned(),
        fields: format!("(func (export \"test:mine/things#[dtor]thing\") (param i32) {LOOP})"),
        call: "(call $drop (call $new (i32.const 7))) unreachable".to_owned(),
        ..module()
    });
}

#[test]
fn h06_twenty_spinning_plugins_leave_room_for_an_honest_one() {
    let home = Home::new();
    let sandbox = watch::sandbox(&home);
    let honest = Watch::in_sandbox(&sandbox, &home, "");
    let spinning: Vec<Watch> = (0..20)
        .map(|_| Watch::in_sandbox(&sandbox, &home, "limits = { time = \"60s\" }"))
        .collect();
    let calls = spinning.iter().map(|watch| watch.begin("loops_forever", &json!({})));
    let calls: Vec<_> = calls.map(|call| honest.beside(call)).collect();
    for _ in 0..20 {
        assert_eq!(data(&honest.call("echo", &json!({ "text": "here" }))), "here");
    }
    assert!(calls.iter().all(|call| !call.is_finished()));
    calls.iter().for_each(|call| call.abort());
}

#[test]
fn h05_two_gibibytes_cannot_be_copied_within_a_quarter_of_one() {
    let watch = limited("memory = \"256MiB\", time = \"60s\"");
    assert_eq!(data(&watch.call("grows_memory", &amount(2048))), false);
    let copying = "(memory 40000) (func $begin (memory.copy (i32.const 0x40000000)
        (i32.const 0) (i32.const 0x40000000))) (start $begin)";
    let module = Module { fields: copying.to_owned(), ..Module::listing(&[Spec::GOOD]) };
    let home = Home::new();
    let manifest = home::manifest("bad", "");
    let sandbox = watch::sandbox(&home);
    let watch = Watch::component(&sandbox, &home, &manifest, module.component(), "");
    let report = watch.call("act", &json!({}));
    assert!(told(&report).contains("256MiB of memory (limits.memory)"), "{report:?}");
}
