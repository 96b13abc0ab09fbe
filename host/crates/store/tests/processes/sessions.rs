//! Sessions: two processes never mix, and what is killed leaves what it had written.

use std::{
    io::{self, BufRead, BufReader, Read},
    process::ChildStdout,
    thread,
    time::Duration,
};

use sallyport_store::{NewRecord, NewSession, StoreError, StoredRecord, StoredUsage};
use tempfile::TempDir;

use super::*;

/// Records of one turn, which come at once.
const TURN_RECORDS: u64 = 3;

/// Turns that each of two processes writes.
const TURNS: u64 = 50;

/// A store with an empty session, and the folder that goes with it.
fn with_session() -> (TempDir, HostStore) {
    let parent = TempDir::new().unwrap();
    let store = HostStore::open(&parent.path().join("store")).unwrap();
    let session = NewSession {
        user: USER.to_owned(),
        id: "s-1".to_owned(),
        title: "".to_owned(),
        model: "".to_owned(),
        folder: None,
        created_ms: 0,
    };
    store.sessions.create(session).wait().unwrap();
    (parent, store)
}

/// Adds the records of one turn, of which the last tells the number of all.
fn append_turn(store: &HostStore, known: u64, text: &str) -> Result<u64, StoreError> {
    let bodies: Vec<String> = (0..TURN_RECORDS)
        .map(|part| format!("{text} turn{} part {part}", known / TURN_RECORDS))
        .collect();
    let used = StoredUsage { turns: 1, tokens: 10, cost_micro_usd: Some(1) };
    let records: Vec<NewRecord> = bodies
        .iter()
        .map(|body| NewRecord {
            kind: "part".to_owned(),
            body: body.clone(),
            search_text: body.clone(),
            at_ms: known,
            used,
        })
        .collect();
    store.sessions.append_records(USER, "s-1", known, records).wait()
}

fn read(store: &HostStore) -> Vec<StoredRecord> {
    let session = store.sessions.get(USER, "s-1").wait().unwrap();
    let mut records = Vec::new();
    loop {
        let page = store.sessions.read_page(&session, records.len() as u64).wait().unwrap();
        if page.is_empty() {
            return records;
        }
        records.extend(page);
    }
}

/// Starts a process that has looked at the session by the time this returns, and goes on with it
/// when its input ends.
fn start_one_of_two(folder: &Path) -> (Child, BufReader<ChildStdout>) {
    let mut program = command(&own_binary());
    program.stdin(Stdio::piped());
    let mut other = start(program, "sessions::goes_on_when_told", folder);
    let mut said = BufReader::new(other.stdout.take().unwrap());
    let mut line = String::new();
    while !line.ends_with("ready\n") {
        assert!(said.read_line(&mut line).unwrap() > 0, "{line}");
    }
    (other, said)
}

#[test]
fn of_two_processes_one_goes_on_and_the_other_is_told() {
    let (parent, store) = with_session();
    let mut others = [(); 2].map(|()| start_one_of_two(&parent.path().join("store")));
    others.iter_mut().for_each(|(other, _)| drop(other.stdin.take()));
    let mut told = 0;
    for (other, said) in &mut others {
        let mut text = String::new();
        said.read_to_string(&mut text).unwrap();
        assert!(other.wait().unwrap().success(), "{text}");
        told += text.matches("another process went on with session s-1: it has ").count();
    }
    assert!(told > 0);
    let records = read(&store);
    assert_eq!(records.len() as u64, 2 * TURNS * TURN_RECORDS);
    for turn in records.chunks(TURN_RECORDS as usize) {
        let writer = turn[0].body.split(' ').next().unwrap();
        assert!(turn.iter().all(|record| record.body.starts_with(writer)), "{turn:?}");
    }
}

#[test]
#[ignore = "one of the two processes"]
fn goes_on_when_told() {
    let store = store_of_parent();
    let known = || store.sessions.get(USER, "s-1").wait().unwrap().records;
    let (mut expected, mut written) = (known(), 0);
    println!("ready");
    io::stdin().read_to_string(&mut String::new()).unwrap();
    while written < TURNS {
        match append_turn(&store, expected, &std::process::id().to_string()) {
            Ok(total) => (expected, written) = (total, written + 1),
            Err(error @ StoreError::ConcurrentAppend { .. }) => {
                println!("{error}");
                expected = known();
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Killed at any moment, a process leaves whole turns, and all that it said it had written.
#[test]
fn a_killed_process_leaves_a_session_that_can_be_taken_up() {
    let (parent, store) = with_session();
    let mut said = 0;
    for round in 0..50_u64 {
        let test = "sessions::goes_on_for_ever";
        let mut other = start(command(&own_binary()), test, &parent.path().join("store"));
        let mut lines = BufReader::new(other.stdout.take().unwrap()).lines();
        let is_told = |line: &String| line.ends_with("written");
        // Every other round is killed on its way to the first record.
        if round % 2 == 1 {
            said += lines.by_ref().map_while(Result::ok).filter(is_told).take(3).count() as u64;
        }
        thread::sleep(Duration::from_millis(round * 37 % 50));
        other.kill().unwrap();
        other.wait().unwrap();
        said += lines.map_while(Result::ok).filter(is_told).count() as u64;
        check_whole(&store, said, round);
    }
    assert!(said > 0);
}

fn check_whole(store: &HostStore, said: u64, round: u64) {
    let session = store.sessions.get(USER, "s-1").wait().unwrap();
    let records = read(store);
    assert_eq!((session.records, session.records % 3), (records.len() as u64, 0), "round {round}");
    assert!(session.records / 3 >= said, "{} of {said} in round {round}", session.records / 3);
    assert_eq!(session.used.tokens, 10 * session.records);
    for (number, record) in records.iter().enumerate() {
        assert_eq!(record.body, format!("x turn{} part {}", number / 3, number % 3));
    }
    if let Some(last) = records.last() {
        let query = format!("\"{}\"", last.body);
        assert_eq!(
            store.sessions.search_records(USER, &query, 9).wait().unwrap().len(),
            1,
            "round {round}"
        );
    }
    append_turn(store, session.records, "x").unwrap();
}

#[test]
#[ignore = "the process that is killed"]
fn goes_on_for_ever() {
    let store = store_of_parent();
    let mut known = store.sessions.get(USER, "s-1").wait().unwrap().records;
    loop {
        known = append_turn(&store, known, "x").unwrap();
        println!("written");
    }
}
