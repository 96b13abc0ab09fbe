//! Kept results: found in their own session only, within limits, and gone with it.

use super::*;
use crate::kept_results::{
    KeptResultLookup, NewKeptResult, RESULT_BYTES_MAX, SESSION_BYTES_MAX, SESSION_RESULTS_MAX,
};

fn new_result(text: &str, after_records: u64) -> NewKeptResult {
    NewKeptResult { text: text.to_owned(), after_records }
}

fn found(text: &str) -> KeptResultLookup {
    KeptResultLookup::Found(text.to_owned())
}

impl Fixture {
    fn keep_result(&self, id: &str, text: &str) -> u64 {
        let records = self.sessions().get(USER, id).wait().unwrap().records;
        self.store.kept_results.keep(USER, id, new_result(text, records)).wait().unwrap()
    }

    fn find_result(&self, id: &str, number: u64) -> KeptResultLookup {
        self.store.kept_results.find(USER, id, number).wait().unwrap()
    }
}

#[test]
fn a_result_is_found_in_its_own_session_only() {
    let fixture = Fixture::new();
    fixture.begin("one", &["a"]);
    fixture.begin("two", &["b"]);
    assert_eq!((fixture.keep_result("one", "first"), fixture.keep_result("one", "second")), (1, 2));
    assert_eq!(fixture.keep_result("two", "other"), 1);
    let rows = [
        ("one", 1, found("first")),
        ("one", 2, found("second")),
        ("two", 1, found("other")),
        ("two", 2, KeptResultLookup::Unknown),
        ("one", 0, KeptResultLookup::Unknown),
        ("one", 3, KeptResultLookup::Unknown),
        ("one", u64::MAX, KeptResultLookup::Unknown),
    ];
    for (id, number, wanted) in rows {
        assert_eq!(fixture.find_result(id, number), wanted, "{id} {number}");
    }
    let missing = fixture.store.kept_results.find(USER, "three", 1).wait().unwrap_err();
    assert_eq!(missing.to_string(), "there is no session \"three\"");
    let missing =
        fixture.store.kept_results.keep(USER, "three", new_result("x", 0)).wait().unwrap_err();
    assert_eq!(missing.to_string(), "there is no session \"three\"");
    let long = new_result(&"x".repeat(RESULT_BYTES_MAX + 1), 0);
    fixture.store.kept_results.keep(USER, "one", long).wait().unwrap_err();
    assert_eq!(fixture.find_result("one", 3), KeptResultLookup::Unknown);
}

#[test]
fn new_results_displace_the_oldest_of_their_session() {
    let fixture = Fixture::new();
    fixture.begin("one", &["a"]);
    fixture.begin("two", &["b"]);
    fixture.keep_result("two", "other");
    let text = |number: u64| number.to_string().repeat(RESULT_BYTES_MAX);
    let fitting = SESSION_BYTES_MAX / RESULT_BYTES_MAX as u64;
    for number in 1..=fitting + 1 {
        assert_eq!(fixture.keep_result("one", &text(number)), number);
    }
    assert_eq!(fixture.find_result("one", 1), KeptResultLookup::Displaced);
    assert!(
        fixture.find_result("one", 2) == found(&text(2))
            && fixture.find_result("two", 1) == found("other")
    );
    fixture.sql(&format!(
        "UPDATE kept_result SET bytes = 1 WHERE session = 1 AND number = {}",
        fitting + 1
    ));
    for _ in 0..SESSION_RESULTS_MAX {
        fixture.keep_result("one", "small");
    }
    assert_eq!(
        fixture.count("SELECT count(*) FROM kept_result WHERE session = 1"),
        SESSION_RESULTS_MAX
    );
    assert_eq!(fixture.count("SELECT count(*) FROM body"), 4, "two inputs, other and small");
}

#[test]
fn a_fork_shares_the_results_of_its_records_and_a_removal_takes_them() {
    let fixture = Fixture::new();
    fixture.begin("one", &["a"]);
    fixture.keep_result("one", "first");
    fixture.go_on("one", &["b", "c"]);
    fixture.keep_result("one", "second");
    fixture.go_on("one", &["d"]);
    fixture.sessions().fork(USER, "one", 2, "fork", 5000).wait().unwrap();
    assert_eq!(fixture.find_result("fork", 1), found("first"));
    assert_eq!(fixture.find_result("fork", 2), KeptResultLookup::Unknown);
    assert_eq!(fixture.keep_result("fork", "own"), 2);
    fixture.sessions().remove(USER, "one").wait().unwrap();
    assert_eq!(
        (fixture.find_result("fork", 1), fixture.find_result("fork", 2)),
        (found("first"), found("own"))
    );
    assert_eq!(fixture.count("SELECT count(*) FROM body"), 4, "a, b, first and own");
    fixture.sessions().remove(USER, "fork").wait().unwrap();
    assert_eq!(fixture.count("SELECT count(*) FROM kept_result"), 0);
    assert_eq!(fixture.kept(), [0, 0, 0]);
}

/// A number that was used is never used again, or a fork's words would name another text.
#[test]
fn a_fork_never_uses_the_number_of_a_displaced_result_again() {
    let fixture = Fixture::new();
    fixture.begin("one", &["a"]);
    let text = |number: u64| number.to_string().repeat(RESULT_BYTES_MAX);
    for number in 1..=5 {
        assert_eq!(fixture.keep_result("one", &text(number)), number);
        fixture.go_on("one", &["b"]);
    }
    // Result 1 is displaced; the forks have its record, and those of none, one and two more.
    for (records, last) in [(1, 1), (2, 1), (3, 2), (4, 3)] {
        let fork = format!("fork-{records}");
        fixture.sessions().fork(USER, "one", records, &fork, 5000).wait().unwrap();
        assert_eq!(fixture.find_result(&fork, 1), KeptResultLookup::Displaced, "{fork}");
        assert_eq!(fixture.find_result(&fork, last + 1), KeptResultLookup::Unknown, "{fork}");
        // The fork of a fork without any result that is left knows it as well.
        let second = format!("{fork}-again");
        fixture.sessions().fork(USER, &fork, 1, &second, 5000).wait().unwrap();
        assert_eq!(fixture.find_result(&second, 1), KeptResultLookup::Displaced, "{second}");
        assert_eq!(fixture.keep_result(&fork, "own"), last + 1, "{fork}");
        assert_eq!(fixture.find_result(&fork, last + 1), found("own"), "{fork}");
    }
}

#[test]
fn a_database_without_kept_results_gets_their_table() {
    let fixture = folder::of_form(crate::sqlite::migration::STEPS.len() - 2);
    assert_eq!(fixture.keep_result("s-0", "first"), 1);
    assert_eq!(fixture.find_result("s-0", 1), found("first"));
    assert_eq!(fixture.sessions().get(USER, "s-0").wait().unwrap().records, 1);
}

#[test]
fn a_damaged_result_is_an_error() {
    let fixture = Fixture::new();
    fixture.begin("one", &["a"]);
    fixture.keep_result("one", "first");
    fixture.sql("UPDATE body SET text = 'forged' WHERE text = 'first'");
    let error = fixture.store.kept_results.find(USER, "one", 1).wait().unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
}
