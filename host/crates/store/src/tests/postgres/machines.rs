//! Several machines with one database.

use sallyport_contract::services::NoticeAudience;

use super::*;
use crate::{IdempotencyKey, KeyState, KeyedReply, SessionClaim};

#[test]
#[ignore = "needs PostgreSQL: cargo xtask postgres"]
fn machines_that_start_at_once_make_one_schema() {
    let fixture = on_server();
    let all = schema(&fixture);
    let stores: Vec<HostStore> = (0..6).map(|_| HostStore::from_parts(all.reopen())).collect();
    std::thread::scope(|scope| {
        for store in &stores {
            scope.spawn(|| store.sessions.latest_session(USER, None).wait().unwrap());
        }
    });
    assert_eq!(fixture.count("SELECT version FROM store"), migration::NEWEST as u64);
}

/// Two machines with the same key write one chain, and both can check it.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask postgres"]
fn machines_with_one_key_write_one_chain() {
    let fixture = on_server();
    fixture.append(1..=3);
    let other = TempDir::new().unwrap();
    let folder = other.path().join("store");
    crate::private_files::ensure_private_folder(&folder).unwrap();
    let key = fixture.path().join("audit.key");
    fs::copy(key, folder.join("audit.key")).unwrap();
    let second = HostStore::from_parts(schema(&fixture).reopen_in(&folder));
    let log = second.audit_log();
    log.append(record(4)).unwrap();
    log.flush(PATIENCE).unwrap();
    assert_eq!(log.warnings(), []);
    fixture.append([5]);
    for store in [&fixture.store, &second] {
        let seen = store.audit.verify(None).wait().unwrap();
        assert_eq!((seen.records, seen.problems), (5, vec![]));
    }
    // A log that is cut off behind the head of one machine is found out there.
    fixture.sql("DELETE FROM audit WHERE seq = 5");
    assert!(second.audit.verify(None).wait().unwrap().is_intact());
    assert_eq!(fixture.problems(), ["record 5: cut off"]);
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask postgres"]
fn a_machine_with_another_key_writes_nothing() {
    let fixture = on_server();
    fixture.append(1..=3);
    let other = TempDir::new().unwrap();
    let second = HostStore::from_parts(schema(&fixture).reopen_in(&other.path().join("store")));
    let error = second.audit_log().flush(PATIENCE).unwrap_err();
    assert!(error.to_string().contains("was begun with another key"), "{error}");
    assert!(error.hint().unwrap().contains("copy audit.key"), "{error}");
    assert_eq!((fixture.verify().records, fixture.problems()), (3, vec![]));
}

const NOW_MS: u64 = 1_800_000_000_000;

/// The state of the key `k` as another machine sees it.
fn state_elsewhere(fixture: &Fixture, other: &HostStore) -> Option<KeyState> {
    let key = IdempotencyKey { user: "ann".to_owned(), key: "k".to_owned() };
    let begun = other.idempotency.begin_key(&key, [1; 32], NOW_MS).wait().unwrap();
    let found = fixture.store.idempotency.find_key(&key, NOW_MS).wait().unwrap();
    assert_eq!(begun, found);
    found.map(|known| known.state)
}

/// The key of a machine that dies is cut off when its lease ends, and never begun again. A machine
/// that was only slow can still tell what came of it.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask postgres"]
fn the_key_of_a_machine_that_dies_is_cut_off_with_its_lease() {
    let fixture = on_server();
    let key = IdempotencyKey { user: "ann".to_owned(), key: "k".to_owned() };
    let other = fixture.reopen();
    assert_eq!(fixture.store.idempotency.begin_key(&key, [1; 32], NOW_MS).wait().unwrap(), None);
    fixture.hand_over("idempotency_key", Other::Elsewhere);
    assert_eq!(state_elsewhere(&fixture, &other), Some(KeyState::Running));
    fixture.sql("DELETE FROM holder");
    for _ in 0..2 {
        assert_eq!(state_elsewhere(&fixture, &other), Some(KeyState::CutOff));
    }
    let own = crate::process::ProcessIdentity::current_process();
    fixture.sql(&format!("UPDATE idempotency_key SET process = '{own}'"));
    let reply = KeyedReply { status: 200, body: Some(b"{}".to_vec()) };
    fixture.store.idempotency.end_key(&key, reply.clone()).wait().unwrap();
    assert_eq!(state_elsewhere(&fixture, &other), Some(KeyState::Done(reply)));
}

/// Names that are longer than an index of the server takes, and have characters that its texts do not.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask postgres"]
fn the_longest_names_have_a_place() {
    let fixture = on_server();
    let name: String = "\0\u{e0ff}é".chars().cycle().take(400).collect();
    let key = IdempotencyKey { user: name.clone(), key: name.clone() };
    let store = &fixture.store;
    assert_eq!(store.idempotency.begin_key(&key, [1; 32], NOW_MS).wait().unwrap(), None);
    assert!(store.idempotency.begin_key(&key, [1; 32], NOW_MS).wait().unwrap().is_some());
    let groups = [name.clone()];
    store.users.set_login_groups(&name, &groups).wait().unwrap();
    assert_eq!(store.users.login_groups(&name).wait().unwrap(), groups);
    store.users.add_usage(&name, 1, crate::UserUsage::one_call()).wait().unwrap();
    assert_eq!(store.users.usage_since(&name, 0).wait().unwrap().calls, 1);
}

/// A session whose machine dies is free when its lease ends. A machine that was only slow cannot write
/// behind the back of the next one.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask postgres"]
fn the_session_of_a_machine_that_dies_is_free_with_its_lease() {
    let fixture = on_server();
    let (slow, next) = (&fixture.store, fixture.reopen());
    slow.sessions.create(new_session("s-1")).wait().unwrap();
    let claim = || next.presence.claim_session(USER, "s-1", NOW_MS).wait().unwrap();
    slow.presence.claim_session(USER, "s-1", NOW_MS).wait().unwrap();
    fixture.hand_over("presence", Other::Elsewhere);
    assert_eq!(claim(), SessionClaim::OpenElsewhere);
    fixture.sql("DELETE FROM holder");
    assert_eq!(claim(), SessionClaim::Claimed);
    let append = |store: &HostStore| {
        store.sessions.append_records(USER, "s-1", 0, vec![new_record("text")]).wait()
    };
    assert_eq!(append(&next).unwrap(), 1);
    let error = append(slow).unwrap_err();
    assert!(matches!(error, StoreError::ConcurrentAppend { .. }), "{error}");
}

/// Of several machines that claim a session at the same time, one gets it: each is another process to
/// the others, because their rows are handed over as soon as they are there.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask postgres"]
fn of_machines_that_claim_at_once_one_gets_the_session() {
    let fixture = on_server();
    fixture.sql(
        "CREATE FUNCTION elsewhere() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            NEW.process := 'machine ' || pg_backend_pid();
            INSERT INTO holder VALUES (NEW.process, 9000000000000000000);
            RETURN NEW; END $$;
         CREATE TRIGGER elsewhere BEFORE INSERT ON presence FOR EACH ROW EXECUTE FUNCTION elsewhere()",
    );
    let stores: Vec<HostStore> = (0..6).map(|_| fixture.reopen()).collect();
    let claimed = std::thread::scope(|scope| {
        let claims: Vec<_> = stores
            .iter()
            .map(|store| {
                scope.spawn(move || store.presence.claim_session(USER, "s-1", NOW_MS).wait())
            })
            .collect();
        claims.into_iter().map(|claim| claim.join().unwrap().unwrap()).collect::<Vec<_>>()
    });
    let got = claimed.iter().filter(|claim| **claim == SessionClaim::Claimed).count();
    assert_eq!(got, 1, "{claimed:?}");
}

/// A machine hears of a message at once, and only its user's.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask postgres"]
fn a_machine_hears_of_the_messages_of_its_users() {
    let fixture = on_server();
    let other = fixture.reopen();
    let notice = crate::tests::notices::notice("s-1", "text", NoticeAudience::User);
    let tell = |user: &str| other.notices.store_notice(user, &notice).wait().unwrap();
    let listen = |user: &str| fixture.store.notices.listen(user);
    let mut mine = listen("me");
    // The connection listens from now on, whatever was stored before.
    mine.wait_for_news().wait();
    let mut yours = listen("you");
    std::thread::scope(|scope| {
        let you = scope.spawn(|| yours.wait_for_news().wait());
        // What came before a wait counts, too.
        tell("me");
        mine.wait_for_news().wait();
        assert!(!you.is_finished());
        tell("you");
    });
    // A connection that was lost is made again, and what was missed is looked for.
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE query LIKE 'LISTEN test_%' AND pid <> pg_backend_pid()";
    assert!(schema(&fixture).store.count_sql(end).wait().unwrap() > 0);
    mine.wait_for_news().wait();
}
