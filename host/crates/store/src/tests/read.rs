//! Reading the log through a filter.

use sallyport_contract::Decision;

use super::*;
use crate::sqlite::audit::read::AuditEntryReader;

/// Thousand records in which plugins, tools, kinds and the rest take turns.
fn mixed() -> Fixture {
    let fixture = Fixture::new();
    let log = fixture.log();
    for number in 1..=1000 {
        let pick = |texts: [&str; 2]| Some(texts[usize::from(number % 2 == 0)].to_owned());
        log.append(AuditRecord {
            plugin: pick(["weather", "mail"]),
            tool: Some(format!("tool-{}", number % 10)),
            session: pick(["s-1", "s-2"]),
            outcome: (number % 5 == 0).then(|| "denied".to_owned()),
            decision: (number % 3 == 0).then_some(Decision::Deny),
            kind: if number % 7 == 0 { AuditKind::Policy } else { AuditKind::Call },
            ..record(number)
        })
        .unwrap();
    }
    log.flush(PATIENCE).unwrap();
    fixture
}

#[test]
fn filters_pick_what_they_say() {
    let fixture = mixed();
    let text = |text: &str| Some(text.to_owned());
    let all = AuditFilter::default;
    type Fits = fn(u64) -> bool;
    let rows: [(AuditFilter, Fits); 12] = [
        (all(), |_| true),
        (AuditFilter { plugin: text("mail"), ..all() }, |n| n % 2 == 0),
        (AuditFilter { tool: text("tool-3"), ..all() }, |n| n % 10 == 3),
        (AuditFilter { session: text("s-1"), ..all() }, |n| n % 2 == 1),
        (AuditFilter { outcome: text("denied"), ..all() }, |n| n % 5 == 0),
        (AuditFilter { decision: Some(Decision::Deny), ..all() }, |n| n % 3 == 0),
        (AuditFilter { kind: Some(AuditKind::Policy), ..all() }, |n| n % 7 == 0),
        (AuditFilter { since_ms: Some(300_000), ..all() }, |n| n >= 300),
        (AuditFilter { until_ms: Some(300_000), ..all() }, |n| n < 300),
        (AuditFilter { after_seq: Some(700), ..all() }, |n| n > 700),
        (AuditFilter { after_seq: Some(u64::MAX), ..all() }, |_| false),
        (AuditFilter { plugin: text("mail"), tool: text("tool-3"), ..all() }, |_| false),
    ];
    for (filter, fits) in rows {
        let mut want: Vec<u64> = (1..=1000).filter(|number| fits(*number)).collect();
        let got =
            |filter| fixture.entries(filter).iter().map(|entry| entry.seq).collect::<Vec<_>>();
        assert_eq!(got(filter.clone()), want, "{filter:?}");
        want.reverse();
        want.truncate(30);
        let newest = AuditFilter { newest_first: true, limit: Some(30), ..filter };
        assert_eq!(got(newest.clone()), want, "{newest:?}");
    }
}

#[test]
fn an_entry_is_what_was_appended() {
    let fixture = Fixture::with_records(2);
    let entries = fixture.entries(AuditFilter::default());
    assert_eq!(entries[1].record, Some(record(2)));
    assert_eq!(entries[1].text, record(2).into_line());
    assert_eq!(fixture.verify().head, format!("2:{}", entries[1].hash));
    let none = AuditFilter { limit: Some(0), ..AuditFilter::default() };
    assert_eq!(fixture.entries(none), []);
    assert_eq!(Fixture::new().entries(AuditFilter::default()), []);
}

/// Breaking a record, or writing it in a form of the future, does not hide it.
#[test]
fn unreadable_records_pass_every_filter() {
    let fixture = Fixture::sqlite_with_records(5);
    fixture.sql("UPDATE audit SET text = 'junk' WHERE seq = 2");
    fixture.sql("UPDATE audit SET text = replace(text, '\"v\":1', '\"v\":9') WHERE seq = 3");
    fixture.sql("UPDATE audit SET text = CAST(x'ff00' AS TEXT) WHERE seq = 4");
    let filter = AuditFilter { plugin: Some("none".to_owned()), ..AuditFilter::default() };
    let entries = fixture.entries(filter);
    assert_eq!(entries.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [2, 3, 4]);
    assert!(entries.iter().all(|entry| entry.record.is_none()));
    assert_eq!((entries[0].text.as_str(), entries[2].text.as_str()), ("junk", "\u{fffd}\0"));
}

#[test]
fn the_log_may_grow_while_it_is_read() {
    let fixture = Fixture::sqlite_with_records(600);
    let mut records = AuditEntryReader::new(fixture.sqlite_store(), AuditFilter::default());
    assert_eq!(records.next().unwrap().unwrap().seq, 1);
    fixture.append(601..=610);
    assert_eq!(records.last().unwrap().unwrap().seq, 610);
}
