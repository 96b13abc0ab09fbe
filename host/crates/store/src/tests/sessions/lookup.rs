//! Which session is meant.

use super::*;

/// Sessions by id, folder and the moment of their last record; `None` is one without records.
fn with_sessions(rows: &[(&str, &str, Option<u64>)]) -> Fixture {
    let fixture = Fixture::new();
    for (id, folder, at_ms) in rows {
        let folder = Some(folder.to_string()).filter(|folder| !folder.is_empty());
        fixture.sessions().create(NewSession { folder, ..new_session(id) }).wait().unwrap();
        if let Some(at_ms) = *at_ms {
            let record = NewRecord { at_ms, ..new_record("x") };
            fixture.sessions().append_records(USER, id, 0, vec![record]).wait().unwrap();
        }
    }
    fixture
}

#[test]
fn the_list_has_what_was_used_last_first() {
    let fixture = with_sessions(&[
        ("old", "/a", Some(2000)),
        ("new", "/b", Some(9000)),
        ("same-1", "/a", Some(5000)),
        ("same-2", "/a", Some(5000)),
        ("back-in-time", "/a", Some(10)),
        ("bare", "", None),
    ]);
    let all = ["new", "same-2", "same-1", "old", "bare", "back-in-time"];
    let filter = SessionFilter::of_user(USER);
    let rows: [(SessionFilter, &[&str]); 8] = [
        (filter.clone(), &all),
        (SessionFilter { limit: Some(2), ..filter.clone() }, &all[..2]),
        (SessionFilter { limit: Some(0), ..filter.clone() }, &[]),
        (SessionFilter { before_ms: Some(5000), ..filter.clone() }, &all[3..]),
        (SessionFilter { before_ms: Some(0), ..filter.clone() }, &[]),
        (SessionFilter { before_ms: Some(u64::MAX), ..filter.clone() }, &all),
        (SessionFilter { folder: Some("/b".to_owned()), ..filter.clone() }, &["new"]),
        (
            SessionFilter {
                folder: Some("/a".to_owned()),
                before_ms: Some(5001),
                limit: Some(2),
                ..filter.clone()
            },
            &["same-2", "same-1"],
        ),
    ];
    for (filter, want) in rows {
        assert_eq!(fixture.ids(&filter), want, "{filter:?}");
    }
    let latest = |folder| {
        fixture.sessions().latest_session(USER, folder).wait().unwrap().map(|session| session.id)
    };
    assert_eq!(latest(None).unwrap(), "new");
    assert_eq!(latest(Some("/a")).unwrap(), "same-2");
    assert_eq!(latest(Some("/A")), None);
    assert_eq!(latest(Some("")), None);
}

#[test]
fn a_session_without_records_is_not_the_latest() {
    let fixture = with_sessions(&[("talk", "/a", Some(10)), ("bare", "/a", None)]);
    assert_eq!(
        fixture.sessions().latest_session(USER, Some("/a")).wait().unwrap().unwrap().id,
        "talk"
    );
    assert_eq!(
        with_sessions(&[("bare", "/a", None)])
            .sessions()
            .latest_session(USER, None)
            .wait()
            .unwrap(),
        None
    );
}

#[test]
fn the_start_of_an_id_is_enough_when_it_is_clear() {
    let ids = ["ab", "abc", "abd", "b_1", "b_2", "c1", "c2", "c3", "c4", "c5", "c6", "d"];
    let fixture = with_sessions(&ids.map(|id| (id, "", None)));
    let several = |prefix: &str, hint: &str| {
        Err((format!("{prefix:?} is the start of several sessions' ids"), hint.to_owned()))
    };
    let none = |prefix: &str| {
        let hint = "list the sessions to see which there are".to_owned();
        Err((format!("there is no session {prefix:?}"), hint))
    };
    let rows = [
        ("ab", Ok("ab")),
        ("abc", Ok("abc")),
        ("d", Ok("d")),
        ("b_1", Ok("b_1")),
        ("a", several("a", "give more of it: ab, abc, abd")),
        ("b", several("b", "give more of it: b_1, b_2")),
        ("c", several("c", "give more of it: c1, c2, c3, c4, c5")),
        ("", none("")),
        ("e", none("e")),
        ("D", none("D")),
        ("%", none("%")),
        ("_", none("_")),
        ("b%", none("b%")),
        ("abcd", none("abcd")),
    ];
    for (prefix, want) in rows {
        let found =
            fixture.sessions().find_by_prefix(USER, prefix).wait().map(|session| session.id);
        let found = found.map_err(|error| (error.to_string(), error.hint().unwrap()));
        assert_eq!(found, want.map(str::to_owned), "{prefix:?}");
    }
}

#[test]
fn a_long_session_is_read_in_pages() {
    let fixture = Fixture::new();
    let texts: Vec<String> = (0..600).map(|number| format!("text {number}")).collect();
    let refs: Vec<&str> = texts.iter().map(String::as_str).collect();
    fixture.begin("s-1", &refs);
    assert_eq!(fixture.bodies("s-1"), texts);
    let large: Vec<String> = (0..5).map(|number| format!("{number}").repeat(700 << 10)).collect();
    let refs: Vec<&str> = large.iter().map(String::as_str).collect();
    fixture.begin("s-2", &refs);
    assert_eq!(fixture.bodies("s-2"), large);
}

#[test]
fn a_reader_sees_the_session_as_it_was() {
    let fixture = Fixture::new();
    let texts = ["x"; 300];
    fixture.begin("s-1", &texts);
    let session = fixture.sessions().get(USER, "s-1").wait().unwrap();
    let first = fixture.sessions().read_page(&session, 0).wait().unwrap();
    fixture.go_on("s-1", &["more"]);
    let rest = fixture.sessions().read_page(&session, first.len() as u64).wait().unwrap();
    assert_eq!(first.len() + rest.len(), 300);
    assert_eq!(fixture.sessions().read_page(&session, 300).wait().unwrap(), []);
}

#[test]
fn a_reader_is_told_that_its_session_is_gone() {
    let fixture = Fixture::new();
    fixture.begin("s-1", &["x"; 300]);
    let session = fixture.sessions().get(USER, "s-1").wait().unwrap();
    let first = fixture.sessions().read_page(&session, 0).wait().unwrap();
    fixture.sessions().remove(USER, "s-1").wait().unwrap();
    let later = NewSession { created_ms: 1001, ..new_session("s-1") };
    fixture.sessions().create(later).wait().unwrap();
    fixture.go_on("s-1", &["another"; 300]);
    for number in [0, first.len() as u64] {
        let error = fixture.sessions().read_page(&session, number).wait().unwrap_err();
        assert_eq!(error.to_string(), "there is no session \"s-1\"");
    }
}
