//! The audit: one chain, whoever writes it and whenever it is killed.

use std::{
    io::{self, BufRead, BufReader, Read},
    thread,
    time::Duration,
};

use sallyport_store::{AuditError, AuditFilter, AuditKind, AuditLog, AuditRecord, audit::HostUser};
use tempfile::TempDir;

use super::*;

/// Far more than any of these tests needs; a hanging test still ends.
const PATIENCE: Duration = Duration::from_secs(60);

/// Largest file that a process without room may write, in the 512 bytes of `ulimit -f`: enough to
/// open the database, too little for many records.
const FILE_BLOCKS_MAX: u32 = 1000;

fn record(number: u64, message: String) -> AuditRecord {
    let who = HostUser::from_process("me");
    AuditRecord { message: Some(message), ..AuditRecord::new(AuditKind::Call, number, who) }
}

/// The log of the folder that this process was started for.
fn log_of_parent() -> AuditLog {
    store_of_parent().audit_log()
}

#[test]
fn two_processes_make_one_chain_and_lose_nothing() {
    let parent = TempDir::new().unwrap();
    let folder = parent.path().join("store");
    let others: Vec<Child> = (0..2)
        .map(|_| start(command(&own_binary()), "audit::appends_a_thousand", &folder))
        .collect();
    for mut other in others {
        assert!(other.wait().unwrap().success());
    }
    let store = HostStore::open(&folder).unwrap();
    let seen = store.audit.verify(None).wait().unwrap();
    assert_eq!((seen.records, seen.problems), (2000, vec![]));
    let mut texts: Vec<String> = store
        .audit
        .read_records(AuditFilter::default())
        .wait()
        .unwrap()
        .into_iter()
        .map(|entry| entry.record.unwrap().message.unwrap())
        .collect();
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), 2000, "every record once");
}

#[test]
#[ignore = "one of the two processes"]
fn appends_a_thousand() {
    let log = log_of_parent();
    for number in 0..1000 {
        let message = format!("{} {number}", std::process::id());
        log.append(record(number, message)).unwrap();
        if number % 10 == 0 {
            log.flush(PATIENCE).unwrap();
        }
    }
    log.flush(PATIENCE).unwrap();
    assert_eq!(log.warnings(), []);
}

/// Killed at any moment, a process leaves a log that is whole and holds all that was flushed.
#[test]
fn a_killed_process_leaves_a_whole_log() {
    let parent = TempDir::new().unwrap();
    let folder = parent.path().join("store");
    let mut flushed = 0;
    for round in 0..20_u64 {
        let mut other = start(command(&own_binary()), "audit::appends_for_ever", &folder);
        let mut lines = BufReader::new(other.stdout.take().unwrap()).lines();
        // Every other round is killed on its way to the first record.
        if round % 2 == 1 {
            flushed += flushes(lines.by_ref().take(5));
        }
        thread::sleep(Duration::from_millis(1 + round * 37 % 100));
        other.kill().unwrap();
        other.wait().unwrap();
        flushed += flushes(lines);
        check_whole(&HostStore::open(&folder).unwrap(), flushed, round);
    }
    assert!(flushed > 0);
}

/// Counts the lines that the process writes after each record.
fn flushes(lines: impl Iterator<Item = io::Result<String>>) -> u64 {
    lines.map_while(Result::ok).filter(|line| line.ends_with("flushed")).count() as u64
}

fn check_whole(store: &HostStore, flushed: u64, round: u64) {
    let seen = store.audit.verify(None).wait().unwrap();
    assert_eq!(seen.problems, [], "round {round}");
    assert!(seen.records >= flushed, "{} of {flushed} in round {round}", seen.records);
    let log = store.audit_log();
    log.flush(PATIENCE).unwrap();
    assert_eq!(log.warnings(), [], "round {round}");
}

#[test]
#[ignore = "the process that is killed"]
fn appends_for_ever() {
    let log = log_of_parent();
    for number in 0.. {
        log.append(record(number, "x".repeat(100))).unwrap();
        log.flush(PATIENCE).unwrap();
        println!("flushed");
    }
}

/// The limit of a process on the size of its files stands for a disk that is full.
#[test]
fn without_room_the_log_fails_closed() {
    let parent = TempDir::new().unwrap();
    let folder = parent.path().join("store");
    let mut shell = command(Path::new("/bin/sh"));
    // The signal that comes with the limit is ignored, so that the write fails instead.
    shell
        .arg("-c")
        .arg(format!("trap '' XFSZ; ulimit -f {FILE_BLOCKS_MAX}; exec \"$0\" \"$@\""))
        .arg(own_binary());
    let mut other = start(shell, "audit::appends_until_it_fails", &folder);
    let mut said = String::new();
    other.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(other.wait().unwrap().success(), "{said}");

    let store = HostStore::open(&folder).unwrap();
    let seen = store.audit.verify(None).wait().unwrap();
    assert_eq!(seen.problems, []);
    assert!(said.contains(&format!("{} written", seen.records)), "{} of {said}", seen.records);
    let log = store.audit_log();
    log.append(record(0, "there is room again".to_owned())).unwrap();
    log.flush(PATIENCE).unwrap();
    assert_eq!(log.warnings(), []);
}

#[test]
#[ignore = "the process without room"]
fn appends_until_it_fails() {
    let log = log_of_parent();
    let mut written = 0;
    let error = loop {
        log.append(record(written, "x".repeat(4000))).unwrap();
        match log.flush(PATIENCE) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
    };
    println!("{written} written, then: {error}");
    assert!(matches!(error, AuditError::Failed(_)), "{error}");
    assert!(written > 0);
    for _ in 0..3 {
        let refused = log.append(record(0, "more".to_owned())).unwrap_err();
        assert_eq!(refused.to_string(), error.to_string());
    }
    assert!(log.flush(PATIENCE).is_err());
}
