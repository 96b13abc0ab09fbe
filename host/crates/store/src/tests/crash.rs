//! What a killed process leaves is not taken for tampering, and tampering not for a crash.

use super::*;

/// Writes the head that names these records, as whoever holds the key can.
fn write_head(fixture: &Fixture, last: &Entry, next: &Entry) {
    let key: [u8; 32] = fs::read(fixture.path().join("audit.key")).unwrap().try_into().unwrap();
    let key = blake3::derive_key("sallyport audit 1: seal of the head", &key);
    let link = |entry: &Entry| format!("{:020}:{}", entry.seq, entry.hash);
    let text = format!("sallyport audit head 1\nlast {}\nnext {}\n", link(last), link(next));
    let seal = blake3::keyed_hash(&key, text.as_bytes());
    fs::write(fixture.path().join("audit.head"), format!("{text}seal {seal}\n")).unwrap();
}

/// A log of ten records, the last two of which came together, with the head that the process had
/// written before it committed them.
fn while_committing(committed: bool) -> Fixture {
    let fixture = Fixture::with_records(10);
    let entries = fixture.entries(AuditFilter::default());
    if !committed {
        fixture.sql("DELETE FROM audit WHERE seq > 8");
    }
    write_head(&fixture, &entries[7], &entries[9]);
    fixture
}

#[test]
fn a_crash_before_the_commit_and_one_behind_it_leave_a_whole_log() {
    for (committed, records) in [(false, 8), (true, 10)] {
        let fixture = while_committing(committed);
        assert_eq!(fixture.problems(), [""; 0]);
        let log = fixture.log();
        assert_eq!(log.warnings(), []);
        log.append(record(11)).unwrap();
        drop(log);
        assert_eq!((fixture.verify().records, fixture.problems()), (records + 1, vec![]));
    }
}

#[test]
fn a_log_that_lost_part_of_a_commit_did_not_crash() {
    let fixture = while_committing(true);
    fixture.sql("DELETE FROM audit WHERE seq = 10");
    assert_eq!(fixture.problems(), ["record 9: added, or audit.head is an old one"]);
    fixture.sql("DELETE FROM audit WHERE seq > 7");
    assert_eq!(fixture.problems(), ["record 8: cut off, or lost in a failure of the power"]);
}

/// Cutting the log before the next record is written is what a crash makes possible; one record
/// later it is not any more.
#[test]
fn the_next_record_ends_what_a_crash_made_possible() {
    let fixture = while_committing(true);
    fixture.append([11]);
    fixture.sql("DELETE FROM audit WHERE seq > 8");
    assert_eq!(
        fixture.problems(),
        ["record 9: cut off, or lost in a failure of the power, up to record 11"]
    );
}

#[test]
fn a_key_without_a_log_is_a_first_start_that_ended_early() {
    let fixture = Fixture::new();
    fs::copy(Fixture::with_records(1).path().join("audit.key"), fixture.path().join("audit.key"))
        .unwrap();
    assert_eq!(fixture.problems(), [""; 0]);
    let log = fixture.log();
    assert_eq!(log.warnings(), []);
    log.append(record(1)).unwrap();
    drop(log);
    assert_eq!((fixture.verify().records, fixture.problems()), (1, vec![]));
}
