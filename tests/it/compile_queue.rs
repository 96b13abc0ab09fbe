//! Compiling ahead: no start waits for what is slow to compile, and nothing is compiled twice.

use std::fs;

use sallyport_sandbox::{Compiler, LoadError};

use crate::{
    compile::{busy, gone, inspect, kill, sandbox, worker_of},
    support::{
        Home, bomb,
        home::{finish, manifest},
        patience::until,
    },
};

/// What exports nothing that the host calls costs no compiler.
#[test]
fn what_can_be_no_plugin_is_refused_before_it_is_compiled() {
    let nothing = wat::parse_str("(component (core module))").unwrap();
    let other =
        wat::parse_str(r#"(component (instance $i) (export "wasi:cli/run@0.2.0" (instance $i)))"#);
    for bytes in [nothing, other.unwrap()] {
        let error = inspect(&sandbox(Compiler::with_program("/nowhere".into()), None), bytes);
        let error = error.map(drop).unwrap_err();
        assert!(matches!(error, LoadError::MissingExport { .. }), "{error}");
    }
}

/// A home with an honest plugin whose code is kept, and one that holds its compiler until the
/// limit.
fn home_with_bomb(cpu_time: &str) -> Home {
    let home = Home::with_own_cache().plugins(&["clock"]);
    home.run(&["doctor"]).ended(0);
    home.component("bad", &manifest("bad", ""), &bomb::if_chain(300_000))
        .config(format!("[compile]\ncpu_time = \"{cpu_time}\""))
}

/// The queue of a home, while it works.
#[track_caller]
fn queue_of(home: &Home) -> u32 {
    let cache = home.path("cache").canonicalize().unwrap();
    until("a queue", || {
        let folders = fs::read_dir("/proc").unwrap().flatten();
        let mut pids = folders.filter_map(|folder| folder.file_name().to_str()?.parse().ok());
        pids.find(|pid: &u32| {
            let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.contains("__compile-queue") && line.contains(cache.to_str().unwrap())
        })
    })
}

#[test]
fn a_start_does_not_wait_for_what_is_slow_to_compile() {
    let home = home_with_bomb("60s").env("SALLYPORT_COMPILE_WAIT", "20ms");
    home.run(&["plugin", "list"]).ended(0).answers(&["clock", "1 allow", "bad", "compiling"]);
    // It is true that it is being compiled: the command has ended, and the work goes on.
    let queue = queue_of(&home);
    busy(worker_of(queue, ""));
    let list = home.run(&["plugin", "list", "--output", "json"]).ended(0).json();
    assert_eq!(list["plugins"][0]["state"], "compiling", "{list}");
    home.run(&["tool", "list"])
        .ended(0)
        .answers(&["clock.get_time"])
        .remarks(&["bad is still being compiled"]);
    home.run(&["run", "--model", "offline", "what time is it?"])
        .ended(0)
        .remarks(&["bad is still being compiled"]);
    kill(queue);
}

/// For one answer, there is no later start that has the tools. A list of them looked complete, too.
#[test]
fn a_question_of_a_new_home_was_answered_without_the_tools_that_were_still_compiled() {
    let commands: [(&[&str], &str); 4] = [
        (&["run", "what time is it?"], ""),
        (&["chat"], "what time is it?\n"),
        (&["tool", "list"], ""),
        (&["tool", "list", "--output", "json"], ""),
    ];
    for (command, input) in commands {
        let home = home_with_bomb("4s").env("SALLYPORT_COMPILE_WAIT", "");
        let ran = home.run_with_input(command, input).ended(0);
        ran.remarks(&["Preparing 1 plugin", "more than 4s of processor time"])
            .hides(&["still being compiled"]);
    }
}

#[test]
fn a_refusal_is_remembered_and_costs_no_second_compilation() {
    let home = home_with_bomb("1s");
    home.run(&["plugin", "list"]).ended(0).answers(&["rejected", "more than 1s of processor time"]);
    // Nothing can be compiled any more, and nothing has to be.
    let refused = || {
        let entries = fs::read_dir(home.path("cache/compiled")).unwrap().flatten();
        let paths = entries.map(|entry| entry.path());
        paths.filter(|path| path.extension().is_some_and(|end| end == "refused")).count()
    };
    assert_eq!(refused(), 1);
    let ran = home.run(&["doctor", "-v"]).ended(1);
    ran.answers(&["more than 1s of processor time", "1 plugins came from it, 0 were compiled"]);
    // With another limit it may do better.
    let home = home.config("[compile]\ncpu_time = \"2s\"");
    home.run(&["plugin", "list"]).ended(0).answers(&["more than 2s of processor time"]);
}

#[test]
fn a_start_that_is_killed_loses_nothing_of_what_it_began_to_compile() {
    let home = home_with_bomb("2s");
    let mut killed = home.start(&["plugin", "list"]);
    busy(worker_of(queue_of(&home), ""));
    killed.kill().unwrap();
    killed.wait().unwrap();
    gone(queue_of(&home));
    let home = home.env("SALLYPORT_COMPILE_WAIT", "0ms");
    home.run(&["plugin", "list"]).ended(0).answers(&["rejected", "more than 2s of processor time"]);
}

/// A worker does not outlive the process that waits for it, and no other plugin waits for it.
#[test]
fn h26_a_process_that_is_killed_takes_its_worker_along() {
    let home = home_with_bomb("60s");
    let listing = home.start(&["plugin", "list"]);
    let queue = queue_of(&home);
    let worker = worker_of(queue, "");
    busy(worker);
    home.run(&["call", "clock.get_time"]).ended(0);
    kill(queue);
    gone(worker);
    // The command that waited compiles it itself; it does not hang.
    let own = worker_of(listing.id(), "");
    kill(own);
    assert_eq!(finish(listing, &["plugin", "list"]).code, 0);
}
