//! A disk that is full, a folder that nobody may write to, too few files that may be open: nothing
//! is done without its record, nothing panics, and afterwards nothing looks as if somebody had been
//! at it.

use std::io::Write;

use super::stage::{Act, Stage};
use crate::support::{Home, OpenAi, Ran, Reply, disk::Disk, home::finish};

/// The exit code of a program that could not write the audit.
const UNWRITTEN: i32 = 10;

/// Room for the database and some records.
const DISK_BYTES: u64 = 2 << 20;

/// Every kind of act, one of each.
fn acts(stage: &Stage) -> [Act; 3] {
    [stage.write(), stage.fetch(), stage.steps(&["doing 3600000 tally".to_owned()])]
}

#[track_caller]
fn check_refused(stage: &Stage, act: &Act, ran: &Ran) {
    assert_eq!(ran.code, UNWRITTEN, "{act:?}: {ran:#?}");
    assert!(ran.stderr.contains("audit"), "{act:?}: {ran:#?}");
    assert!(!ran.stderr.contains("panicked"), "{act:?}: {ran:#?}");
    assert!(!stage.is_done(act), "{act:?} was done without a record");
}

/// Breaks the state folder, tries everything, mends it, and tries everything again.
fn check(what: &str, spoil: impl Fn(&Disk), mend: impl Fn(&Disk), is_begun: bool) {
    let stage = Stage::new();
    let Some(disk) = Disk::mount(&stage.home.path("state"), DISK_BYTES) else { return };
    if is_begun {
        stage.call(&stage.write()).ended(0);
    }
    spoil(&disk);
    for act in acts(&stage) {
        check_refused(&stage, &act, &stage.call(&act));
    }
    mend(&disk);
    stage.home.run(&["audit", "verify"]).ended(0);
    assert_eq!(stage.timers_left(), 0, "{what}");
    for act in acts(&stage) {
        stage.call(&act).ended(0);
    }
    assert_eq!(stage.timers_left(), 1, "{what}");
    stage.check();
}

#[test]
fn a_call_does_not_run_while_the_disk_of_the_audit_is_full() {
    check("full", |disk| disk.fill(0), Disk::make_room, true);
}

#[test]
fn a_disk_that_is_full_at_the_first_start_leaves_no_head_that_is_a_false_alarm() {
    for left_bytes in [0, 4096, 8192, 12_288, 65_536] {
        check("full from the start", |disk| disk.fill(left_bytes), Disk::make_room, false);
    }
}

#[test]
fn a_call_does_not_run_while_the_folder_of_the_audit_is_read_only() {
    let (spoil, mend) =
        (|disk: &Disk| disk.allow_writes(false), |disk: &Disk| disk.allow_writes(true));
    check("read-only", spoil, mend, true);
    check("read-only from the start", spoil, mend, false);
}

/// What was refused for want of room is possible again in the same session, as soon as there is
/// room.
#[test]
fn a_disk_that_fills_up_during_a_session_refuses_calls_for_as_long_as_it_is_full() {
    let stage = Stage::new();
    let acts: Vec<Act> = (0..3).map(|_| stage.write()).collect();
    let calls = acts.iter().zip(["a", "b", "c"]).flat_map(|(act, id)| {
        let call = (id, "files__write", act.arguments.clone());
        [Reply::Calls(vec![call]), Reply::Text("Thus.")]
    });
    let model = OpenAi::start(calls.collect());
    let stage = stage.with_model(&model);
    let Some(disk) = Disk::mount(&stage.home.path("state"), DISK_BYTES) else { return };
    let args = ["chat", "-m", "scripted", "--ephemeral"];
    let mut child = stage.home.start(&args);
    let mut says = |words: &str, asked: usize| {
        writeln!(child.stdin.as_mut().unwrap(), "{words}").unwrap();
        model.is_asked(asked);
    };
    says("one", 2);
    disk.fill(0);
    says("two", 4);
    disk.make_room();
    says("three", 6);
    let ran = finish(child, &args).ended(0).hides(&["panicked"]);
    let done: Vec<bool> = acts.iter().map(|act| stage.is_done(act)).collect();
    assert_eq!(done, [true, false, true], "{ran:#?}");
    stage.check();
}

/// What may change nothing may run, but its end says that something is missing.
#[test]
fn a_record_that_was_not_written_changes_the_exit_code() {
    let home = Home::new().plugins(&["clock"]);
    let Some(disk) = Disk::mount(&home.path("state"), DISK_BYTES) else { return };
    let call = ["call", "clock.get_time", r#"{"timezone":"UTC"}"#];
    home.run(&call).ended(0);
    disk.allow_writes(false);
    home.run(&call).ended(UNWRITTEN).remarks(&["audit"]).hides(&["panicked"]);
    disk.allow_writes(true);
    home.run(&call).ended(0);
    home.run(&["audit", "verify"]).ended(0);
}

#[test]
fn the_policy_is_not_changed_without_a_record() {
    let stage = Stage::new();
    let Some(disk) = Disk::mount(&stage.home.path("state"), DISK_BYTES) else { return };
    stage.call(&stage.write()).ended(0);
    let policy = || std::fs::read_to_string(stage.home.path("policy.toml")).unwrap();
    let before = policy();
    let grant = [
        "policy",
        "grant",
        "living",
        "--net",
        "GET http://127.0.0.1:1/**",
        "--to-private",
        "--yes",
    ];
    disk.fill(0);
    let ran = stage.home.run(&grant);
    assert_eq!((ran.code, policy()), (UNWRITTEN, before), "{ran:#?}");
    disk.make_room();
}

#[test]
fn a_folder_whose_records_are_gone_is_not_the_log_that_was_expected() {
    let home = Home::new().plugins(&["clock"]);
    home.run(&["call", "clock.get_time", r#"{"timezone":"UTC"}"#]).ended(0);
    let whole = home.run(&["audit", "verify", "--output", "json"]).ended(0).json();
    let head = whole["head"].as_str().unwrap().to_owned();
    std::fs::remove_dir_all(home.path("state")).unwrap();
    let verify = ["audit", "verify", "--head", &head];
    home.run(&verify).ended(1).answers(&["is not intact"]).remarks(&["the log ends before it"]);
}

#[test]
fn a_database_that_is_gone_does_not_read_as_no_sessions_and_no_timers() {
    for empties in [false, true] {
        let stage = Stage::new();
        stage.call(&stage.steps(&["doing 3600000 tally".to_owned()])).ended(0);
        for name in ["store.sqlite3", "store.sqlite3-wal", "store.sqlite3-shm"] {
            let path = stage.home.path("state").join(name);
            if empties { std::fs::write(path, "") } else { std::fs::remove_file(path) }.unwrap();
        }
        for list in
            [&["session", "list"][..], &["timer", "list"], &["state", "list"], &["audit", "show"]]
        {
            let ran = stage.home.run(list).ended(1);
            ran.remarks(&["store.sqlite3 is missing or empty", "restore it from a backup"]);
        }
        let act = stage.write();
        check_refused(&stage, &act, &stage.call(&act));
    }
}

/// However few files may be open.
#[test]
fn too_few_open_files_are_no_way_around_the_audit() {
    let stage = Stage::new();
    stage.call(&stage.write()).ended(0);
    for files in [6, 8, 10, 12, 14, 16, 18, 20, 24, 32] {
        for act in acts(&stage) {
            let limit = format!("ulimit -n {files}; exec \"$0\" \"$@\"");
            let ran = stage.call_by(&["/bin/sh", "-c", &limit], &act);
            assert!(!ran.stderr.contains("panicked"), "{files} files, {act:?}: {ran:#?}");
            assert!(ran.code != 101 && ran.code >= 0, "{files} files, {act:?}: {ran:#?}");
            assert!(!stage.is_done(&act) || stage.records().has(&act), "{files}, {act:?}");
        }
        stage.home.run(&["audit", "verify"]).ended(0);
    }
    stage.check();
}
