//! Beginning, going on, forking.

use super::*;

#[test]
fn what_is_written_is_read_back() {
    let fixture = Fixture::new();
    let (sessions, used) =
        (fixture.sessions(), StoredUsage { turns: 1, tokens: 70, cost_micro_usd: Some(5) });
    sessions.create(new_session("s-1")).wait().unwrap();
    let texts = ["", "{\"a\":1}", "nul \0, ümlaut, 漢字, \u{202e}", "'; DROP TABLE body; --"];
    for (seq, body) in texts.into_iter().enumerate() {
        let at_ms = 5000 - seq as u64;
        let record = NewRecord {
            kind: "answer".to_owned(),
            body: body.to_owned(),
            search_text: "".to_owned(),
            at_ms,
            used,
        };
        assert_eq!(
            sessions.append_records(USER, "s-1", seq as u64, vec![record]).wait().unwrap(),
            seq as u64 + 1
        );
    }
    let want = texts.into_iter().enumerate().map(|(seq, body)| StoredRecord {
        seq: seq as u64,
        kind: "answer".to_owned(),
        body: body.to_owned(),
        at_ms: 5000 - seq as u64,
        used,
    });
    assert_eq!(fixture.read("s-1"), want.collect::<Vec<_>>());
    let session = StoredSession {
        user: USER.to_owned(),
        id: "s-1".to_owned(),
        title: "A title".to_owned(),
        model: "small".to_owned(),
        folder: Some("/work".to_owned()),
        created_ms: 1000,
        updated_ms: 5000,
        parent_id: None,
        parent_records: 0,
        records: 4,
        used: StoredUsage { turns: 4, tokens: 280, cost_micro_usd: Some(20) },
    };
    assert_eq!(fixture.reopen().sessions.get(USER, "s-1").wait().unwrap(), session);
}

#[test]
fn figures_are_added_up_and_never_run_over() {
    let used = |turns, tokens, cost_micro_usd| StoredUsage { turns, tokens, cost_micro_usd };
    let rows: [(&[StoredUsage], StoredUsage); 4] = [
        (&[], used(0, 0, None)),
        (&[used(1, 2, None), used(1, 3, None)], used(2, 5, None)),
        (&[used(0, 0, None), used(0, 0, Some(0)), used(0, 0, Some(3))], used(0, 0, Some(3))),
        (
            &[used(u64::MAX, 1, Some(u64::MAX)), used(5, u64::MAX, Some(2))],
            used(i64::MAX as u64, i64::MAX as u64, Some(i64::MAX as u64)),
        ),
    ];
    for (parts, sum) in rows {
        let fixture = Fixture::new();
        fixture.begin("s-1", &[]);
        for (seq, used) in (0..).zip(parts) {
            let record = NewRecord { used: *used, ..new_record("x") };
            fixture.sessions().append_records(USER, "s-1", seq, vec![record]).wait().unwrap();
        }
        assert_eq!(fixture.sessions().get(USER, "s-1").wait().unwrap().used, sum);
        fixture.sessions().fork(USER, "s-1", parts.len() as u64, "s-2", 0).wait().unwrap();
        assert_eq!(fixture.sessions().get(USER, "s-2").wait().unwrap().used, sum);
    }
}

#[test]
fn a_second_writer_is_told_and_writes_nothing() {
    let fixture = Fixture::new();
    fixture.begin("s-1", &["one", "two"]);
    for expected in [0, 1, 3, u64::MAX] {
        let error = fixture
            .sessions()
            .append_records(USER, "s-1", expected, vec![new_record("mine")])
            .wait()
            .unwrap_err();
        let want = format!(
            "another process went on with session s-1: it has 2 records by now, not {expected}"
        );
        assert_eq!(error.to_string(), want);
        assert_eq!(error.hint().unwrap(), "take the session up again, or fork it");
    }
    assert!(fixture.sessions().append_records(USER, "s-1", 1, vec![]).wait().is_err());
    assert_eq!(fixture.sessions().append_records(USER, "s-1", 2, vec![]).wait().unwrap(), 2);
    assert_eq!(fixture.bodies("s-1"), ["one", "two"]);
    assert_eq!(fixture.kept(), [2, 2, 0]);
}

#[test]
fn records_come_all_or_none() {
    let fixture = Fixture::new();
    fixture.begin("s-1", &["one"]);
    fixture.sql("INSERT INTO record SELECT session, 3, 0, '', body, 0, 0, 0 FROM record");
    let records = ["two", "three", "four"].map(new_record);
    assert!(fixture.sessions().append_records(USER, "s-1", 1, records.to_vec()).wait().is_err());
    fixture.sql("DELETE FROM record WHERE seq = 3");
    assert_eq!((fixture.bodies("s-1"), fixture.kept()), (vec!["one".to_owned()], [1, 1, 0]));
}

#[test]
fn a_body_is_kept_once() {
    let fixture = Fixture::new();
    fixture.begin("s-1", &["same", "same", "other"]);
    fixture.begin("s-2", &["same"]);
    assert_eq!(fixture.kept(), [2, 2, 0]);
    assert_eq!(fixture.bodies("s-1"), ["same", "same", "other"]);
}

#[test]
fn a_fork_has_the_first_records_and_goes_its_own_way() {
    let fixture = Fixture::new();
    fixture.begin("s-1", &["one", "two", "three"]);
    for (records, id) in [(0, "f-0"), (2, "f-2"), (3, "f-3")] {
        fixture.sessions().fork(USER, "s-1", records, id, 9000).wait().unwrap();
        let fork = fixture.sessions().get(USER, id).wait().unwrap();
        let want = StoredSession {
            id: id.to_owned(),
            created_ms: 9000,
            updated_ms: 9000,
            parent_id: Some("s-1".to_owned()),
            parent_records: records,
            records,
            ..fixture.sessions().get(USER, "s-1").wait().unwrap()
        };
        assert_eq!(fork, want);
        assert_eq!(fixture.read(id), fixture.read("s-1")[..records as usize]);
    }
    assert_eq!(fixture.kept(), [3, 3, 0]);
    fixture.go_on("f-2", &["another three"]);
    fixture.go_on("s-1", &["four"]);
    assert_eq!(fixture.bodies("f-2"), ["one", "two", "another three"]);
    assert_eq!(fixture.bodies("s-1"), ["one", "two", "three", "four"]);
}

#[test]
fn what_a_fork_cannot_begin_with() {
    let fixture = Fixture::new();
    fixture.begin("s-1", &["one"]);
    let rows = [
        ("s-1", 2, "f", "session s-1 has 1 records, not 2"),
        ("s-2", 0, "f", "there is no session \"s-2\""),
        ("s-1", 1, "s-1", "there is a session s-1 already"),
        ("s-1", 1, "a b", "\"a b\" cannot be the id of a session"),
    ];
    for (from, records, id, want) in rows {
        let error = fixture.sessions().fork(USER, from, records, id, 0).wait().unwrap_err();
        assert_eq!(error.to_string(), want);
    }
    assert_eq!(fixture.ids(&SessionFilter::of_user(USER)), ["s-1"]);
}

#[test]
fn title_and_model_can_change() {
    let fixture = Fixture::new();
    fixture.begin("s-1", &["one"]);
    let before = fixture.sessions().get(USER, "s-1").wait().unwrap();
    fixture.sessions().rename(USER, "s-1", "Another").wait().unwrap();
    fixture.sessions().switch_model(USER, "s-1", "large").wait().unwrap();
    let want = StoredSession { title: "Another".to_owned(), model: "large".to_owned(), ..before };
    assert_eq!(fixture.sessions().get(USER, "s-1").wait().unwrap(), want);
}
