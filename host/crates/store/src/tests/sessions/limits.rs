//! What is too long or too much, and ids that are none.

use super::*;

/// Compares why something is refused.
fn check_refused<T: std::fmt::Debug>(result: Result<T, StoreError>, want: &str) {
    assert_eq!(result.unwrap_err().to_string(), want);
}

#[test]
fn ids_are_short_and_plain() {
    let fixture = Fixture::new();
    for id in ["a", "0", "-", "19a-00ff_X.y", &"x".repeat(64)] {
        fixture.sessions().create(new_session(id)).wait().unwrap();
        check_refused(
            fixture.sessions().create(new_session(id)).wait(),
            &format!("there is a session {id} already"),
        );
    }
    for id in ["", " ", "a b", "a/b", "é", "a\0", "a\n", "%", "*", "\u{1b}[2J"] {
        let error = fixture.sessions().create(new_session(id)).wait().unwrap_err();
        assert!(matches!(error, StoreError::InvalidSessionId { .. }), "{id:?}");
    }
    check_refused(
        fixture.sessions().create(new_session(&"x".repeat(65))).wait(),
        "the id of a session of 65 bytes is too long, at most 64 are taken",
    );
}

#[test]
fn texts_have_a_length() {
    let fixture = Fixture::new();
    let sessions = fixture.sessions();
    let long = "x".repeat((64 << 20) + 1);
    check_refused(
        sessions.create(NewSession { model: long[..257].to_owned(), ..new_session("s") }).wait(),
        "the name of a model of 257 bytes is too long, at most 256 are taken",
    );
    check_refused(
        sessions
            .create(NewSession { folder: Some(long[..4097].to_owned()), ..new_session("s") })
            .wait(),
        "a folder of 4097 bytes is too long, at most 4096 are taken",
    );
    fixture.begin("s", &[]);
    check_refused(
        sessions.switch_model(USER, "s", &long[..257]).wait(),
        "the name of a model of 257 bytes is too long, at most 256 are taken",
    );
    check_refused(
        sessions
            .append_records(
                USER,
                "s",
                0,
                vec![NewRecord { kind: long[..65].to_owned(), ..new_record("x") }],
            )
            .wait(),
        "the kind of a record of 65 bytes is too long, at most 64 are taken",
    );
    check_refused(
        sessions
            .append_records(
                USER,
                "s",
                0,
                vec![new_record("x"), NewRecord { body: long.clone(), ..new_record("") }],
            )
            .wait(),
        "a record of 67108865 bytes is too long, at most 67108864 are taken",
    );
    check_refused(
        sessions.search_records(USER, &long[..1025], 1).wait(),
        "a query of 1025 bytes is too long, at most 1024 are taken",
    );
    assert_eq!(sessions.get(USER, "s").wait().unwrap().records, 0);
}

#[test]
fn of_a_long_title_the_start_is_kept() {
    let fixture = Fixture::new();
    let cut = |text: &str| format!("{}…", text.repeat(119));
    let rows = [
        ("x".repeat(120), "x".repeat(120)),
        ("é".repeat(121), cut("é")),
        ("y".repeat(9999), cut("y")),
    ];
    for (number, (title, want)) in rows.iter().enumerate() {
        let id = number.to_string();
        fixture
            .sessions()
            .create(NewSession { title: title.clone(), ..new_session(&id) })
            .wait()
            .unwrap();
        assert_eq!(fixture.sessions().get(USER, &id).wait().unwrap().title, *want);
        fixture.sessions().rename(USER, &id, "short").wait().unwrap();
        fixture.sessions().rename(USER, &id, title).wait().unwrap();
        assert_eq!(fixture.sessions().get(USER, &id).wait().unwrap().title, *want);
    }
}

#[test]
fn a_session_can_be_full() {
    let fixture = Fixture::new();
    fixture.begin("s-1", &["one"]);
    fixture.sql("UPDATE session SET records = 99999");
    let two = ["two", "three"].map(new_record);
    check_refused(
        fixture.sessions().append_records(USER, "s-1", 99_999, two.to_vec()).wait(),
        "session s-1 is full, it can have 100000 records",
    );
    assert_eq!(
        fixture.sessions().append_records(USER, "s-1", 99_999, two[..1].to_vec()).wait().unwrap(),
        100_000
    );
}

#[test]
fn what_is_not_there_is_named() {
    let fixture = Fixture::new();
    let sessions = fixture.sessions();
    let want = "there is no session \"s-1\"";
    check_refused(sessions.get(USER, "s-1").wait(), want);
    fixture.begin("s-2", &["x"]);
    let gone = StoredSession { id: "s-1".to_owned(), ..sessions.get(USER, "s-2").wait().unwrap() };
    check_refused(sessions.read_page(&gone, 0).wait(), want);
    check_refused(sessions.append_records(USER, "s-1", 0, vec![]).wait(), want);
    check_refused(sessions.rename(USER, "s-1", "").wait(), want);
    check_refused(sessions.switch_model(USER, "s-1", "").wait(), want);
    check_refused(sessions.fork(USER, "s-1", 0, "s-2", 0).wait(), want);
    check_refused(sessions.remove(USER, "s-1").wait(), want);
    check_refused(sessions.find_by_prefix(USER, "s-1").wait(), want);
    check_refused(
        sessions.find_by_prefix(USER, "\u{1b}\0\u{202e}").wait(),
        r#"there is no session "\u{1b}\0\u{202e}""#,
    );
    let long = "x".repeat(1 << 20);
    check_refused(
        sessions.get(USER, &long).wait(),
        &format!("there is no session {:?}", &long[..64]),
    );
}
