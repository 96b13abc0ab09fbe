//! Removing old records leaves a log that can be checked, and hides nothing.

use super::*;

#[test]
fn the_rest_of_a_log_is_whole() {
    let fixture = Fixture::with_records(10);
    let prune = |before_ms| fixture.store.audit.prune(before_ms).wait().unwrap();
    assert_eq!(prune(1000), 0);
    assert_eq!(fixture.verify().records, 10, "nothing to remove, nothing to say");
    assert_eq!(prune(4000), 3);
    let seen = fixture.verify();
    assert_eq!((seen.records, seen.pruned, seen.problems), (8, 3, vec![]));
    fixture.append(12..=15);
    assert_eq!(prune(9000), 5);
    let seen = fixture.verify();
    assert_eq!((seen.records, seen.pruned, seen.problems), (8, 8, vec![]));
    let last = fixture.entries(AuditFilter::default()).pop().unwrap();
    let last = last.record.unwrap();
    assert_eq!(last.kind, AuditKind::Checkpoint);
    assert_eq!(last.message.as_deref(), Some("8 records up to number 8 were removed"));
}

#[test]
fn a_log_can_be_emptied_and_goes_on() {
    let fixture = Fixture::with_records(10);
    assert_eq!(fixture.store.audit.prune(u64::MAX).wait().unwrap(), 10);
    assert_eq!((fixture.verify().records, fixture.problems()), (1, vec![]));
    fixture.append([12]);
    let log = fixture.log();
    assert_eq!(log.warnings(), []);
    // The remark about the first removal goes with the second.
    assert_eq!(fixture.store.audit.prune(u64::MAX).wait().unwrap(), 2);
    let seen = fixture.verify();
    assert_eq!((seen.records, seen.pruned, seen.problems), (1, 12, vec![]));
}

/// Only the start of the log is removed, whatever the clock said in between.
#[test]
fn records_behind_a_younger_one_stay() {
    let fixture = Fixture::new();
    fixture.append([1, 2, 9, 3, 4, 10]);
    assert_eq!(fixture.store.audit.prune(5000).wait().unwrap(), 2);
    assert_eq!((fixture.verify().records, fixture.problems()), (5, vec![]));
}

/// A long log is removed in several commits, between which others can write.
#[test]
fn a_long_log_is_removed_step_by_step() {
    let fixture = Fixture::new();
    fixture.append(1..=3000);
    fixture.append(3001..=5500);
    assert_eq!(fixture.store.audit.prune(5_400_000).wait().unwrap(), 5399);
    let seen = fixture.verify();
    assert_eq!((seen.records, seen.pruned, seen.problems), (101 + 2, 5399, vec![]));
    assert_eq!(fixture.store.audit.prune(u64::MAX).wait().unwrap(), 103);
}

#[test]
fn what_was_removed_is_in_no_file() {
    let fixture = Fixture::sqlite_with_records(10);
    fixture.store.audit.prune(9000).wait().unwrap();
    let holds = |text: &str| {
        fs::read_dir(fixture.copy().path()).unwrap().any(|entry| {
            let bytes = fs::read(entry.unwrap().path()).unwrap();
            bytes.windows(text.len()).any(|window| window == text.as_bytes())
        })
    };
    assert!(holds("message 10"));
    assert!(!holds("message 3"));
}

#[test]
fn removing_a_manipulation_keeps_what_is_known_of_it() {
    let fixture = Fixture::with_records(10);
    fixture.sql("UPDATE audit SET text = replace(text, 'message', 'massage') WHERE seq = 4");
    fixture.sql("DELETE FROM audit WHERE seq = 2");
    fixture.store.audit.prune(9000).wait().unwrap();
    let want = [
        "among the removed records: record 2: missing",
        "among the removed records: record 3: changed or out of place, up to record 4",
    ];
    assert_eq!(fixture.problems(), want.map(|line| format!("record 11: {line}")));
    fixture.store.audit.prune(u64::MAX).wait().unwrap();
    let twice = want.map(|line| format!("record 12: among the removed records: record 11: {line}"));
    assert_eq!(fixture.problems(), twice);
}

#[test]
fn a_log_that_was_pruned_can_still_be_seen_to_be_broken() {
    let check = |sql: &str, want: &[&str]| {
        let fixture = Fixture::with_records(10);
        fixture.store.audit.prune(4000).wait().unwrap();
        fixture.sql(sql);
        assert_eq!(fixture.problems(), want, "{sql}");
    };
    let unfit = |seq| format!("record {seq}: changed or out of place");
    check("SELECT 1", &[]);
    check("DELETE FROM audit WHERE seq < 6", &["record 4: missing, up to record 5", &unfit(6)]);
    check("UPDATE audit SET text = '{}' WHERE seq = 4", &[&unfit(4)]);
    check(
        "UPDATE audit SET text = replace(text, '3:', '4:') WHERE seq = 11",
        &["record 4: its number is not above the one before", &unfit(11)],
    );
    check(
        "DELETE FROM audit WHERE seq = 11",
        &["record 1: missing, up to record 3", &unfit(4), "record 11: cut off"],
    );
}

#[test]
fn a_head_from_before_the_removal_is_told_apart() {
    let fixture = Fixture::with_records(3);
    let early = fixture.verify().head;
    fixture.append(4..=6);
    let at_cut = fixture.verify().head;
    fixture.append(7..=8);
    fixture.store.audit.prune(7000).wait().unwrap();
    let problems = |head: &str| {
        let seen = fixture.store.audit.verify(Some(head)).wait().unwrap();
        seen.problems.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(problems(&at_cut), [""; 0]);
    assert_eq!(problems(&Fixture::new().verify().head), [""; 0], "the start of any log");
    assert_eq!(
        problems(&early),
        ["record 3: gone, so it cannot be compared with what is expected"]
    );
}

/// A record that cannot be read has no age, and cannot keep the ones before it from being removed.
#[test]
fn unreadable_records_do_not_stand_in_the_way() {
    let fixture = Fixture::with_records(10);
    fixture.sql("UPDATE audit SET text = 'x' WHERE seq IN (1, 3)");
    assert_eq!(fixture.store.audit.prune(6000).wait().unwrap(), 5);
    assert_eq!(fixture.verify().records, 6);
}
