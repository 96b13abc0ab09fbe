//! What is removed is gone, with all that nobody else has, and no more than that.

use super::*;
use crate::SessionApproval;

/// Whether a text stands in any file of the store.
fn is_on_disk(fixture: &Fixture, text: &str) -> bool {
    fs::read_dir(fixture.path()).unwrap().any(|entry| {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    })
}

#[test]
fn a_removed_session_leaves_nothing() {
    let fixture = Fixture::new();
    fixture.begin("s-1", &["the word xylophonist", "common"]);
    fixture.begin("s-2", &["common"]);
    // Enough commits for the index and the log of writes to be moved about.
    for number in 0..100 {
        fixture.go_on("s-1", &[&format!("xylophonist {number}")]);
    }
    assert_eq!(is_on_disk(&fixture, "xylophonist"), fixture.is_sqlite());
    fixture.sessions().remove(USER, "s-1").wait().unwrap();
    assert!(!is_on_disk(&fixture, "xylophonist"));
    assert_eq!(fixture.kept(), [1, 1, 0]);
    assert_eq!(fixture.sessions().search_records(USER, "xylophonist", 9).wait().unwrap(), []);
    assert_eq!(fixture.sessions().search_records(USER, "common", 9).wait().unwrap().len(), 1);
    assert_eq!(fixture.ids(&SessionFilter::of_user(USER)), ["s-2"]);
}

#[test]
fn a_fork_keeps_what_it_has_when_its_parent_goes() {
    let fixture = Fixture::new();
    fixture.begin("s-1", &["one", "two", "three"]);
    fixture.sessions().fork(USER, "s-1", 2, "f-1", 0).wait().unwrap();
    fixture.sessions().remove(USER, "s-1").wait().unwrap();
    assert_eq!(fixture.bodies("f-1"), ["one", "two"]);
    assert_eq!(fixture.kept(), [2, 2, 0]);
    let fork = fixture.sessions().get(USER, "f-1").wait().unwrap();
    assert_eq!((fork.parent_id.as_deref(), fork.parent_records), (Some("s-1"), 2));
    fixture.sessions().remove(USER, "f-1").wait().unwrap();
    assert_eq!(fixture.kept(), [0, 0, 0]);
}

#[test]
fn approvals_go_with_their_session() {
    let fixture = Fixture::new();
    let approval = |session: &str| SessionApproval {
        user: USER.to_owned(),
        session_id: session.to_owned(),
        plugin: "mail".to_owned(),
        digest: String::new(),
        tool: String::new(),
        subject: String::new(),
        rule: String::new(),
        at_ms: 1000,
    };
    for id in ["s-1", "s-2", "s-3"] {
        fixture.begin(id, &["x"]);
        fixture.store.approvals.store_approval(&approval(id)).wait().unwrap();
    }
    let approvals = || {
        ["s-1", "s-2", "s-3"]
            .map(|id| fixture.store.approvals.is_approved(&approval(id)).wait().unwrap())
    };
    fixture.sessions().remove(USER, "s-1").wait().unwrap();
    assert_eq!(approvals(), [false, true, true]);
    assert_eq!(fixture.sessions().prune(0, 1).wait().unwrap(), 1);
    assert_eq!(approvals(), [false, false, true]);
}

/// Longer than one step of the removal.
#[test]
fn a_long_session_is_removed_whole() {
    let fixture = Fixture::new();
    let texts: Vec<String> = (0..1100).map(|number| format!("text {}", number / 2)).collect();
    let refs: Vec<&str> = texts.iter().map(String::as_str).collect();
    fixture.begin("s-1", &refs);
    fixture.begin("s-2", &["text 7"]);
    fixture.sessions().remove(USER, "s-1").wait().unwrap();
    assert_eq!(fixture.kept(), [1, 1, 0]);
    assert_eq!(fixture.count("SELECT count(*) FROM record"), 1);
    assert_eq!(fixture.bodies("s-2"), ["text 7"]);
}

/// A process that is killed after the first commit of a removal leaves this behind.
#[test]
fn a_removal_that_was_cut_short_is_finished_by_the_next() {
    let fixture = Fixture::new();
    fixture.begin("s-1", &["one", "two"]);
    fixture.begin("s-2", &["two", "three"]);
    fixture.sql("INSERT INTO leftover VALUES (1); DELETE FROM session WHERE key = 1");
    assert_eq!(fixture.sessions().search_records(USER, "one", 9).wait().unwrap(), []);
    assert_eq!(fixture.sessions().search_records(USER, "two", 9).wait().unwrap().len(), 1);
    // Its key is not given to another session, which would have its records.
    fixture.begin("s-3", &["three"]);
    assert_eq!(fixture.bodies("s-3"), ["three"]);
    fixture.sessions().remove(USER, "s-3").wait().unwrap();
    assert_eq!(fixture.kept(), [2, 2, 0]);
    assert_eq!(fixture.bodies("s-2"), ["two", "three"]);
}

#[test]
fn a_key_is_never_given_again() {
    let fixture = Fixture::new();
    fixture.begin("s-1", &["one"]);
    fixture.sql("INSERT INTO leftover VALUES (1); DELETE FROM session WHERE key = 1");
    fixture.begin("s-2", &[]);
    assert_eq!(fixture.read("s-2"), []);
}

#[test]
fn retention_takes_the_old_and_the_many() {
    let check = |before_ms, keep_max, want: &[&str]| {
        let fixture = Fixture::new();
        for (id, at_ms) in [("a", 3000), ("b", 1000), ("c", 2000), ("d", 4000), ("e", 4000)] {
            let session = NewSession { created_ms: at_ms, ..new_session(id) };
            fixture.sessions().create(session).wait().unwrap();
            fixture
                .sessions()
                .append_records(USER, id, 0, vec![NewRecord { at_ms, ..new_record(id) }])
                .wait()
                .unwrap();
        }
        assert_eq!(fixture.sessions().prune(before_ms, keep_max).wait().unwrap(), 5 - want.len());
        assert_eq!(fixture.ids(&SessionFilter::of_user(USER)), want);
        assert_eq!(fixture.kept(), [want.len() as u64, want.len() as u64, 0]);
    };
    check(0, usize::MAX, &["e", "d", "a", "c", "b"]);
    check(2000, usize::MAX, &["e", "d", "a", "c"]);
    check(2001, usize::MAX, &["e", "d", "a"]);
    check(u64::MAX, usize::MAX, &[]);
    check(0, 5, &["e", "d", "a", "c", "b"]);
    check(0, 1, &["e"]);
    check(0, 0, &[]);
    check(2001, 2, &["e", "d"]);
    check(2001, 4, &["e", "d", "a"]);
}
