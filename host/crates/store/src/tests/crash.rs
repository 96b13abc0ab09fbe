//! What a killed process, a full disk or a failure of the power leaves is not taken for tampering,
//! and tampering not for a crash.

use super::*;

/// A store whose log ends at `records`, with the head of a moment when it ended at `named`.
fn interrupted(named: u64, records: u64) -> Fixture {
    let fixture = Fixture::sqlite_with_records(named);
    let head = fs::read(fixture.path().join("audit.head")).unwrap();
    fixture.append(named + 1..=records);
    fs::write(fixture.path().join("audit.head"), head).unwrap();
    fixture
}

#[test]
fn a_crash_between_the_commit_and_the_head_leaves_a_whole_log() {
    for (named, records) in [(8, 10), (1, 10), (10, 10)] {
        let fixture = interrupted(named, records);
        assert_eq!(fixture.problems(), [""; 0]);
        let log = fixture.log();
        assert_eq!(log.warnings(), []);
        log.append(record(11)).unwrap();
        drop(log);
        assert_eq!((fixture.verify().records, fixture.problems()), (records + 1, vec![]));
    }
}

/// Cutting the log before the next head is written is what a crash makes possible; one start later
/// it is not any more.
#[test]
fn the_next_start_ends_what_a_crash_made_possible() {
    let fixture = interrupted(8, 10);
    drop(fixture.log());
    fixture.sql("DELETE FROM audit WHERE seq > 8");
    assert_eq!(fixture.problems(), ["record 9: cut off, up to record 10"]);
}

#[test]
fn old_records_can_be_removed_behind_a_head_of_before() {
    let fixture = interrupted(2, 10);
    let head = fs::read(fixture.path().join("audit.head")).unwrap();
    assert_eq!(fixture.store.audit.prune(6000).wait().unwrap(), 5);
    fs::write(fixture.path().join("audit.head"), head).unwrap();
    assert_eq!(fixture.problems(), [""; 0]);
    assert_eq!(fixture.log().warnings(), []);
}

#[test]
fn a_first_start_that_ended_early_is_no_trouble() {
    let other = Fixture::sqlite_with_records(1);
    let key = fs::read(other.path().join("audit.key")).unwrap();
    let begun = || {
        let fixture = Fixture::sqlite();
        fixture.log();
        fixture
    };
    let without_head = begun();
    fs::remove_file(without_head.path().join("audit.head")).unwrap();
    let empty_head = begun();
    fs::write(empty_head.path().join("audit.head"), "").unwrap();
    let half_beside = begun();
    fs::write(half_beside.path().join("audit.head.new"), "sallyport au").unwrap();
    fs::write(half_beside.path().join("audit.key.new"), &key[..7]).unwrap();
    for fixture in [begun(), without_head, empty_head, half_beside] {
        assert_eq!(fixture.problems(), [""; 0]);
        let log = fixture.log();
        assert_eq!(log.warnings(), []);
        log.append(record(1)).unwrap();
        drop(log);
        assert_eq!((fixture.verify().records, fixture.problems()), (1, vec![]));
    }
}
