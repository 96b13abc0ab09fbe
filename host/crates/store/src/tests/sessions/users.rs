//! A session belongs to one user: for another one it does not exist.

use super::*;
use crate::kept_results::{KeptResultLookup, NewKeptResult};

const ANN: &str = "ann";
const BEN: &str = "ben";

/// A store in which both users have a session, with a record and a kept result.
fn with_two_users() -> Fixture {
    let fixture = Fixture::new();
    for (user, id, words) in [(ANN, "s-ann", "needle of ann"), (BEN, "s-ben", "needle of ben")] {
        let sessions = fixture.sessions();
        sessions.create(NewSession { user: user.to_owned(), ..new_session(id) }).wait().unwrap();
        sessions.append_records(user, id, 0, vec![new_record(words)]).wait().unwrap();
        let result = NewKeptResult { text: words.to_owned(), after_records: 0 };
        assert_eq!(fixture.store.kept_results.keep(user, id, result).wait().unwrap(), 1);
    }
    fixture
}

fn check_missing<T: std::fmt::Debug>(result: Result<T, StoreError>) {
    assert!(matches!(result, Err(StoreError::SessionNotFound { .. })), "{result:?}");
}

#[test]
fn a_session_of_another_user_is_not_found_by_its_id() {
    let fixture = with_two_users();
    let (sessions, results) = (fixture.sessions(), &fixture.store.kept_results);
    check_missing(sessions.get(BEN, "s-ann").wait());
    check_missing(sessions.append_records(BEN, "s-ann", 1, vec![new_record("x")]).wait());
    check_missing(sessions.rename(BEN, "s-ann", "mine").wait());
    check_missing(sessions.switch_model(BEN, "s-ann", "mine").wait());
    check_missing(sessions.fork(BEN, "s-ann", 1, "fork", 5000).wait());
    check_missing(sessions.remove(BEN, "s-ann").wait());
    check_missing(results.find(BEN, "s-ann", 1).wait());
    let result = NewKeptResult { text: "x".to_owned(), after_records: 1 };
    check_missing(results.keep(BEN, "s-ann", result).wait());
    let taken = NewSession { user: BEN.to_owned(), ..new_session("s-ann") };
    let error = sessions.create(taken).wait().unwrap_err();
    assert!(matches!(error, StoreError::SessionExists { .. }), "{error}");
    // A session that was found is read only by its user.
    let found = sessions.get(ANN, "s-ann").wait().unwrap();
    let forged = StoredSession { user: BEN.to_owned(), ..found.clone() };
    check_missing(sessions.read_page(&forged, 0).wait());
    assert_eq!(sessions.read_page(&found, 0).wait().unwrap()[0].body, "needle of ann");
    assert_eq!(
        (found.title.as_str(), found.model.as_str(), found.records),
        ("A title", "small", 1)
    );
    let kept = results.find(ANN, "s-ann", 1).wait().unwrap();
    assert_eq!(kept, KeptResultLookup::Found("needle of ann".to_owned()));
}

#[test]
fn lists_searches_and_prefixes_see_the_sessions_of_their_user() {
    let fixture = with_two_users();
    let sessions = fixture.sessions();
    for (user, id) in [(ANN, "s-ann"), (BEN, "s-ben")] {
        assert_eq!(fixture.ids(&SessionFilter::of_user(user)), [id]);
        let found = sessions.find_by_prefix(user, "s-").wait().unwrap();
        assert_eq!((found.id.as_str(), found.user.as_str()), (id, user));
        for folder in [None, Some("/work")] {
            let latest = sessions.latest_session(user, folder).wait().unwrap().unwrap();
            assert_eq!(latest.id, id);
        }
        // The better match of another user takes no place.
        let hits = sessions.search_records(user, "needle", 1).wait().unwrap();
        assert_eq!(hits.iter().map(|hit| hit.session_id.as_str()).collect::<Vec<_>>(), [id]);
    }
    check_missing(sessions.find_by_prefix(BEN, "s-ann").wait());
    for unknown in ["", "an", "ANN", "%"] {
        assert_eq!(fixture.ids(&SessionFilter::of_user(unknown)), [""; 0]);
        assert_eq!(sessions.latest_session(unknown, None).wait().unwrap(), None);
        assert_eq!(sessions.search_records(unknown, "needle", 9).wait().unwrap(), []);
    }
}

/// Equal texts are stored once, and still belong to each of their users alone.
#[test]
fn equal_words_of_two_users_are_found_by_each() {
    let fixture = with_two_users();
    let sessions = fixture.sessions();
    for (user, id) in [(ANN, "s-ann"), (BEN, "s-ben")] {
        sessions.append_records(user, id, 1, vec![new_record("equal words")]).wait().unwrap();
    }
    for (user, id) in [(ANN, "s-ann"), (BEN, "s-ben")] {
        let hits = sessions.search_records(user, "equal", 9).wait().unwrap();
        assert_eq!(hits.iter().map(|hit| hit.session_id.as_str()).collect::<Vec<_>>(), [id]);
    }
    sessions.remove(ANN, "s-ann").wait().unwrap();
    assert_eq!(sessions.search_records(BEN, "equal", 9).wait().unwrap().len(), 1);
}

#[test]
fn a_fork_belongs_to_the_user_of_its_session() {
    let fixture = with_two_users();
    fixture.sessions().fork(ANN, "s-ann", 1, "fork", 5000).wait().unwrap();
    assert_eq!(fixture.sessions().get(ANN, "fork").wait().unwrap().user, ANN);
    check_missing(fixture.sessions().get(BEN, "fork").wait());
    check_missing(fixture.store.kept_results.find(BEN, "fork", 1).wait());
}

/// Many sessions of one user push none of another out.
#[test]
fn the_most_sessions_are_counted_for_each_user() {
    let fixture = with_two_users();
    for number in 1..=3 {
        let id = format!("s-ben-{number}");
        let new = NewSession { user: BEN.to_owned(), created_ms: 9000, ..new_session(&id) };
        fixture.sessions().create(new).wait().unwrap();
    }
    assert_eq!(fixture.sessions().prune(0, 2).wait().unwrap(), 2);
    assert_eq!(fixture.ids(&SessionFilter::of_user(ANN)), ["s-ann"]);
    assert_eq!(fixture.ids(&SessionFilter::of_user(BEN)), ["s-ben-3", "s-ben-2"]);
    assert_eq!(fixture.sessions().prune(5000, 2).wait().unwrap(), 1, "age counts for all");
    assert_eq!(fixture.ids(&SessionFilter::of_user(ANN)), [""; 0]);
}
