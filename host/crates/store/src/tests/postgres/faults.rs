//! What a server may do to a store: it ends connections, is killed, has no room, takes no changes.

use super::*;

/// Lets the server refuse each new row of a table as one whose disk is full does.
fn fill_up(table: &str) -> String {
    format!(
        "CREATE FUNCTION no_room_{table}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END $$;
         CREATE TRIGGER no_room BEFORE INSERT ON {table} EXECUTE FUNCTION no_room_{table}()"
    )
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask postgres"]
fn a_server_without_room_loses_nothing_and_goes_on_when_it_has_some() {
    let fixture = on_server();
    let sessions = &fixture.store.sessions;
    sessions.create(new_session("s-1")).wait().unwrap();
    let append = |known| {
        sessions
            .append_records(USER, "s-1", known, vec![new_record("text"), new_record("b")])
            .wait()
    };
    assert_eq!(append(0).unwrap(), 2);
    fixture.append([1]);
    for table in ["record", "body", "audit"] {
        fixture.sql(&fill_up(table));
    }
    let error = append(2).unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    assert!(error.hint().unwrap().contains("free some space"), "{error}");
    assert_eq!(sessions.get(USER, "s-1").wait().unwrap().records, 2, "all or nothing");
    let log = fixture.store.audit_log();
    let error = log.commit(record(2)).wait().unwrap_err();
    assert!(error.to_string().contains("no room left"), "{error}");
    for table in ["record", "body", "audit"] {
        fixture.sql(&format!("DROP TRIGGER no_room ON {table}"));
    }
    assert_eq!(append(2).unwrap(), 4);
    fixture.append([3]);
    assert_eq!(fixture.problems(), [""; 0]);
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask postgres"]
fn a_server_that_can_only_be_read_is_told_and_read() {
    let fixture = on_server();
    fixture.store.sessions.create(new_session("s-1")).wait().unwrap();
    let tests = test_address().unwrap();
    let address =
        format!("{}?options=-c%20default_transaction_read_only%3Don", tests.secret().expose());
    let address = DatabaseAddress::parse(&address).unwrap();
    let all = schema(&fixture);
    let store = PostgresStore::open_schema(&address, &all.name, all.folder()).unwrap();
    let store = HostStore::from_parts(store);
    assert_eq!(store.sessions.get(USER, "s-1").wait().unwrap().records, 0);
    let error =
        store.sessions.append_records(USER, "s-1", 0, vec![new_record("a")]).wait().unwrap_err();
    assert!(matches!(error, StoreError::ReadOnly { .. }), "{error}");
    assert!(error.hint().unwrap().contains("name the primary server"), "{error}");
    assert!(store.audit_log().flush(PATIENCE).is_err());
    assert_eq!(fixture.verify().records, 0);
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask postgres"]
fn a_database_of_an_older_version_gets_what_is_missing() {
    let fixture = on_server();
    fixture.store.sessions.create(new_session("s-1")).wait().unwrap();
    fixture
        .sql("DROP TABLE login_groups, user_usage, idempotency_key; UPDATE store SET version = 1");
    let store = fixture.reopen();
    assert!(store.users.login_groups("ann").wait().unwrap().is_empty());
    assert_eq!(store.sessions.get(USER, "s-1").wait().unwrap().records, 0);
    assert_eq!(fixture.count("SELECT version FROM store"), migration::NEWEST as u64);
}

/// A transaction whose connection is ended by the server is tried again; one that was acknowledged is
/// there.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask postgres"]
fn connections_that_the_server_ends_lose_nothing() {
    let fixture = on_server();
    fixture.store.sessions.create(new_session("s-1")).wait().unwrap();
    let end_all = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
        WHERE application_name = 'sallyport' AND pid <> pg_backend_pid() AND query LIKE '%record (%'";
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut known = 0;
            for number in 0..200 {
                let new = new_record(&format!("body {number}"));
                match fixture.store.sessions.append_records(USER, "s-1", known, vec![new]).wait() {
                    Ok(total) => known = total,
                    Err(StoreError::OutcomeUnknown { .. }) => {
                        let session = fixture.store.sessions.get(USER, "s-1").wait().unwrap();
                        assert!(session.records == known || session.records == known + 1);
                        known = session.records;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            known
        });
        while !writer.is_finished() {
            let _ = schema(&fixture).store.count_sql(end_all).wait();
            std::thread::sleep(Duration::from_millis(5));
        }
        let known = writer.join().unwrap();
        let session = fixture.store.sessions.get(USER, "s-1").wait().unwrap();
        assert_eq!(session.records, known);
        assert_eq!(fixture.count("SELECT count(*) FROM record"), known);
    });
}

/// Rounds of [`what_was_acknowledged_outlives_the_server`]: far longer than some restarts of a server.
const ROUNDS: u64 = 3000;

/// Writes while somebody kills the server with -9 and starts it again (`cargo xtask postgres`).
#[test]
#[ignore = "it needs somebody who kills the server"]
fn what_was_acknowledged_outlives_the_server() {
    let fixture = on_server();
    fixture.store.sessions.create(new_session("s-1")).wait().unwrap();
    let log = fixture.log();
    let (mut records, mut audited, mut failures) = (Vec::new(), 0, 0);
    for number in 0..ROUNDS {
        let new = new_record(&format!("body {number}"));
        let known = records.len() as u64;
        let appended = fixture.store.sessions.append_records(USER, "s-1", known, vec![new]).wait();
        match appended {
            Ok(_) => records.push(number),
            Err(StoreError::OutcomeUnknown { .. } | StoreError::Unreachable { .. }) => {
                failures += 1;
                if stored_records(&fixture) > known {
                    records.push(number);
                }
            }
            Err(error) => panic!("{error}"),
        }
        match log.commit(record(number)).wait() {
            Ok(()) => audited += 1,
            Err(_) => failures += 1,
        }
    }
    let session = fixture.store.sessions.get(USER, "s-1").wait().unwrap();
    assert_eq!(session.records, records.len() as u64);
    let seen = fixture.verify();
    assert!(seen.records >= audited, "{} of {audited}", seen.records);
    assert_eq!(seen.problems, []);
    println!("{} records, {audited} of the audit, {failures} failures", records.len());
}

/// How many records the session has, once the server is there again.
fn stored_records(fixture: &Fixture) -> u64 {
    loop {
        if let Ok(session) = fixture.store.sessions.get(USER, "s-1").wait() {
            return session.records;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
