//! Homes that are copied into a database.

use super::*;
use crate::{IdempotencyKey, KeyedReply, database::HomeCopy};

/// A home with something of every kind.
fn full_home() -> Fixture {
    let fixture = Fixture::sqlite();
    let sessions = &fixture.store.sessions;
    let new = |text: &str| NewRecord {
        kind: "input".to_owned(),
        body: format!("{text}\0"),
        search_text: text.to_owned(),
        at_ms: 1,
        used: StoredUsage { turns: 1, tokens: 2, cost_micro_usd: Some(3) },
    };
    for id in ["s-1", "s-2", "gone"] {
        sessions.create(new_session(id)).wait().unwrap();
        sessions
            .append_records(USER, id, 0, vec![new("a needle in 北京"), new(id)])
            .wait()
            .unwrap();
    }
    sessions.fork(USER, "s-1", 1, "f-1", 5).wait().unwrap();
    sessions.remove(USER, "gone").wait().unwrap();
    let result = crate::NewKeptResult { text: "long".to_owned(), after_records: 1 };
    fixture.store.kept_results.keep(USER, "s-1", result).wait().unwrap();
    let write = sallyport_contract::services::StateWrite {
        value: vec![0, 255],
        expected: sallyport_contract::services::WriteCondition::Anything,
        expires_in: None,
        quota_bytes: 99,
    };
    fixture.store.state.set(&owner("notes", "me"), "k", write).wait().unwrap();
    let memory = crate::NewMemory {
        user: "me".to_owned(),
        text: "rare words".to_owned(),
        vector: Some(crate::EmbeddingVector { embedder: "m".to_owned(), values: vec![1.0, 2.0] }),
        session_id: "s-1".to_owned(),
        turn: 1,
        kind: crate::StoredMemoryKind::Turn,
        at_ms: 7,
    };
    fixture.store.memories.store_memory(memory).wait().unwrap();
    let users = &fixture.store.users;
    users.set_login_groups("ann", &["support".to_owned()]).wait().unwrap();
    users
        .add_usage("ann", 9, crate::UserUsage { calls: 1, tokens: 2, micro_usd: 3 })
        .wait()
        .unwrap();
    let keys = &fixture.store.idempotency;
    for name in ["running", "done"] {
        keys.begin_key(&idempotency_key(name), [7; 32], 1).wait().unwrap();
    }
    let reply = KeyedReply { status: 201, body: Some(vec![0, 255]) };
    keys.end_key(&idempotency_key("done"), reply).wait().unwrap();
    fixture.append(1..=5);
    fixture
}

fn idempotency_key(key: &str) -> IdempotencyKey {
    IdempotencyKey { user: "ann".to_owned(), key: key.to_owned() }
}

/// What readers see of a store.
fn seen(store: &HostStore) -> impl PartialEq + std::fmt::Debug {
    let sessions = store.sessions.list(crate::SessionFilter::of_user(USER)).wait().unwrap();
    let records: Vec<_> = sessions
        .iter()
        .map(|session| store.sessions.read_page(session, 0).wait().unwrap())
        .collect();
    let found = store.sessions.search_records(USER, "needle \"北京\"", 9).wait().unwrap();
    let kept = store.kept_results.find(USER, "s-1", 1).wait().unwrap();
    let state = store.state.list_owners().wait().unwrap();
    let memories = store.memories.search("me", "rare", 9).wait().unwrap();
    let query = crate::MemoryQuery {
        user: "me".to_owned(),
        criterion: crate::MemoryCriterion::Vector(crate::EmbeddingVector {
            embedder: "m".to_owned(),
            values: vec![1.0, 2.0],
        }),
        limit: 1,
        visible_turns: None,
    };
    let near = store.memories.recall(query).wait().unwrap().matches.len();
    let audit = store.audit.verify(None).wait().unwrap();
    let groups = store.users.login_groups("ann").wait().unwrap();
    let usage = store.users.usage_since("ann", 0).wait().unwrap();
    let key = |name| store.idempotency.find_key(&idempotency_key(name), 1).wait().unwrap();
    let of_users = (groups, usage, key("running"), key("done"));
    (sessions, records, found, kept, state, memories, near, (audit, of_users))
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask postgres"]
fn a_home_is_copied_whole_once_and_unchanged() {
    let fixture = on_server();
    let (home, target) = (full_home(), schema(&fixture));
    let HomeCopy::Copied(copied) = target.store.copy_from(home.path()).unwrap() else {
        panic!("the database was empty")
    };
    let rows = |what: &str| copied.iter().find(|copied| copied.what == what).unwrap().rows;
    assert_eq!((rows("sessions"), rows("records of the audit"), rows("memories")), (3, 5, 1));
    assert_eq!(format!("{:?}", seen(&fixture.store)), format!("{:?}", seen(&home.store)));
    // The log goes on with the same key, and no key of a session is given again.
    fixture.append([6]);
    assert_eq!(fixture.problems(), [""; 0]);
    fixture.store.sessions.create(new_session("s-9")).wait().unwrap();
    assert_eq!(fixture.count("SELECT key FROM session WHERE id = 's-9'"), 5);
    // As after a kill behind the commit: it is all there, whatever was added to it since.
    assert_eq!(target.store.copy_from(home.path()).unwrap(), HomeCopy::CopiedBefore);
    assert_eq!((fixture.verify().records, fixture.problems()), (6, vec![]));
    home.append([6]);
    let error = target.store.copy_from(home.path()).unwrap_err();
    assert!(matches!(error, StoreError::NotEmpty { .. }), "{error}");
}

/// A copy that is cut short leaves nothing, and can be made again.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask postgres"]
fn a_copy_that_fails_leaves_nothing() {
    let fixture = on_server();
    let (home, target) = (full_home(), schema(&fixture));
    fixture.sql("ALTER TABLE memory_source ADD CHECK (turn > 1)");
    assert!(target.store.copy_from(home.path()).is_err());
    assert_eq!(fixture.count("SELECT count(*) FROM session"), 0);
    fixture.sql("ALTER TABLE memory_source DROP CONSTRAINT memory_source_turn_check");
    target.store.copy_from(home.path()).unwrap();
    assert_eq!(fixture.count("SELECT count(*) FROM session"), 3);
}
