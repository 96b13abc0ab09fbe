//! The fixture in PostgreSQL, and what only a server can do to a store.

mod copy;
mod faults;
mod machines;

use std::sync::atomic::AtomicU32;

use super::*;
use crate::{
    DatabaseAddress, NewRecord, NewSession, StoreError, StoredUsage,
    postgres::{PostgresStore, migration},
};

/// Names the database of the tests; `cargo xtask postgres` sets it.
const ADDRESS: &str = "SALLYPORT_TEST_POSTGRES";

/// Returns the database of the tests, if there is one.
#[expect(clippy::disallowed_methods, reason = "a test is told its server by the environment")]
pub(super) fn test_address() -> Option<DatabaseAddress> {
    let address = std::env::var(ADDRESS).ok()?;
    Some(DatabaseAddress::parse(&address).unwrap())
}

/// Tables of their own, which go with the test.
pub(super) struct TestSchema {
    pub(super) store: PostgresStore,
    address: DatabaseAddress,
    name: String,
    folder: std::path::PathBuf,
}

impl TestSchema {
    pub(super) fn new(address: DatabaseAddress, folder: &Path) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("test_{}_{number}", std::process::id());
        let store = PostgresStore::open_schema(&address, &name, folder).unwrap();
        Self { store, address, name, folder: folder.to_owned() }
    }

    /// The same tables, with connections of their own.
    pub(super) fn reopen(&self) -> PostgresStore {
        self.reopen_in(&self.folder)
    }

    /// The same tables, as another machine opens them.
    fn reopen_in(&self, folder: &Path) -> PostgresStore {
        PostgresStore::open_schema(&self.address, &self.name, folder).unwrap()
    }

    pub(super) fn with_clock(&self, clock: Arc<dyn Fn() -> u64 + Send + Sync>) -> PostgresStore {
        let mut store = self.store.clone();
        store.clock = clock;
        store
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn sql(&self, text: &str) {
        self.store.run_sql(text).wait().unwrap();
    }

    pub(super) fn count(&self, sql: &str) -> u64 {
        self.store.count_sql(sql).wait().unwrap()
    }

    /// Gives a process of another machine a lease.
    pub(super) fn give_lease(&self, name: &str) {
        self.sql(&format!("INSERT INTO holder VALUES ('{name}', {})", i64::MAX));
    }
}

impl Drop for TestSchema {
    fn drop(&mut self) {
        let sql = format!("DROP SCHEMA IF EXISTS {} CASCADE", self.name);
        // A test that fails may be in the middle of a wait.
        std::thread::scope(|scope| {
            let _ = scope.spawn(|| drop(self.store.run_sql(&sql).wait())).join();
        });
    }
}

/// A fixture in PostgreSQL with its schema.
fn on_server() -> Fixture {
    assert!(test_address().is_some(), "cargo xtask postgres names a server");
    Fixture::new()
}

fn schema(fixture: &Fixture) -> &TestSchema {
    match &fixture.backend {
        Backend::Postgres(schema) => schema,
        Backend::Sqlite(_) => panic!("the test is about PostgreSQL"),
    }
}

fn new_session(id: &str) -> NewSession {
    NewSession {
        user: USER.to_owned(),
        id: id.to_owned(),
        title: String::new(),
        model: String::new(),
        folder: None,
        created_ms: 1,
    }
}

fn new_record(body: &str) -> NewRecord {
    NewRecord {
        kind: "input".to_owned(),
        body: body.to_owned(),
        search_text: String::new(),
        at_ms: 1,
        used: StoredUsage::default(),
    }
}

#[test]
fn a_server_that_is_not_there_is_told_without_the_password() {
    let folder = TempDir::new().unwrap();
    // Nothing listens on port 1.
    let address = DatabaseAddress::parse("postgres://ann:geheim@127.0.0.1:1/sp").unwrap();
    let store = HostStore::connect(&address, &folder.path().join("store")).unwrap();
    let error = store.sessions.get(USER, "s-1").wait().unwrap_err();
    assert!(matches!(error, StoreError::Unreachable { .. }), "{error}");
    let text = format!("{error} {error:?} {}", error.hint().unwrap_or_default());
    assert!(text.contains("postgres://ann@127.0.0.1:1/sp"), "{text}");
    assert!(!text.contains("geheim"), "{text}");
    let log = store.audit_log();
    assert!(log.flush(PATIENCE).is_err());
    assert!(log.append(record(1)).is_err());
}

#[test]
fn an_address_with_a_mistake_is_told_without_the_password() {
    let folder = TempDir::new().unwrap();
    for address in ["postgres://ann:geheim@h:no/sp", "postgres://ann:geheim@h/sp?geheim=1"] {
        let address = DatabaseAddress::parse(address).unwrap();
        let error = HostStore::connect(&address, &folder.path().join("store")).unwrap_err();
        assert!(error.to_string().contains("its address cannot be read"), "{error}");
        assert!(!format!("{error:?}").contains("heim"), "{error:?}");
    }
}

#[test]
#[ignore = "needs PostgreSQL: cargo xtask postgres"]
fn a_database_that_is_a_version_ahead_is_left_alone() {
    let fixture = on_server();
    fixture.sql(&format!("UPDATE store SET version = {}", migration::NEWEST + 1));
    let error = fixture.reopen().sessions.get(USER, "s-1").wait().unwrap_err();
    let (found, known) = (migration::NEWEST + 1, migration::NEWEST);
    assert!(
        matches!(error, StoreError::NewerSchema { found: f, known: k, .. } if (f, k) == (found, known)),
        "{error}"
    );
}

/// What was changed in the database is found as in SQLite.
#[test]
#[ignore = "needs PostgreSQL: cargo xtask postgres"]
fn h50_a_change_of_a_record_is_noticed() {
    for sql in [
        "UPDATE audit SET text = replace(text, 'message 2', 'massage 2') WHERE seq = 2",
        "UPDATE audit SET hash = '\\x00' WHERE seq = 2",
        "UPDATE audit SET seq = 99 WHERE seq = 2",
        "DELETE FROM audit WHERE seq = 2",
        "DELETE FROM audit WHERE seq > 2",
        "DELETE FROM audit",
        "INSERT INTO audit (seq, text, hash) SELECT 99, text, hash FROM audit WHERE seq = 2",
    ] {
        let fixture = on_server();
        fixture.append(1..=4);
        fixture.sql(sql);
        assert!(!fixture.verify().is_intact(), "{sql}");
    }
}
