//! A log that was found broken goes on behind a record that says so, and is never whole again.

use super::*;
use crate::StoreError;

/// Breaks a log of ten records, opens it, and compares what is warned of; then writes on, and
/// compares what a check says from then on.
fn check(what: &str, tamper: impl FnOnce(&Fixture), warned: &[&str], problems: &[&str]) {
    let fixture = Fixture::sqlite_with_records(10);
    tamper(&fixture);
    let log = fixture.log();
    let warnings: Vec<_> = log.warnings().iter().map(ToString::to_string).collect();
    assert_eq!(warnings, warned, "{what}");
    log.append(record(100)).unwrap();
    drop(log);
    fixture.append([101]);
    assert_eq!(fixture.problems(), problems, "{what}");

    let again = fixture.log();
    assert_eq!(again.warnings(), [], "{what}: told once");
    let trouble = AuditFilter { kind: Some(AuditKind::Trouble), ..AuditFilter::default() };
    let records: Vec<_> =
        fixture.entries(trouble).into_iter().filter_map(|entry| entry.record).collect();
    assert_eq!(records.len(), 1, "{what}");
    let message = records[0].message.as_ref().unwrap();
    assert!(message.starts_with("the audit was found broken: "), "{what}: {message}");
}

#[test]
fn a_log_that_was_cut_keeps_its_gap() {
    check(
        "cut",
        |fixture| fixture.sql("DELETE FROM audit WHERE seq > 7"),
        &["record 8: cut off, up to record 10"],
        &[
            "record 8: missing, up to record 10",
            "record 11: the log was found broken here: record 8: cut off, up to record 10",
        ],
    );
}

/// Made anew, it would read as if nobody had ever said or planned anything.
#[test]
fn a_database_that_was_removed_or_emptied_is_not_made_anew_in_silence() {
    let files = [FILE, "store.sqlite3-wal", "store.sqlite3-shm"];
    let remove = |path: &Path| drop(fs::remove_file(path));
    let empty = |path: &Path| fs::write(path, "").unwrap();
    for spoil in [&remove as &dyn Fn(&Path), &empty] {
        let fixture = Fixture::sqlite_with_records(10);
        files.iter().for_each(|name| spoil(&fixture.path().join(name)));
        let again = HostStore::open(fixture.path()).unwrap();
        let errors = [
            again.sessions.latest_session(USER, None).wait().map(drop).unwrap_err(),
            again.audit.verify(None).wait().map(drop).unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(error, StoreError::DatabaseMissing { .. }), "{error}");
            assert!(error.hint().unwrap().contains("restore it from a backup"));
        }
        assert!(again.audit_log().flush(PATIENCE).is_err());
    }
}

/// A record's number is part of what is hashed.
#[test]
fn a_gap_cannot_be_closed_by_other_numbers() {
    let fixture = Fixture::sqlite_with_records(10);
    fixture.sql("DELETE FROM audit WHERE seq > 7");
    fixture.append([100, 101]);
    fixture.sql("UPDATE audit SET seq = seq - 3 WHERE seq > 7");
    let problems = fixture.problems();
    assert_eq!(problems[0], "record 8: changed or out of place, up to record 10");
}

#[test]
fn a_changed_end_stays_changed() {
    check(
        "edited",
        |fixture| fixture.sql("UPDATE audit SET text = '{}' WHERE seq = 10"),
        &["record 10: the last one, and changed, or written with another key"],
        &[
            "record 10: changed or out of place",
            "record 11: the log was found broken here: record 10: the last one, and changed, or written with another key",
        ],
    );
}

#[test]
fn a_new_key_does_not_hide_the_old_one() {
    check(
        "no key",
        |fixture| fs::remove_file(fixture.path().join("audit.key")).unwrap(),
        &[
            "record 10: the last one, but audit.head was changed, or made with another key",
            "record 10: the last one, and changed, or written with another key",
        ],
        &[
            "record 1: changed, or written with another key, up to record 10",
            "record 11: the log was found broken here: record 10: the last one, but audit.head was changed, or made with another key",
            "record 11: the log was found broken here: record 10: the last one, and changed, or written with another key",
        ],
    );
}

#[test]
fn a_new_head_does_not_hide_the_old_one() {
    check(
        "no head",
        |fixture| fs::remove_file(fixture.path().join("audit.head")).unwrap(),
        &["record 10: the last one, but audit.head, which would confirm it, is missing"],
        &[
            "record 11: the log was found broken here: record 10: the last one, but audit.head, which would confirm it, is missing",
        ],
    );
    check(
        "a long head",
        |fixture| fs::write(fixture.path().join("audit.head"), "x".repeat(1000)).unwrap(),
        &["record 10: the last one, but audit.head was changed, or made with another key"],
        &[
            "record 11: the log was found broken here: record 10: the last one, but audit.head was changed, or made with another key",
        ],
    );
}

/// A place in the middle is found by a check, and is there for every later one.
#[test]
fn what_happened_long_ago_stays_where_it_happened() {
    let fixture = Fixture::sqlite_with_records(10);
    fixture.sql("UPDATE audit SET text = '{}' WHERE seq = 4");
    fixture.append(11..=20);
    assert_eq!(fixture.problems(), ["record 4: changed or out of place"]);
}

/// Killed while it writes down what it found, a process leaves the finding to the next one.
#[test]
fn a_finding_is_not_lost_by_a_crash() {
    let fixture = Fixture::sqlite_with_records(10);
    fixture.sql("DELETE FROM audit WHERE seq > 7");
    let head = fs::read(fixture.path().join("audit.head")).unwrap();
    fixture.log();
    fs::write(fixture.path().join("audit.head"), head).unwrap();
    let log = fixture.log();
    assert_eq!(log.warnings().len(), 1, "the head is still the one of before");
}

/// While somebody keeps changing the log, nothing can be vouched for.
#[test]
fn the_numbers_of_records_can_run_out() {
    let fixture = Fixture::sqlite_with_records(1);
    fixture.sql(&format!("UPDATE audit SET seq = {}", i64::MAX));
    let error = fixture.store.audit_log().flush(PATIENCE).unwrap_err();
    assert!(error.to_string().ends_with("there is no number after its last one"), "{error}");
}
