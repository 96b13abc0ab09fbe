//! `sallyport store migrate`, killed at any moment: all of a home is in the database, or nothing; and
//! the home is as it was.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use sallyport_contract::LOCAL_USER;
use sallyport_store::{HostStore, NewRecord, NewSession, StoredUsage};
use serde_json::Value;

use crate::support::{
    Home,
    database::{Database, PASSWORD},
    dice::Dice,
    patience::wait,
};

const MIGRATE: [&str; 2] = ["store", "migrate"];

/// How often the program is killed.
const KILLS: usize = 12;

/// The moments are the same in each run of the test.
const SEED: u64 = 0x5a11_7092;

const SESSIONS: usize = 40;

const RECORDS: usize = 50;

/// A home that takes a while to copy.
fn large_home() -> Home {
    let home = Home::new();
    let store = HostStore::open(&home.path("state")).unwrap();
    for number in 0..SESSIONS {
        let id = format!("s-{number}");
        let session = NewSession {
            user: LOCAL_USER.to_owned(),
            id: id.clone(),
            title: format!("session {number}"),
            model: String::new(),
            folder: None,
            created_ms: 1,
        };
        wait(store.sessions.create(session)).unwrap();
        let record = |at| NewRecord {
            kind: "input".to_owned(),
            body: format!("body {at} of {number} {}", "x".repeat(500)),
            search_text: format!("word{at} of {number}"),
            at_ms: 1,
            used: StoredUsage::default(),
        };
        let records = (0..RECORDS).map(record).collect();
        wait(store.sessions.append_records(LOCAL_USER, &id, 0, records)).unwrap();
    }
    drop(store);
    home
}

/// What the home has, without what other programs leave next to the database while they read it.
fn contents(home: &Home) -> Vec<u8> {
    fs::read(home.path("state/store.sqlite3")).unwrap()
}

/// How many rows of both kinds the database has; `None` before there are tables.
fn rows(database: &Database) -> Option<(usize, usize)> {
    let is_there = "SELECT to_regclass('sallyport.record') IS NOT NULL";
    if database.sql(is_there) != "t" {
        return None;
    }
    let count = |table| {
        database.sql(&format!("SELECT count(*) FROM sallyport.{table}")).parse::<usize>().unwrap()
    };
    Some((count("session"), count("record")))
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask postgres"]
fn a_copy_that_is_killed_is_whole_or_nothing_and_is_made_again() {
    let trial = Database::new();
    let home = large_home();
    let before = contents(&home);
    let begin = Instant::now();
    home.run(&["store", "migrate", "--to", &trial.address()])
        .ended(0)
        .hides(&[PASSWORD])
        .answers(&["40", "2000", &trial.shown()]);
    let whole = begin.elapsed().as_micros() as u64;
    let all = (SESSIONS, SESSIONS * RECORDS);
    assert_eq!(rows(&trial), Some(all));

    let (mut dice, mut cut_short) = (Dice(SEED), 0);
    for _ in 0..KILLS {
        let database = Database::new();
        fs::remove_dir_all(home.path("state/postgres")).unwrap();
        let address = database.address();
        let args = ["store", "migrate", "--to", &address];
        let mut child = home.start(&args);
        thread::sleep(Duration::from_micros(dice.roll(whole + whole / 8)));
        child.kill().unwrap();
        child.wait().unwrap();
        let found = rows(&database).unwrap_or((0, 0));
        assert!(found == (0, 0) || found == all, "{found:?}");
        cut_short += usize::from(found == (0, 0));
        let again = home.run(&args).ended(0).hides(&[PASSWORD]);
        assert_eq!(rows(&database), Some(all), "{again:#?}");
        let is_known = again.stdout.contains("has all of your home already");
        assert!(is_known || found == (0, 0), "{again:#?}");
        assert!(contents(&home) == before, "the home is only read");
    }
    assert!(cut_short > 0, "no kill hit a copy");
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask postgres"]
fn a_database_with_other_data_is_left_alone() {
    let database = Database::new();
    let home = large_home().config(database.config());
    home.run(&MIGRATE).ended(0);
    let again = home.run(&["store", "migrate", "--output", "json"]).ended(0).json();
    assert_eq!(again["copied_before"], Value::Bool(true), "{again}");
    database.sql("UPDATE sallyport.session SET title = 'another' WHERE id = 's-1'");
    home.run(&MIGRATE).ended(0).answers(&["has all of your home already"]);
    // The home has something that the database has not.
    let store = HostStore::open(&home.path("state")).unwrap();
    wait(store.sessions.remove(LOCAL_USER, "s-3")).unwrap();
    drop(store);
    let refused = home.run(&MIGRATE).remarks(&["has data of its own: 40 sessions"]);
    let refused = refused.remarks(&["name an empty database"]).hides(&[PASSWORD]);
    assert_ne!(refused.code, 0);
    assert_eq!(rows(&database), Some((SESSIONS, SESSIONS * RECORDS)));
}
